"""The written-out attention of training on the CPU equals that in PyTorch's own words, forward and backward."""

from __future__ import annotations

import pytest
import torch

from weitblick.model.batch import Grid, Layout
from weitblick.model.layers import Dropout, SelfAttention, SourceAttention

SOURCE, TARGET = [5, 1, 9, 2, 7, 3, 30], [4, 2, 11, 1, 6, 3, 24]


def both_ways(attention: torch.nn.Module, monkeypatch: pytest.MonkeyPatch, *inputs: torch.Tensor, **others):
    """Outputs and gradients of evaluation, and of training whose dropout drops nothing."""
    results = []
    weights = torch.randn_like(attention(*inputs, **others))
    monkeypatch.setattr(Dropout, "mask", lambda self, x: torch.ones_like(x))
    for training in (False, True):
        attention.train(training)
        leaves = [x.clone().requires_grad_() for x in inputs]
        output = attention(*leaves, **others)
        names = [*leaves, *attention.parameters()]
        results.append([output, *torch.autograd.grad((output * weights).sum(), names)])
    return results


@pytest.mark.parametrize("causal", [True, False])
def test_attention_of_sentences_to_themselves(causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    layout = Layout.of(SOURCE)
    assert len(layout.grid.groups) > 1
    assert layout.grid.rows > layout.tokens
    attention = SelfAttention(12, 3, 0.1, biases=True, causal=causal).double()

    class Wrapped(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = attention

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x, layout)

    x = torch.randn(layout.tokens, 12, dtype=torch.float64)
    for plain, written_out in zip(*both_ways(Wrapped(), monkeypatch, x), strict=True):
        torch.testing.assert_close(written_out, plain, rtol=1e-10, atol=1e-10)


def test_attention_to_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(2)
    source, target = Layout.of(SOURCE), Layout.of(TARGET)
    grid = Grid(source, target.grid.members)
    attention = SourceAttention(12, 3, 0.1, biases=False).double()

    class Wrapped(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = attention

        def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
            return self.inner(x, target, memory, grid)

    x = torch.randn(target.tokens, 12, dtype=torch.float64)
    memory = torch.randn(source.tokens, 12, dtype=torch.float64)
    for plain, written_out in zip(*both_ways(Wrapped(), monkeypatch, x, memory), strict=True):
        torch.testing.assert_close(written_out, plain, rtol=1e-10, atol=1e-10)


def test_gradients_with_dropout_against_numerical_ones() -> None:
    layout = Layout.of([3, 1, 6, 2])
    attention = SelfAttention(4, 2, 0.5, biases=True, causal=False).double().train()
    x = torch.randn(layout.tokens, 4, dtype=torch.float64, requires_grad=True)

    def run(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)  # the same mask every time
        return attention(x, layout)

    with torch.no_grad():
        assert not torch.allclose(run(x), attention.eval()(x, layout))
    attention.train()
    assert torch.autograd.gradcheck(run, (x,))


@pytest.mark.parametrize("causal", [True, False])
def test_half_precision_multiplies_in_bfloat16_and_weighs_in_float32(causal: bool, monkeypatch) -> None:
    torch.manual_seed(4)
    layout = Layout.of(SOURCE)
    attention = SelfAttention(24, 3, 0.1, biases=True, causal=causal).train()
    weighed = set()

    def nothing_dropped(self: Dropout, weights: torch.Tensor) -> torch.Tensor:
        weighed.add(weights.dtype)
        return torch.ones_like(weights)

    monkeypatch.setattr(Dropout, "mask", nothing_dropped)
    x = torch.randn(layout.tokens, 24, requires_grad=True)
    directions = torch.randn(layout.tokens, 24)
    found = []
    for half in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            read = attention(x, layout)
        assert read.dtype == (torch.bfloat16 if half else torch.float32)
        found.append([read, *torch.autograd.grad((read.float() * directions).sum(), [x, *attention.parameters()])])
    assert weighed == {torch.float32}
    for exact, half in zip(*found, strict=True):
        assert (half - exact).norm() < 0.02 * exact.norm() + 1e-2
        assert not torch.equal(half.float(), exact)
