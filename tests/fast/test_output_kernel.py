"""The best words straight from the output layer: those of all its logits, however strips and threads share them out."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from weitblick.fast import quantized
from weitblick.fast.compiled_words import choose_words
from weitblick.fast.kernels import Kernels, PackedIntegers
from weitblick.text.base import EOS

WORDS, INNER = 1300, 64  # two strips and a half
NEVER = torch.tensor([0, 1, 511, 512, 1299])
OTHERS = torch.tensor([3, 600])


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def layer(rows: int) -> tuple[Tensor, Tensor, Tensor]:
    return numbers(rows, INNER), numbers(WORDS, INNER, seed=1) / 4, numbers(WORDS, seed=2)


def wished(states: Tensor, weight: Tensor, bias: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """By the definition, with NEVER and OTHERS left out."""
    logits = torch.addmm(bias, states, weight.t())
    logits[:, NEVER] = -torch.inf
    table = logits.log_softmax(1)
    end = table[:, EOS].clone()
    table[:, OTHERS] = -torch.inf
    best = table[:, 2:].topk(count)
    return best.values, best.indices + 2, end


@pytest.mark.parametrize("rows", [1, 7, 60])  # the last is worth a second thread
def test_words_of_a_float32_layer(compiled: Kernels, threads: int, rows: int) -> None:
    states, weight, bias = layer(rows)
    values, ids, end, _ = choose_words(compiled, states, weight, bias, None, 6, 2, NEVER, OTHERS, EOS)
    exact = wished(states, weight, bias, 6)
    assert torch.equal(ids, exact[1])
    torch.testing.assert_close(values, exact[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(end, exact[2], rtol=1e-5, atol=1e-5)


def quick_layer(kernels: Kernels, weight: Tensor, bias: Tensor) -> PackedIntegers:
    if not kernels.integer_columns:
        pytest.skip("no 8-bit kernels for this processor")
    packed = quantized.QuantizedLinear(weight, bias).packed
    assert isinstance(packed, PackedIntegers)
    return packed


@pytest.fixture
def used(compiled: Kernels, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    monkeypatch.setattr(quantized, "kernels", lambda: compiled)
    return compiled


def test_words_that_8_bits_propose_are_scored_in_float32(used: Kernels, threads: int) -> None:
    states, weight, bias = layer(200)
    packed = quick_layer(used, weight, bias)
    asked = torch.randint(len(weight), (len(states), 7))
    values, ids, end, told = choose_words(used, states, weight, bias, packed, 10, 2, NEVER, OTHERS, EOS, asked)
    exact_values, exact_ids, exact_end = wished(states, weight, bias, 1)
    best = values.argmax(1, keepdim=True)
    assert (ids.gather(1, best) == exact_ids).float().mean() == 1  # the best is always among those proposed here
    torch.testing.assert_close(values.gather(1, best), exact_values, rtol=0, atol=0.05)
    logits = torch.addmm(bias, states, weight.t())
    differences = values - end[:, None], logits.gather(1, ids) - logits[:, EOS, None]
    torch.testing.assert_close(*differences, rtol=1e-4, atol=1e-4)  # only the normaliser is approximate
    differences = told - end[:, None], logits.gather(1, asked) - logits[:, EOS, None]
    torch.testing.assert_close(*differences, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(end, exact_end, rtol=0, atol=0.05)


@pytest.mark.parametrize("eight", [False, True], ids=["float32", "int8"])
def test_a_row_is_the_same_alone_and_among_others_with_any_threads(used: Kernels, eight: bool) -> None:
    states, weight, bias = layer(200)
    packed = quick_layer(used, weight, bias) if eight else None
    asked = torch.randint(len(weight), (len(states), 7))
    found = []
    before = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(choose_words(used, states, weight, bias, packed, 5, 2, None, OTHERS, EOS, asked))
    finally:
        torch.set_num_threads(before)
    alone = choose_words(used, states[-1:], weight, bias, packed, 5, 2, None, OTHERS, EOS, asked[-1:])
    for parts in zip(*found, strict=True):
        assert all(torch.equal(part, parts[0]) for part in parts)
    assert all(torch.equal(one, many[-1:]) for one, many in zip(alone, found[0], strict=True))


@pytest.mark.parametrize("eight", [False, True], ids=["float32", "int8"])
def test_a_row_that_is_not_finite_has_no_probabilities(used: Kernels, eight: bool) -> None:
    states, weight, bias = layer(3)
    states[1, 5] = torch.nan
    packed = quick_layer(used, weight, bias) if eight else None
    values, _, end, _ = choose_words(used, states, weight, bias, packed, 5, 2, None, None, EOS)
    assert not bool(values[1].isfinite().any())
    assert not bool(end[1].isfinite())
    assert bool(values[[0, 2]].isfinite().all())
