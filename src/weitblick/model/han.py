"""Miculicich et al. (2018): hierarchical attention networks (HAN) over the few sentences before.

Every query word attends to the words of each previous sentence, which gives one vector a sentence, then to these
vectors; what it finds passes a feed-forward network and a gate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.model.batch import Layout
from weitblick.model.context_module import (
    PLAIN,
    Bank,
    ContextModule,
    ContextOptions,
    ContextResult,
    Projected,
    attention_dropout,
    initialise,
    mix,
)
from weitblick.model.context_window import WindowCache, WindowQueries, Windows, window_weights
from weitblick.model.layers import Dropout, FeedForward

HIDDEN_SCORE = -1e30  # finite: a slot of a window without a sentence must not give NaN; too low for float16


@dataclass(frozen=True)
class HanBank(Bank):
    """Projected keys and values of all context tokens [T, 2 d], once for all steps, and the windows over them."""

    windows: Windows
    memory: Tensor
    gathered: WindowCache = field(default_factory=WindowCache)


class HierarchicalNetwork(ContextModule):
    """Reads states behind the encoder or decoder; the states of the current sentence are the queries."""

    def __init__(self, context: ContextSection, model: ModelSection) -> None:
        super().__init__()
        d, self.heads = model.dimension, context.heads or model.heads
        if d % self.heads:
            raise ValueError(f"dimension {d} is not a multiple of heads {self.heads}")
        assert context.sentences is not None
        self.sentences = self._window = context.sentences
        self.word_query, self.word_memory = nn.Linear(d, d, bias=False), nn.Linear(d, 2 * d, bias=False)
        self.sentence_query, self.sentence_memory = nn.Linear(d, d, bias=False), nn.Linear(d, 2 * d, bias=False)
        self.word_output, self.sentence_output = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.feed_forward = FeedForward(d, model.feed_forward, model.activation)
        self.gate = nn.Linear(2 * d, d)
        self.word_query_norm, self.sentence_query_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.word_norm, self.sentence_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.feed_forward_norm, self.norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.dropout, self.attention_dropout = Dropout(context.dropout), Dropout(attention_dropout(context, model))
        initialise(self)
        nn.init.constant_(self.gate.bias, -context.gate_start)  # the gate is the context's share here

    def gate_parameters(self) -> list[nn.Parameter]:
        return list(self.gate.parameters())

    def project(self, keys: Tensor, values: Tensor, layout: Layout) -> Projected:
        """Only final states count: the network has one kind of state for keys and values."""
        return Projected(layout, {"memory": self.word_memory(values)})

    def bank(self, projected: Projected) -> HanBank:
        return HanBank(Windows(projected.layout, self._window), projected.rows["memory"])

    def forward(
        self, states: Tensor, queries: Tensor, layout: Layout, bank: HanBank, options: ContextOptions = PLAIN
    ) -> ContextResult:
        places = bank.windows.queries(layout, options.use)
        if not len(bank.windows):
            ones = states.new_ones(len(states))
            return ContextResult(states, ones, torch.zeros_like(ones), places.present)
        vectors, word_weights = self._read_words(states, places, bank)
        row = places.rows.sentence  # [Tq]
        members = bank.windows.members[places.windows] >= 0  # [R, n]
        read, sentence_weights = self._read_sentences(states, vectors, members[row])
        hidden = self.sentence_norm(read)
        context = self.feed_forward_norm(hidden + self.dropout(self.feed_forward(hidden)))
        share = torch.sigmoid(self.gate(torch.cat([states, context], -1)))
        mixed = self.norm(mix(states, context, share))
        present = places.present
        kept = None
        if options.need_weights:
            kept = window_weights(bank.windows, layout, places, sentence_weights.detach(), word_weights.detach())
        return ContextResult(
            torch.where(present.unsqueeze(-1), mixed, states),
            (1.0 - share.detach().mean(-1)).masked_fill(~present, 1.0),
            members.sum(1)[row].to(states.dtype).masked_fill(~present, 0.0),
            present,
            kept,
        )

    def _gather(self, bank: HanBank, windows: Tensor) -> tuple[Tensor, ...]:
        """Keys and values [R, H, n, W, d_k] of the words of these windows, and their bias [R, 1, 1, n, W]."""
        index, filled = bank.windows.words(windows)
        keys, values = bank.memory[index].unflatten(-1, (2, self.heads, -1)).permute(3, 0, 4, 1, 2, 5)
        wide = torch.promote_types(keys.dtype, torch.float32)
        bias = torch.zeros(filled.shape, dtype=wide, device=keys.device).masked_fill_(~filled, HIDDEN_SCORE)
        return keys.contiguous(), values.contiguous(), bias[:, None, None]

    def _read_words(self, states: Tensor, places: WindowQueries, bank: HanBank) -> tuple[Tensor, Tensor]:
        """A vector [Tq, n, d] for each sentence of the window, and weights [Tq, H, n, W]."""
        keys, values, bias = bank.gathered.get(places.windows, lambda windows: self._gather(bank, windows))
        rows = places.rows
        q = rows.pad(self.word_query(self.word_query_norm(states))).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        scores = q @ keys.flatten(2, 3).transpose(-1, -2) / math.sqrt(q.shape[-1])  # [R, H, Q, n * W]
        weights = (scores.unflatten(-1, bias.shape[-2:]) + bias).softmax(-1)  # [R, H, Q, n, W]
        read = self.attention_dropout(weights).transpose(2, 3) @ values  # [R, H, n, Q, d_k]
        vectors = rows.pack(read.permute(0, 3, 2, 1, 4).flatten(3))  # [Tq, n, d]
        return self.word_norm(self.dropout(self.word_output(vectors))), rows.pack(weights.transpose(1, 2))

    def _read_sentences(self, states: Tensor, vectors: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
        """Output [Tq, d] and weights [Tq, H, n]; visible [Tq, n] where the window has a sentence."""
        q = self.sentence_query(self.sentence_query_norm(states)).unflatten(-1, (self.heads, 1, -1))  # [Tq, H, 1, d_k]
        keys, values = self.sentence_memory(vectors).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = (q @ keys.transpose(-1, -2)).squeeze(2) / math.sqrt(q.shape[-1])  # [Tq, H, n]
        wide = torch.promote_types(scores.dtype, torch.float32)
        weights = scores.to(wide).masked_fill(~visible[:, None], HIDDEN_SCORE).softmax(-1)
        read = (self.attention_dropout(weights).unsqueeze(2) @ values).flatten(1)  # [Tq, d]
        return self.dropout(self.sentence_output(read)), weights
