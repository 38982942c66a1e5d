"""The words of approved translations as places to point at, laid end to end, and who may read which."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from weitblick.model.pointer import BROKEN_OFF, FAR_BELOW, NEARNESS, STRIP, MemoryPointer, Places
from weitblick.text.special import BOS, EOS

Place = tuple[int, int]
"""Document and position of a sentence."""
MOST_LEVELS, TINY = 127, 1e-12


@dataclass(frozen=True)
class ApprovedKeys:
    """levels [W + 1, k] of the keys of the words of an approved translation and of its end, 8-bit integers, and what
    one level of each is worth, level [W + 1]; the log-probabilities [W + 1] that the model gives to these words, and
    what it would have said instead, favourite [W + 1]; word ids of source and translation, and for each word of the
    translation whether it continues the one before."""

    levels: Tensor
    level: Tensor
    expected: Tensor
    favourite: Tensor
    source: Sequence[int]
    words: Sequence[int]
    inside: Sequence[bool]

    @classmethod
    def of(
        cls,
        keys: Tensor,
        expected: Tensor,
        favourite: Tensor,
        source: Sequence[int],
        words: Sequence[int],
        inside: Sequence[bool],
    ) -> ApprovedKeys:
        """From keys [W + 1, k] themselves."""
        level = keys.abs().amax(-1).clamp_min(TINY) / MOST_LEVELS
        levels = (keys / level[:, None]).round().to(torch.int8)
        return cls(levels, level, expected, favourite, source, words, inside)

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


@dataclass(frozen=True)
class Reader:
    """What a sentence may point at: approved translations by their number, their distances, and whether
    they belong to its own document."""

    source: Sequence[int]
    numbers: Sequence[int]
    distances: Sequence[float]
    own: Sequence[bool]


NOTHING = Reader((), (), (), ())


class Bank:
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
            overlap=candidates.fill(overlaps.to(self.keys), 0.0),
            nearness=candidates.fill(nearness, 0.0),
            own=candidates.fill(own.to(self.keys), 0.0),
        )


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
