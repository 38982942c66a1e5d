"""The distribution of the next word, with and without a pointer: sums, search, loss and scoring agree."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.model.batch import Layout, Packed, pack_pairs
from weitblick.model.context import Context
from weitblick.model.modifiers import Pointed
from weitblick.model.output import Softmax, Wanted, WordDistribution, best_words
from weitblick.model.sentence_model import DecoderStates
from weitblick.text.base import BOS
from weitblick.translation.beam import SearchOptions, beam_search

T, D, V, N = 7, 8, 40, 5


def distribution(pointed: bool = True) -> WordDistribution:
    random = torch.Generator().manual_seed(3)
    softmax = Softmax(*(torch.randn(size, generator=random) for size in ((T, D), (V, D), (V,))))
    if not pointed:
        return WordDistribution(softmax)
    share = torch.rand(T, generator=random)
    share[2] = 0
    ids = torch.randint(3, V, (T, N), generator=random)
    ids[:, 1] = ids[:, 0]  # one word at two places
    weights = torch.rand(T, N, generator=random).softmax(-1)
    return WordDistribution(softmax, (Pointed(share, ids, weights),))


def test_the_mixture_is_a_distribution_and_all_ways_to_ask_agree() -> None:
    words = distribution()
    table = words.table(slice(0, T))
    torch.testing.assert_close(table.exp().sum(-1), torch.ones(T))
    own = words.softmax.table(slice(0, T))
    torch.testing.assert_close(table[2], own[2])
    assert not torch.isclose(table[0], own[0]).all()
    targets = torch.randint(0, V, (T,), generator=torch.Generator().manual_seed(4))
    targets[0] = words.pointed.ids[0, 0]
    expected = table.gather(1, targets[:, None])[:, 0]
    torch.testing.assert_close(words.log_probabilities(targets), expected)
    loss, likelihood = words.loss(targets, 0.0)
    torch.testing.assert_close(likelihood, -expected.sum())
    torch.testing.assert_close(loss, likelihood)
    best = words.best(6, forbidden=3)
    allowed = table.clone()
    allowed[:, :3] = -torch.inf
    values, ids = allowed.topk(6)
    torch.testing.assert_close(best.log_probabilities, values)
    assert torch.equal(best.ids, ids)


@torch.no_grad()
@pytest.mark.parametrize("others", [None, [5, 9, 11]])
@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize("forbidden", [2, 3])
def test_a_step_of_search_finds_the_best_of_the_whole_mixture(forbidden, renormalize, others):
    words = distribution()
    words.pointed.ids[:, 2] = 2  # the end is pointed at, and what is never said
    words.pointed.ids[0, 3] = 9
    outlawed = None if others is None else torch.tensor(others)
    assert words.softmax.is_small
    expected = best_words.plain(words, Wanted(8, forbidden, outlawed, renormalize))
    looked_up = words.look_up(words.pointed.ids)
    table = words.softmax.table(slice(0, T))
    torch.testing.assert_close(looked_up.log_probabilities, table.gather(1, words.pointed.ids))
    torch.testing.assert_close(looked_up.highest, table.amax(-1))
    alone, asked = distribution(pointed=False), distribution(pointed=False)
    asked.softmax.expect(torch.tensor([7, 8]))
    for plain, ours in zip(
        *(vars(w.best(8, forbidden, outlawed, renormalize)).values() for w in (alone, asked)), strict=True
    ):
        assert torch.equal(ours, plain)  # what was asked before changes nothing
    found = words.best(8, forbidden, outlawed, renormalize)
    torch.testing.assert_close(found.log_probabilities, expected.log_probabilities)
    assert torch.equal(found.ids, expected.ids)
    if others is None:
        torch.testing.assert_close(found.end, expected.end)


def test_a_share_of_zero_is_the_model_alone() -> None:
    mixed, alone = distribution(), distribution(pointed=False)
    nothing = alone.then(Pointed(torch.zeros(T), mixed.pointed.ids, mixed.pointed.weights))
    targets = torch.arange(T)
    for smoothing in (0.0, 0.1):
        torch.testing.assert_close(nothing.loss(targets, smoothing), alone.loss(targets, smoothing))
    torch.testing.assert_close(nothing.log_probabilities(targets), alone.log_probabilities(targets))


def test_gradients_reach_share_weights_and_model() -> None:
    words = distribution()
    leaves = [t.double().requires_grad_() for t in (words.softmax.states, words.pointed.share, words.pointed.weights)]
    targets = words.pointed.ids[:, 0]

    def loss(states: Tensor, share: Tensor, weights: Tensor) -> Tensor:
        softmax = Softmax(states, words.softmax.weight.double(), words.softmax.bias.double())
        return WordDistribution(softmax, (Pointed(share, words.pointed.ids, weights),)).loss(targets, 0.1)[0]

    assert torch.autograd.gradcheck(loss, leaves)


class SaysAlways:
    """Points at one word, whatever the sentence."""

    def __init__(self, word: int, share: float) -> None:
        self.word, self.share, self.seen = word, share, []

    def point(self, states: DecoderStates, words: WordDistribution, target: Packed) -> Pointed | None:
        self.seen.append(target.layout)
        steps = len(words.softmax)
        own = words.look_up(torch.full((steps, 1), self.word))
        assert (own.log_probabilities[:, 0] <= own.highest).all()
        if not self.share:
            return None
        ones = torch.ones(steps, 1)
        return Pointed(torch.full((steps,), self.share), ones.long() * self.word, ones)


@torch.no_grad()
def test_a_pointer_is_heard_in_search_and_scoring_beside_any_context() -> None:
    for kind in ("none", "hierarchical"):
        torch.manual_seed(1)
        section = ContextSection(kind=kind, integration="decoder")
        model = build(ModelSection(dimension=16, heads=2, feed_forward=24), section, 30, 30).eval()
        pairs = pack_pairs([[5, 6, 7], [8, 9]], [[11, 12], [13, 14]], [0, 0], [0, 1])
        offered = model.offer(pairs.source, pairs.target)
        memory, _ = model.encode(pairs.source, offered)

        def run(
            pointer: SaysAlways | None, model=model, pairs=pairs, offered=offered, memory=memory
        ) -> tuple[list[list[int]], Tensor]:
            context = Context(bank=offered.bank if offered else None, pointer=pointer)
            found = beam_search(model, memory, pairs.source.layout, context, SearchOptions(beam=2))
            output = model.decode(pairs.target, memory, pairs.source.layout, context)
            return [best.ids for best, *_ in found], output.words.log_probabilities(pairs.labels)

        silent, plain, loud = run(SaysAlways(17, 0.0)), run(None), run(SaysAlways(17, 0.9))
        assert silent[0] == plain[0]
        assert torch.equal(silent[1], plain[1])
        assert all(set(ids) == {17} for ids in loud[0])
        expected = torch.log(0.1 * plain[1].exp() + 0.9 * (pairs.labels == 17))
        torch.testing.assert_close(loud[1], expected)


def test_a_step_of_search_names_sentence_and_document() -> None:
    torch.manual_seed(1)
    model = build(ModelSection(dimension=16, heads=2, feed_forward=24), ContextSection(), 30, 30).eval()
    source = pack_pairs([[5, 6, 7], [8, 9]], [[], []], [3, 3], [4, 6]).source
    pointer = SaysAlways(17, 0.5)
    with torch.no_grad():
        cache = model.sentence.start(model.encode(source)[0], source.layout)
        hypotheses = Layout.of([1, 1], [3, 3], [4, 6])
        model.step(torch.full((2,), BOS), cache, hypotheses, Context(pointer=pointer))
    assert pointer.seen == [hypotheses]
