"""The Transformer as a sentence-level model over packed tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from weitblick.batches.layout import Grid, Layout
from weitblick.config.recipe import ModelSection
from weitblick.kernels.decoder import ACTIVATIONS, GAP, CompiledDecoder, LayerParts
from weitblick.kernels.library import MOST_CELLS, Kernels, PackedIntegers, kernels_for
from weitblick.sentence.layers import (
    PAST_ROOM,
    Dropout,
    Embedding,
    FeedForward,
    Past,
    SelfAttention,
    SourceAttention,
    keep_rows,
)
from weitblick.sentence.quantized import QuantizedLinear
from weitblick.sentence.sentence_model import DecodeCache, DecoderStates, SentenceModel

Extra = Callable[[Tensor], Tensor]  # a sub-layer that a context-aware baseline puts behind self-attention


class SubLayer(nn.Module):
    """Residual connection, dropout and layer norm around a sub-layer, before or after it."""

    def __init__(self, model: ModelSection) -> None:
        super().__init__()
        self.before = model.norm == "pre"
        self.norm = nn.LayerNorm(model.dimension)
        self.dropout = Dropout(model.dropout.residual)

    def enter(self, x: Tensor) -> Tensor:
        if not self.before:
            return x
        compiled = self._compiled(x)
        return self.norm(x) if compiled is None else compiled.norm(self.norm, x)

    def leave(self, x: Tensor, change: Tensor) -> Tensor:
        compiled = None if self.before else self._compiled(x)
        if compiled is not None:
            return compiled.norm(self.norm, x, change)
        x = self.dropout.add(x, change)
        return x if self.before else self.norm(x)

    def _compiled(self, x: Tensor) -> Kernels | None:
        compiled = None if self.training else kernels_for(x)
        return compiled if compiled is not None and x.shape[-1] % compiled.lanes == 0 else None


class EncoderLayer(nn.Module):
    def __init__(self, model: ModelSection) -> None:
        super().__init__()
        self.attention = SelfAttention(
            model.dimension, model.heads, model.dropout.attention, model.attention_biases, causal=False
        )
        self.feed_forward = FeedForward(model.dimension, model.feed_forward, model.activation)
        self.around_attention, self.around_feed_forward = SubLayer(model), SubLayer(model)

    def forward(self, x: Tensor, layout: Layout, extra: Extra | None = None) -> Tensor:
        around = self.around_attention
        x = around.leave(x, self.attention(around.enter(x), layout))
        x = extra(x) if extra else x
        around = self.around_feed_forward
        return around.leave(x, self.feed_forward(around.enter(x)))


class DecoderLayer(nn.Module):
    def __init__(self, model: ModelSection) -> None:
        super().__init__()
        size, heads, dropout, biases = model.dimension, model.heads, model.dropout.attention, model.attention_biases
        self.attention = SelfAttention(size, heads, dropout, biases, causal=True)
        self.source_attention = SourceAttention(size, heads, dropout, biases)
        self.feed_forward = FeedForward(size, model.feed_forward, model.activation)
        self.around_attention, self.around_source_attention = SubLayer(model), SubLayer(model)
        self.around_feed_forward = SubLayer(model)

    def _finish(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Feed-forward; and the state after source attention, normalised, that decoder integration asks for."""
        around = self.around_feed_forward
        entered = around.enter(x)
        return around.leave(x, self.feed_forward(entered)), entered

    def forward(
        self, x: Tensor, layout: Layout, memory: Tensor, memory_grid: Grid, extra: Extra | None = None
    ) -> tuple[Tensor, Tensor]:
        around = self.around_attention
        x = around.leave(x, self.attention(around.enter(x), layout))
        x = extra(x) if extra else x
        around = self.around_source_attention
        return self._finish(around.leave(x, self.source_attention(around.enter(x), layout, memory, memory_grid)))

    def step(self, x: Tensor, cache: TransformerCache, index: int, extra: Extra | None) -> tuple[Tensor, Tensor]:
        around = self.around_attention
        x = around.leave(x, self.attention.step(around.enter(x), cache.past[index], cache.past_bias))
        x = extra(x) if extra else x
        around = self.around_source_attention
        change = self.source_attention.step(around.enter(x), *cache.memory[index], cache.memory_bias)
        return self._finish(around.leave(x, change))

    def parts(self) -> LayerParts:
        """What `CompiledDecoder` needs of it."""
        attention, source, wide = self.attention, self.source_attention, self.feed_forward
        linears = attention.input, attention.output, source.query, source.output, wide.input, wide.output
        norms = self.around_attention.norm, self.around_source_attention.norm, self.around_feed_forward.norm
        return LayerParts([_packed(linear) for linear in linears], norms)


def _packed(linear: nn.Module) -> nn.Linear | PackedIntegers:
    if isinstance(linear, QuantizedLinear):
        assert isinstance(linear.packed, PackedIntegers)
        return linear.packed
    assert isinstance(linear, nn.Linear)
    return linear


class TransformerCache(DecodeCache):
    """Keys and values of every source sentence, and of the past of all of its hypotheses.

    memory_bias [S, 1, 1, W] is -inf at padding; past_bias [S, 1, K, C] at cells that are not of a hypothesis' own past,
    None where each sentence has one hypothesis. `compiled`, where there is one, computes whole steps.
    """

    def __init__(
        self, memory: list[tuple[Tensor, Tensor]], bias: Tensor, compiled: CompiledDecoder | None = None
    ) -> None:
        super().__init__()
        self.memory, self.memory_bias, self.compiled = memory, bias, compiled
        self.past = [Past(len(bias)) for _ in memory]
        self.past_bias: Tensor | None = None
        self.enough = PAST_ROOM  # cells from which it pays to look for those that nobody sees

    def advance(self, hypotheses: int) -> None:
        """Before a step of so many hypotheses in all: each is going to see itself, and not the others."""
        sentences = len(self.memory_bias)
        each = hypotheses // sentences
        if each == 1:
            return
        if self.past_bias is None:
            self.past_bias = self.memory_bias.new_zeros(sentences, 1, each, self.past[0].count)
        others = self.past_bias.new_full((each, each), -torch.inf).fill_diagonal_(0.0)
        self.past_bias = torch.cat([self.past_bias, others.expand(sentences, 1, -1, -1)], -1)

    def select_sentences(self, sentences: Tensor) -> None:
        self.memory = [(keep_rows(k, sentences), keep_rows(v, sentences)) for k, v in self.memory]
        self.memory_bias = keep_rows(self.memory_bias, sentences)
        for past in self.past:
            past.select_sentences(sentences)

    def select_hypotheses(self, hypotheses: Tensor) -> None:
        if self.past_bias is None:
            return
        chosen = self.past_bias.flatten(0, 2).index_select(0, hypotheses)
        self.past_bias = chosen.view(len(self.memory_bias), 1, -1, chosen.shape[-1])
        if chosen.shape[-1] >= self.enough:
            self._forget(self.past_bias)

    def _forget(self, bias: Tensor) -> None:
        """Drops cells that no hypothesis sees any more: most hypotheses have most of their past in common."""
        seen = (bias == 0).any(2).squeeze(1)  # [S, C]
        most = int(seen.sum(1).max())
        cells = seen.to(torch.uint8).sort(dim=1, descending=True, stable=True).indices[:, :most]  # [S, C']
        self.past_bias = bias.gather(3, cells[:, None, None].expand(-1, -1, bias.shape[2], -1))
        for past in self.past:
            past.select_cells(cells)
        self.enough = max(PAST_ROOM, 2 * most)


def _layers(layers: Iterable[nn.Module]) -> Any:
    """A ModuleList, whose own type forgets what it holds."""
    return nn.ModuleList(layers)


class Transformer(SentenceModel):
    def __init__(self, model: ModelSection, source_size: int, target_size: int) -> None:
        super().__init__(model, source_size, target_size)
        how = (model.dropout.embedding, self.embedding_scale, model.positions)
        self.source_embedding = Embedding(self.source_table, *how)
        self.target_embedding = Embedding(self.target_table, *how)
        self.encoder: Sequence[EncoderLayer] = _layers(EncoderLayer(model) for _ in range(model.encoder_layers))
        self.decoder: Sequence[DecoderLayer] = _layers(DecoderLayer(model) for _ in range(model.decoder_layers))
        final = nn.LayerNorm if model.norm == "pre" else nn.Identity
        self.encoder_norm, self.decoder_norm = final(model.dimension), final(model.dimension)
        self.initialise()

    def encode(self, tokens: Tensor, layout: Layout, extras: Sequence[Extra] | None = None) -> Tensor:
        x = self.source_embedding(tokens, layout)
        for index, layer in enumerate(self.encoder):
            x = layer(x, layout, extras[index] if extras else None)
        return self.encoder_norm(x)

    def decode(
        self,
        tokens: Tensor,
        layout: Layout,
        memory: Tensor,
        memory_layout: Layout,
        extras: Sequence[Extra] | None = None,
    ) -> DecoderStates:
        x = self.target_embedding(tokens, layout)
        memory_grid = Grid(memory_layout, layout.grid.members)
        attended = x
        for index, layer in enumerate(self.decoder):
            x, attended = layer(x, layout, memory, memory_grid, extras[index] if extras else None)
        return DecoderStates(attended, self.decoder_norm(x))

    def start(self, memory: Tensor, memory_layout: Layout) -> TransformerCache:
        mask = memory_layout.mask
        bias = torch.zeros(mask.shape, dtype=memory.dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
        projected = [layer.source_attention.project(memory, memory_layout) for layer in self.decoder]
        return TransformerCache(projected, bias[:, None, None], self._compiled(memory))

    def _compiled(self, memory: Tensor) -> CompiledDecoder | None:
        """The decoder in one function, if kernels know all that it does."""
        compiled, layers = kernels_for(memory), list(self.decoder)
        heads, activation = layers[0].attention.heads, layers[0].feed_forward.kind
        if compiled is None or self.training or activation not in ACTIVATIONS:
            return None
        if (self.dimension // heads) % compiled.lanes or layers[0].feed_forward.inner % compiled.lanes:
            return None
        if not compiled.integer_columns and any(isinstance(x, QuantizedLinear) for x in self.modules()):
            return None  # these are PyTorch's
        last = self.decoder_norm if isinstance(self.decoder_norm, nn.LayerNorm) else None
        return CompiledDecoder(
            compiled,
            [layer.parts() for layer in layers],
            last,
            self.target_table.weight,
            self.embedding_scale,
            heads,
            activation,
        )

    def step(self, tokens: Tensor, cache: DecodeCache, extras: Sequence[Extra] | None = None) -> DecoderStates:
        assert isinstance(cache, TransformerCache)
        cache.advance(len(tokens))
        if cache.compiled is not None and extras is None and cache.memory_bias.shape[-1] <= MOST_CELLS:
            return self._compiled_step(tokens, cache, cache.compiled)
        x = self.target_embedding.step(tokens, cache.length)
        attended = x
        for index, layer in enumerate(self.decoder):
            x, attended = layer.step(x, cache, index, extras[index] if extras else None)
        cache.length += 1
        return DecoderStates(attended, self.decoder_norm(x))

    def _compiled_step(self, tokens: Tensor, cache: TransformerCache, compiled: CompiledDecoder) -> DecoderStates:
        rooms = [past.more(len(tokens) // past.sentences, 2 * self.dimension + GAP) for past in cache.past]
        position = self.target_embedding.positions(cache.length + 1, rooms[0])[cache.length]
        cells = cache.past[0].count
        cache.length += 1
        return DecoderStates(
            *compiled.step(tokens, position, rooms, cells, cache.past_bias, cache.memory, cache.memory_bias)
        )

    def source_weights(self, tokens: Tensor, layout: Layout, memory: Tensor, memory_layout: Layout) -> Tensor:
        x = self.target_embedding(tokens, layout)
        memory_grid = Grid(memory_layout, layout.grid.members)
        for layer in self.decoder[:-1]:
            x, _ = layer(x, layout, memory, memory_grid)
        last = self.decoder[-1]
        around = last.around_attention
        x = around.leave(x, last.attention(around.enter(x), layout))
        return self._last_weights(x, layout, memory, memory_layout)

    def _last_weights(self, x: Tensor, layout: Layout, memory: Tensor, memory_layout: Layout) -> Tensor:
        """x [T, d] behind the self-attention of the last layer."""
        last = self.decoder[-1]
        return last.source_attention.weights(last.around_source_attention.enter(x), layout, memory, memory_layout)

    def decode_with_weights(
        self, tokens: Tensor, layout: Layout, memory: Tensor, memory_layout: Layout
    ) -> tuple[DecoderStates, Tensor]:
        seen: list[Tensor] = []  # behind the self-attention of each layer

        def see(x: Tensor) -> Tensor:
            seen.append(x)
            return x

        states = self.decode(tokens, layout, memory, memory_layout, [see] * len(self.decoder))
        return states, self._last_weights(seen[-1], layout, memory, memory_layout)
