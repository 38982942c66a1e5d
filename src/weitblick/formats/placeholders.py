"""Words that are no words (addresses, `{name}`, `<ph/>`), in the three guises that they need.

inside   one character each, FIRST + number: the text that the mechanism works on
shown    as people read them, and as a `Document` has them
veiled   X1, X2, ...: what a model reads. Models copy such names, where they tear addresses and braces to pieces
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from weitblick.formats.blocks import BREAK, WORD
from weitblick.translation.alignment import Alignment

FIRST = ord(WORD) + 1
LETTERS = "XZQYKJWVUHGFDCB"


def number_words(text: str) -> str:
    """A block's text, in which all words look the same, with each word by its number."""
    numbers = iter(range(FIRST, FIRST + len(text)))
    return "".join(chr(next(numbers)) if letter == WORD else letter for letter in text)


def is_word(letter: str) -> bool:
    return ord(letter) >= FIRST and ord(letter) < FIRST + 0x8000


@dataclass(frozen=True)
class Words:
    """The words of one sentence, by what they show."""

    shown: tuple[str, ...]
    letter: str

    @staticmethod
    def of(source: str, shown: Sequence[str]) -> Words:
        """`source` decides the letter: no name may be there already."""
        free = (letter for letter in LETTERS if not re.search(rf"{letter}\d", source + " ".join(shown)))
        return Words(tuple(shown), next(free, LETTERS[0]))

    def show(self, inside: str) -> str:
        return self._replaced(inside, self.shown)

    def veil(self, inside: str) -> str:
        return self._replaced(inside, self.names).replace(BREAK, " ")

    @property
    def names(self) -> list[str]:
        return [f"{self.letter}{number}" for number in range(1, len(self.shown) + 1)]

    def _replaced(self, inside: str, by: Sequence[str]) -> str:
        if not self.shown:
            return inside
        return "".join(by[ord(letter) - FIRST] if is_word(letter) else letter for letter in inside)

    def unveil(self, text: str) -> str:
        """A model's answer as inside text: the first of each name is the word, another one of it is left out."""
        seen: set[int] = set()

        def word(found: re.Match[str]) -> str:
            number = int(found[2]) - 1
            if not 0 <= number < len(self.shown):
                return found[0]
            if number in seen:
                return ""
            seen.add(number)
            return found[1] + chr(FIRST + number)

        return re.sub(rf"( ?)(?<![A-Za-z0-9]){self.letter} ?(\d+)(?!\d)", word, text).strip() if self.shown else text

    def find(self, text: str) -> str:
        """Shown text as inside text: of equal words each takes the next place."""
        taken: list[tuple[int, int, int]] = []
        for number in sorted(range(len(self.shown)), key=lambda n: (-len(self.shown[n]), n)):
            start = text.find(self.shown[number])
            while start >= 0 and any(
                start < end and first < start + len(self.shown[number]) for first, end, _ in taken
            ):
                start = text.find(self.shown[number], start + 1)
            if start >= 0:
                taken.append((start, start + len(self.shown[number]), number))
        for start, end, number in sorted(taken, reverse=True):
            text = text[:start] + chr(FIRST + number) + text[end:]
        return text

    def missing(self, inside: str) -> list[int]:
        return [number for number in range(len(self.shown)) if chr(FIRST + number) not in inside]

    def inside_alignment(self, source: str, target: str, alignment: Alignment) -> Alignment:
        """The alignment of two veiled texts, counted in their inside texts."""
        return Alignment(
            self._inside_spans(source, alignment.source),
            self._inside_spans(target, alignment.target),
            alignment.weights,
        )

    def _inside_spans(self, inside: str, spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        if not self.shown:
            return tuple(spans)
        widths = [len(self.names[ord(letter) - FIRST]) if is_word(letter) else 1 for letter in inside]
        places = list(accumulate(widths, initial=0))
        return tuple((bisect_right(places, start) - 1, bisect_left(places, end)) for start, end in spans)


def insert_words(source: str, target: str, numbers: Sequence[int], alignment: Alignment) -> str:
    """The target with words that a model has lost, each beside what its neighbours in the source became."""
    places = sorted((*_place(source, target, number, alignment), number) for number in numbers)
    for at, before, behind, number in reversed(places):
        target = target[:at] + before + chr(FIRST + number) + behind + target[at:]
    return target


def _place(source: str, target: str, number: int, alignment: Alignment) -> tuple[int, str, str]:
    """Where a lost word goes, and the spaces around it."""
    at = source.index(chr(FIRST + number))
    before = [i for i, (_, end) in enumerate(alignment.source) if end <= at and _spoken(source, alignment.source[i])]
    spaced = bool(at) and source[at - 1].isspace()
    if before and alignment.target:
        return alignment.target[_heaviest(alignment, before[-1])][1], " " if spaced else "", ""
    return 0, "", " " if source[at + 1 : at + 2].isspace() and target else ""


def _spoken(text: str, span: tuple[int, int]) -> bool:
    return any(letter.isalnum() or is_word(letter) for letter in text[span[0] : span[1]])


def _heaviest(alignment: Alignment, source_word: int) -> int:
    return int(np.argmax(alignment.weights[:, source_word]))
