"""Concatenation baselines: what is joined, what is cut, and that every line gets its translation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from weitblick.checkpoints.folder import build, load_model
from weitblick.common.errors import UserError
from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.common.recipe_files import load_recipe
from weitblick.documents.discourse.generator import generate, write_corpus
from weitblick.evaluation.scoring import Candidate, ScoringDocument, score_candidates
from weitblick.model.batch import Batch, Pairs, pack_pairs
from weitblick.model.concatenation import SOURCE_SEPARATOR, TARGET_SEPARATOR, Concatenation
from weitblick.model.document_model import DocumentModel
from weitblick.text.units import Unit
from weitblick.training.run import train
from weitblick.translation.beam import Hypothesis
from weitblick.translation.driver import translate_units
from weitblick.translation.options import TranslationOptions
from weitblick.translation.searching import current_only, without_separators
from weitblick.translation.translator import Translator

SOURCES = [[10, 11], [12], [13, 14, 15], [16]]
TARGETS = [[20], [21, 22], [23], [24, 25]]
PLACES = [0, 0, 0, 1], [0, 1, 2, 0]  # three sentences of one document, one of another


def model(integration: str, sentences: int = 1) -> DocumentModel:
    torch.manual_seed(3)
    section = ContextSection(kind="concatenation", integration=integration, sentences=sentences)
    small = ModelSection(dimension=16, feed_forward=32, encoder_layers=1, decoder_layers=1, heads=2)
    return build(small, section, 40, 40).eval()


def lists(pairs: Pairs) -> tuple[list[list[int]], list[list[int]]]:
    """Source words and labels of every sentence, `</s>` included."""
    source, target = pairs.source, pairs.target
    return (
        [part.tolist() for part in source.tokens.split(source.layout.lengths.tolist())],
        [part.tolist() for part in pairs.labels.split(target.layout.lengths.tolist())],
    )


@pytest.mark.parametrize("previous", [1, 2])
def test_sentences_stand_behind_those_before_them(previous: int) -> None:
    batch = Batch(pack_pairs(SOURCES, TARGETS, *PLACES))
    joined = Concatenation(previous, both_sides=True).batch(batch)
    sources, labels = lists(joined.current)
    first = [10, 11, SOURCE_SEPARATOR] if previous == 2 else []
    assert sources == [[10, 11, 2], [10, 11, 2, 12, 2], [*first, 12, SOURCE_SEPARATOR, 13, 14, 15, 2], [16, 2]]
    before = [20, TARGET_SEPARATOR] if previous == 2 else []
    assert labels[2] == [*before, 21, 22, TARGET_SEPARATOR, 23, 2]
    assert lists(Concatenation(previous, both_sides=False).batch(batch).current)[1] == lists(batch.current)[1]


def test_a_part_of_a_document_reads_what_stands_before_it() -> None:
    whole = pack_pairs(SOURCES, TARGETS, *PLACES)
    part = whole.choose(torch.tensor([False, False, True, False]))
    sources, labels = lists(Concatenation(1, both_sides=True).batch(Batch(part, whole)).current)
    assert sources == [[12, SOURCE_SEPARATOR, 13, 14, 15, 2]]
    assert labels == [[21, 22, TARGET_SEPARATOR, 23, 2]]


def hypothesis(*ids: int) -> Hypothesis:
    return Hypothesis(list(ids), -1.0, -float(len(ids) + 1), [-1.0] * (len(ids) + 1))


def test_the_translation_is_what_stands_behind_the_last_separator() -> None:
    x = TARGET_SEPARATOR
    good, doubled = hypothesis(20, x, 21), hypothesis(20, x, x, 22, 23)
    missing, empty = hypothesis(24), hypothesis(25, x)
    assert [cut.ids for cut in current_only([good, doubled, missing, empty], 1)] == [[21], [22, 23]]
    assert current_only([good], 1)[0].log_probability == -2.0
    assert current_only([missing], 0)[0].ids == [24]
    assert [h.ids for h in without_separators([empty, hypothesis(x)])] == [[25], [x]]


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
def test_every_sentence_has_a_translation_without_separators(integration: str) -> None:
    """An untrained model says anything: separators are missing, doubled and last."""
    units = [
        Unit(document, position, position, "", source)
        for document in range(3)
        for position, source in enumerate(SOURCES)
    ]
    made = model(integration)
    with torch.no_grad():
        made.sentence.output_bias[TARGET_SEPARATOR] += 1.0
    found = translate_units(made, units, TranslationOptions(beam=2))
    assert len(found) == len(units)
    assert all(own and own[0].ids for own in found)
    if integration == "decoder":
        assert all(TARGET_SEPARATOR not in own[0].ids or set(own[0].ids) == {TARGET_SEPARATOR} for own in found)


def test_what_it_cannot_follow_is_refused() -> None:
    with pytest.raises(UserError, match="formality"):
        translate_units(model("encoder"), [Unit(0, 0, 0, "", [10])], TranslationOptions(formality="formal"))


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
def test_scores_are_those_of_the_current_sentence_behind_what_is_read(integration: str) -> None:
    made = model(integration)
    documents = [ScoringDocument(SOURCES[:3], TARGETS[:3]), ScoringDocument(SOURCES[1:], TARGETS[1:])]
    candidates = [Candidate(0, 2, [30, 31]), Candidate(0, 0, [32]), Candidate(1, 1, [33])]
    own = score_candidates(made, documents, candidates)
    removed = score_candidates(made, documents, candidates, "removed")
    random = score_candidates(made, documents, candidates, "random")
    target = [21, 22, TARGET_SEPARATOR, 30, 31] if integration == "decoder" else [30, 31]
    pairs = pack_pairs([[12, SOURCE_SEPARATOR, 13, 14, 15]], [target])
    with torch.no_grad():
        by_hand = made(Batch(pairs)).words.log_probabilities(pairs.labels)[-3:].sum()
    assert own.log_probabilities[0] == pytest.approx(float(by_hand), abs=1e-5)
    assert own.log_probabilities[1] == pytest.approx(removed.log_probabilities[1], abs=1e-6)
    assert len(set(np.round([s.log_probabilities[0] for s in (own, removed, random)], 6))) == 3
    assert own.tokens.tolist() == [3, 2, 2]


RECIPE = """
text: {kind: sentencepiece, merges: 200, joint_vocabulary: true}
threads: 1
model: {dimension: 16, feed_forward: 32, encoder_layers: 1, decoder_layers: 1, heads: 2, tied_embeddings: all}
context: {kind: concatenation, integration: decoder}
sentence_stage: {updates: 2, batch_tokens: 200, validate_every: 2}
context_stage: {updates: 2, batch_tokens: 200, validate_every: 2}
"""


@pytest.mark.usefixtures("short_splits")
def test_a_row_is_trained_saved_and_translates(tmp_path: Path) -> None:
    write_corpus(generate("small", 12, 1), tmp_path / "corpus")
    (tmp_path / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    given = [f"data.dir={tmp_path / 'corpus'}", f"output={tmp_path / 'run'}"]
    best = train(load_recipe(tmp_path / "recipe.yaml", given), quiet=True)
    assert Concatenation.of(load_model(best).model.section) == Concatenation(1, both_sides=True)
    document = Translator.load(best).translate(["The cat slept.", "It was tired.", "It woke up."], beam=1)
    assert all(document.targets)
