"""The pointer's compiled step: what PyTorch computes, to rounding; a step the same alone and among others."""

import random
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from weitblick.batches.batch import Packed
from weitblick.batches.layout import Layout
from weitblick.config.recipe import MemorySection
from weitblick.kernels import library
from weitblick.kernels.library import Kernels
from weitblick.model.approved import Approved
from weitblick.model.bank import ApprovedKeys, Reader
from weitblick.model.pointer import FEATURES, MemoryPointer
from weitblick.model.words import Pointed, Softmax, WordDistribution
from weitblick.sentence import candidates
from weitblick.sentence.sentence_model import DecoderStates

WORDS, DIMENSION, BEAM = 30, 24, 3


@pytest.fixture(autouse=True)
def without_gradient() -> Iterator[None]:
    with torch.no_grad():
        yield


def use(monkeypatch: pytest.MonkeyPatch, kernels: Kernels | None) -> None:
    monkeypatch.setattr(library, "kernels", lambda: kernels)


def pair(chance: random.Random, pointer: MemoryPointer, length: int) -> ApprovedKeys:
    states = torch.randn(length + 1, DIMENSION)
    words = [chance.randrange(3, WORDS) for _ in range(length)]
    return ApprovedKeys.of(
        pointer.keys(DecoderStates(states, states)),
        -torch.rand(length + 1) * 25,
        torch.randint(3, WORDS, (length + 1,)),
        [chance.randrange(3, 12) for _ in range(5)],
        words,
        [chance.random() < 0.4 for _ in words],
    )


def memory(seed: int, sentence_attention: str = "sparse", hidden: int = 12) -> Approved:
    """Sentences with 0 to 5 candidates, some of them longer than a vector; sentence 3 has nobody to ask."""
    torch.manual_seed(seed)
    chance = random.Random(seed)
    section = MemorySection(kind="pointer", dimension=16, hidden=hidden, sentence_attention=sentence_attention)
    pointer = MemoryPointer(section, DIMENSION).eval()
    for parameter in pointer.share.parameters():
        torch.nn.init.normal_(parameter)
    pairs = [pair(chance, pointer, chance.choice([1, 2, 7, 15, 16, 33])) for _ in range(9)]
    readers = {}
    for position in (0, 1, 2, 4):
        numbers = chance.sample(range(9), chance.randrange(6)) if position else [0, 4, 7, 8]
        distances = [float(chance.randrange(30)) for _ in numbers]
        own = [chance.random() < 0.5 for _ in numbers]
        readers[0, position] = Reader([chance.randrange(3, 12) for _ in range(6)], numbers, distances, own)
    return Approved(pointer, pairs, readers)


def asked(layout: Layout, seed: int) -> tuple[DecoderStates, Softmax, Packed]:
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(layout.tokens, DIMENSION, generator=generator)
    softmax = Softmax(
        states, torch.randn(WORDS, DIMENSION, generator=generator), torch.randn(WORDS, generator=generator)
    )
    tokens = torch.randint(1, WORDS, (layout.tokens,), generator=generator)
    return DecoderStates(states, states), softmax, Packed(tokens, layout)


def steps_of_a_beam() -> Layout:
    positions = [position for position in range(5) for _ in range(BEAM)]
    return Layout.of([1] * len(positions), [0] * len(positions), positions)


def whole_sentences() -> Layout:
    return Layout.of([4, 1, 9, 3, 7], [0] * 5, list(range(5)))


def shares_of_words(pointed: Pointed) -> Tensor:
    """[T, V]: places of equal weight may come in any order, and those without weight may be any."""
    said = torch.zeros(len(pointed.share), WORDS).scatter_add_(1, pointed.ids, pointed.weights)
    return said * pointed.share[:, None]


@pytest.mark.parametrize("attention", ["sparse", "none"])
@pytest.mark.parametrize("layout", [steps_of_a_beam(), whole_sentences()])
@pytest.mark.parametrize("seed", range(6))
def test_it_finds_what_pytorch_finds(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch, attention: str, layout: Layout, seed: int
) -> None:
    found = []
    for kernels in (None, compiled):
        use(monkeypatch, kernels)
        approved = memory(seed, attention)
        pointed = approved.point(*asked(layout, seed))
        assert pointed is not None
        assert pointed.places is not None
        found.append((pointed, [approved.origin(0, 0, int(place)) for place in pointed.places[0, :3]]))
    (exact, its_origins), (ours, our_origins) = found
    torch.testing.assert_close(ours.share, exact.share, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(shares_of_words(ours), shares_of_words(exact), rtol=1e-4, atol=1e-5)
    assert our_origins == its_origins
    assert bool((exact.share > 0).any())
    assert bool((exact.share == 0).any())  # the sentence with nobody to ask


def test_features_that_the_kernels_do_not_know_are_left_to_pytorch(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = []
    for kernels in (None, compiled):
        use(monkeypatch, kernels)
        approved = memory(1)
        first = approved.pointer.share[0]
        wide = torch.nn.Linear(FEATURES + 1, first.out_features)
        wide.weight.copy_(torch.cat([first.weight, first.bias[:, None]], 1))
        wide.bias.zero_()
        approved.pointer.share[0] = torch.nn.Sequential(torch.nn.ConstantPad1d((0, 1), 1.0), wide)
        pointed = approved.point(*asked(steps_of_a_beam(), 1))
        assert pointed is not None
        shares.append(pointed.share)
    torch.testing.assert_close(*shares, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", [steps_of_a_beam(), whole_sentences()])
def test_a_step_is_the_same_to_the_bit_alone_and_among_others(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch, layout: Layout
) -> None:
    use(monkeypatch, compiled)
    states, softmax, target = asked(layout, 5)
    together = memory(2).point(states, softmax, target)
    assert together is not None
    for step in range(layout.tokens):
        place = layout.sentence[step : step + 1]
        alone = Layout(torch.ones_like(place), layout.documents[place], layout.positions[place])
        own = states.final[step : step + 1]
        found = memory(2).point(
            DecoderStates(own, own),
            Softmax(own, softmax.weight, softmax.bias),
            Packed(target.tokens[step : step + 1], alone),
        )
        if found is None:
            assert together.share[step] == 0
            continue
        assert found.share[0] == together.share[step]
        assert torch.equal(found.weights[0], together.weights[step])
        assert torch.equal(found.ids[0], together.ids[step])


@pytest.mark.parametrize("first", [2, 3])
@pytest.mark.parametrize("renormalize", [False, True])
def test_the_best_words_of_the_mixture(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch, first: int, renormalize: bool
) -> None:
    torch.manual_seed(4)
    states, weight, bias = torch.randn(7, 16), torch.randn(WORDS, 16), torch.randn(WORDS)
    share, weights = torch.rand(7), torch.rand(7, 6).softmax(1)
    share[0] = 0
    ids = torch.randint(0, WORDS, (7, 12))[:, ::2]  # words that stand in rows further apart
    ids[:, 1], ids[:, 3] = ids[:, 0], 2
    found = []
    for kernels in (None, compiled):
        use(monkeypatch, kernels)
        step = candidates.StepLogits(states, weight, bias)
        found.append(step.best_mixed(share, ids, weights, 6, first, None, renormalize))
    exact, ours = found
    assert torch.equal(ours.ids, exact.ids)
    torch.testing.assert_close(ours.log_probabilities, exact.log_probabilities, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.end, exact.end, rtol=1e-5, atol=1e-5)
    words = WordDistribution(Softmax(states, weight, bias), Pointed(share, ids, weights))
    if not renormalize:
        table = words.table(slice(0, 7))
        torch.testing.assert_close(ours.log_probabilities, table.gather(1, ours.ids), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [4, 12, 14])
@pytest.mark.parametrize("first", [2, 3])
def test_best_words_that_were_kept_are_those_of_all_logits(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch, count: int, first: int
) -> None:
    """Up to as many as are kept; for more, None."""
    use(monkeypatch, compiled)
    torch.manual_seed(7)
    states, weight, bias = torch.randn(9, 32), torch.randn(700, 32), torch.randn(700)  # more than a strip
    share, weights = torch.rand(9), torch.rand(9, 6).softmax(1)
    ids = torch.randint(0, 700, (9, 12))
    ids[:, 0], ids[:, 1] = 2, ids[:, 2]
    asked = Softmax(states, weight, bias).ask(ids)
    step = candidates.StepLogits(states, weight, bias)
    torch.testing.assert_close(asked.log_probabilities, step.log_probabilities(ids), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(asked.highest, step.highest, rtol=1e-5, atol=1e-5)
    kept = asked.best_mixed(share, ids[:, :6], weights, count, first)
    exact = step.best_mixed(share, ids[:, :6], weights, count, first)
    if count + first > candidates.KEPT:
        assert kept is None
        return
    assert kept is not None
    assert torch.equal(kept.ids, exact.ids)
    torch.testing.assert_close(kept.log_probabilities, exact.log_probabilities, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(kept.end, exact.end, rtol=1e-5, atol=1e-5)
