"""The building blocks of every model here: dropout, attention over packed sentences, feed-forward, embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weitblick.model.batch import Grid, Layout
from weitblick.model.dispatch import definition


class Dropout(nn.Module):
    """Dropout whose masks come from random bytes on the CPU: one 64-bit draw decides eight values.

    The rate is rounded to a multiple of 1/256 there, from 1/256 to 255/256; the scale follows the rounded rate, so
    expectations are exact.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        return x * self.mask(x)

    def add(self, x: Tensor, change: Tensor) -> Tensor:
        """x + dropout(change), in one pass where that can be."""
        if not self.training or self.rate == 0 or x.device.type != "cpu":
            return x + self(change)
        return torch.addcmul(x, change, self.mask(change))

    def mask(self, x: Tensor) -> Tensor:
        """What to multiply `x` with: 0 for what is dropped, a little more than 1 for the rest."""
        return dropout_mask(x, self.rate)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def dropout_mask(x: Tensor, rate: float, generator: torch.Generator | None = None) -> Tensor:
    """A mask of the shape of `x` from random bytes: 0 for what is dropped, a little more than 1 for the rest."""
    dropped = min(255, max(1, round(rate * 256)))
    count = x.numel()
    words = torch.empty((count + 7) // 8, dtype=torch.int64, device=x.device)
    drawn = words.random_(-(2**63), None, generator=generator).view(torch.uint8)[:count].view(x.shape)
    # Floats are compared and scaled in their own place, many at a time; bytes would be compared one by one.
    numbers = drawn.to(torch.promote_types(x.dtype, torch.float32))
    return numbers.ge_(dropped).mul_(256 / (256 - dropped))


@definition
def linear(x: Tensor, weight: Tensor, bias: Tensor | None, rectified: bool) -> Tensor:
    """[..., d] -> [..., out]: x W' + b; rectified: what is below zero becomes zero."""
    product = F.linear(x, weight, bias)
    return F.relu(product, inplace=True) if rectified else product


class Linear(nn.Linear):
    """PyTorch's linear layer, with a ReLU behind it if asked for."""

    def forward(self, x: Tensor, rectified: bool = False) -> Tensor:
        return linear(x, self.weight, self.bias, rectified)


@definition
def normalise(norm: nn.LayerNorm, x: Tensor, change: Tensor | None) -> Tensor:
    """The layer norm of x + change [T, d]."""
    found: Tensor = norm(x if change is None else x + change)
    return found


def _heads(x: Tensor, heads: int) -> Tensor:
    """[S, W, d] -> [S, H, W, d/H]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool, dropout: Dropout) -> Tensor:
    """[S, H, Wq, dk] x [S, H, Wk, dk] -> [S, Wq, d]. `bias` [S, 1, 1, Wk] is -inf at padding."""
    if not dropout.training or dropout.rate == 0:
        if q.dtype == torch.bfloat16 and q.device.type == "cpu":  # backward, PyTorch's bfloat16 takes 4 times as long
            q, k, v = q.float(), k.float(), v.float()
            bias = None if bias is None else bias.float()
        with torch.autocast(q.device.type, enabled=False):
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal)
    else:
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if causal:
            bias = torch.full(scores.shape[-2:], -math.inf, device=q.device, dtype=q.dtype).triu_(1)
        scores = scores if bias is None else scores + bias
        out = dropout(scores.softmax(-1)) @ v
    return out.transpose(1, 2).flatten(2)


@definition
def attend_step(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    """One position of K hypotheses of each of S sentences: [S, H, K, dk] x [S, H, C, dk] -> [S * K, d]"""
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    return out.transpose(1, 2).reshape(-1, out.shape[1] * out.shape[3])


@definition
def attend_inside(projected: Tensor, layout: Layout, heads: int, causal: bool, dropout: Dropout) -> Tensor:
    """Every word over the words of its own sentence, if `causal` over those up to itself: queries, keys and values
    [T, 3d] -> [T, d]"""
    grid, results = layout.grid, []
    for group, padded in zip(grid.groups, grid.pad(projected), strict=True):
        q, k, v = (_heads(part, heads) for part in padded.chunk(3, -1))
        bias = None if causal else group.key_bias(projected.dtype)
        results.append(_attend(q, k, v, bias, causal, dropout))
    return grid.pack(results)


@definition
def attend_source(
    queries: Tensor, source: Tensor, grid: Grid, source_grid: Grid, heads: int, dropout: Dropout
) -> Tensor:
    """Every target word over the words of its source sentence: queries [T, d], keys and values [Ts, 2d] -> [T, d];
    `source_grid` groups the source sentences as `grid` does the target sentences."""
    results = []
    for group, q, kv in zip(source_grid.groups, grid.pad(queries), source_grid.pad(source), strict=True):
        k, v = (_heads(part, heads) for part in kv.chunk(2, -1))
        results.append(_attend(_heads(q, heads), k, v, group.key_bias(queries.dtype), False, dropout))
    return grid.pack(results)


PAST_ROOM = 64
"""Cells for which there is room at once."""


class Past:
    """Keys and values of every hypothesis of S sentences at every step so far, one *cell* each: [S, C, 2d].

    When hypotheses branch or die, who may see which cell changes, not the cells.
    """

    def __init__(self, sentences: int) -> None:
        self.sentences, self.count = sentences, 0
        self.room: Tensor | None = None

    def append(self, cells: Tensor) -> Tensor:
        """Adds [S, K, 2d] and gives all [S, C, 2d]."""
        start = self.count
        room = self.more(cells.shape[1], cells.shape[2], cells)
        room[:, start : self.count] = cells
        return room[:, : self.count]

    def more(self, count: int, width: int, like: Tensor | None = None) -> Tensor:
        """The room [S, R, width] of all cells, so many more of them, which the caller fills."""
        start, self.count = self.count, self.count + count
        if self.room is None or self.room.shape[1] < self.count:
            like = torch.empty(0) if like is None else like
            grown = like.new_empty(self.sentences, max(PAST_ROOM, 2 * self.count), width)
            if self.room is not None:
                grown[:, :start] = self.room[:, :start]
            self.room = grown
        return self.room

    def select_sentences(self, sentences: Tensor) -> None:
        self.sentences = len(sentences)
        if self.room is not None:
            self.room = keep_rows(self.room, sentences)

    def select_cells(self, cells: Tensor) -> None:
        """Keeps these cells [S, C'] of each sentence."""
        assert self.room is not None
        self.count = cells.shape[1]
        self.room[:, : self.count] = self.room.gather(1, cells[:, :, None].expand(-1, -1, self.room.shape[2]))


def keep_rows(rows: Tensor, chosen: Tensor) -> Tensor:
    """`rows[chosen]`, at most as many, in the memory of `rows`: only those are copied that change their place."""
    moved = (chosen != torch.arange(len(chosen), device=chosen.device)).nonzero()[:, 0]
    if len(moved):
        rows[moved] = rows[chosen[moved]]
    return rows[: len(chosen)]


class SelfAttention(nn.Module):
    """Multi-head attention of each sentence to itself, over packed tokens."""

    def __init__(self, dimension: int, heads: int, dropout: float, biases: bool, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.input = Linear(dimension, 3 * dimension, bias=biases)  # queries, keys, values
        self.output = Linear(dimension, dimension, bias=biases)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, layout: Layout) -> Tensor:
        """[T, d] -> [T, d]"""
        return self.output(attend_inside(self.input(x), layout, self.heads, self.causal, self.dropout))

    def step(self, x: Tensor, past: Past, bias: Tensor | None) -> Tensor:
        """x [S * K, d], the next position of K hypotheses for each of S sentences -> [S * K, d]

        `bias` [S, 1, K, C + K] is -inf where a cell is not of the hypothesis' own past; None: all are.
        """
        projected = self.input(x).view(past.sentences, -1, 3 * x.shape[-1])  # [S, K, 3d]
        cells = past.append(projected[:, :, x.shape[-1] :])
        q, k, v = (_heads(part, self.heads) for part in (projected[:, :, : x.shape[-1]], *cells.chunk(2, -1)))
        return self.output(attend_step(q, k, v, bias))


class SourceAttention(nn.Module):
    """Multi-head attention of each target sentence to its source sentence."""

    def __init__(self, dimension: int, heads: int, dropout: float, biases: bool) -> None:
        super().__init__()
        self.heads = heads
        self.query = Linear(dimension, dimension, bias=biases)
        self.memory = Linear(dimension, 2 * dimension, bias=biases)  # keys, values
        self.output = Linear(dimension, dimension, bias=biases)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, layout: Layout, encoder_states: Tensor, source_grid: Grid) -> Tensor:
        """x [T, d], encoder states [Ts, d] -> [T, d]; `source_grid` groups the source sentences as `layout.grid`."""
        queries, source = self.query(x), self.memory(encoder_states)
        return self.output(attend_source(queries, source, layout.grid, source_grid, self.heads, self.dropout))

    def project(self, encoder_states: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Keys and values [S, H, W, dk] of all source sentences, once for all steps."""
        k, v = (_heads(part, self.heads) for part in layout.pad(self.memory(encoder_states)).chunk(2, -1))
        return k.contiguous(), v.contiguous()

    def step(self, x: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        """x [S * K, d], K hypotheses for each of S sentences -> [S * K, d]"""
        q = _heads(self.query(x).view(keys.shape[0], -1, x.shape[-1]), self.heads)
        return self.output(attend_step(q, keys, values, bias))

    def read(self, x: Tensor, layout: Layout, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        """x [T, d] -> [T, d], each sentence of `layout` over its own keys and values [S, H, W, dk] from `project`."""
        q = _heads(layout.pad(self.query(x)), self.heads)
        return self.output(layout.pack(_attend(q, keys, values, bias, False, self.dropout)))

    def weights(self, x: Tensor, layout: Layout, encoder_states: Tensor, source_layout: Layout) -> Tensor:
        """Attention weights averaged over heads, [S, Wt, Ws]: which source words each target word looks at."""
        q = _heads(layout.pad(self.query(x)), self.heads)
        k = _heads(source_layout.pad(self.memory(encoder_states).chunk(2, -1)[0]), self.heads)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        return scores.masked_fill(~source_layout.mask[:, None, None], -math.inf).softmax(-1).mean(1)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "swish": F.silu,
}


class FeedForward(nn.Module):
    def __init__(self, dimension: int, inner: int, activation: str) -> None:
        super().__init__()
        self.input = Linear(dimension, inner)
        self.output = Linear(inner, dimension)
        self.inner, self.kind = inner, activation
        self.activation = ACTIVATIONS[activation]
        self.nonnegative = activation == "relu"  # what its second layer reads

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.input(x, rectified=True) if self.nonnegative else self.activation(self.input(x)))


class Embedding(nn.Module):
    """Token embeddings, times `scale`, plus sinusoidal positions."""

    def __init__(self, table: nn.Embedding, dropout: float, scale: float, positions: str) -> None:
        super().__init__()
        self.table, self.scale, self.kind = table, scale, positions
        self.dropout = Dropout(dropout)
        self._positions: Tensor | None = None

    def positions(self, count: int, like: Tensor) -> Tensor:
        """[count, d] sinusoids, computed once and grown by doubling."""
        if self._positions is None or self._positions.shape[0] < count or self._positions.device != like.device:
            size = max(512, 1 << (count - 1).bit_length())
            self._positions = sinusoids(size, self.table.embedding_dim, self.kind).to(like.device)
        return self._positions[:count].to(like.dtype)

    def words(self, tokens: Tensor) -> Tensor:
        """[T] -> [T, d], without positions."""
        return self.table(tokens) * self.scale

    def forward(self, tokens: Tensor, layout: Layout) -> Tensor:
        """[T] -> [T, d]"""
        x = self.words(tokens)
        return self.dropout(x + self.positions(layout.longest, x).index_select(0, layout.offset))

    def step(self, tokens: Tensor, position: int) -> Tensor:
        x = self.words(tokens)
        return x + self.positions(position + 1, x)[position]


def sinusoids(count: int, dimension: int, kind: str = "tensor2tensor") -> Tensor:
    """[count, d]: sines in the first half, cosines in the second, of geometrically falling frequencies.

    The last one is 1/10000 in tensor2tensor and those who follow it, a little more in Marian.
    """
    half = dimension // 2
    intervals = half if kind == "marian" else max(1, half - 1)
    rates = torch.exp(torch.arange(half, dtype=torch.float64) * -(math.log(10000.0) / intervals))
    angles = torch.arange(count, dtype=torch.float64)[:, None] * rates
    table = torch.zeros(count, dimension, dtype=torch.float64)
    table[:, :half], table[:, half : 2 * half] = angles.sin(), angles.cos()
    return table.float()
