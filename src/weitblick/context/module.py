"""What a context-aware model adds to a sentence model: the one interface that `DocumentModel` knows.

A module reads its context *behind* the encoder or decoder, from its last states (the context layer, HAN), or *inside*,
by a sub-layer in each of its layers (Zhang:18). `prepare` makes the bank: what a batch of documents offers to read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from torch import Tensor, nn

from weitblick.batches.layout import Layout

if TYPE_CHECKING:
    from weitblick.context.layer import ContextResult

Bank = Any
"""Made by a module's `prepare` for that module alone to read."""


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

    @abstractmethod
    def prepare(self, keys: Tensor, values: Tensor, layout: Layout) -> Bank:
        """The context of a batch of documents, from packed states [T, d]."""

    def inside(
        self, layout: Layout, bank: Bank, use: Tensor | None = None, floor: float = 0.0, record: bool = False
    ) -> Inside | None:
        """Sub-layers for the layers of the encoder or decoder; None for a module that reads behind them."""
        return None

    @abstractmethod
    def forward(
        self,
        states: Tensor,
        queries: Tensor,
        layout: Layout,
        bank: Bank,
        use: Tensor | None = None,
        floor: float = 0.0,
        record: bool = False,
    ) -> ContextResult:
        """states and queries [Tq, d], packed by `layout`, whose documents are those of the bank.

        use [Sq]: query sentences with false read no context; floor: the least share of the context in gates; record:
        keep attention weights. Where there is no context, states come back as they are, bit for bit.
        """


def initialise(module: nn.Module) -> None:
    """Xavier for matrices, zeros for biases; norms stay as they are."""
    for name, parameter in module.named_parameters():
        if "norm" in name:
            continue
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
