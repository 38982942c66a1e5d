"""The seam between a model and the documents that it reads: what they offer, which side reads it, and how.

    context = model.context_of(sources, states)              what the documents offer to read
    memory, _ = model.encode(source, context)                read where the model reads it: here ...
    words = model.step(tokens, cache, hypotheses, context)   ... or here, or at the output

Training, translating, streaming, scoring, controls and explaining pass a `Context` on and never ask where it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypedDict

from torch import Tensor

from weitblick.batches.layout import Layout
from weitblick.context.module import Bank, ContextResult
from weitblick.model.words import Pointer, WordDistribution
from weitblick.sentence.sentence_model import DecoderStates

Side = Literal["source", "target"]


@dataclass(frozen=True)
class Sides:
    """keys: the side whose sentences are context (target: translations must be there before others can read them);
    queries: the side whose words read it."""

    keys: Side
    queries: Side


@dataclass(frozen=True)
class Context:
    """What documents offer to read.

    layout    the sentences offered: their document, position and length; None if none are
    bank      their keys and values, as the context module reads them behind or inside the encoder or decoder
    approved  [S] which of them a human has approved; None if none
    pointer   what is read at the output: places where a word was said before
    """

    layout: Layout | None = None
    bank: Bank | None = None
    approved: Tensor | None = None
    pointer: Pointer | None = None


@dataclass(frozen=True)
class ModelOutput:
    """words: the distribution at every target step; context: what the context module did, where there is one."""

    words: WordDistribution
    context: ContextResult | None = None

    @property
    def states(self) -> Tensor:
        """[T, d] that the output projection reads."""
        return self.words.states


@dataclass
class Shared:
    """What passes over the same batch that differ in their context alone have in common, kept by the first of them.

    encoded  the sentence model's own encoder states of the current source
    decoded  its decoder states over these
    context  what the batch's own documents offer
    """

    encoded: Tensor | None = None
    decoded: DecoderStates | None = None
    context: Context | None = None

    def states(self, decode: Callable[[], DecoderStates]) -> DecoderStates:
        """Of the decoder where nothing of the context is in them, from the first pass that needs them."""
        if self.decoded is None:
            self.decoded = decode()
        return self.decoded


class ContextArguments(TypedDict):
    """What a context module is told beside states, layout and bank (see `ContextOptions`)."""

    use: Tensor | None
    floor: float
    need_weights: bool


@dataclass(frozen=True)
class ContextOptions:
    """How the current sentences read their context.

    use           [S] sentences that get no context where false; None: all get it
    documents     [S] document whose context each sentence reads; None: its own
    floor         least share of the context in the gate
    need_weights  give attention weights
    """

    use: Tensor | None = None
    documents: Tensor | None = None
    floor: float = 0.0
    need_weights: bool = False

    def layout(self, layout: Layout) -> Layout:
        return layout if self.documents is None else replace(layout, documents=self.documents)

    def arguments(self) -> ContextArguments:
        return {"use": self.use, "floor": self.floor, "need_weights": self.need_weights}


PLAIN = ContextOptions()
