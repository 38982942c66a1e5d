"""What is exported translates elsewhere as it does here without context."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch
from marian_models import TEXTS, random_model
from typer.testing import CliRunner

from weitblick.checkpoints.export_ctranslate2 import export_ctranslate2
from weitblick.checkpoints.export_marian import export_marian
from weitblick.checkpoints.folder import LoadedModel, build, load_model
from weitblick.checkpoints.hub import check_output_folder
from weitblick.checkpoints.import_marian import import_marian
from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.common.recipe import ContextSection, ModelSection, TextSection
from weitblick.text.base import TextPipeline
from weitblick.text.pipeline import learn_pipeline
from weitblick.translation.translator import Translator

SPEECH = [
    "Mr President, the report on the budget was adopted last week.",
    "It is long, but it is necessary.",
    "I would like to thank the rapporteur for the excellent work.",
    "The Commission has 27 members; they meet every Wednesday in Brussels.",
    "We cannot accept this proposal – it would cost more than 30 % of the funds!",
    "Yes.",
    "Why has the Council not answered the question of the Member States about the fisheries agreement?",
]


def run_card(folder: Path, sentences: list[str]) -> list[str]:
    """Runs what the folder's card shows."""
    (snippet,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"folder": str(folder), "sentences": sentences}
    exec(snippet, names)
    found: list[str] = names["translations"]
    return found


def with_transformers(folder: Path, sentences: list[str], beam: int | None = 1) -> list[str]:
    from transformers import AutoModelForSeq2SeqLM, MarianTokenizer

    tokenizer = MarianTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    found: list[str] = []
    for sentence in sentences:
        with torch.no_grad():
            wishes = {} if beam is None else {"num_beams": beam}
            ids = model.generate(**tokenizer([sentence], return_tensors="pt"), **wishes)
        found += tokenizer.batch_decode(ids, skip_special_tokens=True)
    return found


def greedy(loaded: LoadedModel, sentences: list[str], beam: int | None = 1) -> list[str]:
    """Or, with a beam of None, as the model's own settings say."""
    translator = Translator(loaded.model, loaded.pipeline)
    return [target or "" for target in translator.translate(sentences, beam=beam, context=False).targets]


def check_same(there: list[str], ours: list[str]) -> None:
    """Here a translation is never empty, as those of random models may be elsewhere."""
    pairs = [(a, b) for a, b in zip(there, ours, strict=True) if a]
    assert len(pairs) >= 4
    assert [a for a, _ in pairs] == [b for _, b in pairs]


def test_the_shipped_model(tmp_path: Path) -> None:
    """weitblick export ctranslate2 -o C; weitblick export marian -o M"""
    ours = [target or "" for target in Translator.load().translate(SPEECH, beam=1, context=False).targets]
    for kind, run in (("ctranslate2", run_card), ("marian", with_transformers)):
        result = CliRunner().invoke(app, ["export", kind, "-o", str(tmp_path / kind)])
        assert result.exit_code == 0, result.output
        assert run(tmp_path / kind, SPEECH) == ours


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"separate": True},
        {"separate": True, "tie_word_embeddings": False, "scale_embedding": False, "activation_function": "gelu"},
    ],
    ids=["shared", "separate", "not tied"],
)
def test_an_imported_model_goes_out_again(configuration: dict[str, Any], tmp_path: Path) -> None:
    random_model(tmp_path / "m", **configuration)
    import_marian(tmp_path / "m").save(tmp_path / "ours")
    loaded = load_model(tmp_path / "ours")
    ours = greedy(loaded, TEXTS)
    export_ctranslate2(loaded, tmp_path / "c")
    export_marian(loaded, tmp_path / "t")
    check_same(with_transformers(tmp_path / "t", TEXTS), ours)
    check_same(with_transformers(tmp_path / "t", TEXTS, None), greedy(loaded, TEXTS, None))
    check_same(_ctranslate2(tmp_path / "c", loaded.pipeline, TEXTS, [18] * len(TEXTS)), ours)
    again = import_marian(tmp_path / "t")
    assert greedy(LoadedModel(again.model, again.pipeline, again.section, ContextSection()), TEXTS) == ours


@pytest.fixture(scope="module")
def pipelines() -> dict[str, TextPipeline]:
    corpus = (SPEECH * 3, [sentence[::-1] for sentence in SPEECH * 3])
    sections = {
        "joint": TextSection(kind="sentencepiece", merges=320, joint_vocabulary=True),
        "separate": TextSection(kind="sentencepiece", merges=320),
        "moses": TextSection(kind="moses", merges=100),
    }
    return {name: learn_pipeline(corpus, section) for name, section in sections.items()}


def made(pipeline: TextPipeline, **model: Any) -> LoadedModel:
    section = ModelSection(dimension=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=2, **model)
    torch.manual_seed(2)
    sizes = len(pipeline.source_vocabulary), len(pipeline.target_vocabulary)
    found = build(section, ContextSection(), *sizes).eval()
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return LoadedModel(found, pipeline, section, ContextSection())


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("tied", ["none", "output", "all"])
def test_our_own_models(norm: str, tied: str, pipelines: dict[str, TextPipeline], tmp_path: Path) -> None:
    loaded = made(pipelines["joint"], norm=norm, tied_embeddings=tied, attention_biases=tied == "none")
    ours = greedy(loaded, SPEECH)
    export_ctranslate2(loaded, tmp_path / "c")
    limits = [2 * len(ids) + 10 for ids in loaded.pipeline.encode_source(SPEECH)]
    there = _ctranslate2(tmp_path / "c", loaded.pipeline, SPEECH, limits)
    check_same(there, ours)
    if norm == "pre" and tied != "all":
        with pytest.raises(UserError, match="no like in transformers"):
            export_marian(loaded, tmp_path / "t")
        assert not (tmp_path / "t").exists()


def _ctranslate2(folder: Path, pipeline: TextPipeline, sentences: list[str], limits: list[int]) -> list[str]:
    translator = ctranslate2.Translator(str(folder))
    found = []
    for sentence, ids, limit in zip(sentences, pipeline.encode_source(sentences), limits, strict=True):
        pieces = [pipeline.pieces(ids, "source")]
        one = translator.translate_batch(pieces, beam_size=1, max_decoding_length=limit)[0].hypotheses[0]
        found += pipeline.decode_target([[pipeline.target_vocabulary.id(piece) for piece in one]], [sentence])
    return found


def test_separate_vocabularies_and_moses_go_to_ctranslate2_only(
    pipelines: dict[str, TextPipeline], tmp_path: Path
) -> None:
    for name in ("separate", "moses"):
        loaded = made(pipelines[name])
        limits = [2 * len(ids) + 10 for ids in loaded.pipeline.encode_source(SPEECH)]
        export_ctranslate2(loaded, tmp_path / name)
        check_same(_ctranslate2(tmp_path / name, loaded.pipeline, SPEECH, limits), greedy(loaded, SPEECH))
        with pytest.raises(UserError, match="tokenizer"):
            export_marian(loaded, tmp_path / "t")


def test_rnnsearch_is_refused(pipelines: dict[str, TextPipeline], tmp_path: Path) -> None:
    loaded = made(pipelines["joint"], architecture="rnnsearch")
    for export in (export_ctranslate2, export_marian):
        with pytest.raises(UserError, match="rnnsearch"):
            export(loaded, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_only_what_we_wrote_is_replaced(tmp_path: Path) -> None:
    marks = ("config.json", "model.bin")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter.txt").write_text("Dear")
    with pytest.raises(UserError, match="other things"):
        check_output_folder(tmp_path / "letters", marks)
    with pytest.raises(UserError, match="is a file"):
        check_output_folder(tmp_path / "letters" / "letter.txt", marks)
    with pytest.raises(UserError, match="that is read"):
        check_output_folder(tmp_path, marks, tmp_path / "letters")
    for name in marks:
        (tmp_path / "letters" / name).write_text("")
    check_output_folder(tmp_path / "letters", marks, tmp_path / "elsewhere")
    check_output_folder(tmp_path / "new", marks)
