"""Steps at which context is to decide between a few words, as a sentence model that is not trained sees them.

A document of the corpus ends with the sentence that is decided (`data pronouns` makes such documents): its first word
among those of `context.decides`, where the model expects one of these at all. Nothing that is read there changes while
a context layer learns, so it is computed once: the states of the step, and what the sentences before offer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weitblick.batches.batch import Pairs, pack_pairs
from weitblick.batches.layout import Layout
from weitblick.batches.store import CorpusStore
from weitblick.model.document_model import DocumentModel
from weitblick.sentence.sentence_model import DecoderStates

PART_TOKENS = 4000
"""Tokens that go through the sentence model at a time."""


@dataclass(frozen=True)
class Decision:
    """final, attended [d]: the states of the step; own [n]: log-probabilities of the words without context; word: which
    of them is right; keys [W, d], in half precision, and tokens [W], as the decoder reads them, of the sentences
    before, whose lengths are `lengths`."""

    final: Tensor
    attended: Tensor
    own: Tensor
    word: int
    keys: Tensor
    tokens: Tensor
    lengths: list[int]


@dataclass(frozen=True)
class Decisions:
    """N steps in a batch, each of a document of its own: final, attended [N, d], own [N, n], words [N]."""

    final: Tensor
    attended: Tensor
    own: Tensor
    words: Tensor

    @classmethod
    def of(cls, chosen: Sequence[Decision]) -> Decisions:
        final, attended, own = (
            torch.stack([getattr(one, name) for one in chosen]) for name in ("final", "attended", "own")
        )
        return cls(final, attended, own, torch.tensor([one.word for one in chosen], device=own.device))

    def scores(self, model: DocumentModel, read: Sequence[Decision], own_odds: bool = True) -> Tensor:
        """[N, n] log-probabilities of the words among each other, with the sentences that `read` have before them as
        context: their own, or those of others as a control; as the model says them, or as context alone does."""
        assert model.context is not None
        device = self.final.device
        lengths = [length for one in read for length in one.lengths]
        documents = [number for number, one in enumerate(read) for _ in one.lengths]
        positions = [position for one in read for position in range(len(one.lengths))]
        layout = Layout.of(lengths, documents, positions, device)
        keys = torch.cat([one.keys for one in read]).to(self.final.dtype)
        with torch.no_grad():
            values = model.sentence.next_words(torch.cat([one.tokens for one in read]))
        bank = model.context.prepare(keys, values, layout)
        count = len(read)
        asking = Layout.of([1] * count, list(range(count)), [len(one.lengths) for one in read], device)
        states = model.context(self.final, self.attended, asking, bank).states
        steps = torch.arange(count, device=device)
        return model.decided(steps, states, self.final if own_odds else None).scores.log_softmax(-1)


@torch.no_grad()
def read_decisions(model: DocumentModel, store: CorpusStore) -> Iterator[list[Decision]]:
    """Those of a corpus, part by part; documents without one, or with nothing before it, are passed over."""
    model.eval()
    waiting: list[range] = []
    tokens = 0
    lengths = store.lengths("source") + store.lengths("target")
    for number in range(len(store)):
        document = store.document(number)
        if len(document) > 1:
            waiting.append(document)
            tokens += int(lengths[document.start : document.stop].sum())
        if tokens >= PART_TOKENS:
            yield _decisions(model, store, waiting)
            waiting, tokens = [], 0
    if waiting:
        yield _decisions(model, store, waiting)


def _decisions(model: DocumentModel, store: CorpusStore, documents: Sequence[range]) -> list[Decision]:
    assert model.decides is not None
    rows = [index for document in documents for index in document]
    owners = [number for number, document in enumerate(documents) for _ in document]
    sources, targets = ([store.sentence(side, index) for index in rows] for side in ("source", "target"))
    pairs = pack_pairs(sources, targets, owners).to(model.decides.device)
    memory = model.sentence.encode(pairs.source.tokens, pairs.source.layout)
    states = model.sentence.decode(pairs.target.tokens, pairs.target.layout, memory, pairs.source.layout)
    return list(_found(model, documents, pairs, states))


def _found(model: DocumentModel, documents: Sequence[range], pairs: Pairs, states: DecoderStates) -> Iterator[Decision]:
    assert model.decides is not None
    layout = pairs.target.layout
    starts, lengths = layout.starts.tolist(), layout.host_lengths
    last = -1
    for document in documents:
        first, last = last + 1, last + len(document)
        begin, end = starts[first], starts[last]  # of the sentences before
        labels = pairs.labels[end : end + lengths[last]]
        which = labels[:, None] == model.decides  # [W, n]
        steps = which.any(1).nonzero()[:, 0]
        if not len(steps):
            continue
        step = end + int(steps[0])
        softmax = model.softmax(DecoderStates(states.attended[step : step + 1], states.final[step : step + 1]))
        if not bool(softmax.expect(model.decides)[0]):
            continue
        yield Decision(
            states.final[step].clone(),
            states.attended[step].clone(),
            softmax.table(slice(0, 1))[0, model.decides],
            int(which[steps[0]].nonzero()[0, 0]),
            states.attended[begin:end].half(),
            pairs.target.tokens[begin:end].clone(),
            lengths[first:last],
        )
