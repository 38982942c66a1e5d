"""The pointer of a step by compiled kernels: what `MemoryPointer` defines, without padding and without copies.

Places of all pairs stand end to end, once; every sentence has a list of those that it may point at, which is made once
for all steps. Sentences that leave a batch, or come into one, cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, chain

import torch
from torch import Tensor

from weitblick.batches.batch import Packed
from weitblick.batches.layout import Layout
from weitblick.kernels.library import kernels_for
from weitblick.kernels.pointer import PlaceTables, PointerKernels
from weitblick.model.bank import Bank, Place, Reader
from weitblick.model.pointer import (
    BROKEN_OFF,
    CARRIED_ON,
    FOLLOWED,
    MOST_PLACES,
    NEARNESS,
    SELECTION,
    SHARPNESS,
    MemoryPointer,
)
from weitblick.model.words import Pointed, Softmax
from weitblick.sentence.sentence_model import DecoderStates

NOBODY = -1


class CompiledPointer:
    """Of some sentences, the readers, to the pairs of a bank."""

    def __init__(
        self, kernels: PointerKernels, pointer: MemoryPointer, bank: Bank, readers: Mapping[Place, Reader]
    ) -> None:
        self.kernels, self.pointer = kernels, pointer
        self._numbers = {place: number for number, (place, own) in enumerate(readers.items()) if own.numbers}
        self._tables = _tables(pointer, bank, readers, kernels.lanes)
        self._layout: Layout | None = None
        self._readers: Tensor | None = None  # [T] of each step of the layout

    def point(self, states: DecoderStates, words: Softmax, target: Packed) -> Pointed | None:
        if target.layout is not self._layout:
            self._enter(target.layout)
        if self._readers is None:
            return None
        compiled = kernels_for(states.attended)
        assert compiled is not None
        queries = compiled.linear(states.attended, self.pointer.key.weight, self.pointer.key.bias)
        found = self.kernels.find(self._tables, queries, self._readers, target.tokens, MOST_PLACES)
        ids, favourites = found.words.split(MOST_PLACES, 1)
        layers = self.pointer.share_layers
        asked = words.ask(found.words)
        if self.kernels.knows(layers):
            share, _ = self.kernels.share(layers, found, asked.log_probabilities, asked.highest)
        else:
            told = asked.log_probabilities, asked.highest
            share = self.pointer.decide(found.weights, ids, favourites, found.about.unbind(1), lambda _: told)
            share = share * (found.weights[:, 0] > 0)
        return Pointed(share, ids, found.weights, found.places, asked)

    def _enter(self, layout: Layout) -> None:
        places = zip(layout.documents.tolist(), layout.positions.tolist(), strict=True)
        numbers = [self._numbers.get(place, NOBODY) for place in places]
        self._layout, self._readers = layout, None
        if any(number != NOBODY for number in numbers):
            readers = torch.tensor(numbers)
            self._readers = readers if layout.longest == 1 else readers[layout.sentence]


def _tables(pointer: MemoryPointer, bank: Bank, readers: Mapping[Place, Reader], lanes: int) -> PlaceTables:
    index, starts = _filled_up(bank, lanes)
    inside = bank.inside[index]
    keys = bank.levels.index_select(0, index).unflatten(0, (-1, lanes)).transpose(1, 2)  # [P / lanes, k, lanes]
    before = torch.where(inside, BROKEN_OFF, 0.0)
    same = torch.where(inside, CARRIED_ON - BROKEN_OFF, FOLLOWED)
    tables = {"keys": keys, "inside": inside.float(), "before": before, "same": same}
    tables |= {name: getattr(bank, name)[index] for name in ("level", "expected")}
    tables |= {name: getattr(bank, name)[index].to(torch.int32) for name in ("ids", "previous", "favourite")}
    numbers = torch.tensor(list(chain.from_iterable(own.numbers for own in readers.values())), dtype=torch.long)
    distances = torch.tensor(list(chain.from_iterable(own.distances for own in readers.values())))
    candidates = {
        "first": torch.tensor([0, *accumulate(len(own.numbers) for own in readers.values())]),
        "start": starts[numbers],
        "length": bank.lengths[numbers],
        "nearness": NEARNESS * distances.log1p(),
        "own": torch.tensor(list(chain.from_iterable(own.own for own in readers.values())), dtype=torch.float),
        "overlap": torch.tensor(list(chain.from_iterable(map(bank.overlaps, readers.values())))),
    }
    chosen = SELECTION if pointer.section.sentence_attention == "sparse" else 0.0
    return PlaceTables(tables, candidates, bank.width, SHARPNESS, chosen)


def _filled_up(bank: Bank, lanes: int) -> tuple[Tensor, Tensor]:
    """Every pair filled up to whole vectors: which place of the bank stands at each place now, the empty one behind
    the last of a pair; and where pairs start now."""
    room = (bank.lengths + lanes - 1) // lanes * lanes
    starts = room.cumsum(0) - room
    index = torch.full((int(room.sum()),), len(bank.levels) - 1)
    places = torch.arange(len(bank.levels) - 1)
    index[places + torch.repeat_interleave(starts - bank.starts, bank.lengths)] = places
    return index, starts
