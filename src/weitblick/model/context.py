"""The seam between a model and the documents that it reads: what they offer, which side reads it, and how.

    context = model.context_of(sources, states)              what the documents offer to read
    states, _ = model.encode(source, context)                read where the model reads it: here ...
    words = model.step(tokens, cache, hypotheses, context)   ... or here, or at the output

Training, translating, streaming, scoring, controls and explaining pass a `Context` on and never ask where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from weitblick.model.batch import IdLists, Layout, Packed, pack_source, pack_target, runs
from weitblick.model.context_module import Bank, ContextResult
from weitblick.model.output import Pointer, WordDistribution
from weitblick.model.sentence_model import DecoderStates, SentenceModel

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
    pointer   what is read at the output: places where a word was said before
    """

    layout: Layout | None = None
    bank: Bank | None = None
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


# Source sentences of documents, encoded part by part: memory is bounded, whatever the length of a document, and what
# the encoder has computed once is not computed again.

PART_TOKENS = 4096
"""Tokens that go through an encoder or decoder at a time."""


class Sources:
    """Source sentences and where they stand; any choice of them can be taken as a batch."""

    def __init__(
        self, ids: IdLists, documents: Sequence[int], positions: Sequence[int], device: torch.device | str = "cpu"
    ) -> None:
        self.ids = ids
        self.documents, self.positions = np.asarray(documents), np.asarray(positions)
        self.lengths = np.array([len(sentence) + 1 for sentence in ids], dtype=np.int64)
        self.starts = self.lengths.cumsum() - self.lengths
        self.device = torch.device(device)

    def __len__(self) -> int:
        return len(self.ids)

    def reading(self, documents: Sequence[int]) -> Sources:
        """The same sentences as readers of the context of these documents [S]."""
        return Sources(self.ids, documents, self.positions.tolist(), self.device)

    def choose(self, chosen: Sequence[int]) -> Sources:
        """Some of the sentences."""
        ids = [self.ids[index] for index in chosen]
        index = np.asarray(chosen, dtype=np.int64)
        return Sources(ids, self.documents[index].tolist(), self.positions[index].tolist(), self.device)

    def pack(self, chosen: Sequence[int]) -> Packed:
        index = np.asarray(chosen, dtype=np.int64)
        ids = [self.ids[i] for i in chosen]
        return pack_source(ids, self.documents[index].tolist(), self.positions[index].tolist()).to(self.device)

    def pack_targets(self, chosen: Sequence[int], targets: IdLists) -> Packed:
        index = np.asarray(chosen, dtype=np.int64)
        ids = [targets[i] for i in chosen]
        packed, _ = pack_target(ids, self.documents[index].tolist(), self.positions[index].tolist())
        return packed.to(self.device)

    def pairs(self, targets: IdLists) -> Iterator[tuple[Packed, Packed, Tensor]]:
        """All sentences with their targets, part by part, and the rows of the sources among all."""
        lengths = np.array([len(target) + 1 for target in targets], dtype=np.int64)
        for part in self.parts(lengths + self.lengths):
            yield self.pack(part), self.pack_targets(part, targets), self.rows(part)

    def layout(self, lengths: Sequence[int] | None = None) -> Layout:
        """Of the sources, or of other sentences of these lengths in their places."""
        chosen = self.lengths.tolist() if lengths is None else lengths
        return Layout.of(chosen, self.documents.tolist(), self.positions.tolist(), self.device)

    def parts(self, lengths: np.ndarray) -> Iterator[range]:
        """Runs of sentences of about PART_TOKENS by these lengths [S], at least one sentence each."""
        return runs(lengths.tolist(), PART_TOKENS)

    def encode(self, model: SentenceModel) -> Tensor:
        """[T, d] states of all sentences, in order."""
        packs = (self.pack(part) for part in self.parts(self.lengths))
        return torch.cat([model.encode(packed.tokens, packed.layout) for packed in packs])

    def rows(self, chosen: Sequence[int]) -> Tensor:
        """Where the tokens of these sentences stand among all."""
        lengths = self.lengths[chosen]
        starts = np.repeat(self.starts[chosen] - (lengths.cumsum() - lengths), lengths)
        return torch.from_numpy(starts + np.arange(len(starts))).to(self.device)
