"""The words of approved translations as places to point at, laid end to end, and who may read which."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from weitblick.memory.bounds import open_places
from weitblick.memory.pointer import BROKEN_OFF, FAR_BELOW, NEARNESS, STRIP, LookUp, MemoryPointer, Places
from weitblick.model.batch import Layout, Packed
from weitblick.model.modifiers import Pointed
from weitblick.model.output import LookedUp, WordDistribution
from weitblick.model.sentence_model import DecoderStates
from weitblick.text.base import BOS, EOS

Place = tuple[int, int]
"""Document and position of a sentence."""
MOST_LEVELS, TINY = 127, 1e-12


@dataclass(frozen=True)
class ApprovedKeys:
    """levels [W + 1, k] of the keys of the words of an approved translation and of its end, 8-bit integers, and what
    one level of each is worth, level [W + 1]; the log-probabilities [W + 1] that the model gives to these words, and
    what it would have said instead, favourite [W + 1]; word ids of source and translation, and for each word of the
    translation whether it continues the one before; needed [W + 1, n]: the numbers of the source words behind each word
    (see `bounds`), None where anybody may point at it, as in training."""

    levels: Tensor
    level: Tensor
    expected: Tensor
    favourite: Tensor
    source: Sequence[int]
    words: Sequence[int]
    inside: Sequence[bool]
    needed: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        keys: Tensor,
        expected: Tensor,
        favourite: Tensor,
        source: Sequence[int],
        words: Sequence[int],
        inside: Sequence[bool],
        needed: np.ndarray | None = None,
    ) -> ApprovedKeys:
        """From keys [W + 1, k] themselves."""
        level = keys.abs().amax(-1).clamp_min(TINY) / MOST_LEVELS
        levels = (keys / level[:, None]).round().to(torch.int8)
        return cls(levels, level, expected, favourite, source, words, inside, needed)

    @property
    def keys(self) -> Tensor:
        """[W + 1, k] as rounded."""
        return self.levels * self.level[:, None]

    @cached_property
    def read(self) -> Tensor:
        """[W + 2] the words with beginning and end."""
        return torch.tensor([BOS, *self.words, EOS])

    @cached_property
    def continuing(self) -> Tensor:
        """[W + 1]"""
        return torch.tensor([*self.inside, False])

    @cached_property
    def source_words(self) -> frozenset[int]:
        return frozenset(self.source)

    def open_to(self, stems: Sequence[str], present: frozenset[str]) -> np.ndarray:
        """[W + 1] which places a sentence with these stems may point at; stems: of the words of the approved source."""
        if self.needed is None:
            return np.ones(len(self.words) + 1, dtype=bool)
        return open_places(self.needed, stems, present) & self.corrected

    @cached_property
    def corrected(self) -> np.ndarray:
        """[W + 1] which words, all pieces of one alike, the model would not have said itself: of the others nothing is
        to be learnt, and to make them more probable only favours sentences that have little else."""
        said = torch.tensor([*self.words, EOS])
        differs = (self.favourite.cpu() != said).numpy()
        number = np.cumsum([*(not inside for inside in self.inside), True])  # of the word of each piece
        return np.isin(number, number[differs])


@dataclass(frozen=True)
class Reader:
    """What a sentence may point at: approved translations by their number, their distances, and whether
    they belong to its own document; open: of each the places [W + 1] whose words it may take, None: all of all;
    closed: it had some, and may take no word of any."""

    source: Sequence[int]
    numbers: Sequence[int]
    distances: Sequence[float]
    own: Sequence[bool]
    open: Sequence[np.ndarray] | None = None
    closed: bool = False


NOTHING = Reader((), (), (), ())


class ApprovedPlaces:
    """P places of approved translations and, behind them, one that is empty.

    starts, lengths [pairs] of their places        width  the longest
    levels [P + 1, k] and level [P + 1] of keys, as in `ApprovedKeys`
    ids, previous, inside, expected, favourite [P + 1], as in `pointer.Places`
    """

    def __init__(self, approved: Sequence[ApprovedKeys], pointer: MemoryPointer) -> None:
        weight = pointer.key.weight
        device = weight.device
        self.approved = approved
        self.lengths = torch.tensor([len(pair.levels) for pair in approved], device=device)
        self.starts = self.lengths.cumsum(0) - self.lengths
        self.width = int(self.lengths.max())
        nothing = torch.zeros(1, len(weight), dtype=torch.int8, device=device)
        self.levels = torch.cat([*(pair.levels for pair in approved), nothing]).to(device)
        self.level = torch.cat([*(pair.level for pair in approved), weight.new_zeros(1)]).float().to(device)
        self.ids = torch.cat([*(pair.read[1:] for pair in approved), torch.tensor([0])]).to(device)
        self.previous = torch.cat([*(pair.read[:-1] for pair in approved), torch.tensor([-1])]).to(device)
        self.inside = torch.cat([*(pair.continuing for pair in approved), torch.tensor([False])]).to(device)
        self.expected = torch.cat([*(pair.expected for pair in approved), weight.new_zeros(1)]).float().to(device)
        none = torch.zeros(1, dtype=torch.long, device=device)
        self.favourite = torch.cat([*(pair.favourite for pair in approved), none]).to(device)

    @cached_property
    def keys(self) -> Tensor:
        """[P + 1, k]"""
        return self.levels * self.level[:, None]

    def overlaps(self, reader: Reader) -> list[float]:
        """Of the candidates of a reader."""
        return overlap(reader.source, [self.approved[number].source_words for number in reader.numbers])

    def places(self, readers: Sequence[Reader | None]) -> Places | None:
        """Those of some sentences side by side; None: there are none."""
        known = [NOTHING if reader is None else reader for reader in readers]
        if not any(reader.numbers for reader in known):
            return None
        device = self.keys.device
        rows, owners, numbers, distances, own, overlaps = (
            torch.tensor(list(column), device=device)
            for column in zip(
                *(
                    (row, owner, *columns)
                    for row, reader in enumerate(known)
                    for owner, columns in enumerate(
                        zip(reader.numbers, reader.distances, reader.own, self.overlaps(reader), strict=True)
                    )
                ),
                strict=True,
            )
        )  # [n] of all candidates
        strips = (self.lengths[numbers] + STRIP - 1) // STRIP
        of = torch.repeat_interleave(torch.arange(len(numbers), device=device), strips)  # [m] the candidate of a strip
        offset = (torch.arange(len(of), device=device) - (strips.cumsum(0) - strips)[of]) * STRIP
        grid, candidates = _Grid(rows[of], len(known)), _Grid(rows, len(known))
        word = torch.arange(STRIP, device=device)[:, None]
        left = grid.fill(self.lengths[numbers][of] - offset, 0)  # [S, R]
        begin = grid.fill(self.starts[numbers][of] + offset, 0)
        real = (word < left[:, None]).flatten(1)  # [S, P]
        index = torch.where(real, (begin[:, None] + word).flatten(1), len(self.keys) - 1)
        inside = self.inside[index]
        nearness = (NEARNESS * distances.log1p()).to(self.keys)
        before = torch.where(inside, BROKEN_OFF, 0.0) - grid.fill(nearness[of], 0.0).repeat(1, STRIP)
        first = grid.fill((self.lengths[numbers].cumsum(0) - self.lengths[numbers])[of] + offset, 0)
        opened = self._opened(known)
        return Places(
            keys=self.keys,
            index=index,
            ids=self.ids[index],
            previous=self.previous[index],
            inside=inside,
            expected=self.expected[index],
            favourite=self.favourite[index],
            before=before.masked_fill(~real, FAR_BELOW),
            number=(grid.fill(owners[of] * self.width + offset, 0)[:, None] + word).flatten(1),
            owner=grid.fill(owners[of], 0),
            there=candidates.fill(torch.ones_like(owners, dtype=torch.bool), False),
            open=opened[(first[:, None] + word).flatten(1).clamp_max(len(opened) - 1)],
            overlap=candidates.fill(overlaps.to(self.keys), 0.0),
            nearness=candidates.fill(nearness, 0.0),
            own=candidates.fill(own.to(self.keys), 0.0),
        )

    def _opened(self, readers: Sequence[Reader]) -> Tensor:
        """Whether each place of each candidate of each reader is open, end to end."""
        parts = [part for reader in readers for part in self.open_of(reader)]
        return torch.from_numpy(np.concatenate(parts)).to(self.keys.device)

    def open_of(self, reader: Reader) -> list[np.ndarray]:
        """Of each candidate of a reader, which of its places [W + 1] are open."""
        if reader.open is not None:
            return list(reader.open)
        return [np.ones(len(self.approved[number].levels), dtype=bool) for number in reader.numbers]


class _Grid:
    """Entries [n], each of a row [n], in ascending order, side by side in as many columns as the fullest row needs."""

    def __init__(self, row: Tensor, rows: int) -> None:
        sizes = torch.bincount(row, minlength=rows)
        self.shape = rows, int(sizes.max())
        self.place = row, torch.arange(len(row), device=row.device) - (sizes.cumsum(0) - sizes)[row]

    def fill(self, values: Tensor, nothing: float) -> Tensor:
        """[n] -> [rows, columns]"""
        return values.new_full(self.shape, nothing).index_put(self.place, values)


def overlap(source: Sequence[int], others: Sequence[frozenset[int]]) -> list[float]:
    """How much of a source each of the others has, 0 to 1: what few of them have counts for more."""
    own = frozenset(source)
    shared = [own & other for other in others]
    having = Counter(word for words in shared for word in words)
    weights = {word: math.log1p((len(others) + 1) / (1 + having[word])) for word in own}
    total = sum(weights.values()) or 1.0
    return [sum(weights[word] for word in words) / total for words in shared]


# The pointer of some sentences by PyTorch alone: places of a batch side by side in one grid.

MOVING = 0.75
"""Share of a batch's sentences below which the places of those that are left are moved together."""


class PlainPointer:
    """A batch's places are gathered when it begins; while its sentences are decoded they are kept as its layout is."""

    def __init__(self, pointer: MemoryPointer, bank: ApprovedPlaces, readers: Mapping[Place, Reader]) -> None:
        self.pointer, self.bank, self.readers = pointer, bank, readers
        self._layout: Layout | None = None
        self._rows: list[Place] = []
        self._places: Places | None = None
        self._staying: Tensor | None = None  # which rows of the places are still wanted, if not all
        self._steps = 1

    def point(self, states: DecoderStates, words: WordDistribution, target: Packed) -> Pointed | None:
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

    def _step(self, queries: Tensor, tokens: Tensor, words: WordDistribution) -> Pointed:
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

        def look_up(ids: Tensor) -> LookedUp:
            own = words.look_up(ids[rows])
            found, highest = own.log_probabilities, own.highest
            return LookedUp(
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


def _padded(words: WordDistribution, layout: Layout) -> LookUp:
    """Looks up words of padded steps; what stands at padding is dropped later."""

    def look_up(ids: Tensor) -> LookedUp:
        own = words.look_up(ids[layout.padded_index])
        found, highest = own.log_probabilities, own.highest
        size = layout.sentences * layout.longest
        of_all, of_best = found.new_zeros(size, ids.shape[1]), highest.new_zeros(size)
        return LookedUp(
            of_all.index_copy(0, layout.padded_index, found),
            of_best.index_copy(0, layout.padded_index, highest),
        )

    return look_up
