"""Explanations of real (small, untrained) models say what those models compute."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from synthetic_explanation import STORY

from tests.plain_formulas import token_log_probabilities
from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ModelSection, TextSection
from weitblick.documents.document import Document, Sentence
from weitblick.explanation import trace as trace_module
from weitblick.explanation.explain import explain, explain_translations, translations_of
from weitblick.explanation.schema import DocumentTranslations, Explanation, text_of, words_in
from weitblick.explanation.storage import from_json, to_json
from weitblick.model.batch import Batch, pack_pairs
from weitblick.model.document_model import DocumentModel
from weitblick.model.modifiers import WordChoice
from weitblick.model.output import Softmax, WordDistribution
from weitblick.text.base import TextPipeline
from weitblick.text.pipeline import learn_pipeline
from weitblick.translation.translator import Translator

SOURCES = [source for source, _, _ in STORY]
TARGETS = [target for _, target, _ in STORY]
WITHOUT = [without or target for _, target, without in STORY]


@pytest.fixture(scope="module", params=["sentencepiece", "moses"])
def pipeline(request: pytest.FixtureRequest) -> TextPipeline:
    return learn_pipeline((SOURCES, TARGETS + WITHOUT), TextSection(kind=request.param, merges=450))


@pytest.fixture(scope="module")
def plain_pipeline() -> TextPipeline:
    return learn_pipeline((SOURCES, TARGETS + WITHOUT), TextSection(kind="sentencepiece", merges=450))


def model_of(pipeline: TextPipeline, **context: object) -> DocumentModel:
    torch.manual_seed(1)
    model_section = ModelSection(dimension=32, feed_forward=64, encoder_layers=1, decoder_layers=1, heads=2)
    context_section = ContextSection(**{"kind": "hierarchical", **context})
    sizes = (len(pipeline.source_vocabulary), len(pipeline.target_vocabulary))
    return build(model_section, context_section, *sizes).eval()


def translations(pipeline: TextPipeline, sentences: int = len(STORY)) -> DocumentTranslations:
    sides = ((SOURCES, "source"), (TARGETS, "target"), (WITHOUT, "target"))
    source, target, without = (pipeline.encode(texts[:sentences], side) for texts, side in sides)
    return DocumentTranslations(SOURCES[:sentences], source, target, without, without)


def explanation_of(
    model: DocumentModel, pipeline: TextPipeline, given: DocumentTranslations | None = None
) -> Explanation:
    return explain_translations(model, pipeline, translations(pipeline) if given is None else given, title="story")


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
@pytest.mark.parametrize("direction", ["offline", "online"])
@pytest.mark.parametrize("kind", ["hierarchical", "sentence", "word"])
def test_attention_is_a_distribution_over_the_sentences_that_may_be_seen(
    plain_pipeline: TextPipeline, kind: str, direction: str, integration: str
) -> None:
    model = model_of(plain_pipeline, kind=kind, direction=direction, integration=integration)
    explanation = explanation_of(model, plain_pipeline)
    for index, sentence in enumerate(explanation.sentences):
        if direction == "online" and index == 0:
            assert sentence.attention is None
            assert all(score.gain == 0 and score.divergence == 0 for score in sentence.scores)
            continue
        assert sentence.attention.queries == len(sentence.context_share) == len(explanation.query_words(index))
        for query in range(sentence.attention.queries):
            row = sentence.attention.row(query, 1)
            assert sum(entry.mass for entry in row.entries) + row.rest == pytest.approx(1.0, abs=1e-3)
            assert index not in [entry.sentence for entry in row.entries]
            if direction == "online":
                assert all(entry.sentence < index for entry in row.entries)
            for entry in row.entries:
                width = 0 if kind == "sentence" else len(explanation.sentences[entry.sentence].context_words)
                assert len(entry.words) == width
                if width:
                    assert entry.words.sum() == pytest.approx(1.0, abs=width / 400)
    assert from_json(to_json(explanation)).model == explanation.model


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
@pytest.mark.parametrize("kind", ["han", "zhang"])
def test_the_baselines_are_explained_as_far_as_they_can_be(
    plain_pipeline: TextPipeline, kind: str, integration: str
) -> None:
    model = model_of(plain_pipeline, kind=kind, direction="online", integration=integration)
    explanation = explanation_of(model, plain_pipeline)
    last = explanation.sentences[-1]
    assert 0 < last.context_share[0] < 1
    if kind == "zhang":
        assert last.attention is None
        assert "inside every layer" in explanation.notes[0]
    else:
        assert {entry.sentence for entry in last.attention.average(0).entries} <= {10, 11, 12}
        assert last.attention.average(0).entries[0].words.sum() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
def test_a_translator_is_explained_with_its_own_translations(plain_pipeline: TextPipeline, integration: str) -> None:
    translator = Translator(model_of(plain_pipeline, integration=integration), plain_pipeline)
    sentences = (Sentence(SOURCES[1]), Sentence(""), Sentence(SOURCES[3]), Sentence(SOURCES[4], "Es ging.", "locked"))
    document = Document("story", sentences)
    given = translations_of(translator, document, beam=1)
    for wish, found in ((True, given.targets), (False, given.targets_without)):
        translated = translator.translate(document, beam=1, context=wish)
        for text, target in zip(plain_pipeline.decode_target(found), translated.targets, strict=True):
            assert text in (target, "")  # an untrained model may say nothing, for which the translator gives the source
    explanation = explain(translator, document, beam=1)
    assert explanation.sentences[1].source == ()
    if integration == "decoder":  # context is what the first pass found, and what was locked
        assert explanation.sentences[0].context_words == explanation.sentences[0].target_without
        assert text_of(explanation.sentences[3].context_words) == "Es ging."


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
def test_scores_are_those_of_the_model(plain_pipeline: TextPipeline, integration: str) -> None:
    model = model_of(plain_pipeline, integration=integration)
    given = translations(plain_pipeline)
    explanation = explanation_of(model, plain_pipeline, given)
    count = len(given.texts)
    pairs = pack_pairs(given.sources, given.targets, [0] * count, range(count))
    context = pack_pairs(given.sources, given.contexts, [0] * count, range(count))
    with torch.inference_mode():
        for batch, name in ((Batch(pairs, context), "with_context"), (Batch(pairs), "without_context")):
            bank = None if name == "without_context" else model.offer(context.source, context.target)
            memory, _ = model.encode(batch.current.source, bank)
            states = model.decode(batch.current.target, memory, batch.current.source.layout, bank).states
            expected = token_log_probabilities(states, *model.sentence.output(), batch.current.labels)
            layout = batch.current.target.layout
            for index, sentence in enumerate(explanation.sentences):
                found = sum(getattr(score, name) for score in sentence.scores)
                words = slice(int(layout.starts[index]), int(layout.starts[index] + layout.lengths[index]) - 1)
                assert found == pytest.approx(float(expected[words].sum()), abs=1e-3)


def test_reading_a_document_in_parts_changes_nothing(
    plain_pipeline: TextPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(plain_pipeline)
    whole = explanation_of(model, plain_pipeline)
    monkeypatch.setattr(trace_module, "WEIGHT_ELEMENTS", 1)
    monkeypatch.setattr(trace_module, "LOGIT_ELEMENTS", 1000)
    parts = explanation_of(model, plain_pipeline)
    for one, other in zip(whole.sentences, parts.sentences, strict=True):
        assert [score.gain for score in one.scores] == pytest.approx([score.gain for score in other.scores], abs=1e-4)
        assert one.context_share == pytest.approx(other.context_share, abs=1e-5)
        for query in range(one.attention.queries):
            first, second = one.attention.average(query), other.attention.average(query)
            masses = {entry.sentence: entry.mass for entry in second.entries}
            assert all(abs(masses.get(entry.sentence, 0) - entry.mass) < 1e-3 for entry in first.entries)


def test_a_model_without_a_context_layer_shows_translations_and_probabilities(plain_pipeline: TextPipeline) -> None:
    explanation = explanation_of(model_of(plain_pipeline, kind="none"), plain_pipeline)
    assert "no context layer" in explanation.notes[0]
    for sentence in explanation.sentences:
        assert sentence.attention is None
        assert len(sentence.scores) == len(sentence.target) == len(sentence.alignment)
        assert all(score.with_context < 0 and score.gain == 0 for score in sentence.scores)


def test_an_empty_document_and_empty_sentences_are_explained(plain_pipeline: TextPipeline) -> None:
    assert explanation_of(model_of(plain_pipeline), plain_pipeline, translations(plain_pipeline, 0)).notes == (
        "The document is empty.",
    )
    given = translations(plain_pipeline, 3)
    sides = [list(side) for side in (given.texts, given.sources, given.targets, given.targets_without, given.contexts)]
    for side in sides:
        side[1] = side[1][:0]
    for integration in ("encoder", "decoder"):
        model = model_of(plain_pipeline, integration=integration)
        explanation = explanation_of(model, plain_pipeline, DocumentTranslations(*sides))
        assert explanation.sentences[1].source == explanation.sentences[1].target == ()
        attended = {e.sentence for e in explanation.sentences[0].attention.average(0).entries}
        assert attended == {2}
        assert from_json(to_json(explanation)).sentences[2].attention is not None


def test_alignments_are_shares_of_source_words(pipeline: TextPipeline) -> None:
    explanation = explanation_of(model_of(pipeline), pipeline, translations(pipeline, 4))
    for sentence in explanation.sentences:
        for aligned in sentence.alignment:
            weights = [weight for _, weight in aligned]
            assert weights == sorted(weights, reverse=True)
            assert 0 < sum(weights) <= 1.001
            assert all(0 <= index < len(sentence.source) for index, _ in aligned)


def test_words_are_spelled_and_spaced_as_in_the_text(pipeline: TextPipeline) -> None:
    for text, ids in zip(SOURCES, pipeline.encode(SOURCES, "source"), strict=True):
        words = words_in(pipeline, ids, "source", text)
        assert text_of(words) == text
        assert [word.start for word in words[1:]] == [word.end for word in words[:-1]]
        assert words[-1].end == len(ids)
        assert words[-1].text in (".", "”", ".”")


def test_choices_without_context_are_whole_words_of_the_other_translation(plain_pipeline: TextPipeline) -> None:
    """A model that predicts "Es" without and "Sie" with context, piece by piece, by construction."""
    from weitblick.explanation.explain import _Choices, _score

    target, without = (plain_pipeline.encode([text], "target")[0] for text in (TARGETS[1], WITHOUT[1]))
    words = words_in(plain_pipeline, target, "target", TARGETS[1])
    words_without = words_in(plain_pipeline, without, "target", WITHOUT[1])
    zeros = np.zeros(len(target))
    best_without = np.array([without[0], *target[1:]])
    figures = trace_module.Predictions(zeros - 0.1, zeros - 2.0, zeros + 0.5, np.array(target), best_without)
    choices = _Choices(plain_pipeline, target, without, words_without)
    score = _score(figures, words[0].start, words[0].end, choices)
    assert (words[0].text, score.choice_without) == ("Sie", "Es")
    assert score.gain == pytest.approx(1.9 * (words[0].end - words[0].start))
    assert _score(figures, words[1].start, words[1].end, choices).choice_without is None


def test_what_would_stand_there_is_told_by_the_first_piece_that_would_differ(plain_pipeline: TextPipeline) -> None:
    """Both predictions would have begun with another word; only the second piece tells that context decided."""
    from weitblick.explanation.explain import _Choices, _score

    target, without = (plain_pipeline.encode([text], "target")[0] for text in (TARGETS[1], WITHOUT[1]))
    words = words_in(plain_pipeline, target, "target", TARGETS[1])
    long = next(word for word in words if word.end - word.start > 1)
    zeros = np.zeros(len(target))
    best_with, best_without = np.array(target), np.array(target)
    best_with[long.start] = best_without[long.start] = best_without[long.start + 1] = without[0]
    figures = trace_module.Predictions(zeros, zeros, zeros, best_with, best_without)
    choices = _Choices(plain_pipeline, target, without, words_in(plain_pipeline, without, "target", WITHOUT[1]))
    assert _score(figures, long.start, long.end, choices).choice_without == "Es"


def test_where_context_decides_between_words_one_pass_tells_both() -> None:
    words = torch.arange(4, 30)
    states = torch.randn(9, 16, generator=torch.Generator().manual_seed(3))
    softmax = Softmax(states, torch.randn(40, 16, generator=torch.Generator().manual_seed(4)), torch.zeros(40))
    scores = torch.randn(3, len(words), generator=torch.Generator().manual_seed(5)) * 3
    decided = WordDistribution(
        softmax, (WordChoice(words, torch.ones(1, len(words), dtype=torch.bool), torch.tensor([1, 4, 8]), scores),)
    )
    labels = torch.arange(5, 14)
    with torch.no_grad():
        found = trace_module._compare_where_decided(decided, labels)
        expected = trace_module._compare(decided, WordDistribution(softmax), labels)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    assert (found[2] > 0).nonzero()[:, 0].tolist() == [1, 4, 8]
