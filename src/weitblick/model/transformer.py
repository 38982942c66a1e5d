"""The Transformer as a sentence-level model over packed tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weitblick.common.recipe import ModelSection
from weitblick.model.batch import Grid, Layout, Scatter, TakeRows
from weitblick.model.dispatch import definition
from weitblick.model.layers import (
    PAST_ROOM,
    Dropout,
    Embedding,
    FeedForward,
    Past,
    SelfAttention,
    SourceAttention,
    keep_rows,
    normalise,
)
from weitblick.model.sentence_model import DecodeCache, DecoderStates, SentenceModel

Extra = Callable[[Tensor], Tensor]  # a sub-layer that a context-aware baseline puts behind self-attention


class SubLayer(nn.Module):
    """Residual connection, dropout and layer norm around a sub-layer, before or after it."""

    def __init__(self, model: ModelSection) -> None:
        super().__init__()
        self.before = model.norm == "pre"
        self.norm = nn.LayerNorm(model.dimension)
        self.dropout = Dropout(model.dropout.residual)

    def enter(self, x: Tensor) -> Tensor:
        """What the sub-layer reads of the residual stream x [T, d]."""
        return normalise(self.norm, x, None) if self.before else x

    def leave(self, x: Tensor, change: Tensor) -> Tensor:
        """The residual stream behind the sub-layer, of which `change` [T, d] came out."""
        if self.training or self.before:
            x = self.dropout.add(x, change)
            return x if self.before else normalise(self.norm, x, None)
        return normalise(self.norm, x, change)


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


class SourceReadingLayer(nn.Module, ABC):
    """A decoder layer: a first sub-layer that reads the past, attention to the source, feed-forward."""

    around_source_attention: SubLayer
    around_feed_forward: SubLayer

    def _add_source_attention(self, model: ModelSection) -> None:
        self.source_attention = SourceAttention(
            model.dimension, model.heads, model.dropout.attention, model.attention_biases
        )
        self.feed_forward = FeedForward(model.dimension, model.feed_forward, model.activation)

    @abstractmethod
    def first(self, x: Tensor, layout: Layout) -> Tensor:
        """[T, d] -> [T, d]: the first sub-layer over whole sentences."""

    @abstractmethod
    def first_step(self, x: Tensor, cache: Any, index: int) -> Tensor:
        """[S * K, d] -> [S * K, d]: the first sub-layer at one step; adds to the cache of this layer."""

    def forward(
        self, x: Tensor, layout: Layout, encoder_states: Tensor, source_grid: Grid, extra: Extra | None = None
    ) -> tuple[Tensor, Tensor]:
        x = self.first(x, layout)
        return self.read_source(extra(x) if extra else x, layout, encoder_states, source_grid)

    def read_source(
        self, x: Tensor, layout: Layout, encoder_states: Tensor, source_grid: Grid
    ) -> tuple[Tensor, Tensor]:
        """All that comes behind the first sub-layer."""
        around = self.around_source_attention
        return self._finish(
            around.leave(x, self.source_attention(around.enter(x), layout, encoder_states, source_grid))
        )

    def step(self, x: Tensor, cache: Any, index: int, extra: Extra | None) -> tuple[Tensor, Tensor]:
        x = self.first_step(x, cache, index)
        x = extra(x) if extra else x
        around = self.around_source_attention
        keys, values = cache.memory[index]
        change = self.source_attention.step(around.enter(x), keys, values, cache.memory_bias)
        return self._finish(around.leave(x, change))

    def _finish(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Feed-forward; and the state after source attention, normalised, that decoder integration asks for."""
        around = self.around_feed_forward
        entered = around.enter(x)
        return around.leave(x, self.feed_forward(entered)), entered


class DecoderLayer(SourceReadingLayer):
    def __init__(self, model: ModelSection) -> None:
        super().__init__()
        self.attention = SelfAttention(
            model.dimension, model.heads, model.dropout.attention, model.attention_biases, causal=True
        )
        self._add_source_attention(model)
        self.around_attention, self.around_source_attention = SubLayer(model), SubLayer(model)
        self.around_feed_forward = SubLayer(model)

    def first(self, x: Tensor, layout: Layout) -> Tensor:
        around = self.around_attention
        return around.leave(x, self.attention(around.enter(x), layout))

    def first_step(self, x: Tensor, cache: TransformerCache, index: int) -> Tensor:
        around = self.around_attention
        return around.leave(x, self.attention.step(around.enter(x), cache.past[index], cache.past_bias))


class TransformerCache(DecodeCache):
    """Keys and values of every source sentence, and of the past of all of its hypotheses.

    memory_bias [S, 1, 1, W] is -inf at padding; past_bias [S, 1, K, C] at cells that are not of a hypothesis' own past,
    None where each sentence has one hypothesis. kept: what a double of `decoder_step` prepares once for a search.
    """

    def __init__(self, memory: list[tuple[Tensor, Tensor]], bias: Tensor) -> None:
        super().__init__()
        self.memory, self.memory_bias = memory, bias
        self.kept: dict[str, Any] = {}
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


class LayeredModel(SentenceModel):
    """Embeddings with positions, a Transformer's encoder, and a decoder of some kind of layer.

    Those layers give the next state and the state after source attention; `extras` run behind their first sub-layer.
    """

    encoder: Sequence[EncoderLayer]
    decoder: Sequence[Any]

    def __init__(
        self,
        model: ModelSection,
        sizes: tuple[int, int],
        layer: type[nn.Module],
        embeds: type[Embedding] = Embedding,
    ) -> None:
        super().__init__(model, *sizes)
        how = (model.dropout.embedding, self.embedding_scale, model.positions)
        self.source_embedding = Embedding(self.source_table, *how)
        self.target_embedding = embeds(self.target_table, *how)
        self.encoder = _layers(EncoderLayer(model) for _ in range(model.encoder_layers))
        self.decoder = _layers(layer(model) for _ in range(model.decoder_layers))
        final = nn.LayerNorm if model.norm == "pre" else nn.Identity
        self.encoder_norm, self.decoder_norm = final(model.dimension), final(model.dimension)
        self.source_end = model.source_end
        self.initialise()

    def encode(self, tokens: Tensor, layout: Layout, extras: Sequence[Extra] | None = None) -> Tensor:
        if not self.source_end:
            return self._encode_words(tokens, layout, extras)
        x = self.source_embedding(tokens, layout)
        for index, layer in enumerate(self.encoder):
            x = layer(x, layout, extras[index] if extras else None)
        return self.encoder_norm(x)

    def _encode_words(self, tokens: Tensor, layout: Layout, extras: Sequence[Extra] | None) -> Tensor:
        """[T] -> [T, d], zeros at the ends of sentences, which nobody sees; `extras` have a row for each token."""
        places, words = layout.places_without_ends, layout.without_ends

        def among_all(extra: Extra, x: Tensor) -> Tensor:
            return TakeRows.apply(extra(Scatter.apply(x, places, layout.tokens)), places)

        x = self.source_embedding(tokens[places], words)
        for index, layer in enumerate(self.encoder):
            x = layer(x, words, partial(among_all, extras[index]) if extras else None)
        return Scatter.apply(self.encoder_norm(x), places, layout.tokens)

    def readable(self, encoder_states: Tensor, source_layout: Layout) -> tuple[Tensor, Layout]:
        """What decoders attend to of encoder states [T, d]: all, or those of words (`model.source_end`)."""
        if self.source_end:
            return encoder_states, source_layout
        return TakeRows.apply(encoder_states, source_layout.places_without_ends), source_layout.without_ends

    def decode(
        self,
        tokens: Tensor,
        layout: Layout,
        encoder_states: Tensor,
        source_layout: Layout,
        extras: Sequence[Extra] | None = None,
    ) -> DecoderStates:
        x = self.target_embedding(tokens, layout)
        encoder_states, source_layout = self.readable(encoder_states, source_layout)
        source_grid = Grid(source_layout, layout.grid.members)
        attended = x
        for index, layer in enumerate(self.decoder):
            x, attended = layer(x, layout, encoder_states, source_grid, extras[index] if extras else None)
        return DecoderStates(attended, self.decoder_norm(x))

    def projected_source(self, encoder_states: Tensor, layout: Layout) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """Keys and values of the source for each layer, and a bias [S, 1, 1, W] that is -inf at padding."""
        encoder_states, layout = self.readable(encoder_states, layout)
        mask = layout.mask
        bias = torch.zeros(mask.shape, dtype=encoder_states.dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
        return [layer.source_attention.project(encoder_states, layout) for layer in self.decoder], bias[:, None, None]

    def source_weights(self, tokens: Tensor, layout: Layout, encoder_states: Tensor, source_layout: Layout) -> Tensor:
        x = self.target_embedding(tokens, layout)
        readable, readable_layout = self.readable(encoder_states, source_layout)
        source_grid = Grid(readable_layout, layout.grid.members)
        for layer in self.decoder[:-1]:
            x, _ = layer(x, layout, readable, source_grid)
        x = self.decoder[-1].first(x, layout)
        return self._last_weights(x, layout, encoder_states, source_layout)

    def decode_with_weights(
        self, tokens: Tensor, layout: Layout, encoder_states: Tensor, source_layout: Layout
    ) -> tuple[DecoderStates, Tensor]:
        seen: list[Tensor] = []  # behind the first sub-layer of each layer

        def see(x: Tensor) -> Tensor:
            seen.append(x)
            return x

        states = self.decode(tokens, layout, encoder_states, source_layout, [see] * len(self.decoder))
        return states, self._last_weights(seen[-1], layout, encoder_states, source_layout)

    def _last_weights(self, x: Tensor, layout: Layout, encoder_states: Tensor, source_layout: Layout) -> Tensor:
        """x [T, d] behind the first sub-layer of the last layer; an end of sentence that is not read has no weight."""
        last = self.decoder[-1]
        entered = last.around_source_attention.enter(x)
        readable, readable_layout = self.readable(encoder_states, source_layout)
        weights: Tensor = last.source_attention.weights(entered, layout, readable, readable_layout)
        return weights if self.source_end else F.pad(weights, (0, source_layout.longest - readable_layout.longest))


class Transformer(LayeredModel):
    decoder: Sequence[DecoderLayer]

    def __init__(self, model: ModelSection, source_size: int, target_size: int) -> None:
        super().__init__(model, (source_size, target_size), DecoderLayer)

    def start(self, encoder_states: Tensor, source_layout: Layout) -> TransformerCache:
        return TransformerCache(*self.projected_source(encoder_states, source_layout))

    def step(self, tokens: Tensor, cache: DecodeCache, extras: Sequence[Extra] | None = None) -> DecoderStates:
        assert isinstance(cache, TransformerCache)
        cache.advance(len(tokens))
        states = decoder_step(self, tokens, cache, extras)
        cache.length += 1
        return states


@definition
def decoder_step(
    model: Transformer, tokens: Tensor, cache: TransformerCache, extras: Sequence[Extra] | None
) -> DecoderStates:
    """The next step of every hypothesis, tokens [S * K], layer by layer; each layer adds to its part of the cache."""
    x = model.target_embedding.step(tokens, cache.length)
    attended = x
    for index, layer in enumerate(model.decoder):
        x, attended = layer.step(x, cache, index, extras[index] if extras else None)
    return DecoderStates(attended, model.decoder_norm(x))
