"""What a file is made of, to a translator: blocks of text, and in their text codes that are no text.

A block is a cue, a paragraph, a cell, a message: a stretch of a file whose text can be replaced. Its codes are what
must survive there: tags, runs, line breaks, placeholders. Every format makes blocks; all the rest is one mechanism.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from weitblick.documents.document import TargetStatus
from weitblick.formats.protection import SYMBOLS, foreign_spans, protected_spans

WORD = "\U000f0000"  # holds the place of a code that reads like a word
MOST_NESTED = 100  # pairs within pairs: beyond, no text is written by people
BREAK = "\n"  # holds the place of a code that ends a line, and of the border between two blocks

TAG = re.compile(r"</?([A-Za-z][\w.:-]*)(?:\s[^<>]*)?/?>")
CLINGING = re.compile(rf"{SYMBOLS.pattern}|{TAG.pattern}|'[{{}}|#]+'")  # signs, tags, quoted braces
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
        return 1 if self.kind in ("word", "break") else 0


def plain(text: str, style: str | None) -> str:
    return text


@dataclass(frozen=True)
class Block:
    """start, end: the characters of the file (of its part, in packages) that the block's text takes the place of
    text, codes: what stands there, white space at the edges included
    follows: a sentence may run on from the block before; wrapped: line ends in it have no meaning
    target, status: a translation that the file has already
    write: a stretch of text as the file writes it, in a style; fit: line breaks in place of spaces, for layouts
    seconds: how long it is seen
    finish: the whole block, when all of it is written; edits: what else changes in the file then
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

    @property
    def reads(self) -> str:
        """The text as people read it."""
        shown = iter(code.shown for code in self.codes if code.kind == "word")
        return "".join(next(shown) if letter == WORD else letter for letter in self.text)


@dataclass
class Pieces:
    """Collects text and codes, in order. With `collapse`, white space is one space, as in HTML and Markdown."""

    collapse: bool = False
    protect: bool = True
    _text: list[str] = field(default_factory=list)
    _codes: list[Code] = field(default_factory=list)
    _length: int = 0
    _spaced: bool = False

    def text(self, text: str) -> None:
        """Text; what in it must not be translated (addresses, placeholders, identifiers) becomes a code."""
        spans = list(protected_spans(text)) if self.protect else []
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
        if code.kind == "word" and code.shown.startswith("⟦") and self._text and self._text[-1][-1].isalnum():
            code = replace(code, kind="alone")  # it clings to a word, and is none itself
        self._codes.append(replace(code, at=self._length))
        if code.width:
            self._text.append(WORD if code.kind == "word" else BREAK)
            self._length += 1
            self._spaced = code.kind == "break"

    @property
    def has_text(self) -> bool:
        return any(any(map(str.isalpha, text)) for text in self._text)

    def content(self) -> tuple[str, tuple[Code, ...]]:
        """The text, and the codes, of which those that open without closing, or close without opening, stand alone."""
        text, codes = "".join(self._text), balanced(self._codes)
        for start, end in reversed(foreign_spans(text) if self.protect else []):
            if not any(start < code.at < end for code in codes):
                word = Code("word", None, text[start:end], at=start)
                before = [code for code in codes if code.at <= start]
                behind = [replace(code, at=code.at - (end - start) + 1) for code in codes if code.at > start]
                text, codes = text[:start] + WORD + text[end:], [*before, word, *behind]
        return text, tuple(codes)


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


def _kind_of(protected: str, clings: bool) -> Kind:
    """Line ends are marks; a sign or a tag that clings to a word is no word of its own."""
    if VOID.fullmatch(protected) or (clings and CLINGING.fullmatch(protected)):
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
