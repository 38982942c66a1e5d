"""Strings of Excel: what cells and notes say, plain or in runs of several formats."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

from weitblick.files.blocks import Block, Code
from weitblick.files.markup import ends_of, escape, text_of, tokens_of, with_attribute
from weitblick.files.office import Piece, styled
from weitblick.files.ooxml import escaped, lines_of, pieces_of, unescaped

CELL_LIMIT = 32_767  # characters of a cell
QUOTED = r"(?:[^<>\"']|\"[^\"]*\"|'[^']*')*?"  # attributes
CELL = re.compile(
    rf"<(?P<p>(?:[\w.-]+:)?)c(?=\s)(?P<attributes>{QUOTED})(?:/>|>(?P<inside>.*?)</(?P=p)c\s*>)", re.DOTALL
)
TYPE = re.compile(r"\st=[\"'](\w+)[\"']")
PLACE = re.compile(r"\sr=[\"']([A-Z]+)(\d+)[\"']")
INDEX = re.compile(r"<(?:[\w.-]+:)?v>\s*(\d+)\s*</")
PLAIN = re.compile(r"\s*(<(?:[\w.-]+:)?t(?:\s[^<>]*)?(?<!/)>)([^<]*)</(?:[\w.-]+:)?t>\s*")
TAG = re.compile(r"<[^>]*>")


def element(name: str) -> re.Pattern[str]:
    """Finds elements of a name that do not nest: their prefix, and what is in them (None if nothing can be)."""
    return re.compile(rf"<((?:[\w.-]+:)?){name}(?=[\s/>]){QUOTED}(?:/>|>(.*?)</\1{name}\s*>)", re.DOTALL)


SHARED, INLINE, NOTE_TEXT = element("si"), element("is"), element("text")


def length(text: str) -> int:
    """The characters of a text as Excel counts them."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True)
class Cell:
    """A cell of a sheet: its column and row (0 if it has no place), its type, and what is inside, from `start` on."""

    column: str
    row: int
    type: str
    inside: str
    start: int

    @property
    def place(self) -> str:
        """As people name it: B3."""
        return f"{self.column}{self.row}" if self.row else "?"

    @property
    def index(self) -> int | None:
        """The number of its shared string, if it has one."""
        found = INDEX.search(self.inside) if self.type == "s" else None
        return int(found[1]) if found else None


def cells_of(sheet: str) -> Iterator[Cell]:
    """The cells of a sheet that are not empty, in their order."""
    for found in CELL.finditer(sheet):
        if found["inside"]:
            kind, place = TYPE.search(found["attributes"]), PLACE.search(found["attributes"])
            column, row = (place[1], int(place[2])) if place else ("", 0)
            yield Cell(column, row, kind[1] if kind else "n", found["inside"], found.start("inside"))


def strings_of(text: str, kind: re.Pattern[str]) -> list[String]:
    """The strings of a part: shared ones, those inside of cells, or those of notes."""
    return [
        String(text, found.start(2), found.end(2)) if found[2] is not None else String(text, found.end(), found.end())
        for found in kind.finditer(text)
    ]


class String:
    """A string, at [start, end) of a part."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.start, self.end = start, end
        self._raw = text[start:end]

    @cached_property
    def _pieces(self) -> list[tuple[str, str, str]]:
        """Each run: its formatting as it stands, its tag of text, and the text, as XML resolves it. Reading aids (rPh)
        are none."""
        if plain := PLAIN.fullmatch(self._raw):
            return [("", plain[1], html.unescape(plain[2]))]
        tokens = tokens_of(self._raw)
        ends = ends_of(tokens)
        found, number, style = [], 0, ""
        while number < len(tokens):
            token, name = tokens[number], tokens[number].name.rpartition(":")[2]
            last = ends.get(number, number)
            if name == "r" and token.kind == "open":
                style = ""
            elif name == "rPr" and token.kind in ("open", "empty"):
                style = self._raw[token.start : tokens[last].end]
                number = last
            elif name == "rPh":
                number = last
            elif name == "t" and token.kind == "open":
                found.append((style, token.raw, "".join(map(text_of, tokens[number : last + 1]))))
                number = last
            number += 1
        return found

    @cached_property
    def is_plain(self) -> bool:
        """Whether it has no runs."""
        return not re.search(r"<(?:[\w.-]+:)?r[\s>]", self._raw)

    @cached_property
    def plain_text(self) -> str:
        """What it says."""
        return unescaped("".join(text for *_, text in self._pieces))

    @cached_property
    def _span(self) -> tuple[int, int]:
        """Where its runs or its text stand, without what is behind them."""
        tokens = tokens_of(self._raw)
        ends = ends_of(tokens)
        top, number = [], 0
        while number < len(tokens):
            if tokens[number].name.rpartition(":")[2] in ("t", "r", "rPh"):
                top.append((tokens[number].start, tokens[ends.get(number, number)].end))
            number = ends.get(number, number) + 1
        return (self.start + top[0][0], self.start + top[-1][1]) if top else (self.start, self.end)

    def block(self, part: str, id: str, author: str | None = None) -> Block | None:
        """The string as a block; None if there is nothing to translate. A run that names the author stays as it is."""
        if not self._pieces:
            return None
        prefix = self._pieces[0][1].removeprefix("<").partition("t")[0] if ":" in self._pieces[0][1] else ""
        start, end = self._span
        original = self._raw[start - self.start : end - self.start]
        opening = self._pieces[0][1]

        def finish(raw: str) -> str:
            if length(unescaped(html.unescape(TAG.sub("", raw)))) > CELL_LIMIT:
                return original
            return f"{_spaced(opening, raw)}{raw}</{prefix}t>" if self.is_plain else raw

        if self.is_plain:
            collected = pieces_of(self._pieces[0][2])
        else:
            collected = styled(list(self._styled(prefix, author)), self._base)
        if not collected.has_text:
            return None
        write = escaped if self.is_plain else _writer(prefix, self._base)
        return Block(start, end, *collected.content(), part=part, id=id, write=write, finish=finish)

    @cached_property
    def _base(self) -> str:
        """The formatting that most of it has."""
        sizes: Counter[str] = Counter()
        for style, _, text in self._pieces:
            sizes[style] += len(text)
        return max(sizes, key=sizes.__getitem__)

    def _styled(self, prefix: str, author: str | None) -> Iterator[Piece]:
        for number, (style, _, text) in enumerate(self._pieces):
            if number == 0 and author and text.strip() == f"{author}:":
                yield "", Code("alone", _run(prefix, style, escape(text))), style
                continue
            for one in lines_of(text, partial(_run, prefix, style)):
                yield (one, None, style) if isinstance(one, str) else ("", one, style)

    def written(self, new: str) -> str:
        """A plain string that says something else, as it stands in its part."""
        start, end = self._span
        opening = self._pieces[0][1]
        close = "</" + opening[1:].split()[0].rstrip(">") + ">"
        before, behind = self._raw[: start - self.start], self._raw[end - self.start :]
        return f"{before}{_spaced(opening, new)}{escaped(new)}{close}{behind}"


def _run(prefix: str, style: str, raw: str) -> str:
    return f'<{prefix}r>{style}<{prefix}t xml:space="preserve">{raw}</{prefix}t></{prefix}r>'


def _writer(prefix: str, base: str) -> Callable[[str, str | None], str]:
    """Writes text as a run, in its own style or in `base`."""
    return lambda text, style: _run(prefix, base if style is None else style, escaped(text))


def _spaced(opening: str, text: str) -> str:
    """The tag of a text, which says so if white space at its edges counts."""
    return with_attribute(opening, "xml:space", "preserve") if text != text.strip() else opening
