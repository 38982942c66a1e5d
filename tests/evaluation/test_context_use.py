"""CXMI is the difference that context makes, and its interval comes from documents."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from weitblick.checkpoints.folder import build, save_model
from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.common.recipe import ContextSection, ModelSection, TextSection
from weitblick.documents.corpora.formats import read_documents, write_documents
from weitblick.documents.discourse.generator import generate
from weitblick.documents.document import Document, Sentence
from weitblick.evaluation.context_use import compare_contexts, encode_corpus, measure_context_use, translate_with
from weitblick.evaluation.scoring import Scores
from weitblick.text.base import TextPipeline
from weitblick.text.pipeline import learn_pipeline
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return generate("small", 40, 1).test[:6]


@pytest.fixture(scope="module")
def pipeline(documents: list[Document]) -> TextPipeline:
    sources = [source for document in documents for source in document.sources]
    targets = [target or "" for document in documents for target in document.targets]
    return learn_pipeline((sources, targets), TextSection(kind="sentencepiece", merges=200, joint_vocabulary=True))


SECTION = ModelSection(dimension=16, feed_forward=32, encoder_layers=1, decoder_layers=1, heads=2)


def translator_of(pipeline: TextPipeline, **context: object) -> Translator:
    torch.manual_seed(3)
    sizes = (len(pipeline.source_vocabulary), len(pipeline.target_vocabulary))
    return Translator(build(SECTION, ContextSection(**{"kind": "hierarchical", **context}), *sizes).eval(), pipeline)


def test_cxmi_is_the_mean_difference_and_its_interval_covers_documents() -> None:
    own, removed, random = (np.array(values, dtype=float) for values in ([-1, -2, -3, -4], [-2, -3, -3, -6], [-1] * 4))
    tokens = np.array([1, 2, 3, 4])
    scores = {"own": Scores(own, tokens), "removed": Scores(removed, tokens), "random": Scores(random, tokens)}
    differences = compare_contexts(scores, [0, 0, 1, 2], seed=1)  # type: ignore[arg-type]
    difference = differences["cxmi"]
    assert difference.per_token.mean == 0.4
    assert difference.per_sentence.mean == 1.0
    low, high = difference.per_sentence.low, difference.per_sentence.high
    # one document gains nothing, another 2 a sentence: resampling documents reaches both
    assert (low, high) == (0.0, 2.0)
    assert (difference.sentences_better, difference.sentences_worse) == (3, 0)
    assert differences["own_over_random"].per_sentence.mean == -1.5


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
def test_usage_of_a_model_is_measured(pipeline: TextPipeline, documents: list[Document], integration: str) -> None:
    model = translator_of(pipeline, integration=integration).model
    corpus = encode_corpus(pipeline, documents)
    report = measure_context_use(model, corpus)
    per_token = report.log_probability_per_token
    assert report.sentences == sum(len(document.sentences) for document in documents)
    assert abs(report.differences["cxmi"].per_token.mean - (per_token["own"] - per_token["removed"])) < 1e-5
    assert report.gate is not None
    assert 0 < report.gate < 1
    assert (report.support or 0) >= 1
    assert measure_context_use(model, corpus, batch_tokens=50).differences["cxmi"].per_token.mean == pytest.approx(
        report.differences["cxmi"].per_token.mean, abs=1e-4
    )


def test_a_model_whose_gate_is_shut_uses_nothing(pipeline: TextPipeline, documents: list[Document]) -> None:
    model = translator_of(pipeline, gate_start=1.0).model
    with torch.no_grad():
        model.context.gate.bias.fill_(100.0)  # type: ignore[union-attr]
    report = measure_context_use(model, encode_corpus(pipeline, documents))
    assert abs(report.differences["cxmi"].per_token.mean) < 1e-5
    assert abs(report.differences["own_over_random"].per_token.mean) < 1e-5


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
def test_translations_with_each_context(pipeline: TextPipeline, documents: list[Document], integration: str) -> None:
    translator = translator_of(pipeline, integration=integration)
    options = TranslationOptions(beam=1)
    found = {mode: translate_with(translator, documents, mode, options) for mode in ("own", "removed", "random")}  # type: ignore[arg-type]
    bare = [Document(document.id, tuple(map(Sentence, document.sources))) for document in documents]
    assert found["own"] == list(translator.translate_documents(bare, beam=1))
    assert found["removed"] == list(translator.translate_documents(bare, beam=1, context=False))
    assert [document.sources for document in found["random"]] == [document.sources for document in documents]
    assert all(target for document in found["random"] for target in document.targets)


def test_a_stranger_that_is_oneself_is_no_stranger(pipeline: TextPipeline, documents: list[Document]) -> None:
    """With copies of one document, random context is own context: the control reads what it says it reads."""
    translator = translator_of(pipeline, integration="decoder")
    copies = [documents[0]] * 3
    options = TranslationOptions(beam=2)
    own, random = (translate_with(translator, copies, mode, options) for mode in ("own", "random"))  # type: ignore[arg-type]
    assert own == random


def test_a_corpus_without_references_is_refused(pipeline: TextPipeline) -> None:
    with pytest.raises(UserError, match="no sentence has both"):
        encode_corpus(pipeline, [Document("1", (Sentence("It slept."),))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, pipeline: TextPipeline, documents: list[Document]) -> Path:
    folder = tmp_path_factory.mktemp("usage")
    save_model(folder / "model", translator_of(pipeline).model, pipeline, SECTION, {})
    save_model(folder / "sentence", translator_of(pipeline, kind="none").model, pipeline, SECTION, {})
    for side, name in (("sources", "test.en"), ("targets", "test.de")):
        text = "\n".join("".join(f"{line}\n" for line in getattr(document, side)) for document in documents)
        (folder / name).write_text(text, encoding="utf-8")
    items = [
        {
            "source": document.sources,
            "target": document.targets,
            "sentence": 1,
            "reference": document.targets[1],
            "contrastive": [f"{document.targets[1]} {document.targets[0]}"],
            "phenomenon": "length",
            "distance": number,
            "direction": "past",
        }
        for number, document in enumerate(documents)
    ]
    (folder / "suite.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return folder


def test_target_context_may_be_other_translations(documents: list[Document], pipeline: TextPipeline) -> None:
    model = translator_of(pipeline, integration="decoder", values="words").model
    changed = [Document(d.id, tuple(Sentence(s, "Ja.") for s in d.sources)) for d in documents]
    own = measure_context_use(model, encode_corpus(pipeline, documents))
    same = measure_context_use(model, encode_corpus(pipeline, documents, documents))
    other = measure_context_use(model, encode_corpus(pipeline, documents, changed))
    assert same == own
    assert other.tokens == own.tokens  # what is scored are the references all the same
    assert other.log_probability_per_token["removed"] == own.log_probability_per_token["removed"]
    assert other.log_probability_per_token["own"] != own.log_probability_per_token["own"]


def run(*arguments: str | Path) -> dict:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_translations_are_compared_by_document(folder: Path) -> None:
    files = folder / "test.en", folder / "test.de"
    report = run("context-use", "-m", folder / "model", *files, "--json", "--limit", "3", "--translate", "--beam", "1")
    for name in ("bleu", "chrf"):
        found = report[name]
        pair = found["own_over_removed"]
        assert pair["difference"] == pytest.approx(found["own"] - found["removed"], abs=2e-4)
        assert pair["interval"][0] <= pair["difference"] + 1e-4


def test_pronouns_are_judged_by_rule_and_in_translations(folder: Path, tmp_path: Path) -> None:
    item = {"source": ["The cat slept.", "It was tired."], "target": ["Die Katze schlief.", "Sie war müde."]}
    item |= {"sentence": 1, "reference": "Sie war müde.", "contrastive": ["Er war müde."], "pronoun": "sie"}
    (tmp_path / "pronouns.jsonl").write_text((json.dumps(item) + "\n") * 2, encoding="utf-8")
    report = run("contrast", "-m", folder / "model", tmp_path / "pronouns.jsonl", "--json", "--generate")
    assert report["rules"]["first article"]["accuracy"] == 1.0
    assert set(report["generated"]) == {"human", "own", "removed"}
    assert all(found["items"] == 2 for found in report["generated"].values())
    with pytest.raises(UserError, match="--generate looks for er, sie and es"):
        run("contrast", "-m", folder / "model", folder / "suite.jsonl", "--generate")


def test_the_commands_print_json(folder: Path) -> None:
    report = run(
        "context-use", "-m", folder / "model", folder / "test.en", folder / "test.de", "--json", "--limit", "3"
    )
    assert report["documents"] == 3
    write_documents(read_documents([folder / "test.en", folder / "test.de"]), [folder / "test.tsv"])
    table = run("context-use", "-m", folder / "model", folder / "test.tsv", "--json", "--limit", "3")
    assert table["cxmi"] == report["cxmi"]
    assert set(report["cxmi"]["per_token"]) == {"mean", "interval"}
    contrast = run("contrast", "-m", folder / "model", folder / "suite.jsonl", "--json", "--controls")
    assert contrast["items"] == 6
    assert set(contrast["controls"]) == {"own", "removed", "random"}
    assert set(contrast["by_distance"]) == {"0", "1", "2", "3", ">3"}
    assert contrast["by_distance"][">3"]["items"] == 2
    assert contrast["by_phenomenon"]["length"]["items"] == contrast["by_direction"]["past"]["items"] == 6
    own, random = (contrast["controls"][mode]["correct"] for mode in ("own", "random"))
    pair = contrast["paired"]["own_over_random"]
    assert pair["better"] - pair["worse"] == own - random
    assert pair["interval"][0] <= pair["difference"] <= pair["interval"][1]
    assert "rules" not in contrast  # nothing here is about er, sie and es
    removed = run("contrast", "-m", folder / "model", folder / "suite.jsonl", "--json", "--no-context")
    assert removed["accuracy"] == contrast["controls"]["removed"]["accuracy"]
    plain = CliRunner().invoke(
        app, ["contrast", "-m", str(folder / "model"), str(folder / "suite.jsonl"), "--controls"]
    )
    assert "random" in plain.stdout
    assert ">3" in plain.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["contrast", "-m", "nowhere", "suite.jsonl"], "nowhere: no such model folder"),
        (["contrast", "-m", "model", "nothing.jsonl"], "nothing.jsonl: no such file"),
        (["contrast", "-m", "model", "suite.jsonl", "--no-context", "--controls"], "exclude each other"),
        (["context-use", "-m", "sentence", "test.en", "test.de"], "sentence-level model"),
        (["context-use", "-m", "model", "test.en", "suite.jsonl"], "suite.jsonl"),
        (
            ["context-use", "-m", "model", "test.en", "test.de", "--target-context", "test.de"],
            "reads no target sentences",
        ),
        (["context-use", "-m", "model", "test.en"], "no reference translation"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(UserError) as caught:
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert message in str(caught.value)
