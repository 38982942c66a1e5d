"""Source sentences of documents, encoded part by part: memory is bounded, whatever the length of a document, and what
the encoder has computed once is not computed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from weitblick.batches.batch import IdLists, Packed, pack_source, pack_target
from weitblick.batches.layout import Layout
from weitblick.sentence.sentence_model import SentenceModel

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
        begin, tokens = 0, 0
        for index, length in enumerate(lengths.tolist()):
            if tokens and tokens + length > PART_TOKENS:
                yield range(begin, index)
                begin, tokens = index, 0
            tokens += length
        if begin < len(lengths):
            yield range(begin, len(lengths))

    def encode(self, model: SentenceModel) -> Tensor:
        """[T, d] states of all sentences, in order."""
        packs = (self.pack(part) for part in self.parts(self.lengths))
        return torch.cat([model.encode(packed.tokens, packed.layout) for packed in packs])

    def rows(self, chosen: Sequence[int]) -> Tensor:
        """Where the tokens of these sentences stand among all."""
        lengths = self.lengths[chosen]
        starts = np.repeat(self.starts[chosen] - (lengths.cumsum() - lengths), lengths)
        return torch.from_numpy(starts + np.arange(len(starts))).to(self.device)
