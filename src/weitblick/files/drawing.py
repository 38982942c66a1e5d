"""Text in drawings: paragraphs of slides, notes, text boxes and SmartArt, and the titles and strings of charts.

As in Word, a paragraph's runs of the most common formatting (but a link) are plain text, and runs of another one are
pairs around theirs; equal neighbours are one. Elements are known by their names without prefix.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import count

from weitblick.files.blocks import Block, Code, Pieces
from weitblick.files.markup import Token, ends_of, text_of, tokens_of
from weitblick.files.office import Piece, styled
from weitblick.files.ooxml import escaped, lines_of, pieces_of, unescaped

NO_FORMAT = re.compile(r"\s(?:lang|altLang|dirty|err|noProof|smtClean|smtId|bmk)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
NO_STYLE = re.compile(r"<([\w.:-]+)\s*(?:/>|>\s*</\1\s*>)")
RAISED = re.compile(r"\sbaseline=[\"']-?[1-9]")
CACHE = re.compile(r"<((?:[\w.-]+:)?(?:strCache|multiLvlStrCache|strLit))(?=[\s>])[^>]*>(.*?)</\1\s*>", re.DOTALL)
VALUE = re.compile(r"<((?:[\w.-]+:)?v)>([^<]*)</\1\s*>")
LITERAL = re.compile(r"(?:[\w.-]+:)?strLit")


class Drawing:
    """An XML part with paragraphs of text in it."""

    def __init__(self, name: str, text: str, left: Collection[str] = ()) -> None:
        """`left`: kinds of placeholders (footers, numbers) whose text is left alone."""
        self.name, self.text, self.left = name, text, left
        self.tokens = tokens_of(text)
        self.ends = ends_of(self.tokens)

    def local(self, number: int) -> str:
        """The name of a token's element, without its prefix."""
        return self.tokens[number].name.rpartition(":")[2]

    def paragraphs(self) -> Iterator[int]:
        """The tokens that open the paragraphs."""
        skip_to = -1
        for number, token in enumerate(self.tokens):
            if number <= skip_to or token.kind != "open" or number not in self.ends:
                continue
            name = self.local(number)
            if name == "p":
                yield number
            elif name == "sp" and self.left and self._placeholder(number) in self.left:
                skip_to = self.ends[number]

    def _placeholder(self, shape: int) -> str | None:
        for number in range(shape + 1, self.ends[shape]):
            if self.local(number) == "ph" and self.tokens[number].kind in ("open", "empty"):
                return self.tokens[number].attributes.get("type", "obj")
            if self.local(number) == "txBody":
                break
        return None

    def blocks(self) -> Iterator[Block]:
        """The paragraphs that have text."""
        for number in self.paragraphs():
            paragraph = Paragraph(self, number)
            sizes = Counter({style: 0 for _, code, style in paragraph.pieces if code is None})
            for text, code, style in paragraph.pieces:
                sizes[style] += len(text) if code is None else 0
            base = max(sizes, key=lambda style: ("hlinkClick" not in (style or ""), sizes[style]), default="") or ""
            collected: Pieces = styled(paragraph.pieces, base)
            if collected.has_text:
                yield Block(*paragraph.span, *collected.content(), part=self.name, write=paragraph.writer(base))

    def plain_text(self, number: int) -> str:
        """The text of a paragraph as one string, lines parted by line ends."""
        pieces = Paragraph(self, number).pieces
        return "".join(
            "\n" if code and code.kind == "break" else code.shown if code else text for text, code, _ in pieces
        )

    def with_texts(self, new: Mapping[str, str]) -> str:
        """The part with paragraphs that say what `new` knows saying something else, each in its main formatting."""
        out, position = [], 0
        for number in self.paragraphs():
            before = self.plain_text(number)
            if new.get(before, before) == before:
                continue
            paragraph = Paragraph(self, number)
            style = max((piece for piece in paragraph.pieces if piece[1] is None), key=lambda piece: len(piece[0]))[2]
            write, line = paragraph.writer(style or ""), f"<{paragraph.prefix}br/>"
            start, end = paragraph.span
            out += [
                self.text[position:start],
                line.join(write(one, None) if one else "" for one in new[before].split("\n")),
            ]
            position = end
        return "".join([*out, self.text[position:]])


class Paragraph:
    """The text of one paragraph of a drawing, and everything else in it as codes."""

    def __init__(self, drawing: Drawing, number: int) -> None:
        self.drawing, self.prefix = drawing, drawing.tokens[number].name[:-1]
        self._names = count(1)
        end = drawing.ends[number]
        children = self._children(number, end)
        start, stop = drawing.tokens[number].end, drawing.tokens[end].start
        if children and drawing.local(children[0]) == "pPr":
            start = drawing.tokens[drawing.ends[children.pop(0)]].end
        if children and drawing.local(children[-1]) == "endParaRPr":
            stop = drawing.tokens[children.pop()].start
        self.span = start, stop
        self.pieces: list[Piece] = [piece for child in children for piece in self._pieces(child)]
        self._mark_raised()

    def writer(self, base: str) -> Callable[[str, str | None], str]:
        """Writes text as a run, in its own style or in `base`."""

        def write(content: str, style: str | None) -> str:
            return self._run(base if style is None else style, escaped(content))

        return write

    def _run(self, style: str, raw: str) -> str:
        return f"<{self.prefix}r>{style}<{self.prefix}t>{raw}</{self.prefix}t></{self.prefix}r>"

    def _children(self, number: int, end: int) -> list[int]:
        found, place = [], number + 1
        while place < end:
            if self.drawing.tokens[place].kind in ("open", "empty"):
                found.append(place)
            place = self.drawing.ends.get(place, place) + 1
        return found

    def _pieces(self, child: int) -> Iterator[Piece]:
        drawing, name = self.drawing, self.drawing.local(child)
        last = drawing.ends[child]
        raw = drawing.text[drawing.tokens[child].start : drawing.tokens[last].end]
        if name == "r":
            style = self._style(child, last)
            for inside in self._children(child, last):
                if drawing.local(inside) == "t":
                    text = "".join(map(text_of, drawing.tokens[inside : drawing.ends[inside] + 1]))
                    for one in lines_of(text, lambda end: self._run(style, end)):
                        yield (one, None, style) if isinstance(one, str) else ("", one, style)
        elif name == "br":
            yield "", Code("break", raw), None
        elif name in ("fld", "AlternateContent", "m", "oMath", "oMathPara"):
            yield "", Code("word", raw, self._shown(drawing.tokens[child : last + 1])), None
        else:
            yield "", Code("alone", raw), None

    def _style(self, run: int, end: int) -> str:
        for child in self._children(run, end):
            if self.drawing.local(child) == "rPr":
                first, last = self.drawing.tokens[child], self.drawing.tokens[self.drawing.ends[child]]
                style = NO_FORMAT.sub("", first.raw) + self.drawing.text[first.end : last.end]
                return "" if NO_STYLE.fullmatch(style) else style
        return ""

    def _shown(self, tokens: list[Token]) -> str:
        """What a field shows, or a formula in its first form."""
        inside = []
        for number, token in enumerate(tokens):
            if token.name.endswith("Fallback"):
                break
            if token.kind == "text" and tokens[number - 1].name.rpartition(":")[2] == "t":
                inside.append(text_of(token))
        return " ".join("".join(inside).split()) or f"⟦{next(self._names)}⟧"

    def _mark_raised(self) -> None:
        """Raised text behind a word (a note, the 2 of CO2) is a mark; inside a word (the 2 of H2O) it is text."""
        for number, (text, code, style) in enumerate(self.pieces):
            if code is None and style and RAISED.search(style) and not any(map(str.isalpha, text)):
                behind = self.pieces[number + 1][0] if number + 1 < len(self.pieces) else ""
                if not behind[:1].isalnum():
                    self.pieces[number] = "", Code("alone", self._run(style, escaped(text))), style


# Charts: paragraphs of titles and labels, and the strings of series and categories, of which a chart keeps a copy.


def chart_strings(text: str) -> list[tuple[int, int, str, bool]]:
    """Where strings of series and categories stand in a chart, what they say, and whether the chart itself is all that
    has them (none are cells)."""
    return [
        (value.start(2), value.end(2), html.unescape(value[2]), LITERAL.fullmatch(cache[1]) is not None)
        for cache in CACHE.finditer(text)
        for value in VALUE.finditer(text, cache.start(2), cache.end(2))
    ]


def string_block(start: int, end: int, string: str, part: str) -> Block | None:
    """The block of a string, each of which is translated where it first stands."""
    pieces = pieces_of(string)
    return Block(start, end, *pieces.content(), part=part, write=escaped) if pieces.has_text else None


def chart_blocks(name: str, text: str, only_own: bool) -> Iterator[Block]:
    """The texts of a chart, in their order; `only_own`: without strings that are cells of the workbook around it."""
    found = list(Drawing(name, text).blocks())
    seen: set[str] = set()
    for start, end, string, own in chart_strings(text):
        block = string_block(start, end, string, name) if string not in seen and (own or not only_own) else None
        seen.add(string)
        found += [block] if block else []
    yield from sorted(found, key=lambda block: block.start)


def changed_strings(old: str, new: str) -> dict[str, str]:
    """What the strings of a chart have become."""
    both = zip(chart_strings(old), chart_strings(new), strict=True)
    return {unescaped(before): unescaped(after) for (*_, before, _), (*_, after, _) in both if before != after}


def with_strings(old: str, new: str, words: Mapping[str, str]) -> str:
    """A chart whose strings were those of `old`, with what `words` say in all places that are still the same."""
    out, position = [], 0
    for (*_, before, _), (start, end, now, _) in zip(chart_strings(old), chart_strings(new), strict=True):
        if before == now and unescaped(before) in words:
            out += [new[position:start], escaped(words[unescaped(before)])]
            position = end
    return "".join([*out, new[position:]])
