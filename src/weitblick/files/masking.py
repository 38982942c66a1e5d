"""The carried spans of one sentence, and the names that a model reads in their place.

A sentence has three forms here:

inner   one private-use character (FIRST + number) for each carried span: the form that code works on
shown   with the spans themselves, as people read them and as a `Document` has them
masked  what a model reads: K1, K2, ... (or a number, for a span that stands for one), which models copy where they
        tear addresses and braces to pieces. A model that has learned symbols for them (⟦1⟧) reads those.

Spans that stand together have one name.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from weitblick.common.characters import base_language
from weitblick.text.base import NUMBERS as NUMBER_SYMBOLS
from weitblick.text.base import SPANS
from weitblick.text.carried import CARRIED_WORD as WORD
from weitblick.text.carried import FAMILIAR, SIGNS, SYMBOLS, Alphabet, Span, is_count
from weitblick.translation.alignment import Alignment

FIRST = ord(WORD) + 1
LAST = FIRST + 0x8000
LETTERS = "KGHJXDVZYWUFCBQ"  # the shipped model copies K1 best: of 192 names 81%, of G1 81%, of X1 72%
NUMBERS = ("37", "46", "58", "73", "84", "92")
RUN = re.compile(f"[{chr(FIRST)}-{chr(LAST - 1)}](?: ?[{chr(FIRST)}-{chr(LAST - 1)}])*")
TYPED = re.compile(f"[{WORD}-{chr(LAST - 1)}]")
CONJUNCTIONS = {
    **{"en": "and", "de": "und", "nl": "en", "sv": "och", "da": "og", "nb": "og", "no": "og", "fr": "et", "es": "y"},
    **{"pt": "e", "it": "e", "ca": "i", "ro": "și", "pl": "i", "cs": "a", "sk": "a", "sl": "in", "hr": "i", "fi": "ja"},
    **{"et": "ja", "hu": "és", "tr": "ve", "ru": "и", "uk": "і", "bg": "и", "el": "και"},
}
AMPERSAND = re.compile("(?<= )&(?= )")
ADDRESS = re.compile(r"@|://|^www\.|/")
"""In what a hyphen behind it would become a part of."""


@dataclass(frozen=True)
class Reading:
    """How a model reads text: the word for & in its language, what it reads for single characters, and its alphabet."""

    conjunction: str = "&"
    familiar: Mapping[int, str | int] = field(default_factory=lambda: FAMILIAR)
    alphabet: Alphabet | None = None

    @staticmethod
    def of(language: str, alphabet: Alphabet | None = None) -> Reading:
        """The reading of files and texts in a language; hardly any model has seen an & between words."""
        word = CONJUNCTIONS.get(base_language(language), "&")
        return Reading(word, FAMILIAR if alphabet is None else alphabet.familiar, alphabet)

    @staticmethod
    def as_is(alphabet: Alphabet) -> Reading:
        """The reading of corpora: nothing but carried spans is changed."""
        return Reading("&", {}, alphabet)


def number_words(text: str) -> str:
    """A block's text, in which all carried spans look the same, as inner text."""
    numbers = iter(range(FIRST, FIRST + len(text)))
    return "".join(chr(next(numbers)) if letter == WORD else letter for letter in text)


def inner_text(text: str, spans: Sequence[Span]) -> tuple[str, list[str]]:
    """A text with these spans carried, as inner text, and what is carried. Characters that stand for carried spans in
    inner text are carried as well, wherever a user has typed some."""
    within = {place for start, end in spans for place in range(start, end)}
    typed = [(found.start(), found.end()) for found in TYPED.finditer(text) if found.start() not in within]
    spans = sorted([*spans, *typed])
    parts, position = [], 0
    for number, (start, end) in enumerate(spans):
        parts += [text[position:start], chr(FIRST + number)]
        position = end
    return "".join([*parts, text[position:]]), [text[start:end] for start, end in spans]


def is_word(letter: str) -> bool:
    """Whether a character of an inner text stands for a carried span."""
    return FIRST <= ord(letter) < LAST


@dataclass(frozen=True)
class Mask:
    """A sentence's inner text, what its carried spans show, the runs of them, and the name of each run."""

    source: str
    shown: tuple[str, ...]
    runs: tuple[str, ...]
    names: tuple[str, ...]
    letter: str
    reading: Reading

    @staticmethod
    def of(source: str, shown: Sequence[str], reading: Reading, attempt: int = 0) -> Mask:
        """`source` decides the names: none may be there already. Another attempt gives others."""
        if not shown:
            return Mask(source, (), (), (), "", reading)
        letters = LETTERS[attempt:] + LETTERS[:attempt]
        text = source + " ".join(shown)
        letter = next((one for one in letters if not re.search(rf"{one} ?\d", text)), letters[0])
        numbers = [number for number in NUMBERS if number not in text][attempt:]
        spans: list[str] = []
        if attempt == 0 and reading.alphabet is not None and reading.alphabet.has_symbols:
            numbers, spans = list(NUMBER_SYMBOLS), list(SPANS)
        runs = tuple(RUN.findall(source))
        names = []
        for place, run in enumerate(runs, 1):
            counts = len(run) == 1 and is_count(shown[ord(run) - FIRST])
            chosen = numbers if counts and numbers else spans
            names.append(chosen.pop(0) if chosen else f"{letter}{place}")
        return Mask(source, tuple(shown), runs, tuple(names), letter, reading)

    @property
    def named(self) -> dict[str, str]:
        """What each name stands for, as people read it."""
        return {name: self.show(run) for name, run in zip(self.names, self.runs, strict=True)}

    def again(self) -> Mask:
        """The same sentence with other names."""
        return Mask.of(self.source, self.shown, self.reading, 1)

    def show(self, inner: str) -> str:
        """An inner text as people read it."""
        if not self.shown:
            return inner
        return "".join(self.shown[ord(letter) - FIRST] if is_word(letter) else letter for letter in inner)

    def mask(self, inner: str) -> str:
        """An inner text as a model reads it."""
        named = inner if self._is_plain(inner) else "".join(name for _, name in self._named(inner))
        return named.translate(self.reading.familiar)

    def _is_plain(self, inner: str) -> bool:
        """Whether a model reads a text character by character."""
        return not self.shown and "&" not in inner and len(inner.translate(self.reading.familiar)) == len(inner)

    def _named(self, inner: str) -> Iterator[tuple[int, str]]:
        """The text in parts: how many characters each has, and how a model reads it."""
        place = 0
        while place < len(inner):
            if not self.shown or not is_word(inner[place]):
                letter = self.reading.conjunction if AMPERSAND.match(inner, place) else inner[place]
                yield 1, letter.translate(self.reading.familiar)
                place += 1
                continue
            found = [n for n, run in enumerate(self.runs) if inner.startswith(run, place)]
            number = found[0] if found else next(n for n, run in enumerate(self.runs) if inner[place] in run)
            width = len(self.runs[number]) if found else 1
            name = self.names[number]
            if self._is_symbol(self.runs[number]):  # it clings to a word, but its name must not
                before, behind = inner[:place][-1:], inner[place + width : place + width + 1]
                name = " " * before.isalnum() + name + " " * behind.isalnum()
            yield width, name
            place += width

    def _is_symbol(self, run: str) -> bool:
        shown = self.show(run)
        return bool(SYMBOLS.fullmatch(shown) or SIGNS.fullmatch(shown) or TYPED.fullmatch(shown))

    def unmask(self, text: str) -> str:
        """A model's answer as inner text: the first of each name is its span; another one of it is left out, and so
        is a name that there is not."""
        text = re.sub(f"[{WORD}-{chr(LAST - 1)}]", "", text)
        if not self.shown:
            return text
        seen: set[int] = set()
        known = {name: number for number, name in enumerate(self.names)}

        def word(found: re.Match[str]) -> str:
            number = known.get(found[2].replace(" ", ""))
            if number is None:
                rest = found[2][1:].strip()
                kept = found[2][0] == self.letter and rest in self.source
                return found[1] + rest + found[3] if kept else ""
            if number in seen:
                return ""
            seen.add(number)
            run, before, tail = self.runs[number], found[1], found[3]
            if tail and ADDRESS.search(self.shown[ord(run[-1]) - FIRST]):  # nothing may cling to an address
                tail = " " if found[4] else ""
            at = self.source.index(run)
            if before and at and self.source[at - 1].isalnum() and self._is_symbol(run):
                before = ""
            return before + run + tail

        numbers = [name for name in self.names if name.isdigit()]
        named = rf"(?<![A-Z0-9]){self.letter} ?\d+|⟦#?\d+⟧"  # a letter may cling to a word, as what it stands for did
        pattern = "|".join([named, *(rf"(?<![\w.,]){name}(?![.,]\d)" for name in numbers)])
        return re.sub(rf"( ?)({pattern})(?!\d)(-*)(?=(\w)?)", word, text).strip()

    def find(self, text: str) -> str:
        """Shown text as inner text: of equal spans each takes the next place."""
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

    def begun(self, text: str) -> str:
        """What is missing of a carried span in which a shown text ends: behind *{dev* it may be *ice}*. One letter is
        the beginning of no span, nor is the end of a word."""
        spans = [self.shown[number] for number in self.missing(self.find(text))]
        longest = max(map(len, spans), default=1) - 1
        for length in range(min(len(text), longest), 0, -1):
            before, tail = text[:-length], text[-length:]
            if tail[0].isalnum() and (length == 1 or before[-1:].isalnum()):
                continue
            for span in spans:
                if span.startswith(tail) and span != tail:
                    return span[length:]
        return ""

    def missing(self, inner: str) -> list[int]:
        """The numbers of the carried spans that an inner text does not have."""
        return [number for number in range(len(self.shown)) if chr(FIRST + number) not in inner]

    def inner_alignment(self, source: str, target: str, alignment: Alignment) -> Alignment:
        """The alignment of two masked texts, counted in their inner texts."""
        return Alignment(
            self._inner_spans(source, alignment.source),
            self._inner_spans(target, alignment.target),
            alignment.weights,
        )

    def _inner_spans(self, inner: str, spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        if self._is_plain(inner):
            return tuple(spans)
        widths = [part for width, name in self._named(inner) for part in (len(name), *[0] * (width - 1))]
        places = list(accumulate(widths, initial=0))
        return tuple((bisect_right(places, start) - 1, bisect_left(places, end)) for start, end in spans)


def insert_words(source: str, target: str, numbers: Sequence[int], alignment: Alignment) -> str:
    """The inner target with spans that a model has lost, each beside what its neighbours in the source became."""
    placed = [(_place(source, target, number, alignment), number) for number in numbers]
    for (at, before, behind), number in sorted(placed, key=lambda one: (one[0][0], one[1]), reverse=True):
        target = target[:at] + before + chr(FIRST + number) + behind + target[at:]
    return target


def _place(source: str, target: str, number: int, alignment: Alignment) -> tuple[int, str, str]:
    """Where a lost span goes, and the spaces around it."""
    at = source.index(chr(FIRST + number))
    before = [i for i, (_, end) in enumerate(alignment.source) if end <= at and _spoken(source, alignment.source[i])]
    spaced = bool(at) and source[at - 1].isspace()
    if before and alignment.target:
        heaviest = int(np.argmax(alignment.weights[:, before[-1]]))
        return alignment.target[heaviest][1], " " if spaced else "", ""
    return 0, "", " " if source[at + 1 : at + 2].isspace() and target else ""


def _spoken(text: str, span: tuple[int, int]) -> bool:
    return any(letter.isalnum() or is_word(letter) for letter in text[span[0] : span[1]])


def in_small_letters(text: str) -> str:
    """Text in capital letters, which models have hardly seen, as a sentence."""
    return text[:1] + text[1:].lower() if is_in_capitals(text) else text


def is_in_capitals(text: str) -> bool:
    """Whether a text is written in capital letters and is more than an abbreviation."""
    words = re.findall(r"[^\W\d_]{2,}", text)
    return text.isupper() and max(map(len, words), default=0) > 3 and len("".join(words)) > 5
