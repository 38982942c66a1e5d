"""A Transformer whose decoder has a recurrent unit where others have self-attention: Firefox's translation models.

The unit is the simpler simple recurrent unit (SSRU) of Kim et al. (2019). With x the input of a layer,

    f_t = sigmoid(W_f x_t + b_f),    c_t = f_t * c_{t-1} + (1 - f_t) * W x_t,    c_0 = 0,

and relu(c_t) is added to x_t. A step of decoding needs c of the step before, and no past of keys and values.

Shapes here: T packed tokens, S sentences of at most W words, K hypotheses of a sentence, d the model's dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from weitblick.common.recipe import ModelSection
from weitblick.model.batch import Layout
from weitblick.model.layers import Embedding, Linear, keep_rows
from weitblick.model.sentence_model import DecodeCache, DecoderStates
from weitblick.model.transformer import Extra, LayeredModel, SourceReadingLayer, SubLayer
from weitblick.text.base import BOS

EPSILON = 1e-6
"""Of layer norms, as in Marian."""


class Recurrence(torch.autograd.Function):
    """c_t = f_t * c_{t-1} + (1 - f_t) * v_t for all steps of a batch; one operation a step, forward and backward."""

    @staticmethod
    def forward(ctx: Any, forget: Tensor, value: Tensor) -> Tensor:
        """[W, S, d], [W, S, d] -> [W, S, d]"""
        states = torch.empty_like(value)
        before = torch.zeros_like(value[0])
        for step in range(len(value)):
            torch.lerp(value[step], before, forget[step], out=states[step])
            before = states[step]
        ctx.save_for_backward(forget, value, states)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        forget, value, states = ctx.saved_tensors
        reached = gradient.clone()  # with what comes back through the later steps
        for step in range(len(value) - 2, -1, -1):
            reached[step].addcmul_(reached[step + 1], forget[step + 1])
        before = torch.cat([torch.zeros_like(states[:1]), states[:-1]])
        return (before - value) * reached, (1 - forget) * reached


class RecurrentUnit(nn.Module):
    """The unit of one layer."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.value = Linear(dimension, dimension, bias=False)
        self.forget = Linear(dimension, dimension)

    def forward(self, x: Tensor, layout: Layout) -> Tensor:
        """[T, d] -> [T, d]"""
        gates = layout.pad(torch.sigmoid(self.forget(x)))  # [S, W, d]
        values = layout.pad(self.value(x))
        states: Tensor = Recurrence.apply(gates.transpose(0, 1), values.transpose(0, 1))  # [W, S, d]
        return torch.relu(layout.pack(states.transpose(0, 1)))

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """x [S * K, d], the state before it -> output and state, both [S * K, d]"""
        state = torch.lerp(self.value(x), state, torch.sigmoid(self.forget(x)))
        return torch.relu(state), state


class RecurrentLayer(SourceReadingLayer):
    """A decoder layer: recurrent unit, attention to the source, feed-forward."""

    def __init__(self, model: ModelSection) -> None:
        super().__init__()
        self.unit = RecurrentUnit(model.dimension)
        self._add_source_attention(model)
        self.around_unit, self.around_source_attention = SubLayer(model), SubLayer(model)
        self.around_feed_forward = SubLayer(model)

    def first(self, x: Tensor, layout: Layout) -> Tensor:
        return self.around_unit.leave(x, self.unit(self.around_unit.enter(x), layout))

    def first_step(self, x: Tensor, cache: RecurrentCache, index: int) -> Tensor:
        change, cache.states[index] = self.unit.step(self.around_unit.enter(x), cache.states[index])
        return self.around_unit.leave(x, change)


class RecurrentCache(DecodeCache):
    """Keys and values of every source sentence, and the state of each layer's unit for every hypothesis.

    memory_bias [S, 1, 1, W] is -inf at padding; states are [S * K, d], empty before the first step.
    """

    def __init__(self, memory: list[tuple[Tensor, Tensor]], bias: Tensor) -> None:
        super().__init__()
        self.memory, self.memory_bias = memory, bias
        self.states: list[Tensor] = []

    def begin(self, hypotheses: int, dimension: int) -> None:
        """Before the first step: states of zeros."""
        if not self.states:
            self.states = [self.memory_bias.new_zeros(hypotheses, dimension) for _ in self.memory]

    def select_sentences(self, sentences: Tensor) -> None:
        self.memory = [(keep_rows(k, sentences), keep_rows(v, sentences)) for k, v in self.memory]
        self.memory_bias = keep_rows(self.memory_bias, sentences)

    def select_hypotheses(self, hypotheses: Tensor) -> None:
        self.states = [state.index_select(0, hypotheses) for state in self.states]


class DecoderEmbedding(Embedding):
    """Embeddings of a decoder that starts from zeros (plus the first position), whatever <s> has in the table."""

    def words(self, tokens: Tensor) -> Tensor:
        return super().words(tokens) * (tokens != BOS)[:, None]


class RecurrentTransformer(LayeredModel):
    """Encoder of a Transformer, decoder with recurrent units (`architecture: ssru`)."""

    decoder: Sequence[RecurrentLayer]

    def __init__(self, model: ModelSection, source_size: int, target_size: int) -> None:
        super().__init__(model, (source_size, target_size), RecurrentLayer, DecoderEmbedding)
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = EPSILON

    def start(self, encoder_states: Tensor, source_layout: Layout) -> RecurrentCache:
        return RecurrentCache(*self.projected_source(encoder_states, source_layout))

    def step(self, tokens: Tensor, cache: DecodeCache, extras: Sequence[Extra] | None = None) -> DecoderStates:
        assert isinstance(cache, RecurrentCache)
        x = self.target_embedding.step(tokens, cache.length)
        cache.begin(len(tokens), self.dimension)
        attended = x
        for index, layer in enumerate(self.decoder):
            x, attended = layer.step(x, cache, index, extras[index] if extras else None)
        cache.length += 1
        return DecoderStates(attended, self.decoder_norm(x))
