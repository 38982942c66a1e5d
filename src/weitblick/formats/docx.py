"""Word (.docx): paragraphs of the body, tables, headers, footers, notes and text boxes.

A paragraph's runs of the most common formatting are plain text; runs of another one are pairs around theirs. Equal
neighbours are one, whatever Word split them for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path

from weitblick.errors import UserError
from weitblick.formats.blocks import Block, Code, Pieces
from weitblick.formats.encoding import Encoding, decode, xml_declared
from weitblick.formats.file import Content, reference
from weitblick.formats.markup import check_xml, ends_of, escape, text_of, tokens_of
from weitblick.formats.packages import Package

TYPES = "[Content_Types].xml"
PARTS = ("document.main", "footnotes", "endnotes", "header", "footer")
NAMESPACE = re.compile(
    r"xmlns:([\w.-]+)\s*=\s*[\"']http://(?:schemas\.openxmlformats\.org/wordprocessingml/2006/main"
    r"|purl\.oclc\.org/ooxml/wordprocessingml/main)[\"']"
)
PAIRS = {"hyperlink", "ins", "moveTo", "smartTag", "sdt", "dir", "bdo", "customXml"}
DROPPED = {"pPr", "rPr", "proofErr", "lastRenderedPageBreak", "softHyphen"}
BREAKS = {"tab", "br", "cr", "ptab"}
NO_FORMAT = re.compile(r"<[\w.-]+:(?:lang|noProof)\b[^>]*/>")
HIDDEN = re.compile(r"<[\w.-]+:(?:vanish|webHidden)\s*/>")
RAISED = re.compile(r"<[\w.-]+:vertAlign\s[^>]*\"(?:super|sub)script\"")
EMPTY_STYLE = re.compile(r"<([\w.-]+:rPr)>\s*</\1>")

Piece = tuple[str, Code | None, str | None]
"""Text and its style; or a code and the style of its run, None where it is no run."""


def read_docx(data: bytes, path: Path) -> Content:
    package = Package(data, path)
    texts: dict[str, str] = {}
    encodings: dict[str, Encoding] = {}
    blocks: list[Block] = []
    for part in _parts(package, path):
        raw = package.read(part)
        check_xml(raw, f"{path}({part})")
        texts[part], encodings[part] = decode(raw, path, xml_declared(raw))
        blocks += _Part(part, texts[part]).blocks()

    def save(new: Mapping[str, str]) -> bytes:
        return package.replaced({name: encodings[name].encode(text) for name, text in new.items()})

    return Content(texts, blocks, save)


def _parts(package: Package, path: Path) -> list[str]:
    """The parts with text, the body first."""
    if TYPES not in package:
        raise UserError("is a zip file, but no Word document", where=path, remedy="save it as .docx")
    raw = package.read(TYPES)
    check_xml(raw, f"{path}({TYPES})")
    found: dict[str, list[str]] = {}
    for token in tokens_of(decode(raw, path, xml_declared(raw))[0]):
        attributes = token.attributes if token.name == "Override" else {}
        kind = re.search(r"wordprocessingml\.([\w.]+)\+xml$|(document\.main)\+xml$", attributes.get("ContentType", ""))
        name = attributes.get("PartName", "").lstrip("/")
        if kind and name in package:
            found.setdefault(kind[1] or kind[2], []).append(name)
    if "document.main" not in found:
        raise UserError("is an Office file, but no Word document", where=path, remedy="save it as .docx")
    return [name for kind in PARTS for name in found.get(kind, [])]


class _Part:
    """One XML part of the package."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.tokens = tokens_of(text)
        self.ends = ends_of(self.tokens)
        found = NAMESPACE.search(text)
        self.prefix = found[1] + ":" if found else "w:"

    def local(self, number: int) -> str:
        return self.tokens[number].name.removeprefix(self.prefix)

    def blocks(self) -> Iterator[Block]:
        for number, token in enumerate(self.tokens):
            if token.kind == "open" and self.local(number) == "p" and number in self.ends:
                yield from self._paragraph(number, self.ends[number])

    def _paragraph(self, number: int, end: int) -> Iterator[Block]:
        first = self._children(number, end)[:1]
        start = self.ends[first[0]] if first and self.local(first[0]) == "pPr" else number
        pieces = list(_Paragraph(self).content(start, end))
        sizes = Counter({style: 0 for _, code, style in pieces if code is None})
        for text, code, style in pieces:
            sizes[style] += len(text) if code is None else 0
        base = max(sizes, key=sizes.__getitem__, default="") or ""
        collected = _styled(pieces, base)
        if collected.has_text:
            span = self.tokens[start].end, self.tokens[end].start
            yield Block(*span, *collected.content(), part=self.name, write=self.writer(base))

    def writer(self, base: str) -> Callable[[str, str | None], str]:
        run, text = f"{self.prefix}r", f"{self.prefix}t"

        def write(content: str, style: str | None) -> str:
            own = base if style is None else style
            return f'<{run}>{own}<{text} xml:space="preserve">{escape(content)}</{text}></{run}>'

        return write

    def _children(self, number: int, end: int) -> list[int]:
        """The elements right inside an element."""
        found, place = [], number + 1
        while place < end:
            if self.tokens[place].kind in ("open", "empty"):
                found.append(place)
            place = self.ends.get(place, place) + 1
        return found

    def raw(self, first: int, last: int) -> str:
        """The tokens [first, last] as they are; by reference where they hold paragraphs that are translated, too."""
        start, end = self.tokens[first].start, self.tokens[last].end
        nested = any(self.local(n) == "p" and self.tokens[n].kind == "open" for n in range(first, last))
        return reference(start, end) if nested else self.text[start:end]


class _Paragraph:
    """Collects the text of one paragraph, and everything else in it as codes."""

    def __init__(self, part: _Part) -> None:
        self.part, self.names = part, count(1)

    def content(self, number: int, end: int) -> Iterator[Piece]:
        part = self.part
        skip_to = number
        for child in part._children(number, end):
            if child <= skip_to:
                continue
            last, name = part.ends[child], part.local(child)
            if name == "r":
                field = self._field(child, end)
                yield from field[1] if field else self._run(child, last)
                skip_to = field[0] if field else last
            elif name in PAIRS and last > child:
                yield from self._pair(child, last)
            elif name == "fldSimple" or name.endswith(("oMath", "oMathPara")):
                yield "", Code("word", part.raw(child, last), self._shown(child, last)), None
            elif name not in DROPPED:
                yield "", Code("alone", part.raw(child, last)), None

    def _pair(self, number: int, end: int) -> Iterator[Piece]:
        """An element around runs; its properties belong to its opening."""
        part, opening, closing = self.part, number, end
        for child in part._children(number, end):
            if part.local(child) == "sdtContent":
                opening, closing = child, part.ends[child]
            elif part.local(child).endswith("Pr") and opening == number:
                opening = part.ends[child]
        yield "", Code("open", part.text[part.tokens[number].start : part.tokens[opening].end]), None
        yield from self.content(opening, closing)
        yield "", Code("close", part.text[part.tokens[closing].start : part.tokens[end].end]), None

    def _run(self, number: int, end: int) -> Iterator[Piece]:
        part, style = self.part, ""
        for child in part._children(number, end):
            last, name = part.ends[child], part.local(child)
            if name == "rPr":
                raw = NO_FORMAT.sub("", part.text[part.tokens[child].start : part.tokens[last].end])
                style = EMPTY_STYLE.sub("", raw)
            elif name == "t":
                text = "".join(map(text_of, part.tokens[child : last + 1]))
                is_mark = HIDDEN.search(style) or (RAISED.search(style) and self._is_mark(text, end))
                yield ("", Code("alone", part.writer(style)(text, None)), style) if is_mark else (text, None, style)
            elif name == "noBreakHyphen":
                yield "\u2011", None, style
            elif name not in DROPPED:
                raw = f"<{part.prefix}r>{style}{part.raw(child, last)}</{part.prefix}r>"
                yield "", Code("break" if name in BREAKS else "alone", raw), style

    def _is_mark(self, text: str, end: int) -> bool:
        """Whether raised text is a mark behind a word (a note, the 2 of CO2) and not inside one (the 2 of H2O)."""
        behind = next((t for t in self.part.tokens[end:] if t.kind == "text" or t.name == f"{self.part.prefix}p"), None)
        return not any(map(str.isalpha, text)) and not (behind and behind.raw[0].isalnum())

    def _field(self, number: int, end: int) -> tuple[int, list[Piece]] | None:
        """A field that begins in this run and ends in a later one: its last token, and what it is. Links are pairs
        around their text; what other fields show is computed by Word."""
        part, depth, separate = self.part, 0, None
        runs = [run for run in part._children(number - 1, end) if part.local(run) == "r"]
        for run in runs:
            for kind in self._marks(run):
                depth += {"begin": 1, "end": -1}.get(kind, 0)
                separate = run if kind == "separate" and depth == 1 else separate
            if depth == 0:
                break
        if depth != 0 or not runs or run == number:
            return None
        last = part.ends[run]
        codes = "".join(text_of(t) for t in part.tokens[number : separate or run]).strip()
        if separate is None or not codes.startswith("HYPERLINK"):
            shown = self._shown(separate or number, last) if separate else f"⟦{next(self.names)}⟧"
            return last, [("", Code("word", part.raw(number, last), shown), None)]
        opened = Code("open", part.raw(number, part.ends[separate]))
        inside = list(self.content(part.ends[separate], run))
        return last, [("", opened, None), *inside, ("", Code("close", part.raw(run, last)), None)]

    def _marks(self, run: int) -> list[str]:
        part = self.part
        inside = [child for child in part._children(run, part.ends[run]) if part.local(child) == "fldChar"]
        return [part.tokens[child].attributes.get(f"{part.prefix}fldCharType", "") for child in inside]

    def _shown(self, first: int, last: int) -> str:
        part = self.part
        texts = [n for n in range(first, last) if part.local(n) in ("t", "m:t") and part.tokens[n].kind == "open"]
        shown = " ".join("".join(text_of(part.tokens[n + 1]) for n in texts).split())
        return shown or f"⟦{next(self.names)}⟧"


def _styled(pieces: list[Piece], base: str) -> Pieces:
    """Text of the base style as it is, text of another one in a pair."""
    collected, current = Pieces(), base
    for text, code, style in pieces:
        wanted = base if style is None else style
        if wanted != current and not (code is not None and style is not None and code.kind != "break"):
            if current != base:
                collected.code(Code("close"))
            if wanted != base:
                collected.code(Code("open", style=wanted))
            current = wanted
        if code is None:
            collected.text(text)
        else:
            collected.code(code)
    if current != base:
        collected.code(Code("close"))
    return collected
