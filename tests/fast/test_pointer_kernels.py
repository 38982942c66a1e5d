"""The pointer's compiled step: what PyTorch computes, to rounding; a step the same alone and among others."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from weitblick.common.recipe import MemorySection
from weitblick.fast import kernels as library
from weitblick.fast.kernels import Kernels
from weitblick.memory.keys import ApprovedKeys, Reader
from weitblick.memory.pointer import FEATURES, MemoryPointer
from weitblick.memory.reading_pointer import Approved
from weitblick.model.batch import Layout, Packed
from weitblick.model.modifiers import Pointed
from weitblick.model.output import Softmax, WordDistribution
from weitblick.model.sentence_model import DecoderStates

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


def memory(seed: int, sentence_attention: str = "sparse", hidden: int = 12, bounded: bool = False) -> Approved:
    """Sentences with 0 to 5 candidates, some of them longer than a vector; sentence 3 has nobody to ask. bounded: half
    of the places are open to each."""
    torch.manual_seed(seed)
    chance, half = random.Random(seed), np.random.default_rng(seed)
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
        opened = [half.random(len(pairs[number].levels)) < 0.5 for number in numbers]
        source = [chance.randrange(3, 12) for _ in range(6)]
        readers[0, position] = Reader(source, numbers, distances, own, opened if bounded else None)
    return Approved(pointer, pairs, readers)


def asked(layout: Layout, seed: int) -> tuple[DecoderStates, WordDistribution, Packed]:
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(layout.tokens, DIMENSION, generator=generator)
    softmax = Softmax(
        states, torch.randn(WORDS, DIMENSION, generator=generator), torch.randn(WORDS, generator=generator)
    )
    tokens = torch.randint(1, WORDS, (layout.tokens,), generator=generator)
    return DecoderStates(states, states), WordDistribution(softmax), Packed(tokens, layout)


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
@pytest.mark.parametrize("bounded", [False, True])
def test_it_finds_what_pytorch_finds(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch, attention: str, layout: Layout, seed: int, bounded: bool
) -> None:
    found = []
    for kernels in (None, compiled):
        use(monkeypatch, kernels)
        approved = memory(seed, attention, bounded=bounded)
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
@pytest.mark.parametrize("bounded", [False, True])
def test_a_step_is_the_same_to_the_bit_alone_and_among_others(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch, layout: Layout, bounded: bool
) -> None:
    use(monkeypatch, compiled)
    states, words, target = asked(layout, 5)
    together = memory(2, bounded=bounded).point(states, words, target)
    assert together is not None
    for step in range(layout.tokens):
        place = layout.sentence[step : step + 1]
        alone = Layout(torch.ones_like(place), layout.documents[place], layout.positions[place])
        own = states.final[step : step + 1]
        found = memory(2, bounded=bounded).point(
            DecoderStates(own, own),
            WordDistribution(Softmax(own, words.softmax.weight, words.softmax.bias)),
            Packed(target.tokens[step : step + 1], alone),
        )
        if found is None:
            assert together.share[step] == 0
            continue
        assert found.share[0] == together.share[step]
        assert torch.equal(found.weights[0], together.weights[step])
        assert torch.equal(found.ids[0], together.ids[step])
