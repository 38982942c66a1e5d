"""Encoder states and context banks of many sentences, computed part by part: memory is bounded, whatever the length of
a document, and what the encoder has computed once is not computed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from weitblick.batches.batch import IdLists, Packed, pack_source, pack_target
from weitblick.batches.layout import Layout
from weitblick.context.module import Bank
from weitblick.model.document_model import DocumentModel
from weitblick.sentence.sentence_model import SentenceModel

PART_TOKENS = 4096
"""Tokens that go through an encoder or decoder at a time."""


class Sources:
    """Source sentences and their encoder states, from which any choice of sentences can be taken as a batch."""

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

    def pack(self, chosen: Sequence[int]) -> Packed:
        index = np.asarray(chosen, dtype=np.int64)
        ids = [self.ids[i] for i in chosen]
        return pack_source(ids, self.documents[index].tolist(), self.positions[index].tolist()).to(self.device)

    def pack_targets(self, chosen: Sequence[int], targets: IdLists) -> Packed:
        index = np.asarray(chosen, dtype=np.int64)
        ids = [targets[i] for i in chosen]
        packed, _ = pack_target(ids, self.documents[index].tolist(), self.positions[index].tolist())
        return packed.to(self.device)

    def layout(self) -> Layout:
        return Layout.of(self.lengths.tolist(), self.documents.tolist(), self.positions.tolist(), self.device)

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


def source_bank(model: DocumentModel, sources: Sources, memory: Tensor) -> Bank:
    """What source sentences offer as context; `memory` [T, d] are the sentence model's own states of them."""
    assert model.context is not None
    if model.context.own_encoder:
        return model.bank(sources.pack(range(len(sources))), None)
    states = memory if model.frozen is None else sources.encode(model.frozen)
    return model.context.prepare(states, states, sources.layout())


def target_bank(model: DocumentModel, sources: Sources, memory: Tensor, targets: IdLists) -> Bank:
    """What source sentences together with their translations offer as context."""
    assert model.context is not None
    keys, values, layout = target_states(model, sources, memory, targets)
    return model.context.prepare(keys, values, layout)


def target_states(
    model: DocumentModel, sources: Sources, memory: Tensor, targets: IdLists
) -> tuple[Tensor, Tensor, Layout]:
    """Keys and values [T, d] of the steps that predict the targets' words, and their layout."""
    provider = model.sentence if model.frozen is None else model.frozen
    memory = memory if model.frozen is None else sources.encode(model.frozen)
    lengths = np.array([len(target) + 1 for target in targets], dtype=np.int64)
    keys, values = [], []
    for part in sources.parts(lengths + sources.lengths):
        source, target = sources.pack(part), sources.pack_targets(part, targets)
        own = memory.index_select(0, sources.rows(part))
        states = provider.decode(target.tokens, target.layout, own, source.layout)
        part_keys, part_values = model.target_context(provider, target.tokens, states)
        keys.append(part_keys)
        values.append(part_values)
    layout = Layout.of(lengths.tolist(), sources.documents.tolist(), sources.positions.tolist(), sources.device)
    return torch.cat(keys), torch.cat(values), layout


def read_sources(model: DocumentModel, sources: Sources, chosen: Sequence[int], memory: Tensor, bank: Bank) -> Tensor:
    """What the decoder reads for the chosen sentences [T', d]: their states, with context where that is encoded."""
    own = memory.index_select(0, sources.rows(chosen))
    if bank is None or not model.in_encoder:
        return own
    packed = sources.pack(chosen)
    assert model.context is not None
    if model.context.own_encoder:  # its layers read the context: states without are of no use
        return model.encode(packed, bank)[0]
    return model.context(own, own, packed.layout, bank).states
