"""The pointer of a step by compiled kernels: what `MemoryPointer` defines, without padding and without copies.

Places of all pairs stand end to end, once; every sentence has a list of those that it may point at, which is made once
for all steps. Sentences that leave a batch, or come into one, cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import Any

import torch
from torch import Tensor

from weitblick.fast.kernels import kernels_for
from weitblick.fast.pointer import PlaceTables, PointerKernels, pointer_kernels
from weitblick.memory.bounds import SourceWords, TargetWord, needed_words
from weitblick.memory.keys import ApprovedKeys, ApprovedPlaces, Place, PlainPointer, Reader
from weitblick.memory.pointer import (
    BROKEN_OFF,
    CARRIED_ON,
    FOLLOWED,
    MOST_PLACES,
    NEARNESS,
    SELECTION,
    SHARPNESS,
    MemoryPointer,
    bounded,
)
from weitblick.model.batch import Layout, Packed
from weitblick.model.context import Sources
from weitblick.model.modifiers import Pointed
from weitblick.model.output import Softmax, WordDistribution
from weitblick.model.sentence_model import DecoderStates, SentenceModel

NOBODY = -1


class CompiledPointer:
    """Of some sentences, the readers, to the pairs of a bank."""

    def __init__(
        self, kernels: PointerKernels, pointer: MemoryPointer, bank: ApprovedPlaces, readers: Mapping[Place, Reader]
    ) -> None:
        self.kernels, self.pointer = kernels, pointer
        self._numbers = {place: number for number, (place, own) in enumerate(readers.items()) if own.numbers}
        self._tables = _tables(pointer, bank, readers, kernels.lanes)
        self._open = _open_table(bank, readers)
        self._first = torch.tensor([0, *accumulate(len(own.numbers) for own in readers.values())])  # candidate of each
        self._layout: Layout | None = None
        self._readers: Tensor | None = None  # [T] of each step of the layout

    def point(self, states: DecoderStates, words: WordDistribution, target: Packed) -> Pointed | None:
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
        asked = words.look_up(found.words, and_best=True)
        if self.kernels.knows(layers):
            share, _ = self.kernels.share(layers, found, asked.log_probabilities, asked.highest)
        else:
            share = self.pointer.decide(found.weights, ids, favourites, found.about.unbind(1), lambda _: asked)
            share = share * (found.weights[:, 0] > 0)
        pointed = Pointed(share, ids, found.weights, found.places, asked)
        if self._open is None:
            return pointed
        first = self._first[self._readers.clamp_min(0)] * self._open.shape[1]
        return bounded(pointed, self._open.view(-1)[first[:, None] + found.places])

    def _enter(self, layout: Layout) -> None:
        places = zip(layout.documents.tolist(), layout.positions.tolist(), strict=True)
        numbers = [self._numbers.get(place, NOBODY) for place in places]
        self._layout, self._readers = layout, None
        if any(number != NOBODY for number in numbers):
            readers = torch.tensor(numbers)
            self._readers = readers if layout.longest == 1 else readers[layout.sentence]


def _tables(pointer: MemoryPointer, bank: ApprovedPlaces, readers: Mapping[Place, Reader], lanes: int) -> PlaceTables:
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


def _open_table(bank: ApprovedPlaces, readers: Mapping[Place, Reader]) -> Tensor | None:
    """[candidates of all readers, width] which places of each are open; None if all are."""
    rows = [own for reader in readers.values() for own in bank.open_of(reader)]
    if all(own.all() for own in rows):
        return None
    table = torch.zeros(len(rows), bank.width, dtype=torch.bool)
    for number, own in enumerate(rows):
        table[number, : len(own)] = torch.from_numpy(own)
    return table


def _filled_up(bank: ApprovedPlaces, lanes: int) -> tuple[Tensor, Tensor]:
    """Every pair filled up to whole vectors: which place of the bank stands at each place now, the empty one behind
    the last of a pair; and where pairs start now."""
    room = (bank.lengths + lanes - 1) // lanes * lanes
    starts = room.cumsum(0) - room
    index = torch.full((int(room.sum()),), len(bank.levels) - 1)
    places = torch.arange(len(bank.levels) - 1)
    index[places + torch.repeat_interleave(starts - bank.starts, bank.lengths)] = places
    return index, starts


# Approved translations as a model reads them: keys of every word, and for each sentence the few worth looking at.


@dataclass(frozen=True)
class ApprovedSentence:
    """Word ids of an approved pair, for each target word whether it continues the one before, and the words of both
    sides, by which places are bounded."""

    source: Sequence[int]
    target: Sequence[int]
    inside: Sequence[bool]
    source_words: SourceWords
    target_words: Sequence[TargetWord]


@torch.no_grad()
def approved_keys(
    sentence: SentenceModel, pointer: MemoryPointer, approved: Sequence[ApprovedSentence], language: str
) -> list[ApprovedKeys]:
    """The keys of approved pairs, each on its own: what a pair says does not depend on the others. language: of their
    translations."""
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
        decoded, weights = sentence.decode_with_weights(
            target.tokens, target.layout, states.index_select(0, rows), source.layout
        )
        attention = iter(weights.float().cpu().numpy())
        expected, favourite = Softmax(decoded.final, *sentence.output()).judge(target.next_tokens())
        columns = (column.split(target.layout.host_lengths) for column in (pointer.keys(decoded), expected, favourite))
        for keys, likely, wanted in zip(*columns, strict=True):
            index, pair = next(waiting)
            own = keys.clone(), likely.clone(), wanted.clone()  # not views: a pair that is kept would keep all others
            shares = next(attention)[: len(pair.target), : len(pair.source)]
            needed = needed_words(shares, pair.source_words, pair.target_words, language)
            found[index] = ApprovedKeys.of(*own, pair.source, pair.target, pair.inside, needed)
    return [found[index] for index in range(len(approved))]


class Approved:
    """The pointer of some sentences to approved translations (see `model.output.Pointer`), compiled where it can be."""

    def __init__(
        self,
        pointer: MemoryPointer,
        approved: Sequence[ApprovedKeys],
        readers: Mapping[Place, Reader],
        origins: Sequence[Any] = (),
    ) -> None:
        """`origins`: whatever the caller wants to be told of an approved translation that a word came from."""
        self.pointer, self.readers, self.origins = pointer, readers, origins
        self._bank = ApprovedPlaces(approved, pointer)
        self._compiled: CompiledPointer | None = None

    def point(self, states: DecoderStates, words: WordDistribution, target: Packed) -> Pointed | None:
        kernels = pointer_kernels(states.attended)
        if kernels is not None and self.pointer.section.dimension % kernels.lanes == 0:
            if self._compiled is None:
                self._compiled = CompiledPointer(kernels, self.pointer, self._bank, self.readers)
            return self._compiled.point(states, words, target)
        return self._plain.point(states, words, target)

    @cached_property
    def _plain(self) -> PlainPointer:
        return PlainPointer(self.pointer, self._bank, self.readers)

    def origin(self, document: int, position: int, index: int) -> tuple[int, int]:
        """The approved translation, by its number, and the word in it, of a place that `point` gave."""
        reader = self.readers[document, position]
        sentence, word = divmod(index, self._bank.width)
        return reader.numbers[sentence], word
