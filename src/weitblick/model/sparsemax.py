"""Sparsemax, softmax and entmax-1.5 over masked scores: rows of weights that sum to one, zeros where all is masked.

All three have a Jacobian of one form. With p the weights of a row, dp their gradient and s a *slope* per entry,

    dscores = s * (dp - sum(s * dp) / sum(s))        s = p (softmax), 1[p > 0] (sparsemax), sqrt(p) (entmax-1.5)

which is why attention code handles them through `normalise` and `slope` alone, without autograd in between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from weitblick.model.tuning import tuning_for

Kind = Literal["soft", "sparse", "entmax15"]

SLICES = 8
"""Scores of a block in `normalise_entries`."""


def sparsemax(scores: Tensor, mask: Tensor | None = None, dim: int = -1) -> Tensor:
    """Euclidean projection of each row of `scores` onto the simplex (Martins and Astudillo, 2016).

    scores [..., n, ...] of any floating type (computed in float32 at least); mask broadcasts to it, true where an entry
    takes part. Masked entries, and all entries of a row without any other, have weight and gradient zero.
    """
    return _masked(scores, mask, dim, "sparse")


def masked_softmax(scores: Tensor, mask: Tensor | None = None, dim: int = -1) -> Tensor:
    """Softmax with the mask and the guarantees of `sparsemax`."""
    return _masked(scores, mask, dim, "soft")


def entmax15(scores: Tensor, mask: Tensor | None = None, dim: int = -1) -> Tensor:
    """Entmax with alpha = 1.5 (Peters et al., 2019), between softmax and sparsemax; masks as in `sparsemax`."""
    return _masked(scores, mask, dim, "entmax15")


def normalise(scores: Tensor, kind: Kind, dim: int, share: Tensor | None = None) -> Tensor:
    """Weights over `dim`, times `share` (which has one entry there), without gradient; the scores are overwritten.

    Scores come in float32 or float64. -inf (or lower than any other by more than the type can tell) takes no part; a
    row of -inf alone gives zeros, one with NaN or +inf gives NaN. Fastest if `dim` is not the last one: then every step
    runs along contiguous memory.
    """
    if scores.shape[dim] == 0:
        return scores
    if kind == "soft":
        return _softmax(scores, dim, share)
    weights = _sparsemax(scores, dim) if kind == "sparse" else _entmax15(scores, dim)
    return weights if share is None else weights.mul_(share)


@dataclass(frozen=True)
class Entries:
    """The entries with weight of scores [A, n, B] over n: weights [M] and where they stand in each dimension."""

    weights: Tensor
    outer: Tensor
    place: Tensor
    inner: Tensor


def normalise_entries(scores: Tensor, kind: Kind) -> Entries:
    """The entries with weight of contiguous scores [A, n, B] over n, in no order that means anything.

    For sparsemax this reads the scores once, to find the maxima of `n / SLICES` interleaved blocks. Their threshold is
    at most that of all, for more entries can only raise it; so nothing outside the blocks above it has weight, and the
    rest of the work is on these few. The scores may be overwritten.
    """
    if kind != "sparse" or not scores.numel() or tuning_for(scores.device).sorted:
        weights = normalise(scores, kind, 1)
        outer, place, inner = (~(weights <= 0)).nonzero().unbind(1)
        return Entries(weights[outer, place, inner], outer, place, inner)
    _, n, width = scores.shape
    blocks = -(-n // SLICES)
    highest = scores[:, :blocks].clone()  # block i has the places i, i + blocks, i + 2 * blocks, ...
    for part in scores.split(blocks, 1)[1:]:
        torch.maximum(highest[:, : part.shape[1]], part, out=highest[:, : part.shape[1]])
    top = _finite_maximum(highest, 1)
    tau = _threshold(highest.sub_(top).clamp_min_(-2.0), 1)
    outer, block, inner = (~(highest <= tau)).nonzero().unbind(1)  # NaN, too, so that it is not lost
    top, tau = top.view(-1), tau.view(-1)
    row = outer * width + inner  # of A * B
    place = block[:, None] + torch.arange(0, n, blocks, device=block.device)  # [found blocks, slices]
    flat = (outer * (n * width) + inner)[:, None] + place.clamp(max=n - 1) * width
    z = scores.view(-1).index_select(0, flat.view(-1)).view_as(flat) - top.index_select(0, row)[:, None]
    chosen, part = (~(z <= tau.index_select(0, row)[:, None]) & (place < n)).nonzero().unbind(1)
    flat = chosen * place.shape[1] + part
    z, place = z.view(-1).index_select(0, flat), place.view(-1).index_select(0, flat)
    outer, inner, row = (x.index_select(0, chosen) for x in (outer, inner, row))
    while True:
        above = (z > tau.index_select(0, row)).to(z.dtype)
        count = torch.zeros_like(tau).scatter_add_(0, row, above).clamp_min_(1.0)
        raised = torch.zeros_like(tau).scatter_add_(0, row, above.mul_(z)).sub_(1.0).div_(count)
        raised = torch.maximum(tau, raised)
        higher = bool((raised > tau).any())
        tau = raised
        if not higher:
            break
    weights = z.sub_(tau.index_select(0, row))
    kept = (~(weights <= 0)).nonzero().squeeze(1)
    return Entries(*(x.index_select(0, kept) for x in (weights, outer, place, inner)))


def slope(weights: Tensor, kind: Kind) -> Tensor:
    """The s of the Jacobian above, for weights that `normalise` gave. May be `weights` itself."""
    if kind == "soft":
        return weights
    return torch.gt(weights, 0.0, out=torch.empty_like(weights)) if kind == "sparse" else weights.sqrt()


def jacobian_product(weights: Tensor, gradient: Tensor, kind: Kind, dim: int) -> Tensor:
    """Gradient of the scores from that of the weights over `dim`."""
    s = slope(weights, kind)
    product = s * gradient
    mean = product.sum(dim, keepdim=True)
    if kind != "soft":
        mean /= s.sum(dim, keepdim=True).clamp_min_(_TINY)
    return product.addcmul_(s, mean, value=-1.0)


def rescaled_jacobian_product(
    rescaled: Tensor, share: Tensor, gradient: Tensor, kind: Kind, dim: int
) -> tuple[Tensor, Tensor]:
    """For rescaled = share * normalise(scores) and its gradient: those of the scores and of the share.

    The share broadcasts along `dim`. Where it is zero, its own gradient is given as zero: a share that is itself a
    weight has slope zero there, so nothing is lost.
    """
    product = rescaled * gradient
    d_share = product.sum(dim, keepdim=True).div_(share).masked_fill_(share == 0, 0.0)
    if kind == "soft":
        return product.addcmul_(rescaled, d_share, value=-1.0), d_share
    # The slope of the rescaled weights stands to that of the weights as the share (or its root) to one.
    s = slope(rescaled, kind)
    product = torch.mul(s, gradient, out=product)
    mean = product.sum(dim, keepdim=True).div_(s.sum(dim, keepdim=True).clamp_min_(_TINY))
    return product.addcmul_(s, mean, value=-1.0).mul_(share if kind == "sparse" else share.sqrt()), d_share


def _softmax(scores: Tensor, dim: int, share: Tensor | None = None) -> Tensor:
    # As a power of two: twice as fast as `exp` on CPU, where that is several times slower still for vanishing weights.
    weights = scores.sub_(_finite_maximum(scores, dim)).mul_(_LOG2_E).exp2_()
    factor = weights.sum(dim, keepdim=True).clamp_min_(_TINY).reciprocal_()
    return weights.mul_(factor if share is None else factor.mul_(share))


def _finite_maximum(scores: Tensor, dim: int) -> Tensor:
    """Of each row; of a row of -inf the lowest number: subtracting it leaves -inf, where -inf would leave NaN."""
    return scores.amax(dim, keepdim=True).clamp_min_(torch.finfo(scores.dtype).min)


def _below_maximum(scores: Tensor, dim: int) -> Tensor:
    """Scores minus their row's maximum; those too low to be in any support become finite."""
    return scores.sub_(_finite_maximum(scores, dim)).clamp_min_(-2.0)


def _sparsemax(scores: Tensor, dim: int) -> Tensor:
    z = _below_maximum(scores, dim)
    return z.sub_(_threshold(z, dim)).clamp_min_(0.0)


def _threshold(z: Tensor, dim: int) -> Tensor:
    """Michelot's fixed point: tau is the threshold of all entries above the last tau; finite and exact.

    The support shrinks from {z > max - 1}, where the maximum is 0, until it stays, so tau never falls. A row that has
    converged stays as it is to the bit in further rounds: results do not depend on which rows are computed together.
    """
    if tuning_for(z.device).sorted:
        return _sorted_threshold(z, dim)
    tau = torch.full_like(z.narrow(dim, 0, 1), -1.0)
    above = torch.empty_like(z)
    while True:
        torch.gt(z, tau, out=above)
        count = above.sum(dim, keepdim=True).clamp_min_(1.0)
        raised = above.mul_(z).sum(dim, keepdim=True).sub_(1.0).div_(count)
        raised = torch.maximum(tau, raised)
        higher = bool((raised > tau).any())  # never of NaN: such a row stays NaN, and the others go on without it
        tau = raised
        if not higher:
            return tau


def _sorted_threshold(z: Tensor, dim: int) -> Tensor:
    """The threshold of every prefix of the sorted row, then the longest prefix that holds: more work than a few rounds,
    but the host need not wait for any of it."""
    ordered, _ = z.sort(dim, descending=True)
    k = _ranks(z, dim)
    excess = ordered.cumsum(dim).sub_(1.0)
    support = (ordered * k > excess).sum(dim, keepdim=True).clamp_min_(1)
    return excess.gather(dim, support - 1).div_(support).clamp_min_(-1.0)  # lower only where all is masked


def _ranks(z: Tensor, dim: int) -> Tensor:
    """1, 2, 3, ... along `dim`."""
    k = torch.arange(1, z.shape[dim] + 1, device=z.device, dtype=z.dtype)
    return k.view(-1, *[1] * (z.dim() - 1 - dim % z.dim()))


def _entmax15(scores: Tensor, dim: int) -> Tensor:
    """Exact by sorting: tau of every prefix of the sorted row in closed form, then the longest prefix that holds."""
    masked = scores == -torch.inf
    halves = _below_maximum(scores.mul_(0.5), dim)
    z, _ = halves.sort(dim, descending=True)
    k = _ranks(z, dim)
    mean = z.cumsum(dim) / k
    spread = (z.square().cumsum(dim) / k - mean.square()) * k
    tau = mean - ((1.0 - spread) / k).clamp_min_(0.0).sqrt_()
    support = (tau <= z).sum(dim, keepdim=True).clamp_min_(1)
    weights = (halves - tau.gather(dim, support - 1)).clamp_min_(0.0).square_()
    return weights.masked_fill_(masked, 0.0)


_TINY = 1e-30
_LOG2_E = math.log2(math.e)


def _masked(scores: Tensor, mask: Tensor | None, dim: int, kind: Kind) -> Tensor:
    return _Normalised.apply(scores, mask, dim, kind)


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None, dim: int, kind: Kind) -> Tensor:
        wide = torch.promote_types(scores.dtype, torch.float32)
        # In a copy, for `normalise` overwrites; the dimension first, where that saves more than it costs to turn.
        front = dim if kind == "soft" else 0
        z = scores.movedim(dim, front).to(wide, copy=True, memory_format=torch.contiguous_format)
        if mask is not None:
            z.masked_fill_(~mask.expand(scores.shape).movedim(dim, front), -torch.inf)
        weights = normalise(z, kind, front)
        ctx.save_for_backward(weights)
        ctx.dim, ctx.front, ctx.kind, ctx.dtype = dim, front, kind, scores.dtype
        return weights.movedim(front, dim).to(scores.dtype, memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (weights,) = ctx.saved_tensors
        g = jacobian_product(weights, gradient.movedim(ctx.dim, ctx.front).to(weights.dtype), ctx.kind, ctx.front)
        return g.movedim(ctx.front, ctx.dim).to(ctx.dtype), None, None, None
