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


def normalise(scores: Tensor, kind: Kind) -> Tensor:
    """Weights over the last dimension, no gradient. Scores in float32 or float64; -inf (or lower than any other by
    more than the type can tell) takes no part; for a row of -inf alone only "sparse" and "entmax15" promise zeros."""
    if kind == "soft":
        return torch.softmax(scores, -1)
    return _sparsemax(scores) if kind == "sparse" else _entmax15(scores)


def slope(weights: Tensor, kind: Kind) -> Tensor:
    """The s of the Jacobian above, for weights that `normalise` gave. May be `weights` itself."""
    if kind == "soft":
        return weights
    return (weights > 0).to(weights.dtype) if kind == "sparse" else weights.sqrt()


def jacobian_product(weights: Tensor, gradient: Tensor, kind: Kind) -> Tensor:
    """Gradient of the scores from that of the weights, over the last dimension."""
    s = slope(weights, kind)
    total = 1.0 if kind == "soft" else s.sum(-1, keepdim=True).clamp_min_(1e-30)
    return s * (gradient - (s * gradient).sum(-1, keepdim=True) / total)


def _below_maximum(scores: Tensor, lowest: float) -> Tensor:
    """Scores minus their row's maximum, not below `lowest`, so that masked entries become finite."""
    # A row of -inf has no finite maximum: subtracting the lowest number leaves -inf, where -inf would leave NaN.
    top = scores.amax(-1, keepdim=True).clamp_min_(torch.finfo(scores.dtype).min)
    return (scores - top).clamp_min_(lowest)


def _sparsemax(scores: Tensor) -> Tensor:
    """Michelot's fixed point: tau is the threshold of all entries above the last tau; finite and exact.

    The support shrinks from {z > max - 1} until it stays, so tau never falls. A row that has converged stays as it is
    to the bit in further rounds: results do not depend on which rows are computed together.
    """
    if scores.shape[-1] == 0:
        return scores.clone()
    z = _below_maximum(scores, -2.0)
    tau = z.new_full((*z.shape[:-1], 1), -1.0)
    while True:
        above = (z > tau).to(z.dtype)
        count = above.sum(-1, keepdim=True).clamp_min_(1.0)
        raised = torch.maximum(tau, (above.mul_(z).sum(-1, keepdim=True) - 1.0) / count)
        if torch.equal(raised, tau):
            return z.sub_(tau).clamp_min_(0.0)
        tau = raised


def _entmax15(scores: Tensor) -> Tensor:
    """Exact by sorting: tau of every prefix of the sorted row in closed form, then the longest prefix that holds."""
    if scores.shape[-1] == 0:
        return scores.clone()
    halves = _below_maximum(scores * 0.5, -2.0)
    z, _ = halves.sort(-1, descending=True)
    k = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    mean = z.cumsum(-1) / k
    spread = (z.square().cumsum(-1) / k - mean.square()) * k
    tau = mean - ((1.0 - spread) / k).clamp_min_(0.0).sqrt_()
    support = (tau <= z).sum(-1, keepdim=True).clamp_min_(1)
    weights = (halves - tau.gather(-1, support - 1)).clamp_min_(0.0).square_()
    return weights.masked_fill_(scores == -torch.inf, 0.0)


def _masked(scores: Tensor, mask: Tensor | None, dim: int, kind: Kind) -> Tensor:
    return _Normalised.apply(scores, mask, dim, kind)


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None, dim: int, kind: Kind) -> Tensor:
        wide = torch.promote_types(scores.dtype, torch.float32)
        z = scores.to(wide).movedim(dim, -1)
        hidden = None
        if mask is not None:
            hidden = ~mask.expand(scores.shape).movedim(dim, -1)
            z = z.masked_fill(hidden, -torch.inf)
        weights = normalise(z, kind)
        if hidden is not None:
            weights = weights.masked_fill(hidden, 0.0)  # softmax of a fully masked row is NaN
        ctx.save_for_backward(weights)
        ctx.dim, ctx.kind, ctx.dtype = dim, kind, scores.dtype
        return weights.movedim(-1, dim).to(scores.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (weights,) = ctx.saved_tensors
        g = jacobian_product(weights, gradient.movedim(ctx.dim, -1).to(weights.dtype), ctx.kind)
        return g.movedim(-1, ctx.dim).to(ctx.dtype), None, None, None
