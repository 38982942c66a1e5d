"""The pointer of some sentences by PyTorch alone: places of a batch side by side in one grid."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from weitblick.batches.batch import Packed
from weitblick.batches.layout import Layout
from weitblick.model.bank import Bank, Place, Reader
from weitblick.model.pointer import LookUp, MemoryPointer, Places
from weitblick.model.words import Pointed, Softmax
from weitblick.sentence.sentence_model import DecoderStates

MOVING = 0.75
"""Share of a batch's sentences below which the places of those that are left are moved together."""


class PlainPointer:
    """A batch's places are gathered when it begins; while its sentences are decoded they are kept as its layout is."""

    def __init__(self, pointer: MemoryPointer, bank: Bank, readers: Mapping[Place, Reader]) -> None:
        self.pointer, self.bank, self.readers = pointer, bank, readers
        self._layout: Layout | None = None
        self._rows: list[Place] = []
        self._places: Places | None = None
        self._staying: Tensor | None = None  # which rows of the places are still wanted, if not all
        self._steps = 1

    def point(self, states: DecoderStates, words: Softmax, target: Packed) -> Pointed | None:
        layout = target.layout
        if layout is not self._layout:
            self._enter(layout)
        if self._places is None:
            return None
        keys = self.pointer.keys(states)
        if layout.longest == 1:  # a step of beam search: the hypotheses of a sentence stand together
            return self._step(keys.unflatten(0, (-1, self._steps)), target.tokens, words)
        padded = self.pointer(layout.pad(keys), layout.pad(target.tokens), self._places, _padded(words, layout))
        return padded[layout.padded_index]

    def _step(self, queries: Tensor, tokens: Tensor, words: Softmax) -> Pointed:
        """queries [S, K, k], tokens [S * K]. Places of sentences that have left stay for a while: to move those of all
        others takes longer than to look at a few in vain."""
        tokens = tokens.view(-1, self._steps)
        assert self._places is not None
        if self._staying is None:
            return self.pointer(queries, tokens, self._places, words.look_up)
        size = (len(self._places.ids), self._steps)
        every = queries.new_zeros(*size, queries.shape[-1]).index_copy_(0, self._staying, queries)
        previous = tokens.new_zeros(size).index_copy_(0, self._staying, tokens)
        rows = torch.arange(size[0] * size[1], device=tokens.device).view(size)[self._staying].flatten()

        def look_up(ids: Tensor) -> tuple[Tensor, Tensor]:
            found, highest = words.look_up(ids[rows])
            return (
                found.new_zeros(ids.shape).index_copy_(0, rows, found),
                highest.new_zeros(len(ids)).index_copy_(0, rows, highest),
            )

        return self.pointer(every, previous, self._places, look_up)[rows]

    def _enter(self, layout: Layout) -> None:
        """The places of the sentences of a layout, each sentence once where its hypotheses stand together."""
        every = list(zip(layout.documents.tolist(), layout.positions.tolist(), strict=True))
        rows = [place for index, place in enumerate(every) if not index or place != every[index - 1]]
        grouped = layout.longest == 1 and len(every) % len(rows) == 0
        self._steps = len(every) // len(rows) if grouped else 1
        if grouped and every != [place for place in rows for _ in range(self._steps)]:
            grouped, self._steps = False, 1
        if not grouped:
            rows = every
        known = {place: number for number, place in enumerate(self._rows)}
        if self._places is not None and layout.longest == 1 and all(place in known for place in rows):
            staying = torch.tensor([known[place] for place in rows], device=self._places.keys.device)
            if len(rows) > MOVING * len(self._rows):
                self._staying = None if rows == self._rows else staying
                self._layout = layout
                return
            self._places = self._places.rows(staying)
        else:
            self._places = self.bank.places([self.readers.get(place) for place in rows])
        self._staying, self._layout, self._rows = None, layout, rows


def _padded(words: Softmax, layout: Layout) -> LookUp:
    """Looks up words of padded steps; what stands at padding is dropped later."""

    def look_up(ids: Tensor) -> tuple[Tensor, Tensor]:
        found, highest = words.look_up(ids[layout.padded_index])
        size = layout.sentences * layout.longest
        of_all, of_best = found.new_zeros(size, ids.shape[1]), highest.new_zeros(size)
        return (
            of_all.index_copy(0, layout.padded_index, found),
            of_best.index_copy(0, layout.padded_index, highest),
        )

    return look_up
