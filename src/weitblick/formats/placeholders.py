"""Words that are no words (addresses, `{name}`, `<ph/>`), in the three guises that they need.

inside   one character each, FIRST + number: the text that the mechanism works on
shown    as people read them, and as a `Document` has them
veiled   what a model reads: K1, K2, ..., or a number where they stand for one. Models copy these, where they tear
         addresses and braces to pieces. Words that stand together are one, and signs that models have hardly
         seen are those that they have
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from weitblick.formats.blocks import WORD
from weitblick.formats.protection import is_count
from weitblick.translation.alignment import Alignment

FIRST = ord(WORD) + 1
LAST = FIRST + 0x8000
LETTERS = "KGHJXDVZYWUFCBQ"  # the shipped model copies K1 best: of 192 names 81%, of G1 81%, of X1 72%
NUMBERS = ("37", "46", "58", "73", "84", "92")
RUN = re.compile(f"[{chr(FIRST)}-{chr(LAST - 1)}](?: ?[{chr(FIRST)}-{chr(LAST - 1)}])*")
CONJUNCTIONS = {
    **{"en": "and", "de": "und", "nl": "en", "sv": "och", "da": "og", "nb": "og", "no": "og", "fr": "et", "es": "y"},
    **{"pt": "e", "it": "e", "ca": "i", "ro": "și", "pl": "i", "cs": "a", "sk": "a", "sl": "in", "hr": "i", "fi": "ja"},
    **{"et": "ja", "hu": "és", "tr": "ve", "ru": "и", "uk": "і", "bg": "и", "el": "και"},
}
"""What a model reads for an & between words: hardly any has seen that sign."""
AMPERSAND = re.compile("(?<= )&(?= )")
FAMILIAR = str.maketrans("—“”‟«»[]\u00a0\n", '–"""""()  ')


ADDRESS = re.compile(r"@|://|^www\.|/")
"""In what a hyphen behind it would become a part of."""


def number_words(text: str) -> str:
    """A block's text, in which all words look the same, with each word by its number."""
    numbers = iter(range(FIRST, FIRST + len(text)))
    return "".join(chr(next(numbers)) if letter == WORD else letter for letter in text)


def is_word(letter: str) -> bool:
    return FIRST <= ord(letter) < LAST


@dataclass(frozen=True)
class Words:
    """The words of one sentence: what they show, the runs of them in the source, and the name of each run."""

    source: str
    shown: tuple[str, ...]
    runs: tuple[str, ...]
    names: tuple[str, ...]
    letter: str
    joining: str

    @staticmethod
    def of(source: str, shown: Sequence[str], joining: str = "&", attempt: int = 0) -> Words:
        """`source` decides the names: none may be there already. Another attempt gives others."""
        if not shown:
            return Words(source, (), (), (), "", joining)
        letters = LETTERS[attempt:] + LETTERS[:attempt]
        text = source + " ".join(shown)
        letter = next((one for one in letters if not re.search(rf"{one}\d", text)), letters[0])
        numbers = iter([number for number in NUMBERS if number not in text][attempt:])
        runs = tuple(RUN.findall(source))
        names = []
        for place, run in enumerate(runs, 1):
            number = next(numbers, None) if len(run) == 1 and is_count(shown[ord(run) - FIRST]) else None
            names.append(number or f"{letter}{place}")
        return Words(source, tuple(shown), runs, tuple(names), letter, joining)

    @property
    def named(self) -> dict[str, str]:
        """What each name stands for, as people read it."""
        return {name: self.show(run) for name, run in zip(self.names, self.runs, strict=True)}

    def again(self) -> Words:
        """The same words with other names."""
        return Words.of(self.source, self.shown, self.joining, 1)

    def show(self, inside: str) -> str:
        if not self.shown:
            return inside
        return "".join(self.shown[ord(letter) - FIRST] if is_word(letter) else letter for letter in inside)

    def veil(self, inside: str) -> str:
        named = inside if self._is_plain(inside) else "".join(name for _, name in self._named(inside))
        return named.translate(FAMILIAR)

    def _is_plain(self, inside: str) -> bool:
        """Whether a model reads a text as it is."""
        return not self.shown and "&" not in inside

    def _named(self, inside: str) -> Iterator[tuple[int, str]]:
        """The text in parts: how many characters each has, and how a model reads it."""
        place = 0
        while place < len(inside):
            if not self.shown or not is_word(inside[place]):
                yield 1, self.joining if AMPERSAND.match(inside, place) else inside[place]
                place += 1
                continue
            found = [n for n, run in enumerate(self.runs) if inside.startswith(run, place)]
            number = found[0] if found else next(n for n, run in enumerate(self.runs) if inside[place] in run)
            width = len(self.runs[number]) if found else 1
            yield width, self.names[number]
            place += width

    def unveil(self, text: str) -> str:
        """A model's answer as inside text: the first of each name is the word, another one of it is left out, and so
        is a name that there is not."""
        if not self.shown:
            return text
        seen: set[int] = set()
        known = {name: number for number, name in enumerate(self.names)}

        def word(found: re.Match[str]) -> str:
            number = known.get(found[2].replace(" ", ""))
            if number is None:
                digits = found[2][1:].strip()
                kept = not found[2][0].isdigit() and digits in self.source
                return found[1] + digits + found[3] if kept else ""
            if number in seen:
                return ""
            seen.add(number)
            run, tail = self.runs[number], found[3]
            if tail and ADDRESS.search(self.shown[ord(run[-1]) - FIRST]):  # nothing may cling to an address
                tail = " " if found[4] else ""
            return found[1] + run + tail

        numbers = [name for name in self.names if name.isdigit()]
        named = rf"(?<![A-Z0-9]){self.letter} ?\d+"  # it may cling to a word, as what it stands for did
        pattern = "|".join([named, *(rf"(?<![\w.,]){name}(?![.,]\d)" for name in numbers)])
        return re.sub(rf"( ?)({pattern})(?!\d)(-*)(?=(\w)?)", word, text).strip()

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
        if self._is_plain(inside):
            return tuple(spans)
        widths = [part for width, name in self._named(inside) for part in (len(name), *[0] * (width - 1))]
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


def calm(text: str) -> str:
    """Text in capital letters, which models have hardly seen, as a sentence."""
    return text[:1] + text[1:].lower() if is_shouted(text) else text


def is_shouted(text: str) -> bool:
    words = re.findall(r"[^\W\d_]{2,}", text)
    return text.isupper() and max(map(len, words), default=0) > 3 and len("".join(words)) > 5


def conjunction(language: str) -> str:
    """What a model of a language reads for an & between words."""
    return CONJUNCTIONS.get(re.split("[-_]", language.lower())[0], "&")
