"""The words of approved translations as places to point at, laid end to end, and who may read which."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from weitblick.model.pointer import MemoryPointer, Places
from weitblick.text.special import BOS, EOS

Place = tuple[int, int]
"""Document and position of a sentence."""


@dataclass(frozen=True)
class ApprovedKeys:
    """keys [W + 1, k] of the words of an approved translation and of its end, the log-probabilities [W + 1] that the
    model gives to these, and what it would have said instead, favourite [W + 1]; word ids of source and translation,
    and for each word of the translation whether it continues the one before."""

    keys: Tensor
    expected: Tensor
    favourite: Tensor
    source: Sequence[int]
    words: Sequence[int]
    inside: Sequence[bool]

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
    """What a sentence may point at: approved translations by their number, and their distances."""

    source: Sequence[int]
    numbers: Sequence[int]
    distances: Sequence[float]


class Bank:
    """P places of approved translations and, behind them, one that is empty.

    starts, lengths [pairs] of their places        width  the longest
    keys [P + 1, k]; ids, previous, inside, expected, favourite [P + 1], as in `pointer.Places`
    """

    def __init__(self, approved: Sequence[ApprovedKeys], pointer: MemoryPointer) -> None:
        weight = pointer.key.weight
        device = weight.device
        self.approved = approved
        self.lengths = torch.tensor([len(pair.keys) for pair in approved], device=device)
        self.starts = self.lengths.cumsum(0) - self.lengths
        self.width = int(self.lengths.max())
        self.keys = torch.cat([*(pair.keys for pair in approved), weight.new_zeros(1, len(weight))]).to(weight)
        self.ids = torch.cat([*(pair.read[1:] for pair in approved), torch.tensor([0])]).to(device)
        self.previous = torch.cat([*(pair.read[:-1] for pair in approved), torch.tensor([-1])]).to(device)
        self.inside = torch.cat([*(pair.continuing for pair in approved), torch.tensor([False])]).to(device)
        self.expected = torch.cat([*(pair.expected for pair in approved), weight.new_zeros(1)]).float().to(device)
        none = torch.zeros(1, dtype=torch.long, device=device)
        self.favourite = torch.cat([*(pair.favourite for pair in approved), none]).to(device)

    def overlaps(self, reader: Reader) -> list[float]:
        """Of the candidates of a reader."""
        return overlap(reader.source, [self.approved[number].source_words for number in reader.numbers])

    def places(self, readers: Sequence[Reader | None]) -> Places | None:
        """Those of some sentences side by side, filled up with the empty place; None: there are none."""
        count = max((len(reader.numbers) for reader in readers if reader is not None), default=0)
        if count == 0:
            return None
        known = [Reader((), (), ()) if reader is None else reader for reader in readers]
        numbers = [[*reader.numbers, *[-1] * (count - len(reader.numbers))] for reader in known]
        device = self.keys.device
        chosen = torch.tensor(numbers, device=device)  # [S, C]
        there = chosen >= 0
        lengths = self.lengths[chosen] * there
        word = torch.arange(int(lengths.max()), device=device)
        real = word < lengths[..., None]  # [S, C, W]
        index = torch.where(real, self.starts[chosen][..., None] + word, len(self.keys) - 1)
        ids, previous, inside, expected, favourite = (
            table[index] for table in (self.ids, self.previous, self.inside, self.expected, self.favourite)
        )
        distance = self._filled([reader.distances for reader in known], count)
        shared = self._filled([self.overlaps(reader) for reader in known], count)
        return Places(self.keys[index], ids, previous, inside, real, distance, shared, expected, favourite)

    def _filled(self, rows: Sequence[Sequence[float]], count: int) -> Tensor:
        return self.keys.new_tensor([[*row, *[0.0] * (count - len(row))] for row in rows])


def overlap(source: Sequence[int], others: Sequence[frozenset[int]]) -> list[float]:
    """How much of a source each of the others has, 0 to 1: what few of them have counts for more."""
    own = frozenset(source)
    shared = [own & other for other in others]
    having = Counter(word for words in shared for word in words)
    weights = {word: math.log1p((len(others) + 1) / (1 + having[word])) for word in own}
    total = sum(weights.values()) or 1.0
    return [sum(weights[word] for word in words) / total for words in shared]
