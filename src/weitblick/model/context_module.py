"""What a context-aware model adds to a sentence model: the interface of context modules, and what they give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.model.batch import Layout


@dataclass(frozen=True)
class AttentionWeights:
    """Attention weights of Tq queries, before dropout, with columns in the order of the document.

    A query's columns are those of the document it read, row `documents[t]` of the column tables; rows of a table are
    padded to the same length, -1 marks padding. Only sentences with words have columns.

    sentence_weights   [Tq, H, J] sum to one over visible sentences, zeros if there are none
    word_weights       [Tq, H, N] before rescaling: sum to one within each sentence (flat word attention: within the
                       document). None for sentence attention
    documents          [Tq] row of the column tables, -1 for a query whose document has no context
    sentence_positions [D, J] position of the sentence in its document
    word_columns       [D, N] column of the word's sentence
    word_indices       [D, N] index of the word in its sentence
    visible            [Tq, J] whether the query could attend to the sentence
    flat               whether word weights already are shares of the whole document
    """

    sentence_weights: Tensor
    word_weights: Tensor | None
    documents: Tensor
    sentence_positions: Tensor
    word_columns: Tensor
    word_indices: Tensor
    visible: Tensor
    flat: bool

    @cached_property
    def rescaled(self) -> Tensor | None:
        """[Tq, H, N] word weights times the weight of their sentence: what the values were multiplied with."""
        if self.word_weights is None or self.flat:
            return self.word_weights
        columns = self.word_columns[self.documents].clamp_min(0)  # [Tq, N]
        shares = self.sentence_weights.gather(2, columns.unsqueeze(1).expand_as(self.word_weights))
        return self.word_weights * shares


# What a context-aware model adds to a sentence model: the one interface that `DocumentModel` knows.
#
# A module reads its context *behind* the encoder or decoder, from its last states (the context layer, HAN), or
# *inside*, by a sub-layer in each of its layers (Zhang:18). Sentences are projected once (`project`); projected
# sentences, of one batch or gathered one by one as a stream brings them, become a bank to read (`bank`).


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
class ContextOptions:
    """How the current sentences read their context.

    use           [S] sentences that get no context where false; None: all get it
    need_weights  give attention weights
    """

    use: Tensor | None = None
    need_weights: bool = False


PLAIN = ContextOptions()


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

    def inside(self, layout: Layout, bank: Any, options: ContextOptions = PLAIN) -> Inside | None:
        """Sub-layers for the layers of the encoder or decoder; None for a module that reads behind them."""
        return None

    @abstractmethod
    def forward(
        self, states: Tensor, queries: Tensor, layout: Layout, bank: Any, options: ContextOptions = PLAIN
    ) -> ContextResult:
        """states and queries [Tq, d], packed by `layout`, whose documents are those of the bank. Where there is no
        context, states come back as they are, bit for bit."""


def attention_dropout(context: ContextSection, model: ModelSection) -> float:
    """The rate of dropout on the weights of context attention: its own, or that of the sentence model's attention."""
    return model.dropout.attention if context.attention_dropout is None else context.attention_dropout


def mix(start: Tensor, end: Tensor, share: Tensor) -> Tensor:
    """start + share * (end - start), in float32 at least: under autocast some of them come in half precision."""
    wide = torch.promote_types(torch.promote_types(start.dtype, end.dtype), torch.float32)
    return torch.lerp(start.to(wide), end.to(wide), share.to(wide))


def initialise(module: nn.Module) -> None:
    """Xavier for matrices, zeros for biases; norms stay as they are."""
    for name, parameter in module.named_parameters():
        if "norm" in name:
            continue
        if name.rsplit(".", 1)[-1].startswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
