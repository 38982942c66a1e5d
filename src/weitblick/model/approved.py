"""Approved translations as a model reads them: keys of every word, and for each sentence the few worth looking at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from weitblick.batches.batch import Packed
from weitblick.batches.layout import Layout
from weitblick.kernels.pointer import pointer_kernels
from weitblick.model.bank import ApprovedKeys, Bank, Place, Reader
from weitblick.model.compiled_pointer import CompiledPointer
from weitblick.model.pointer import MemoryPointer, Places
from weitblick.model.sources import Sources
from weitblick.model.words import Pointed, Softmax
from weitblick.sentence.sentence_model import DecoderStates, SentenceModel

MOVING = 0.75
"""Share of a batch's sentences below which the places of those that are left are moved together."""


@dataclass(frozen=True)
class ApprovedSentence:
    """Word ids of an approved pair, and for each target word whether it continues the one before."""

    source: Sequence[int]
    target: Sequence[int]
    inside: Sequence[bool]


@torch.no_grad()
def approved_keys(
    sentence: SentenceModel, pointer: MemoryPointer, approved: Sequence[ApprovedSentence]
) -> list[ApprovedKeys]:
    """The keys of approved pairs, each on its own: what a pair says does not depend on the others."""
    if not approved:
        return []
    device = next(sentence.parameters()).device
    order = sorted(range(len(approved)), key=lambda index: len(approved[index].target))
    chosen = [approved[index] for index in order]
    sources = Sources([pair.source for pair in chosen], list(range(len(chosen))), [0] * len(chosen), device)
    states = sources.encode(sentence)
    found: dict[int, ApprovedKeys] = {}
    waiting = zip(order, chosen, strict=True)
    for source, target, rows in sources.pairs([pair.target for pair in chosen]):
        decoded = sentence.decode(target.tokens, target.layout, states.index_select(0, rows), source.layout)
        expected, favourite = Softmax(decoded.final, *sentence.output()).judge(target.next_tokens())
        columns = (column.split(target.layout.host_lengths) for column in (pointer.keys(decoded), expected, favourite))
        for keys, likely, wanted in zip(*columns, strict=True):
            index, pair = next(waiting)
            found[index] = ApprovedKeys(keys, likely, wanted, pair.source, pair.target, pair.inside)
    return [found[index] for index in range(len(approved))]


class Approved:
    """The pointer of some sentences to approved translations (see `words.Pointer`).

    A batch's places are gathered when it begins; while its sentences are decoded they are kept as its layout is.
    """

    def __init__(
        self,
        pointer: MemoryPointer,
        approved: Sequence[ApprovedKeys],
        readers: Mapping[Place, Reader],
        origins: Sequence[Any] = (),
    ) -> None:
        """`origins`: whatever the caller wants to be told of an approved translation that a word came from."""
        self.pointer, self.readers, self.origins = pointer, readers, origins
        self._bank = Bank(approved, pointer)
        self._layout: Layout | None = None
        self._rows: list[Place] = []
        self._places: Places | None = None
        self._staying: Tensor | None = None  # which rows of the places are still wanted, if not all
        self._steps = 1

    def point(self, states: DecoderStates, words: Softmax, target: Packed) -> Pointed | None:
        kernels = pointer_kernels(states.attended)
        if kernels is not None and self.pointer.section.dimension % kernels.lanes == 0:
            return self._compiled.point(kernels, states, words, target)
        layout = target.layout
        if layout is not self._layout:
            self._enter(layout)
        if self._places is None:
            return None
        if layout.longest == 1:  # a step of beam search: the hypotheses of a sentence stand together
            return self._step(self.pointer.keys(states).unflatten(0, (-1, self._steps)), target.tokens, words)
        padded = self.pointer(
            layout.pad(self.pointer.keys(states)), layout.pad(target.tokens), self._places, _padded(words, layout)
        )
        kept = layout.padded_index
        return self._in_bank(padded[kept])

    @cached_property
    def _compiled(self) -> CompiledPointer:
        return CompiledPointer(self.pointer, self._bank, self.readers)

    def _step(self, queries: Tensor, tokens: Tensor, words: Softmax) -> Pointed:
        """queries [S, K, k], tokens [S * K]. Places of sentences that have left stay for a while: to move those of all
        others takes longer than to look at a few in vain."""
        tokens = tokens.view(-1, self._steps)
        assert self._places is not None
        if self._staying is None:
            return self._in_bank(self.pointer(queries, tokens, self._places, words.look_up))
        size = (len(self._places.keys), self._steps)
        every = queries.new_zeros(*size, queries.shape[-1]).index_copy_(0, self._staying, queries)
        previous = tokens.new_zeros(size).index_copy_(0, self._staying, tokens)
        rows = torch.arange(size[0] * size[1], device=tokens.device).view(size)[self._staying].flatten()

        def look_up(ids: Tensor) -> tuple[Tensor, Tensor]:
            found, highest = words.look_up(ids[rows])
            return (
                found.new_zeros(ids.shape).index_copy_(0, rows, found),
                highest.new_zeros(len(ids)).index_copy_(0, rows, highest),
            )

        return self._in_bank(self.pointer(every, previous, self._places, look_up)[rows])

    def _in_bank(self, pointed: Pointed) -> Pointed:
        """Places of a batch, which is as wide as the longest that it may point at, as those of the whole bank."""
        if pointed.places is None or self._places is None:
            return pointed
        width = self._places.ids.shape[-1]
        places = pointed.places // width * self._bank.width + pointed.places % width
        return Pointed(pointed.share, pointed.ids, pointed.weights, places)

    def origin(self, document: int, position: int, index: int) -> tuple[int, int]:
        """The approved translation, by its number, and the word in it, of a place that `point` gave."""
        reader = self.readers[document, position]
        sentence, word = divmod(index, self._bank.width)
        return reader.numbers[sentence], word

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
            self._places = self._bank.places([self.readers.get(place) for place in rows])
        self._staying, self._layout, self._rows = None, layout, rows


def _padded(words: Softmax, layout: Layout):  # type: ignore[no-untyped-def]
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
