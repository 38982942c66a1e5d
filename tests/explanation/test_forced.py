"""A document is read once for its explanation, and what it offers as context is what a pass of its own would say."""

from __future__ import annotations

import pytest
import torch

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.explanation.trace import ForcedDecoding, SentenceTrace, trace
from weitblick.fast.context_attention import ContextBank
from weitblick.model.batch import pack_pairs
from weitblick.model.context import Sources
from weitblick.model.document_model import DocumentModel

SOURCES = [[5, 6, 7], [8, 9], [10, 11, 12, 13], [14]]
TARGETS = [[5, 9], [6, 6, 7, 8], [9, 10, 11], [12, 4]]
CONTEXTS = [TARGETS[0], [6, 6, 7], TARGETS[2], TARGETS[3]]  # one sentence was another in the first pass


def model_of(**context: object) -> DocumentModel:
    torch.manual_seed(2)
    section = ModelSection(dimension=32, feed_forward=64, encoder_layers=1, decoder_layers=2, heads=2)
    return build(section, ContextSection(**{"kind": "word", **context}), 20, 20).eval()


def document() -> Sources:
    return Sources(SOURCES, [0] * len(SOURCES), range(len(SOURCES)))


@pytest.mark.parametrize("chosen", [[0, 1, 2, 3], [2], [1, 3]])
@pytest.mark.parametrize("states", ["live", "frozen"])
@pytest.mark.parametrize("integration", ["encoder", "decoder"])
@torch.no_grad()
def test_the_context_is_that_of_a_pass_of_its_own(integration: str, states: str, chosen: list[int]) -> None:
    model = model_of(integration=integration, states=states)
    if model.frozen is not None:  # stage 2 has gone on from the model that offers
        for parameter in model.sentence.parameters():
            parameter.mul_(1.1)
    found = ForcedDecoding(model, document(), TARGETS, chosen).context(CONTEXTS)
    pairs = pack_pairs(SOURCES, CONTEXTS, [0] * len(SOURCES), range(len(SOURCES)))
    expected = model.offer(pairs.source, pairs.target)
    assert isinstance(found.bank, ContextBank)
    for name, rows in expected.bank.projected.rows.items():
        torch.testing.assert_close(found.bank.projected.rows[name], rows, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("contexts", "passes"), [(TARGETS, [4]), (CONTEXTS, [4, 1])])
def test_only_translations_that_have_changed_are_read_again(
    contexts: list[list[int]], passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(integration="decoder")
    decode, seen = model.sentence.decode, []

    def count(tokens: torch.Tensor, layout: object, *others: object) -> object:
        seen.append(layout.sentences)
        return decode(tokens, layout, *others)

    monkeypatch.setattr(model.sentence, "decode", count)
    list(trace(model, SOURCES, TARGETS, contexts))
    assert seen == passes


@pytest.mark.parametrize("kind", ["word", "hierarchical", "han", "zhang", "none"])
@pytest.mark.parametrize("integration", ["encoder", "decoder"])
def test_some_sentences_are_explained_as_among_all(integration: str, kind: str) -> None:
    model = model_of(kind=kind, integration=integration, direction="online")
    everything = list(trace(model, SOURCES, TARGETS, CONTEXTS))
    for one, index in zip(trace(model, SOURCES, TARGETS, CONTEXTS, only=[1, 3]), [1, 3], strict=True):
        assert_alike(one, everything[index])


@pytest.mark.parametrize("expected", [False, True])
def test_a_sentence_in_which_context_has_nothing_to_decide_is_explained(expected: bool) -> None:
    model = model_of(integration="decoder", values="words", direction="online", order=True)
    model.decide_between([[6, 7]])
    with torch.no_grad():
        model.sentence.output_bias[[6, 7]] = 9.0 if expected else -30.0
    (found,) = trace(model, SOURCES, TARGETS, TARGETS, only=[1])
    changed = abs(found.predictions.with_context - found.predictions.without_context).max() > 1e-6
    assert changed == expected
    assert len(found.predictions.with_context) == len(TARGETS[1])


def assert_alike(one: SentenceTrace, other: SentenceTrace) -> None:
    for name in ("source_weights", "context_share", "sentence_weights", "word_weights", "sentences", "word_columns"):
        values = getattr(one, name), getattr(other, name)
        assert (values[0] is None) == (values[1] is None), name
        if values[0] is not None:
            assert values[0] == pytest.approx(values[1], abs=1e-5), name
    assert one.predictions.with_context == pytest.approx(other.predictions.with_context, abs=1e-4)
    assert one.predictions.without_context == pytest.approx(other.predictions.without_context, abs=1e-4)
