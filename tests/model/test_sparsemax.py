from __future__ import annotations

import entmax
import pytest
import torch

from weitblick.model.sparsemax import entmax15, masked_softmax, normalise_entries, sparsemax

FUNCTIONS = {"sparse": sparsemax, "soft": masked_softmax, "entmax15": entmax15}
PEERS = {"sparse": entmax.sparsemax, "soft": torch.softmax, "entmax15": entmax.entmax15}
every_kind = pytest.mark.parametrize("kind", FUNCTIONS)


@every_kind
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_agrees_with_the_entmax_package(kind: str, scale: float, dim: int) -> None:
    scores = torch.randn(7, 33, 5, generator=torch.Generator().manual_seed(1)) * scale
    ours, theirs = FUNCTIONS[kind](scores, dim=dim), PEERS[kind](scores, dim)
    torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-5)
    if kind == "sparse" and scale <= 1:
        assert torch.equal(ours > 0, theirs > 0)


@every_kind
def test_gradient_is_the_numerical_one(kind: str) -> None:
    generator = torch.Generator().manual_seed(2)
    scores = torch.randn(6, 9, dtype=torch.float64, generator=generator, requires_grad=True)
    mask = torch.rand(6, 9, generator=generator) < 0.7
    mask[3] = False
    assert torch.autograd.gradcheck(lambda x: FUNCTIONS[kind](x, mask), (scores,))
    assert torch.autograd.gradcheck(lambda x: FUNCTIONS[kind](x, dim=0), (scores,))


@every_kind
def test_masked_equals_absent(kind: str) -> None:
    scores = torch.randn(5, 12, generator=torch.Generator().manual_seed(3)) * 3
    mask = torch.tensor([True, False] * 6)
    weights = FUNCTIONS[kind](scores, mask)
    torch.testing.assert_close(weights[:, mask], FUNCTIONS[kind](scores[:, mask]))
    assert (weights[:, ~mask] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(5))


@every_kind
def test_a_fully_masked_row_is_zero_and_has_no_gradient(kind: str) -> None:
    scores = torch.randn(3, 4, requires_grad=True)
    mask = torch.tensor([[True] * 4, [False] * 4, [True, False, False, False]])
    weights = FUNCTIONS[kind](scores, mask)
    (weights * torch.randn(3, 4)).sum().backward()
    assert (weights[1] == 0).all()
    assert weights[2].tolist() == [1, 0, 0, 0]
    assert scores.grad is not None
    assert (scores.grad[1] == 0).all()
    assert scores.grad.isfinite().all()


@every_kind
def test_rows_do_not_depend_on_their_neighbours(kind: str) -> None:
    scores = torch.randn(64, 50, generator=torch.Generator().manual_seed(4))
    hard = torch.cat([scores, torch.randn(64, 50, generator=torch.Generator().manual_seed(5)) * 0.001])
    assert torch.equal(FUNCTIONS[kind](hard)[:64], FUNCTIONS[kind](scores))


@every_kind
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(kind: str, dtype: torch.dtype) -> None:
    scores = (torch.randn(8, 300, generator=torch.Generator().manual_seed(6)) * 0.1).to(dtype)
    weights = FUNCTIONS[kind](scores)
    assert weights.dtype == dtype
    torch.testing.assert_close(weights, FUNCTIONS[kind](scores.float()).to(dtype), atol=0, rtol=0)


@pytest.mark.parametrize("kind", ["sparse", "entmax15"])
def test_ties_and_extremes(kind: str) -> None:
    equal = FUNCTIONS[kind](torch.zeros(1, 7))
    torch.testing.assert_close(equal, torch.full((1, 7), 1 / 7))
    far = FUNCTIONS[kind](torch.tensor([[1e30, 0.0, -1e30]]))
    assert far.tolist() == [[1, 0, 0]]
    assert FUNCTIONS[kind](torch.zeros(3, 0)).shape == (3, 0)


@every_kind
@pytest.mark.parametrize("places", [1, 7, 9, 40, 203])
def test_entries_are_those_of_the_whole(kind: str, places: int) -> None:
    scores = torch.randn(3, places, 7, generator=torch.Generator().manual_seed(7), dtype=torch.float64) * 2
    mask = torch.rand(3, places, 7, generator=torch.Generator().manual_seed(8)) < 0.8
    whole = FUNCTIONS[kind](scores, mask, dim=1)
    entries = normalise_entries(scores.masked_fill(~mask, -torch.inf), kind)
    found = torch.zeros_like(whole).index_put_((entries.outer, entries.place, entries.inner), entries.weights)
    torch.testing.assert_close(found, whole)
    assert torch.equal(found > 0, whole > 0)


def test_entries_of_masked_rows_are_none() -> None:
    scores = torch.full((2, 5, 3), -torch.inf)
    scores[1, 2, 0] = 4.0
    entries = normalise_entries(scores, "sparse")
    assert [entries.outer.tolist(), entries.place.tolist(), entries.inner.tolist()] == [[1], [2], [0]]
    assert entries.weights.tolist() == [1.0]


@every_kind
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_returns_and_is_seen(kind: str, bad: float) -> None:
    scores = torch.randn(3, 21, 2, generator=torch.Generator().manual_seed(9))
    clean = FUNCTIONS[kind](scores, dim=1)
    broken = scores.clone()
    broken[1, 4, 0] = bad
    weights = FUNCTIONS[kind](broken, dim=1)
    assert weights[1, :, 0].isnan().any()
    assert torch.equal(weights[[0, 2]], clean[[0, 2]])
    assert torch.equal(weights[1, :, 1], clean[1, :, 1])
    entries = normalise_entries(broken.clone(), kind)
    seen = torch.zeros_like(weights).index_put_((entries.outer, entries.place, entries.inner), entries.weights)
    torch.testing.assert_close(seen[[0, 2]], clean[[0, 2]])
    assert seen[1, :, 0].isnan().any()
    assert FUNCTIONS[kind](torch.full((2, 5), bad)).isnan().all()
