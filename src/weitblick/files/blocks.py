"""The blocks of text that a file is made of, and the codes (tags, breaks, placeholders) in that text.

A block is a cue, a paragraph, a cell, a message: a stretch of a file whose text can be replaced. Its codes are what
must survive there: tags, runs, line breaks, placeholders. Every format makes blocks; all the rest is one mechanism.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from weitblick.documents.document import TargetStatus
from weitblick.text.carried import CARRIED_WORD, SIGNS, Span, carried_spans, foreign_spans
from weitblick.translation.alignment import Alignment

WORD = CARRIED_WORD  # holds the place of a code that reads like a word
MOST_NESTED = 100  # pairs within pairs: beyond, no text is written by people
BREAK = "\n"  # holds the place of a code that ends a line, and of the border between two blocks

TAG = re.compile(r"</?([A-Za-z][\w.:-]*)(?:\s[^<>]*)?/?>")
CLINGING = re.compile(rf"{SIGNS.pattern}|{TAG.pattern}|'[{{}}|#]+'")  # signs, tags, quoted braces
VOID = re.compile(r"</?(?:br|hr|wbr|img)\b[^<>]*>|<[^<>]*/>", re.IGNORECASE)

Kind = Literal["open", "close", "alone", "word", "break"]


@dataclass(frozen=True, slots=True)
class Code:
    """Something in a block's text that is no text.

    kind    open and close are a pair; alone stands between two characters; word and break take the place of one
    raw     as it stands in the file; None: as the block writes the text `shown`
    shown   a word's text in the sentences that people and models read; the text of what has no `raw`
    style   open: how text inside is written, where the format wants to know (see `Block.write`)
    ordered alone: it never changes places with another one of its kind (times)
    """

    kind: Kind
    raw: str | None = ""
    shown: str = ""
    style: str | None = None
    at: int = 0
    ordered: bool = False

    @property
    def width(self) -> int:
        """How many characters of the block's text a code takes."""
        return 1 if self.kind in ("word", "break") else 0

    @property
    def is_sign(self) -> bool:
        """Whether it is a sign of the text (*, _) that clings to a word, which sentences do not show."""
        return self.kind == "alone" and self.raw is None and SIGNS.fullmatch(self.shown) is not None


def plain(text: str, style: str | None) -> str:
    """Text as it is: formats without escapes and styles."""
    return text


Edit = tuple[int, int, str]
"""The characters [start, end) of a part of a file, and what is written in their place."""
Said = Literal["draft", "confirmed", "reviewed"]
"""What a file says of a translation: that somebody should still look at it, that a human stands by it, or that another
one has reviewed it as well."""


@dataclass(frozen=True)
class Marking:
    """How a file says what a translation is: `edits` in place of those of a block, and `mark` over what it writes.
    `alone` are the edits that say so where the translation stays as it is."""

    edits: tuple[Edit, ...] = ()
    mark: Callable[[str], str] = str
    alone: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Note:
    """What somebody says about a unit of a file: a translator, or whoever wrote the source."""

    text: str
    author: str | None = None


@dataclass(frozen=True, eq=False)
class Notes:
    """The notes of a unit of a file, and the edits by which it has others. Blocks of one unit share them."""

    given: tuple[Note, ...]
    write: Callable[[Sequence[Note]], list[Edit]]


@dataclass(frozen=True)
class Block:
    """A stretch of a file whose text can be replaced: a cue, a paragraph, a cell, a message.

    start, end: the characters of the file (of its part, in packages) that the block's text takes the place of
    text, codes: what stands there, white space at the edges included
    follows: a sentence may run on from the block before; wrapped: line ends in it have no meaning
    target, status: a translation that the file has already
    given: what stands in the place of the translation, finished or not: its text and codes
    write: a stretch of text as the file writes it, in a style; fit: line breaks in place of spaces, for layouts
    seconds: how long it is seen
    finish: the whole block, when all of it is written; edits: what else changes in the file then
    said: what the file says of the translation that it has already
    confirmed, reviewed: how the file says that a human has confirmed the translation, and that another one has reviewed
    it; None if it cannot say so; drafted: how it says that of a translation that stays as it is nobody is sure any more
    notes: what is said about it; None if the file has no place for that
    by_rule: it is a number, a date or a code, which a rule translates and no model
    bilingual: the file has room for source and target, so a target is written even if it is the source
    """

    start: int
    end: int
    text: str
    codes: tuple[Code, ...] = ()
    part: str = ""
    follows: bool = False
    wrapped: bool = False
    target: str | None = None
    status: TargetStatus | None = None
    id: str | None = None
    write: Callable[[str, str | None], str] = plain
    fit: Callable[[str], str] | None = None
    seconds: float | None = None
    finish: Callable[[str], str] | None = None
    bilingual: bool = False
    edits: tuple[tuple[int, int, str], ...] = ()
    confirmed: Marking | None = None
    reviewed: Marking | None = None
    drafted: Marking | None = None
    said: Said | None = None
    notes: Notes | None = None
    given: tuple[str, tuple[Code, ...]] | None = None
    by_rule: bool = False

    @property
    def reads(self) -> str:
        """The text as people read it."""
        shown = iter(code.shown for code in self.codes if code.kind == "word")
        return "".join(next(shown) if letter == WORD else letter for letter in self.text)


@dataclass
class Pieces:
    """Collects text and codes, in order. With `collapse`, white space is one space, as in HTML and Markdown."""

    collapse: bool = False
    _text: list[str] = field(default_factory=list)
    _codes: list[Code] = field(default_factory=list)
    _length: int = 0
    _spaced: bool = False

    def text(self, text: str) -> None:
        """Text; what is carried in it (addresses, placeholders, identifiers) becomes a code."""
        spans = list(carried_spans(text))
        tags = _paired([text[start:end] for start, end in spans])
        position = 0
        for (start, end), paired in zip(spans, tags, strict=True):
            self._add(text[position:start])
            clings = text[max(0, start - 1) : start].isalnum() or text[end : end + 1].isalnum()
            self.code(Code(paired or _kind_of(text[start:end], clings), None, text[start:end]))
            position = end
        self._add(text[position:])

    def _add(self, text: str) -> None:
        if self.collapse:
            text = " ".join(_words(text))
            if self._spaced and text.startswith(" "):
                text = text[1:]
                self._space_behind_mark()
        if text:
            self._text.append(text)
            self._length += len(text)
            self._spaced = text[-1].isspace()

    def _space_behind_mark(self) -> None:
        """A mark with spaces on both sides (an image) keeps the second, which the text around it has no use for."""
        last = self._codes[-1] if self._codes else None
        if last is not None and last.kind == "alone" and last.raw and last.at == self._length:
            self._codes[-1] = replace(last, raw=last.raw + " ")

    def code(self, code: Code) -> None:
        """A code, at the end of what has been collected."""
        if code.kind == "word" and code.shown.startswith("⟦") and self._text and self._text[-1][-1].isalnum():
            code = replace(code, kind="alone")  # it clings to a word, and is none itself
        self._codes.append(replace(code, at=self._length))
        if code.width:
            self._text.append(WORD if code.kind == "word" else BREAK)
            self._length += 1
            self._spaced = code.kind == "break"

    @property
    def has_text(self) -> bool:
        """Whether there is a letter to translate."""
        return any(any(map(str.isalpha, text)) for text in self._text)

    def number(self) -> str | None:
        """The text, if it has digits and no word, and nothing in it that is no text; None else."""
        if self.has_text or any(code.raw is not None or code.kind != "word" for code in self._codes):
            return None
        shown = iter(code.shown for code in self._codes)
        text = "".join(next(shown) if letter == WORD else letter for letter in "".join(self._text))
        return text if any(map(str.isdigit, text)) else None

    def content(self) -> tuple[str, tuple[Code, ...]]:
        """The text, and the codes, of which those that open without closing, or close without opening, stand alone."""
        text, codes = "".join(self._text), balanced(self._codes)
        return carry(text, codes, foreign_spans(text))


def carry(text: str, codes: Sequence[Code], spans: Sequence[Span]) -> tuple[str, tuple[Code, ...]]:
    """The text and codes of a block with more of its text carried: each span (but one that a code cuts) is a word."""
    kept = list(codes)
    for start, end in reversed(spans):
        if not any(start < code.at < end for code in kept):
            word = Code("word", None, text[start:end], at=start)
            before = [code for code in kept if code.at <= start]
            behind = [replace(code, at=code.at - (end - start) + 1) for code in kept if code.at > start]
            text, kept = text[:start] + WORD + text[end:], [*before, word, *behind]
    return text, tuple(kept)


def _words(text: str) -> list[str]:
    """The text at its white space (not at no-break spaces), empty strings at the ends where it has some there."""
    words = text.translate(_WHITE).split(" ")
    kept = [word for word in words if word]
    if not kept:
        return ["", ""] if text else []
    return [""] * (words[0] == "") + kept + [""] * (words[-1] == "")


_WHITE = str.maketrans("\n\r\t\f", "    ")


def _paired(spelled: Sequence[str]) -> list[Kind | None]:
    """Of what is spelled out in a text, the tags that open and close."""
    kinds: list[Kind | None] = [None] * len(spelled)
    opened: list[tuple[str, int]] = []
    for number, one in enumerate(spelled):
        tag = TAG.fullmatch(one)
        if tag is None or one.endswith("/>"):
            continue
        if not one.startswith("</"):
            opened.append((tag[1], number))
        elif tag[1] in [name for name, _ in opened]:
            while opened[-1][0] != tag[1]:
                opened.pop()
            kinds[opened.pop()[1]], kinds[number] = "open", "close"
    return kinds


def _kind_of(carried: str, clings: bool) -> Kind:
    """Line ends are marks; a sign or a tag that clings to a word is no word of its own."""
    if VOID.fullmatch(carried) or (clings and CLINGING.fullmatch(carried)):
        return "alone"
    return "word"


def balanced(codes: Iterable[Code]) -> list[Code]:
    """Codes of which those that open without closing, or close without opening, stand alone."""
    found = list(codes)
    opened: list[int] = []
    paired: set[int] = set()
    for number, code in enumerate(found):
        if code.kind == "open":
            opened.append(number)
        elif code.kind == "close":
            if len(opened) > MOST_NESTED:
                raise RecursionError
            depth = next((d for d in range(len(opened) - 1, -1, -1) if _match(found[opened[d]], code)), None)
            if depth is not None:
                paired |= {opened[depth], number}
                del opened[depth:]
    return [
        replace(code, kind="alone") if code.kind in ("open", "close") and number not in paired else code
        for number, code in enumerate(found)
    ]


def _match(opening: Code, closing: Code) -> bool:
    """Whether two halves may be a pair: both are of the format, or both spelled out in its text."""
    return (opening.raw is None) == (closing.raw is None)


# Where a translated sentence is cut when its source runs over several lines, cues or blocks.

PAUSE = re.compile(r"[,;:.!?…–—)\]»”\"]")
PAUSE_WORTH = 0.7  # words that may stand on the wrong side for a cut at a pause
SHORT = 3  # letters of words that belong to the next: articles, prepositions, pronouns, in most languages with spaces
LENGTH_COST = 0.25  # words that may stand on the wrong side for every character of difference, in tenths of a line


def cut(text: str, alignment: Alignment | None, source_cuts: Sequence[int], shares: Sequence[float]) -> list[int]:
    """The places of `text` that match `source_cuts`, in order: each is a space that becomes a line end.

    `shares` says how much of the text each segment should get. Words go where their source words are (unless there is
    no alignment: a paragraph that is merely wrapped), cuts are drawn to pauses, lengths to their shares. No segment is
    empty while there are spaces enough; where there are not, the last places are the end of the text.
    """
    spaces = [place for place, letter in enumerate(text) if letter == " " and 0 < place < len(text) - 1]
    wanted = len(source_cuts)
    if len(spaces) <= wanted:
        return (spaces + [len(text)] * wanted)[:wanted]
    gain = _gains(text, spaces, alignment, source_cuts)  # [segments, stretches between spaces]
    summed = np.concatenate([np.zeros((wanted + 1, 1)), gain.cumsum(1)], 1)
    edges = np.array([0, *spaces, len(text)])
    worth = np.array([_worth(text, place) for place in spaces])
    scale = LENGTH_COST * 10 / max(10.0, len(text) / (wanted + 1))

    def segment(number: int, first: int, last: np.ndarray) -> np.ndarray:
        length = edges[last] - edges[first]
        gained: np.ndarray = summed[number, last] - summed[number, first]
        gained -= scale * np.abs(length - shares[number] * len(text))
        return gained

    places = len(edges) - 1
    best = np.full((wanted + 1, places + 1), -np.inf)
    back = np.zeros((wanted + 1, places + 1), dtype=int)
    best[0, 1:] = segment(0, 0, np.arange(1, places + 1))
    for number in range(1, wanted + 1):
        for first in range(number, places):
            last = np.arange(first + 1, places + 1)
            value = best[number - 1, first] + worth[first - 1] + segment(number, first, last)
            better = value > best[number, last]
            best[number, last[better]] = value[better]
            back[number, last[better]] = first
    cuts, place = [], places
    for number in range(wanted, 0, -1):
        place = int(back[number, place])
        cuts.append(int(edges[place]))
    return cuts[::-1]


def _gains(text: str, spaces: list[int], alignment: Alignment | None, source_cuts: Sequence[int]) -> np.ndarray:
    """[segments, stretches] of the words of each stretch between spaces, how many come from each segment."""
    gain = np.zeros((len(source_cuts) + 1, len(spaces) + 1))
    if alignment is None or not alignment.source:
        return gain
    segment_of = np.searchsorted(source_cuts, [start for start, _ in alignment.source], side="right")
    stretch_of = np.searchsorted(spaces, [start for start, _ in alignment.target], side="right")
    for row, stretch in zip(alignment.weights, stretch_of, strict=True):
        np.add.at(gain[:, stretch], segment_of, row)
    return gain


def _worth(text: str, space: int) -> float:
    if PAUSE.match(text[space - 1]):
        return PAUSE_WORTH
    return -PAUSE_WORTH if clings(text, space) else 0.0


def clings(text: str, space: int) -> bool:
    """Whether the word before a space belongs to the one behind it. That short ones do holds for scripts with capital
    letters; of others only pauses and lengths are known."""
    word = text[:space].rpartition(" ")[2]
    return len(word) <= SHORT and word.isalpha() and word.lower() != word.upper()
