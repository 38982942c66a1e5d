"""Contrastive accuracy is what the probabilities say, however sentences are batched."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from word_pipeline import WordPipeline, small_model

from tests.plain_formulas import token_log_probabilities
from weitblick.common.errors import UserError
from weitblick.common.recipe import ContextSection
from weitblick.documents.contrast import ContrastItem
from weitblick.evaluation.contrast import encode_suite, judge_suite, summarise, without_context
from weitblick.evaluation.scoring import Candidate, ScoringDocument, reading_order, score_candidates
from weitblick.evaluation.suites import read_suite
from weitblick.model.batch import Batch, pack_pairs
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import EOS
from weitblick.translation.translator import Translator

VARIANTS = [
    {"kind": "hierarchical"},
    {"kind": "hierarchical", "integration": "decoder"},
    {"kind": "hierarchical", "integration": "decoder", "values": "words"},
    {"kind": "word", "direction": "online"},
    {"kind": "sentence", "integration": "decoder", "direction": "online", "states": "frozen"},
    {"kind": "zhang"},
    {"kind": "han", "integration": "decoder"},
]


def documents_of(seed: int, count: int = 5) -> list[ScoringDocument]:
    random = np.random.default_rng(seed)

    def sentences(number: int) -> list[list[int]]:
        return [random.integers(4, 30, random.integers(1, 9)).tolist() for _ in range(number)]

    return [ScoringDocument(sentences(n), sentences(n)) for n in random.integers(2, 7, count)]


def every_candidate(documents: list[ScoringDocument]) -> list[Candidate]:
    """The reference of every sentence, and another translation of it, not in the order of documents."""
    pairs = [(d, s) for d, document in enumerate(documents) for s in range(len(document.sources))]
    references = [Candidate(d, s, documents[d].targets[s]) for d, s in pairs]  # type: ignore[index]
    return references + [Candidate(d, s, [7, 8, 9]) for d, s in pairs]


def with_biases(probabilities: dict[int, float], size: int) -> DocumentModel:
    """A model that gives every word the same probability, whatever the sentence: those named, and the rest shared."""
    model = small_model(size, kind="none")
    assert model.sentence.output_table is not None
    rest = (1 - sum(probabilities.values())) / (size - len(probabilities))
    with torch.no_grad():
        model.sentence.output_table.zero_()
        model.sentence.output_bias.copy_(torch.tensor([probabilities.get(i, rest) for i in range(size)]).log())
    return model


def item(reference: str, *contrastive: str, **known: object) -> ContrastItem:
    values = {"id": "x", "source": ("a", "b"), "target": None, "sentence": 1, **known}
    return ContrastItem(reference=reference, contrastive=contrastive, **values)  # type: ignore[arg-type]


def test_accuracy_is_what_known_probabilities_say() -> None:
    pipeline = WordPipeline(["er", "sie", "es", "schläft"])
    er, sie, es, schläft = range(4, 8)
    model = with_biases({er: 0.2, sie: 0.1, es: 0.05, schläft: 0.3, EOS: 0.25}, pipeline.size)
    items = [
        item("er schläft", "sie schläft", "es schläft", distance=1, pronoun="er"),  # .2 against .1 and .05: right
        item("sie schläft", "er schläft", "es schläft", distance=1, pronoun="sie"),  # .1 against .2: wrong
        item("es", "sie schläft", distance=5, pronoun="es"),  # sums, not means: .05 against .1 * .3: right
        item("er schläft", "schläft er", distance=0, pronoun="er"),  # the same words: within rounding no decision
        item("er Hund", "er Katze", pronoun="er"),  # two unknown words: exactly a tie
    ]
    suite = encode_suite(Translator(model, pipeline), items)  # type: ignore[arg-type]
    verdicts = judge_suite(model, suite, batch_tokens=8)
    assert math.isclose(verdicts[0].reference, math.log(0.2 * 0.3 * 0.25), rel_tol=1e-5)
    assert math.isclose(verdicts[1].best_variant, math.log(0.2 * 0.3 * 0.25), rel_tol=1e-5)
    assert math.isclose(verdicts[2].reference - verdicts[2].best_variant, math.log(0.05 / 0.03), rel_tol=1e-4)
    assert [verdicts[number].correct for number in (0, 1, 2, 4)] == [True, False, True, False]
    assert [verdicts[number].tie for number in (0, 1, 2, 4)] == [False, False, False, True]
    report = summarise([verdicts[number] for number in (0, 1, 2, 4)]).to_json()
    assert (report["accuracy"], report["items"], report["correct"], report["ties"]) == (0.5, 4, 2, 1)
    assert {name: group["accuracy"] for name, group in report["by_distance"].items()} == {
        "1": 0.5,
        ">3": 1.0,
        "unknown": 0.0,
    }
    assert {name: group["items"] for name, group in report["by_pronoun"].items()} == {"er": 2, "es": 1, "sie": 1}
    assert report["by_phenomenon"] == {}
    assert math.isclose(report["chance"], (1 / 3 + 1 / 3 + 1 / 2 + 1 / 2) / 4, rel_tol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("mode", ["own", "random"])
def test_a_candidate_alone_or_in_a_batch_has_the_same_score(variant: dict[str, object], mode: str) -> None:
    model, documents = small_model(30, **variant), documents_of(1)
    candidates = every_candidate(documents)
    together = score_candidates(model, documents, candidates, mode)  # type: ignore[arg-type]
    alone = score_candidates(model, documents, candidates, mode, batch_tokens=1)  # type: ignore[arg-type]
    np.testing.assert_allclose(together.log_probabilities, alone.log_probabilities, atol=1e-4)
    assert together.gate is not None
    assert 0 < together.gate < 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_references_score_as_in_one_pass_of_the_model(variant: dict[str, object]) -> None:
    model, documents = small_model(30, **variant), documents_of(2, count=1)
    count = len(documents[0].sources)
    pairs = pack_pairs(documents[0].sources, documents[0].targets or [], [0] * count, list(range(count)))
    with torch.no_grad():
        states = model(Batch(pairs)).states
    words = token_log_probabilities(states, *model.sentence.output(), pairs.labels).double()
    expected = torch.zeros(count, dtype=torch.float64).index_add_(0, pairs.target.layout.sentence, words)
    found = score_candidates(model, documents, every_candidate(documents)[:count])
    np.testing.assert_allclose(found.log_probabilities, expected.numpy(), atol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_removed_context_is_the_sentence_level_path(variant: dict[str, object]) -> None:
    model, documents = small_model(30, **variant), documents_of(3)
    candidates = every_candidate(documents)
    removed = score_candidates(model, documents, candidates, "removed")
    plain = score_candidates(DocumentModel(model.sentence, None, ContextSection()), documents, candidates)
    np.testing.assert_array_equal(removed.log_probabilities, plain.log_probabilities)
    assert removed.gate is None
    own = score_candidates(model, documents, candidates)
    assert np.abs(own.log_probabilities - removed.log_probabilities).max() > 1e-3


@pytest.mark.parametrize("variant", VARIANTS)
def test_random_context_is_that_of_the_next_in_the_circle(variant: dict[str, object]) -> None:
    model, documents = small_model(30, **variant), documents_of(4)
    candidates = every_candidate(documents)
    found = score_candidates(model, documents, candidates, "random", seed=3).log_probabilities
    order = reading_order(len(documents), 3)
    changed = documents_of(5, count=1)[0]
    stranger, reader = order[2], order[1]
    other = [changed if number == stranger else document for number, document in enumerate(documents)]
    kept = [number for number, candidate in enumerate(candidates) if candidate.document != stranger]
    after = score_candidates(model, other, [candidates[n] for n in kept], "random", seed=3).log_probabilities
    moved = np.abs(after - found[kept]) > 1e-4
    assert {candidates[n].document for n, has_moved in zip(kept, moved, strict=True) if has_moved} == {reader}


def test_online_scores_do_not_depend_on_the_future() -> None:
    model, documents = small_model(30, kind="hierarchical", direction="online", integration="decoder"), documents_of(6)
    candidates = [candidate for candidate in every_candidate(documents) if candidate.sentence == 1]
    changed = []
    for document in documents:
        future = len(document.sources) - 2
        sources = [*document.sources[:2], *([5] * len(source) for source in document.sources[2:])]
        changed.append(ScoringDocument(sources, [*(document.targets or [])[:2], *([[6]] * future)]))
    before = score_candidates(model, documents, candidates).log_probabilities
    np.testing.assert_allclose(score_candidates(model, changed, candidates).log_probabilities, before, atol=1e-5)


def test_one_document_has_no_random_other() -> None:
    with pytest.raises(UserError, match="only one"):
        score_candidates(small_model(30), documents_of(1, count=1), [Candidate(0, 0, [5])], "random")


def test_a_model_that_reads_targets_needs_them() -> None:
    translator = Translator(small_model(30, integration="decoder"), WordPipeline([]))  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"s\.jsonl:4: item x: field 'target' is missing"):
        encode_suite(translator, [item("a", "b").at("s.jsonl", 4)])


def test_items_without_context_are_counted_by_what_the_model_can_read() -> None:
    items = [
        item("a", "b", source=("x", "y"), sentence=0),
        item("a", "b", source=("x", "y"), sentence=1),
        item("a", "b", source=("x",), sentence=0),
        item("a", "b", source=("", "y"), sentence=1),
    ]
    assert without_context(small_model(30), items) == 2
    assert without_context(small_model(30, direction="online"), items) == 3


# Suites


def write_lines(path: Path, *items: object) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in items), encoding="utf-8")
    return path


PLAIN = {"source": ["A cat.", "It slept."], "sentence": 1, "reference": "Sie schlief.", "contrastive": ["Es schlief."]}


def test_only_four_fields_are_required(tmp_path: Path) -> None:
    (found,) = read_suite(write_lines(tmp_path / "suite.jsonl", PLAIN))
    assert (found.source, found.sentence, found.target) == (("A cat.", "It slept."), 1, None)
    assert (found.distance_group, found.phenomenon, found.chance) == (None, None, 0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": None}, "field 'source' is missing"),
        ({"sentence": None}, "field 'sentence' is missing"),
        ({"reference": None}, "field 'reference' is missing"),
        ({"contrastive": None}, "field 'contrastive' is missing"),
        ({"contrastive": []}, "field 'contrastive' is an empty list"),
        ({"contrastive": "Es"}, "field 'contrastive' is \"Es\", not a list"),
        ({"sentence": 2}, "field 'sentence' is 2, but 'source' has 2 sentences"),
        ({"sentence": -1}, "field 'sentence' is -1"),
        ({"target": ["Eine Katze."]}, "field 'target' has 1 sentences, but 'source' has 2"),
        ({"distance": "one"}, "field 'distance' is \"one\""),
        ({"reference": " "}, "field 'reference' is empty"),
    ],
)
def test_a_bad_item_is_named_by_line_and_field(tmp_path: Path, change: dict[str, object], message: str) -> None:
    bad = {key: value for key, value in {**PLAIN, **change}.items() if value is not None}
    path = write_lines(tmp_path / "suite.jsonl", PLAIN, bad)
    with pytest.raises(UserError) as caught:
        read_suite(path)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n\n", "[]"])
def test_a_suite_without_items_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "suite.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match="holds no items"):
        read_suite(path)


def test_contrapro_lines_have_at_most_one_context_sentence(tmp_path: Path) -> None:
    first = {
        "id": 7,
        "src": "it slept.",
        "ref": "Er schlief.",
        "contrastive": ["Sie schlief.", "Es schlief.", "Ihn schlief."],
        "src_context": "a dog.",
        "ref_context": "Ein Hund.",
        "ref_pronoun": "Er",
        "ante_distance": 1,
    }
    second = {"src": "it ran.", "ref": "Es lief.", "contrastive": ["Er lief."], "src_context": "", "ref_context": ""}
    one, two = read_suite(write_lines(tmp_path / "contrapro.jsonl", first, second))
    assert (one.source, one.target, one.sentence) == (("a dog.", "it slept."), ("Ein Hund.", "Er schlief."), 1)
    assert (one.distance, one.pronoun, one.chance, two.sentence, two.distance) == (1, "er", 0.25, 0, None)
    with pytest.raises(UserError, match=r":2: field 'ref' is missing"):
        read_suite(write_lines(tmp_path / "bad.jsonl", first, {**second, "ref": None}))


CONTRAPRO = {
    "document id": "2014_1.de",
    "segment id": 3,
    "src segment": 'It said " no ".',
    "ref segment": "Sie sagte nein.",
    "ref pronoun": "Sie",
    "ante distance": 2,
    "errors": [{"contrastive": "Er sagte nein."}, {"contrastive": "Es sagte nein."}],
}


def contrapro(folder: Path, *items: object) -> Path:
    (folder / "documents" / "2014").mkdir(parents=True, exist_ok=True)
    (folder / "documents" / "2014" / "2014_1.en").write_text('The cat.\nWell.\nIt said "no".\nI see.\n')
    (folder / "documents" / "2014" / "2014_1.de").write_text("Die Katze.\nNun.\nSie sagte nein.\nAha.\n")
    path = folder / "contrapro.json"
    path.write_text(json.dumps(items, indent=1))
    return path


def test_the_original_contrapro_brings_its_documents(tmp_path: Path) -> None:
    (found,) = read_suite(contrapro(tmp_path, CONTRAPRO))
    assert (found.sentence, len(found.source), found.target) == (
        2,
        4,
        ("Die Katze.", "Nun.", "Sie sagte nein.", "Aha."),
    )
    assert (found.distance_group, found.pronoun, len(found.contrastive)) == ("2", "sie", 2)
    near = found.crop(1)
    assert (near.sentence, near.source[near.sentence], len(near.source)) == (1, 'It said "no".', 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"document id": "other.de"}, "item 1: field 'document id' is 'other.de'"),
        ({"segment id": 9}, "field 'segment id' is 9, but the document has 4 lines"),
        ({"src segment": "It said yes."}, "line 3 of the document"),
        ({"errors": [{}]}, "item 1: field 'errors.0.contrastive' is missing"),
        ({"errors": []}, "field 'errors' is an empty list"),
    ],
)
def test_a_bad_contrapro_item_is_named(tmp_path: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as caught:
        read_suite(contrapro(tmp_path, {**CONTRAPRO, **change}))
    assert message in str(caught.value)


def test_contrapro_without_its_documents_says_how_to_name_them(tmp_path: Path) -> None:
    path = contrapro(tmp_path, CONTRAPRO)
    with pytest.raises(UserError, match="--document-folder"):
        read_suite(path, documents=tmp_path / "nowhere")
