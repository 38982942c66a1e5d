"""What a context-aware model adds to a sentence model: the one interface that `DocumentModel` knows.

A module reads its context *behind* the encoder or decoder, from its last states (the context layer, HAN), or *inside*,
by a sub-layer in each of its layers (Zhang:18). Sentences are projected once (`project`); projected sentences, of one
batch or gathered one by one as a stream brings them, become a bank to read (`bank`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from weitblick.batches.layout import Layout
from weitblick.context.weights import AttentionWeights


@dataclass(frozen=True)
class ContextResult:
    """Gated states and how they came about; all but the states without gradient.

    states  [Tq, d]
    gate    [Tq] mean share of the sentence model's own states; 1 where there is no context
    support [Tq] mean number of context sentences in support, over heads
    present [Tq] whether any context was read
    weights attention weights, if they were asked for and there is one attention to show
    """

    states: Tensor
    gate: Tensor
    support: Tensor
    present: Tensor
    weights: AttentionWeights | None = None


@dataclass(frozen=True)
class Projected:
    """Sentences projected by a module: named rows, each of all words, tokens or sentences of `layout`, in its order;
    parts: what they were put together from."""

    layout: Layout
    rows: Mapping[str, Tensor]
    _parts: tuple[Projected, ...] = ()

    @property
    def parts(self) -> tuple[Projected, ...]:
        return self._parts or (self,)

    @staticmethod
    def join(parts: Sequence[Projected]) -> Projected:
        """All sentences of all parts; the parts themselves were projected once and stay as they are."""
        if len(parts) == 1:
            return parts[0]
        return Projected(Layout.join([part.layout for part in parts]), dict(_JoinedRows(parts)))

    @staticmethod
    def together(parts: Sequence[Projected]) -> Projected:
        """The same, for whoever can read the parts as they are: nothing is copied until rows are asked for."""
        if len(parts) == 1:
            return parts[0]
        return Projected(Layout.join([part.layout for part in parts]), _JoinedRows(parts), tuple(parts))


class _JoinedRows(Mapping[str, Tensor]):
    """The rows of all parts, joined when they are asked for."""

    def __init__(self, parts: Sequence[Projected]) -> None:
        self._parts, self._joined = parts, dict[str, Tensor]()

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._joined:
            self._joined[name] = torch.cat([part.rows[name] for part in self._parts])
        return self._joined[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts[0].rows)

    def __len__(self) -> int:
        return len(self._parts[0].rows)

    def __contains__(self, name: object) -> bool:
        return name in self._parts[0].rows


class Bank:
    """What a batch of documents offers to read; made by a module's `bank` for that module alone."""


class Inside(Protocol):
    """One pass of the current sentences through an encoder or decoder whose layers read the context."""

    @property
    def sub_layers(self) -> Sequence[Callable[[Tensor], Tensor]]:
        """[Tq, d] -> [Tq, d] behind the self-attention of each layer, in order."""

    def result(self, states: Tensor) -> ContextResult:
        """What the pass did, given its last states [Tq, d]."""


class ContextModule(nn.Module, ABC):
    own_encoder: ClassVar[bool] = False
    """True if context states come from an encoder of the module's own, which reads source embeddings."""
    fixes_sentence_model: ClassVar[bool] = False
    """True if the sentence model stays as stage 1 left it."""
    sentences: int | None = None
    """How many of the sentences before are read; None: all that the direction allows."""

    @abstractmethod
    def project(self, keys: Tensor, values: Tensor, layout: Layout) -> Projected:
        """Packed states [T, d] of sentences, projected as the module reads them."""

    @abstractmethod
    def bank(self, projected: Projected) -> Bank:
        """The context of a batch of documents."""

    def prepare(self, keys: Tensor, values: Tensor, layout: Layout) -> Any:
        """The bank of packed states [T, d]."""
        return self.bank(self.project(keys, values, layout))

    @abstractmethod
    def gate_parameters(self) -> list[nn.Parameter]:
        """Those that decide the share of the context."""

    def zero_started(self) -> set[str]:
        """Names of parameters that do nothing as they start: a model without them is the same model."""
        return set()

    def inside(
        self, layout: Layout, bank: Any, use: Tensor | None = None, floor: float = 0.0, need_weights: bool = False
    ) -> Inside | None:
        """Sub-layers for the layers of the encoder or decoder; None for a module that reads behind them."""
        return None

    @abstractmethod
    def forward(
        self,
        states: Tensor,
        queries: Tensor,
        layout: Layout,
        bank: Any,
        use: Tensor | None = None,
        floor: float = 0.0,
        need_weights: bool = False,
    ) -> ContextResult:
        """states and queries [Tq, d], packed by `layout`, whose documents are those of the bank.

        use [Sq]: query sentences with false read no context; floor: the least share of the context in gates. Where
        there is no context, states come back as they are, bit for bit.
        """


def initialise(module: nn.Module) -> None:
    """Xavier for matrices, zeros for biases; norms stay as they are."""
    for name, parameter in module.named_parameters():
        if "norm" in name:
            continue
        if name.rsplit(".", 1)[-1].startswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
