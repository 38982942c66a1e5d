"""The Document-level Context Layer and its gate: what the context says, mixed into the states of a sentence model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.model.batch import Layout
from weitblick.model.context_attention import (
    RETRIEVAL_NOISE,
    ContextAttention,
    Distance,
    HierarchicalAttention,
    Place,
    SentenceAttention,
    WordAttention,
)
from weitblick.model.context_module import (
    PLAIN,
    ContextModule,
    ContextOptions,
    ContextResult,
    Projected,
    attention_dropout,
    mix,
)
from weitblick.model.layers import Dropout, Linear
from weitblick.model.plain_attention import AttentionBank

KINDS: dict[str, type[ContextAttention]] = {
    "sentence": SentenceAttention,
    "word": WordAttention,
    "hierarchical": HierarchicalAttention,
}


class ContextLayer(ContextModule):
    """attention -> dropout -> norm -> feed-forward -> dropout -> norm -> gate, without residuals.

    The gate mixes states and what was read (the paper), or adds what was read, which then starts as nothing."""

    def __init__(self, context: ContextSection, model: ModelSection) -> None:
        super().__init__()
        d = model.dimension
        self.attention = KINDS[context.kind](
            d,
            context.heads or model.heads,
            sentence_attention=context.sentence_attention,
            word_attention=context.word_attention,
            direction=context.direction,
            path=context.path,
            retrieval_start=context.retrieval_start,
            order=context.order,
            dropout=attention_dropout(context, model),
        )
        self.dropout = Dropout(context.dropout)
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.inner, self.outer = Linear(d, model.feed_forward), Linear(model.feed_forward, d)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        if context.retrieval_start:
            self._start_feed_forward_as_identity()
        self.gate = Gate(d, context.gate_start)
        self.added = context.gate == "add"
        if self.added:
            nn.init.zeros_(self.feed_forward_norm.weight)
        if context.retrieval_start:
            self.gate.start_even()

    @torch.no_grad()
    def _start_feed_forward_as_identity(self) -> None:
        """What was retrieved should arrive as it is: x = relu(x) - relu(-x), as far as the width has room for it."""
        d, width = self.dimension, self.inner.out_features
        room = min(d, width // 2)
        both = torch.cat([torch.eye(room, d), -torch.eye(room, d)])
        for weight, start in ((self.inner.weight, both), (self.outer.weight.T, both)):
            weight.mul_(RETRIEVAL_NOISE)
            weight[: 2 * room].add_(start)

    @property
    def dimension(self) -> int:
        return self.attention.dimension

    def gate_parameters(self) -> list[nn.Parameter]:
        return list(self.gate.parameters())

    def zero_started(self) -> set[str]:
        order = [name for name, module in self.named_modules() if isinstance(module, (Distance, Place))]
        return {f"{name}.{part}" for name in order for part, _ in self.get_submodule(name).named_parameters()}

    def project(self, keys: Tensor, values: Tensor, layout: Layout) -> Projected:
        return self.attention.project(keys, values, layout)

    def bank(self, projected: Projected) -> AttentionBank:
        return self.attention.bank(projected)

    def forward(
        self, states: Tensor, queries: Tensor, layout: Layout, bank: AttentionBank, options: ContextOptions = PLAIN
    ) -> ContextResult:
        """What `ContextModule` says; the states are the paper's r."""
        read = self.attention(queries, layout, bank, options.need_weights)
        present = read.present
        if options.use is not None:
            present = present & options.use.to(present.device)[layout.sentence]
        hidden = self.attention_norm(self.dropout(read.output))
        hidden = self.dropout(self.outer(self.inner(hidden, rectified=True)))
        context = self.feed_forward_norm(hidden)
        share = self.gate(states, context)
        mixed = torch.addcmul(states, context, 1.0 - share) if self.added else mix(context, states, share)
        column = present.unsqueeze(-1)
        gate = share.detach().mean(-1).masked_fill(~present, 1.0)
        support = read.support.masked_fill(~present, 0.0)
        return ContextResult(torch.where(column, mixed, states), gate, support, present, read.weights)


class Gate(nn.Module):
    """g = sigmoid(W_r r + W_d d), per dimension: the share of the states r against the context d.

    A start other than zero adds a learned bias of that value: 3 lets the states through almost unchanged.
    """

    def __init__(self, dimension: int, start: float = 0.0) -> None:
        super().__init__()
        self.of_states = Linear(dimension, dimension, bias=False)
        self.of_context = Linear(dimension, dimension, bias=False)
        for linear in (self.of_states, self.of_context):
            nn.init.xavier_uniform_(linear.weight)
        self.bias = nn.Parameter(torch.full((dimension,), float(start))) if start else None

    def start_even(self) -> None:
        """The same share everywhere at first: what was retrieved is neither amplified nor lost by chance."""
        for linear in (self.of_states, self.of_context):
            nn.init.zeros_(linear.weight)

    def forward(self, states: Tensor, context: Tensor) -> Tensor:
        """[T, d], [T, d] -> [T, d]"""
        score = self.of_states(states) + self.of_context(context)
        return torch.sigmoid(score if self.bias is None else score + self.bias)
