"""Attention inside sentences as training on the CPU computes it: forward and backward written out over buffers of rows.

A *row* is one head of one token, d_k numbers. Rows go straight from packed tokens to their places in padded grids, head
by head, so that matrix products take them as they are, and every group of sentences writes into its own part of one
buffer: no transposing, no joining of groups, neither forward nor backward. `layers` says the same in PyTorch's words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from weitblick.model.batch import Grid, Group, Layout
from weitblick.model.layers import Dropout

Mask = Callable[[Tensor], Tensor]
"""Gives what to multiply attention weights with: dropout's mask of their shape."""


class HeadPlaces:
    """Where the rows of H heads stand in the padded grids of `grid`: [S * H, W] of each group, one behind the other."""

    def __init__(self, grid: Grid, heads: int) -> None:
        self.grid, self.heads = grid, heads
        self.size = grid.rows * heads
        head = torch.arange(heads, device=grid.index.device)
        # A sentence whose first token stands in row f of the grid begins, head by head, at f * H.
        self.places = (grid.first * heads + grid.offset)[:, None] + grid.width[:, None] * head  # [T, H]
        tokens = torch.zeros(self.size, dtype=torch.long, device=head.device)
        filled = torch.zeros(self.size, dtype=torch.bool, device=head.device)
        flat = self.places.flatten()
        tokens[flat] = torch.arange(len(flat), device=head.device)
        filled[flat] = True
        self.tokens = tokens  # [size] the row of packed tokens [T * H] that stands here; any one at padding
        self.empty = (~filled).nonzero()[:, 0]
        self.spread_index, self.collect_index = cache(self._spread_index), cache(self._collect_index)

    def _spread_index(self, parts: int) -> Tensor:
        """[parts * size] rows of packed projections [T, parts, H, d_k], for each part all places."""
        token, head = self.tokens // self.heads, self.tokens % self.heads
        part = torch.arange(parts, device=token.device)[:, None]
        return (token * parts * self.heads + part * self.heads + head).flatten()

    def _collect_index(self, parts: int) -> Tensor:
        """[T * parts * H] places of the rows of packed projections [T, parts, H, d_k]."""
        part = torch.arange(parts, device=self.places.device)[:, None]
        return (self.places[:, None, :] + part * self.size).flatten()

    @cached_property
    def biases(self) -> list[Tensor]:
        """[S * H, 1, W] of each group: -inf at padding"""
        steps = [torch.arange(group.width, device=self.empty.device) for group in self.grid.groups]
        hidden = [step >= group.lengths[:, None] for step, group in zip(steps, self.grid.groups, strict=True)]
        return [
            torch.zeros(mask.shape, device=mask.device)
            .masked_fill_(mask, -math.inf)
            .repeat_interleave(self.heads, 0)[:, None]
            for mask in hidden
        ]

    @cached_property
    def causal_biases(self) -> list[Tensor]:
        """[1, W, W] of each group: -inf at the future, and so at the padding behind any word"""
        device = self.empty.device
        return [torch.full((1, g.width, g.width), -math.inf, device=device).triu_(1) for g in self.grid.groups]

    def view(self, rows: Tensor, group: Group) -> Tensor:
        """[size, d_k] -> [S * H, W, d_k] of a group"""
        first = group.start * self.heads
        count = group.sentences * self.heads
        return rows[first : first + count * group.width].view(count, group.width, -1)


def head_places(grid: Grid, heads: int) -> HeadPlaces:
    """Of all layers with so many heads: worked out once a batch."""
    if heads not in grid.head_places:
        grid.head_places[heads] = HeadPlaces(grid, heads)
    places: HeadPlaces = grid.head_places[heads]
    return places


class GridAttention(torch.autograd.Function):
    """softmax(q k' / sqrt(d_k) + bias), dropped out, times v, for every sentence and head.

    Rows and products have the type of `queries`, bfloat16 under autocast; weights are float32 then.

    `queries` [T, d] or, for attention of sentences to themselves, queries, keys and values [T, 3d] with `memory` None;
    `memory` [Ts, 2d] keys and values. Padding needs no zeros: its weight as a key is 0, and what it asks is dropped.
    """

    @staticmethod
    @torch.autocast("cpu", enabled=False)  # type: ignore[untyped-decorator]
    def forward(
        ctx: Any,
        queries: Tensor,
        memory: Tensor | None,
        places: HeadPlaces,
        others: HeadPlaces,
        causal: bool,
        mask: Mask,
    ) -> Tensor:
        q, k, v = _spread(queries, memory, places, others)
        scale = q.shape[-1] ** -0.5
        output = torch.empty_like(q)
        kept: list[Tensor] = []
        biases = others.causal_biases if causal else others.biases
        for group, other, bias in zip(places.grid.groups, others.grid.groups, biases, strict=True):
            ours, keys = places.view(q, group), others.view(k, other)
            scores = torch.baddbmm(bias.to(q.dtype), ours, keys.transpose(1, 2), alpha=scale)
            weights = scores.softmax(-1, torch.promote_types(q.dtype, torch.float32))
            keep = mask(weights)
            dropped = (weights * keep).to(q.dtype)
            torch.bmm(dropped, others.view(v, other), out=places.view(output, group))
            kept += [weights, dropped, keep]
        ctx.save_for_backward(q, k, v, *kept)
        ctx.places, ctx.others, ctx.together = places, others, memory is None
        return output.index_select(0, places.places.flatten()).view(len(queries), -1)

    @staticmethod
    @once_differentiable
    @torch.autocast("cpu", enabled=False)  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, *kept = ctx.saved_tensors
        places, others = ctx.places, ctx.others
        groups = zip(places.grid.groups, others.grid.groups, strict=True)
        scale = q.shape[-1] ** -0.5
        d_output = gradient.reshape(-1, q.shape[-1]).index_select(0, places.tokens).index_fill_(0, places.empty, 0.0)
        together = ctx.together
        rows = q.new_empty(3 if together else 1, *q.shape)
        other_rows = rows[1:] if together else k.new_empty(2, *k.shape)
        d_q, d_k, d_v = rows[0], other_rows[0], other_rows[1]
        for number, (group, other) in enumerate(groups):
            weights, dropped, keep = kept[3 * number : 3 * number + 3]
            d_out = places.view(d_output, group)
            torch.bmm(dropped.transpose(1, 2), d_out, out=others.view(d_v, other))
            d_weights = torch.bmm(d_out, others.view(v, other).transpose(1, 2)).to(keep.dtype).mul_(keep)
            d_scores = torch._softmax_backward_data(d_weights, weights, -1, weights.dtype).to(q.dtype)
            ours, keys = places.view(d_q, group), others.view(d_k, other)
            torch.baddbmm(ours, d_scores, others.view(k, other), beta=0, alpha=scale, out=ours)
            torch.baddbmm(keys, d_scores.transpose(1, 2), places.view(q, group), beta=0, alpha=scale, out=keys)
        d_memory = None if together else _collect(other_rows, others)
        return _collect(rows, places), d_memory, None, None, None, None


def _spread(queries: Tensor, memory: Tensor | None, places: HeadPlaces, others: HeadPlaces) -> tuple[Tensor, ...]:
    """Rows of queries [size, d_k], keys and values, at their places."""
    if memory is None:
        width = queries.shape[1] // (3 * places.heads)
        return queries.reshape(-1, width).index_select(0, places.spread_index(3)).view(3, places.size, width).unbind()
    width = queries.shape[1] // places.heads
    q = queries.reshape(-1, width).index_select(0, places.tokens)
    both = memory.reshape(-1, width).index_select(0, others.spread_index(2)).view(2, others.size, width)
    return q, *both.unbind()


def _collect(rows: Tensor, places: HeadPlaces) -> Tensor:
    """[parts, size, d_k] -> [T, parts * d], as the packed projections stand"""
    return rows.flatten(0, 1).index_select(0, places.collect_index(len(rows))).view(places.grid.tokens, -1)


def attend_inside_by_rows(projected: Tensor, layout: Layout, heads: int, causal: bool, dropout: Dropout) -> Tensor:
    """See `weitblick.model.layers.attend_inside`."""
    places = head_places(layout.grid, heads)
    found: Tensor = GridAttention.apply(projected, None, places, places, causal, dropout.mask)
    return found


def attend_source_by_rows(
    queries: Tensor, source: Tensor, grid: Grid, source_grid: Grid, heads: int, dropout: Dropout
) -> Tensor:
    """See `weitblick.model.layers.attend_source`."""
    places, others = head_places(grid, heads), head_places(source_grid, heads)
    found: Tensor = GridAttention.apply(queries, source, places, others, False, dropout.mask)
    return found
