"""A Marian model trained elsewhere, from French to Spanish: taken over, trained on, used by every command."""

from __future__ import annotations

import json
from pathlib import Path

import ctranslate2
import pytest
import torch
from french_spanish import documents, write_corpus
from marian_models import generate
from transformers import MarianMTModel, MarianTokenizer
from typer.testing import CliRunner

from weitblick.checkpoints.folder import load_model
from weitblick.checkpoints.import_marian import import_marian
from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.model.batch import pack_pairs
from weitblick.text.base import TextPipeline
from weitblick.translation.translator import Translator

SHORT = [
    *(f"{stage}_stage.{key}=2" for stage in ("sentence", "context") for key in ("updates", "validate_every", "warmup")),
    *("memory_stage.documents=24", "memory_stage.dev_documents=12"),
    "threads=1",
]


def run(*arguments: str | Path, text: str | None = None) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)
    assert result.exit_code == 0, f"{arguments}\n{result.output}\n{result.exception!r}"
    return result.stdout


@pytest.fixture(scope="module")
def imported(small_marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported")
    run("import", small_marian, "-o", folder / "fr-es")
    for part, count in (("train", 40), ("dev", 15), ("test", 12)):
        write_corpus(folder / "corpus", count, part)
    return folder


def test_it_is_the_original_and_has_learned_something(small_marian: Path, imported: Path) -> None:
    """Log-probabilities of references within 1e-4, and the same translations, greedy and as its settings say."""
    model, tokenizer = MarianMTModel.from_pretrained(small_marian).eval(), MarianTokenizer.from_pretrained(small_marian)
    loaded = load_model(imported / "fr-es")
    pairs = [pair for document in documents(20) for pair in document]
    translator = Translator(loaded.model, loaded.pipeline)
    sources = [source for source, _ in pairs]
    for beam in (None, 1):
        expected = generate(model, tokenizer, sources, **({} if beam is None else {"num_beams": beam}))
        assert list(translator.translate(sources, beam=beam, context=False).targets) == expected
    right = sum(a == b for a, (_, b) in zip(expected, pairs, strict=True))
    assert right > len(pairs) / 4  # a model that guesses gets none

    for source, target in pairs[:12]:
        inputs = tokenizer([source], text_target=[target], return_tensors="pt")
        packed = pack_pairs(loaded.pipeline.encode_source([source]), loaded.pipeline.encode_target([target]))
        sentence = loaded.model.sentence
        with torch.no_grad():
            there = model(**inputs).logits[0].log_softmax(-1).gather(1, inputs["labels"][0, :, None])[:, 0]
            memory = sentence.encode(packed.source.tokens, packed.source.layout)
            states = sentence.decode(packed.target.tokens, packed.target.layout, memory, packed.source.layout)
            weight, bias = sentence.output()
            ours = (states.final @ weight.t() + bias).log_softmax(-1).gather(1, packed.labels[:, None])[:, 0]
        torch.testing.assert_close(ours, there, atol=1e-4, rtol=0)


CONTEXTS = {
    "hierarchical": [],
    "hierarchical, decoder, online": ["context.integration=decoder", "context.direction=online"],
    "hierarchical, frozen": ["context.states=frozen"],
    "words, decoder": ["context.kind=word", "context.integration=decoder", "context.values=words"],
    "sentences, in order, added": ["context.kind=sentence", "context.order=true", "context.gate=add"],
    "zhang, encoder": ["context.kind=zhang"],
    "zhang, decoder": ["context.kind=zhang", "context.integration=decoder"],
    "han, encoder": ["context.kind=han"],
    "han, decoder": ["context.kind=han", "context.integration=decoder"],
}


@pytest.mark.parametrize("held", [True, False], ids=["held", "trained on"])
@pytest.mark.parametrize("kind", CONTEXTS)
def test_every_kind_of_context_learns_on_top(kind: str, held: bool, imported: Path, tmp_path: Path) -> None:
    """Held, the sentence model stays as it is to the bit, and so do translations without context."""
    rate = ["context_stage.sentence_rate=0"] if held else ["context_stage.hold_sentence_model=0"]
    recipe = "recipes/imported/context.yaml"
    places = [f"stage1={imported / 'fr-es'}", f"data.dir={imported / 'corpus'}", f"output={tmp_path / 'run'}"]
    run("train", recipe, *places, *CONTEXTS[kind], *rate, *SHORT, "context_stage.result=last")
    before, after = load_model(imported / "fr-es"), load_model(tmp_path / "run" / "best")
    new, old = after.model.sentence.state_dict(), before.model.sentence.state_dict()
    changed = {name for name in old if not torch.equal(old[name], new[name])}
    assert bool(changed) != (held or kind.startswith("zhang"))  # Zhang's stage 2 trains new parameters only
    assert after.model_section.generation == before.model_section.generation
    sources = [source for document in documents(3) for source, _ in document]
    if not changed:
        alone = Translator(before.model, before.pipeline).translate(sources)
        assert Translator(after.model, after.pipeline).translate(sources, context=False).targets == alone.targets
    assert len(Translator(after.model, after.pipeline).translate(sources).targets) == len(sources)


def test_the_rival_without_context_is_never_held(imported: Path, tmp_path: Path) -> None:
    """Holding the sentence model would leave nothing to train."""
    places = [f"stage1={imported / 'fr-es'}", f"data.dir={imported / 'corpus'}", f"output={tmp_path / 'run'}"]
    changes = ["context.kind=none", "context_stage.hold_sentence_model=2", "context_stage.result=last"]
    run("train", "recipes/imported/context.yaml", *places, *SHORT, *changes)
    old = load_model(imported / "fr-es").model.state_dict()
    new = load_model(tmp_path / "run" / "best").model.state_dict()
    assert any(not torch.equal(old[name], new[name]) for name in old)
    arguments = ["train", "recipes/imported/context.yaml", *places[:2], f"output={tmp_path / 'other'}", changes[0]]
    result = CliRunner().invoke(app, [*arguments, "context_stage.sentence_rate=0"])
    assert isinstance(result.exception, UserError)
    assert "nothing would be trained" in str(result.exception)


@pytest.fixture(scope="module")
def trained(imported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both stages and a pointer, online, on the imported model; and a TMX of approved translations beside it."""
    folder = tmp_path_factory.mktemp("trained")
    data = f"data.dir={imported / 'corpus'}"
    stages = (
        ("sentence", imported / "fr-es", []),
        ("context", folder / "sentence" / "best", ["context.direction=online"]),
        ("memory", folder / "context" / "best", []),
    )
    for stage, start, changes in stages:
        places = [f"stage1={start}", data, f"output={folder / stage}"]
        run("train", f"recipes/imported/{stage}.yaml", *places, *changes, *SHORT)
    return folder / "memory" / "best"


def test_every_command_takes_it(trained: Path, imported: Path, tmp_path: Path) -> None:
    corpus = imported / "corpus"
    test, reference = corpus / "test.fr", corpus / "test.es"
    lines = test.read_text(encoding="utf-8").splitlines()
    for options in ([], ["--int8"], ["--no-context"], ["--beam", "1", "--scores"]):
        assert len(run("translate", test, "-m", trained, "-q", *options).splitlines()) == len(lines)
    streamed = run("translate", "-m", trained, "--stream", "-q", text="\n".join(lines[:3]) + "\n")
    assert len(streamed.splitlines()) == 3
    run("data", "convert", corpus / "dev.fr", corpus / "dev.es", "-o", tmp_path / "dev.tmx")
    run("translate", test, "-m", trained, "--memory", tmp_path / "dev.tmx", "-o", tmp_path / "out.es", "-q")
    scores = json.loads(run("score", tmp_path / "out.es", "--reference", reference, "--json"))
    assert "meteor" not in json.dumps(scores).lower()  # which is for German and English
    assert "moses-es" in json.dumps(scores)
    run("explain", test, "-m", trained, "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "María" in page
    assert '"target_language":"es"' in page.replace('": "', '":"')
    used = json.loads(run("context-use", test, reference, "-m", trained, "--json"))
    assert used
    items = [
        {
            "source": [source for source, _ in document],
            "sentence": 2,
            "reference": document[2][1],
            "contrastive": [document[2][1][:-2] + ("o!" if document[2][1].endswith("a!") else "a!")],
        }
        for document in documents(6)
    ]
    (tmp_path / "items.jsonl").write_text("\n".join(json.dumps(item) for item in items) + "\n", encoding="utf-8")
    judged = json.loads(run("contrast", tmp_path / "items.jsonl", "-m", trained, "--controls", "--json"))
    assert judged
    simulated = run("postedit", corpus / "dev.fr", corpus / "dev.es", "-m", trained, "--json")
    assert json.loads(simulated)


def test_it_leaves_without_context(trained: Path, tmp_path: Path) -> None:
    run("export", "ctranslate2", "-m", trained, "-o", tmp_path / "c")
    run("export", "marian", "-m", trained, "-o", tmp_path / "m")
    sources = [source for document in documents(8) for source, _ in document]
    loaded = load_model(trained)
    translator = Translator(loaded.model, loaded.pipeline)
    for beam in (1, 4):
        ours = list(translator.translate(sources, context=False, beam=beam).targets)
        model, tokenizer = (
            MarianMTModel.from_pretrained(tmp_path / "m"),
            MarianTokenizer.from_pretrained(tmp_path / "m"),
        )
        assert generate(model.eval(), tokenizer, sources, num_beams=beam) == ours
        assert with_ctranslate2(tmp_path / "c", loaded.pipeline, sources, beam) == ours
    again = import_marian(tmp_path / "m")
    assert list(Translator(again.model, again.pipeline).translate(sources).targets) == ours


def with_ctranslate2(folder: Path, pipeline: TextPipeline, sources: list[str], beam: int) -> list[str]:
    pieces = [pipeline.pieces(ids, "source") for ids in pipeline.encode_source(sources)]
    found = ctranslate2.Translator(str(folder)).translate_batch(pieces, beam_size=beam, max_decoding_length=126)
    ids = [[pipeline.target_vocabulary.id(piece) for piece in one.hypotheses[0]] for one in found]
    return pipeline.decode_target(ids, sources)
