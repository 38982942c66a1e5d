"""Context that decides between some words is read where they are expected, and changes nothing elsewhere."""

from __future__ import annotations

import pytest
import torch

from weitblick.batches.batch import Batch, pack_pairs
from weitblick.batches.layout import Layout
from weitblick.config.recipe import ContextSection, ModelSection
from weitblick.model.build import build
from weitblick.model.document_model import DocumentModel

WORDS = [6, 7]
SECTION = ModelSection(dimension=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=1)


def model() -> DocumentModel:
    torch.manual_seed(3)
    context = ContextSection(kind="word", integration="decoder", values="words", direction="online", order=True)
    return build(SECTION, context, 20, 20).eval()


def batch() -> Batch:
    return Batch(pack_pairs([[9, 10], [5, 11], [12, 5]], [[8, 9], [6, 10], [9, 7]], [0, 0, 0], [0, 1, 2]))


@torch.no_grad()
def test_only_steps_that_expect_these_words_read_context() -> None:
    one, made = model(), batch()
    memory, _ = one.encode(made.current.source)
    everywhere = one(made).states
    for shift in (-3.0, 0.0, 3.0):
        one.sentence.output_bias[WORDS] = shift
        one.decide_between(WORDS)
        without = one.decode(made.current.target, memory, made.current.source.layout)
        probability = without.words.softmax.table(slice(0, 9)).exp()[:, WORDS].sum(-1)
        expected = torch.where((probability >= 0.1)[:, None], everywhere, without.states)
        assert torch.equal(one(made).states, expected)
    assert (probability >= 0.1).all()


@torch.no_grad()
@pytest.mark.parametrize("shift", [-9.0, 0.0, 3.0])
def test_a_step_reads_what_a_whole_pass_reads(shift: float) -> None:
    one, made = model(), batch()
    one.sentence.output_bias[WORDS] = shift
    one.decide_between(WORDS)
    target = made.current.target
    memory, _ = one.encode(made.current.source)
    context = one.offer(made.current.source, target)
    whole = one.decode(target, memory, made.current.source.layout, context)
    layout = Layout(torch.ones_like(target.layout.lengths), target.layout.documents, target.layout.positions)
    cache = one.sentence.start(memory, made.current.source.layout)
    for position in range(3):
        rows = target.layout.starts + position
        found = one.step(target.tokens[rows], cache, layout, context)
        torch.testing.assert_close(found.states, whole.states[rows])


@torch.no_grad()
def test_none_named_is_everywhere() -> None:
    one, made = model(), batch()
    before = one(made).states
    one.decide_between(WORDS)
    one.decide_between([])
    assert torch.equal(one(made).states, before)


def test_it_needs_the_decoder() -> None:
    with pytest.raises(ValueError, match="decides needs integration: decoder"):
        ContextSection(kind="word", decides=["er"])
