"""The words of a Marian model in our order: our special ids come first."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from weitblick.text.special import BOS, PAD


@dataclass(frozen=True)
class Rows:
    """tokens: the ordinary ones, in our order; origins: for each of our ids the row of the original, or None;
    silent: our ids that stand for no word that the original can say."""

    tokens: list[str]
    origins: list[int | None]
    silent: list[int]

    def table(self, original: Tensor) -> Tensor:
        """[V, d] of the original -> [V', d]"""
        index = torch.tensor([-1 if row is None else row for row in self.origins])
        rows: Tensor = original[index.clamp_min(0)]
        rows[index < 0] = 0
        return rows


def arrange(vocabulary: dict[str, int], size: int, pad: int, end: int, unknown: int, start: int) -> Rows:
    """Our order of a vocabulary of `size` words. What the decoder starts from, usually <pad>, is our <s>."""
    special: list[int | None] = [None, pad, end, unknown] if start == pad else [pad, start, end, unknown]
    names = {number: token for token, number in vocabulary.items()}
    ordinary = [number for number in range(size) if number not in (pad, end, unknown)]
    tokens = [names.get(number, f"<unused {number}>") for number in ordinary]
    # A row that two of our ids share has its probability once.
    said = {end, unknown, *ordinary}
    silent = [number for number in (PAD, BOS) if special[number] is None or special[number] in said]
    return Rows(tokens, [*special, *ordinary], silent)
