"""Sparsemax, softmax and entmax-1.5 over masked scores: rows of weights that sum to one, zeros where all is masked.

All three have a Jacobian of one form. With p the weights of a row, dp their gradient and s a *slope* per entry,

    dscores = s * (dp - sum(s * dp) / sum(s))        s = p (softmax), 1[p > 0] (sparsemax), sqrt(p) (entmax-1.5)

which is why attention code handles them through `normalise` and `slope` alone, without autograd in between.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

Kind = Literal["soft", "sparse", "entmax15"]


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


def normalise(scores: Tensor, kind: Kind, dim: int) -> Tensor:
    """Weights over `dim`, without gradient; the scores, in float32 or float64, are overwritten.

    -inf (or lower than any other by more than the type can tell) takes no part; for a row of -inf alone only "sparse"
    and "entmax15" promise zeros. Fastest if `dim` is not the last one: then every step runs along contiguous memory.
    """
    if scores.shape[dim] == 0:
        return scores
    return _NORMALISE[kind](scores, dim)


def normalise_entries(scores: Tensor, kind: Kind) -> tuple[Tensor, Tensor]:
    """The entries with weight of contiguous scores [A, n, B] over n: places in the flat tensor, and their weights.

    For sparsemax this reads the scores only to find those less than 1 below their row's maximum: nothing else can be
    in the support, and the rest of the work is on these few. The scores may be overwritten.
    """
    if kind != "sparse" or not scores.numel():
        weights = normalise(scores, kind, 1).view(-1)
        found = weights.nonzero().squeeze(-1)
        return found, weights[found]
    top = scores.amax(1, keepdim=True).clamp_min_(torch.finfo(scores.dtype).min)
    found = (scores > top - 1.0).view(-1).nonzero().squeeze(-1)
    _, n, b = scores.shape
    row = found.div(n * b, rounding_mode="floor").mul_(b).add_(found % b)  # of A * B
    z = scores.view(-1)[found] - top.view(-1)[row]
    tau = torch.full_like(top.view(-1), -1.0)
    while True:
        above = (z > tau[row]).to(z.dtype)
        count = torch.zeros_like(tau).index_add_(0, row, above).clamp_min_(1.0)
        raised = torch.zeros_like(tau).index_add_(0, row, above.mul_(z)).sub_(1.0).div_(count)
        raised = torch.maximum(tau, raised)
        if torch.equal(raised, tau):
            break
        tau = raised
    weights = z - tau[row]
    kept = weights > 0
    return found[kept], weights[kept]


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


def _softmax(scores: Tensor, dim: int) -> Tensor:
    weights = scores.sub_(scores.amax(dim, keepdim=True)).exp_()
    return weights.mul_(weights.sum(dim, keepdim=True).reciprocal_())


def _below_maximum(scores: Tensor, dim: int) -> Tensor:
    """Scores minus their row's maximum; those too low to be in any support become finite."""
    # A row of -inf has no finite maximum: subtracting the lowest number leaves -inf, where -inf would leave NaN.
    top = scores.amax(dim, keepdim=True).clamp_min_(torch.finfo(scores.dtype).min)
    return scores.sub_(top).clamp_min_(-2.0)


def _sparsemax(scores: Tensor, dim: int) -> Tensor:
    """Michelot's fixed point: tau is the threshold of all entries above the last tau; finite and exact.

    The support shrinks from {z > max - 1} until it stays, so tau never falls. A row that has converged stays as it is
    to the bit in further rounds: results do not depend on which rows are computed together.
    """
    z = _below_maximum(scores, dim)
    tau = torch.full_like(z.narrow(dim, 0, 1), -1.0)
    above = torch.empty_like(z)
    while True:
        torch.gt(z, tau, out=above)
        count = above.sum(dim, keepdim=True).clamp_min_(1.0)
        raised = above.mul_(z).sum(dim, keepdim=True).sub_(1.0).div_(count)
        raised = torch.maximum(tau, raised)
        if torch.equal(raised, tau):
            return z.sub_(tau).clamp_min_(0.0)
        tau = raised


def _entmax15(scores: Tensor, dim: int) -> Tensor:
    """Exact by sorting: tau of every prefix of the sorted row in closed form, then the longest prefix that holds."""
    masked = scores == -torch.inf
    halves = _below_maximum(scores.mul_(0.5), dim)
    z, _ = halves.sort(dim, descending=True)
    k = torch.arange(1, z.shape[dim] + 1, device=z.device, dtype=z.dtype)
    k = k.view(-1, *[1] * (z.dim() - 1 - dim % z.dim()))
    mean = z.cumsum(dim) / k
    spread = (z.square().cumsum(dim) / k - mean.square()) * k
    tau = mean - ((1.0 - spread) / k).clamp_min_(0.0).sqrt_()
    support = (tau <= z).sum(dim, keepdim=True).clamp_min_(1)
    weights = (halves - tau.gather(dim, support - 1)).clamp_min_(0.0).square_()
    return weights.masked_fill_(masked, 0.0)


_NORMALISE = {"soft": _softmax, "sparse": _sparsemax, "entmax15": _entmax15}
_TINY = 1e-30


def _masked(scores: Tensor, mask: Tensor | None, dim: int, kind: Kind) -> Tensor:
    return _Normalised.apply(scores, mask, dim, kind)


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None, dim: int, kind: Kind) -> Tensor:
        wide = torch.promote_types(scores.dtype, torch.float32)
        # The dimension comes first in a copy: `normalise` overwrites, and is fastest so.
        z = scores.movedim(dim, 0).to(wide, copy=True, memory_format=torch.contiguous_format)
        if mask is None:
            weights = normalise(z, kind, 0)
        else:
            hidden = ~mask.expand(scores.shape).movedim(dim, 0)
            weights = normalise(z.masked_fill_(hidden, -torch.inf), kind, 0)
            weights = weights.masked_fill_(hidden, 0.0)  # softmax of a fully masked row is NaN
        ctx.save_for_backward(weights)
        ctx.dim, ctx.kind, ctx.dtype = dim, kind, scores.dtype
        return weights.movedim(0, dim).to(scores.dtype, copy=True, memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (weights,) = ctx.saved_tensors
        g = jacobian_product(weights, gradient.movedim(ctx.dim, 0).to(weights.dtype), ctx.kind, 0)
        return g.movedim(0, ctx.dim).to(ctx.dtype), None, None, None
