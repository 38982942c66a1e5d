"""Zhang et al. (2018): a context encoder over the few source sentences before, read inside every layer.

The context encoder shares the source embedding, which like all of the sentence model stays as stage 1 left it. Each
layer of the encoder (or decoder) attends to the encoded context behind its self-attention, through a gate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import NoReturn, cast

import torch
from torch import Tensor, nn

from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.model.batch import Layout
from weitblick.model.context_layer import Gate
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
from weitblick.model.context_window import WindowCache, WindowQueries, Windows
from weitblick.model.layers import Dropout, SourceAttention, sinusoids
from weitblick.model.transformer import EncoderLayer


@dataclass(frozen=True)
class ZhangBank(Bank):
    """Source embeddings of all context tokens [T, d] and the windows over them, encoded when they are first read."""

    windows: Windows
    embeddings: Tensor
    encoded: WindowCache = field(default_factory=WindowCache)


class ContextSubLayer(nn.Module):
    """x <- norm(g * x + (1 - g) * y), y what attention to the context says; with pre-norm, x is normalised before."""

    def __init__(self, context: ContextSection, model: ModelSection) -> None:
        super().__init__()
        self.attention = SourceAttention(
            model.dimension, context.heads or model.heads, attention_dropout(context, model), model.attention_biases
        )
        initialise(self.attention)
        self.gate = Gate(model.dimension, context.gate_start)
        self.norm = nn.LayerNorm(model.dimension)
        self.dropout = Dropout(model.dropout.residual)
        self.before = model.norm == "pre"

    def forward(self, x: Tensor, read: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        """[Tq, d] -> the new x and the gate [Tq, d]"""
        entered = self.norm(x) if self.before else x
        y = self.dropout(read(entered))
        share = self.gate(entered, y)
        mixed = mix(y, x, share)
        return (mixed if self.before else self.norm(mixed)), share


class ZhangContext(ContextModule):
    own_encoder = True
    fixes_sentence_model = True

    def __init__(self, context: ContextSection, model: ModelSection) -> None:
        super().__init__()
        assert context.sentences is not None
        self.sentences = self._window = context.sentences
        self.encoder = EncoderLayer(model)
        self.encoder_norm = nn.LayerNorm(model.dimension) if model.norm == "pre" else nn.Identity()
        self.dropout = Dropout(model.dropout.embedding)
        count = model.encoder_layers if context.integration == "encoder" else model.decoder_layers
        self.layers = nn.ModuleList(ContextSubLayer(context, model) for _ in range(count))
        initialise(self.encoder)

    @property
    def sub_layers(self) -> list[ContextSubLayer]:
        return cast(list[ContextSubLayer], list(self.layers))

    def gate_parameters(self) -> list[nn.Parameter]:
        return [parameter for layer in self.sub_layers for parameter in layer.gate.parameters()]

    def project(self, keys: Tensor, values: Tensor, layout: Layout) -> Projected:
        """`values` are source embeddings; they are encoded window by window, when they are read."""
        return Projected(layout, {"embeddings": values})

    def bank(self, projected: Projected) -> ZhangBank:
        return ZhangBank(Windows(projected.layout, self._window), projected.rows["embeddings"])

    def inside(self, layout: Layout, bank: ZhangBank, options: ContextOptions = PLAIN) -> ZhangPass:
        queries = bank.windows.queries(layout, options.use)
        if not len(bank.windows):
            return ZhangPass(self, queries, bank, [])
        return ZhangPass(self, queries, bank, bank.encoded.get(queries.windows, partial(self._encode, bank)))

    def _encode(self, bank: ZhangBank, windows: Tensor) -> tuple[Tensor, ...]:
        """Bias [R, 1, 1, W], then keys and values [R, H, W, d_k] for each layer, of the words of these windows."""
        index, filled = bank.windows.words(windows)
        lengths = filled.sum((1, 2))
        layout = Layout(lengths, torch.zeros_like(lengths), torch.zeros_like(lengths))
        x = bank.embeddings[index[filled]] * math.sqrt(bank.embeddings.shape[-1])
        places = _positions(1 << (layout.longest - 1).bit_length(), x.shape[-1]).to(x.device, x.dtype)
        encoded = self.encoder_norm(self.encoder(self.dropout(x + places[layout.offset]), layout))
        mask = layout.mask
        bias = torch.zeros(mask.shape, dtype=x.dtype, device=x.device).masked_fill_(~mask, -torch.inf)
        memories = [part for layer in self.sub_layers for part in layer.attention.project(encoded, layout)]
        return bias[:, None, None], *memories

    def forward(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this context is read inside the layers, not behind them")


class ZhangPass:
    """One pass: a sub-layer for each layer, and the gates they used."""

    def __init__(
        self, context: ZhangContext, queries: WindowQueries, bank: ZhangBank, encoded: Sequence[Tensor]
    ) -> None:
        self.queries, self.bank = queries, bank
        self.gates: list[Tensor] = []
        self.sub_layers: list[Callable[[Tensor], Tensor]] = []
        for number, layer in enumerate(context.sub_layers if encoded else []):
            keys, values = encoded[1 + 2 * number : 3 + 2 * number]
            read = partial(layer.attention.read, layout=queries.rows, keys=keys, values=values, bias=encoded[0])
            self.sub_layers.append(partial(self._apply, layer, read))

    def _apply(self, layer: ContextSubLayer, read: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        mixed, share = layer(x, read)
        self.gates.append(share.detach().mean(-1))
        return torch.where(self.queries.present.unsqueeze(-1), mixed, x)

    def result(self, states: Tensor) -> ContextResult:
        """The gate is the mean over layers."""
        queries, present = self.queries, self.queries.present
        ones = states.new_ones(len(states))
        if not self.gates:
            return ContextResult(states, ones, torch.zeros_like(ones), present)
        gate = torch.stack(self.gates).mean(0).masked_fill(~present, 1.0)
        support = self.bank.windows.counts[queries.windows][queries.rows.sentence].to(states.dtype)
        return ContextResult(states, gate, support.masked_fill(~present, 0.0), present)


@lru_cache(maxsize=8)
def _positions(count: int, dimension: int) -> Tensor:
    return sinusoids(count, dimension)
