"""Office files (docx, odt): zip packages, read within limits and written with all that is not translated as it was."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path

from weitblick.common.errors import UserError
from weitblick.files.blocks import Block, Code, Pieces
from weitblick.files.encoding import Encoding, decode, xml_declared
from weitblick.files.markup import Role, Token, check_xml, ends_of, escape, inline, text_of, tokens_of
from weitblick.files.translatable_file import Content, reference

MOST_BYTES = 512 * 2**20  # of all parts together, unpacked
MOST_RATIO, RATIO_FROM = 200, 10 * 2**20  # unpacked to packed, of parts from this size on
MOST_PARTS = 20_000
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class Package:
    """The parts of a zip file, each read when it is asked for."""

    def __init__(self, data: bytes, path: Path) -> None:
        self.path, self._data = path, data
        if data.startswith(OLE):
            raise UserError(
                "is protected by a password, or an old binary file", where=path, remedy="save it without a password"
            )
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
            raise UserError(
                f"is not a complete Office file ({error})", where=path, remedy="save or fetch it again"
            ) from None
        self._check(self._zip.infolist())

    def _check(self, entries: Iterable[zipfile.ZipInfo]) -> None:
        total = 0
        for number, entry in enumerate(entries):
            total += entry.file_size
            swollen = entry.file_size > RATIO_FROM and entry.file_size > MOST_RATIO * max(1, entry.compress_size)
            if swollen or total > MOST_BYTES or number >= MOST_PARTS:
                raise UserError(
                    f"{entry.filename} unpacks to {entry.file_size:,} bytes ({total:,} in all): more than is safe",
                    where=self.path,
                    remedy="split the document",
                )
            if entry.flag_bits & 1:
                raise UserError("is protected by a password", where=self.path, remedy="save it without a password")

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    @property
    def names(self) -> list[str]:
        """The names of all parts."""
        return self._zip.namelist()

    def read(self, name: str) -> bytes:
        """The bytes of a part; one that is damaged or swollen is refused."""
        try:
            with self._zip.open(name) as stream:
                data = stream.read(MOST_BYTES + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise UserError(
                f"its part {name} is damaged ({error})", where=self.path, remedy="save or fetch it again"
            ) from None
        except KeyError:
            raise UserError(f"has no part {name}", where=self.path, remedy="save it again") from None
        if len(data) > MOST_BYTES:
            raise UserError(f"{name} is larger than it says", where=self.path, remedy="do not trust this file")
        return data

    def content(self, parts: Iterable[str], blocks_of: Callable[[str, str], Iterable[Block]]) -> Content:
        """The content of some XML parts; `blocks_of` reads the text of one."""
        texts: dict[str, str] = {}
        encodings: dict[str, Encoding] = {}
        blocks: list[Block] = []
        for part in parts:
            raw = self.read(part)
            check_xml(raw, f"{self.path}({part})")
            texts[part], encodings[part] = decode(raw, self.path, xml_declared(raw))
            blocks += blocks_of(part, texts[part])

        def save(new: Mapping[str, str]) -> bytes:
            return self.replaced({name: encodings[name].encode(text) for name, text in new.items()})

        return Content(texts, blocks, save)

    def replaced(self, new: Mapping[str, bytes]) -> bytes:
        """The package with some parts exchanged: order, dates, kinds of compression and all other parts as before."""
        if not new:
            return self._data
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as package:
            for entry in self._zip.infolist():
                copy = zipfile.ZipInfo(entry.filename, entry.date_time)
                copy.compress_type, copy.external_attr = entry.compress_type, entry.external_attr
                copy.comment = entry.comment
                copy.create_system = entry.create_system
                package.writestr(copy, new[entry.filename] if entry.filename in new else self.read(entry.filename))
            package.comment = self._zip.comment
        return out.getvalue()


# Word (.docx): paragraphs of the body, tables, headers, footers, notes and text boxes.
#
# A paragraph's runs of the most common formatting are plain text; runs of another one are pairs around theirs. Equal
# neighbours are one, whatever Word split them for.

TYPES = "[Content_Types].xml"
WORD_TYPE = r"wordprocessingml\.([\w.]+)\+xml$|(?:ms-word\.[\w.]+|document)\.main\+xml$"  # or of files with macros
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
    """The content of a Word file."""
    package = Package(data, path)
    return package.content(_parts(package, path), lambda part, text: _Part(part, text).blocks())


def _parts(package: Package, path: Path) -> list[str]:
    """The parts with text, the body first."""
    if TYPES not in package:
        raise UserError("is a zip file, but no Word document", where=path, remedy="save it as .docx")
    raw = package.read(TYPES)
    check_xml(raw, f"{path}({TYPES})")
    found: dict[str, list[str]] = {}
    for token in tokens_of(decode(raw, path, xml_declared(raw))[0]):
        attributes = token.attributes if token.name == "Override" else {}
        kind = re.search(WORD_TYPE, attributes.get("ContentType", ""))
        name = attributes.get("PartName", "").lstrip("/")
        if kind and name in package:
            found.setdefault("document.main" if kind[0].endswith(".main+xml") else kind[1], []).append(name)
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
        """The name of a token's element, without Word's prefix."""
        return self.tokens[number].name.removeprefix(self.prefix)

    def blocks(self) -> Iterator[Block]:
        """The paragraphs of the part that have text, and those of table cells that are a number."""
        cell = -1  # where the cell ends that was opened last
        for number, token in enumerate(self.tokens):
            if token.kind != "open" or number not in self.ends:
                continue
            if self.local(number) == "tc":
                cell = max(cell, self.ends[number])
            elif self.local(number) == "p":
                yield from self._paragraph(number, self.ends[number], number < cell)

    def _paragraph(self, number: int, end: int, in_cell: bool) -> Iterator[Block]:
        first = self._children(number, end)[:1]
        start = self.ends[first[0]] if first and self.local(first[0]) == "pPr" else number
        pieces = list(_Paragraph(self).content(start, end))
        sizes = Counter({style: 0 for _, code, style in pieces if code is None})
        for text, code, style in pieces:
            sizes[style] += len(text) if code is None else 0
        base = max(sizes, key=sizes.__getitem__, default="") or ""
        collected = styled(pieces, base)
        span = self.tokens[start].end, self.tokens[end].start
        if collected.has_text:
            yield Block(*span, *collected.content(), part=self.name, write=self.writer(base))
        elif in_cell and (number_alone := collected.number()):
            yield Block(*span, number_alone, part=self.name, write=self.writer(base), by_rule=True)

    def writer(self, base: str) -> Callable[[str, str | None], str]:
        """Writes text as a run, in its own style or in `base`."""
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
                if name == "ruby":  # words with a reading aid above them
                    base = next((n for n in range(child, last) if part.local(n) == "rubyBase"), child)
                    yield "", Code("word", raw, self._shown(base, part.ends[base])), style
                else:
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


def styled(pieces: list[Piece], base: str) -> Pieces:
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


# OpenDocument text (.odt): paragraphs and headings, wherever they stand: body, tables, notes, frames, headers.

ODT_PARTS = ("content.xml", "styles.xml")  # headers and footers are styles
PARAGRAPHS = {"text:p", "text:h"}
TEXT_AROUND = {
    *("text:span", "text:a", "text:meta", "text:meta-field", "text:ruby-base"),
    *("text:text-input", "text:variable-input", "text:user-field-input", "text:placeholder"),  # fields to fill in
    *("loext:content-control", "text:content-control", "field:fieldmark"),
}
"""Elements whose content is text of the paragraph."""
UNREAD = {"text:tracked-changes", "office:annotation"}  # what is deleted, and what reviewers say
_FIELDS = ("page-", "date", "time", "author", "sequence", "reference-ref", "bookmark-ref")
FIELDS = tuple(f"text:{name}" for name in _FIELDS)


def read_odt(data: bytes, path: Path) -> Content:
    """The content of an OpenDocument text."""
    package = Package(data, path)
    if "content.xml" not in package:
        raise UserError("is a zip file, but no OpenDocument text", where=path, remedy="save it as .odt")
    if b"manifest:encryption-data" in (
        package.read("META-INF/manifest.xml") if "META-INF/manifest.xml" in package else b""
    ):
        raise UserError("is protected by a password", where=path, remedy="save it without a password")
    return package.content([part for part in ODT_PARTS if part in package], _blocks)


def _blocks(part: str, text: str) -> Iterator[Block]:
    tokens = tokens_of(text)
    ends = ends_of(tokens)
    unread_until = cell = -1  # where what is not read ends, and the cell that was opened last

    def keep(start: int, end: int) -> str:
        raw = text[start:end]
        return reference(start, end) if "<text:p" in raw or "<text:h" in raw else raw

    for number, token in enumerate(tokens):
        if token.kind != "open" or number <= unread_until:
            continue
        if token.name in UNREAD:
            unread_until = ends[number]
        elif token.name == "table:table-cell":
            cell = max(cell, ends[number])
        elif token.name in PARAGRAPHS:
            pieces = Pieces(collapse=True)
            inline(tokens, ends, range(number + 1, ends[number]), _role, pieces, keep, count(1))
            span = token.end, tokens[ends[number]].start
            if pieces.has_text:
                yield Block(*span, *pieces.content(), part=part, write=escape)
            elif number < cell and (shown := pieces.number()):
                yield Block(*span, shown, part=part, write=escape, by_rule=True)


def _role(token: Token) -> Role:
    if token.name in TEXT_AROUND:
        return "pair"
    if token.name in ("text:tab", "text:line-break"):
        return "break"
    return "word" if token.name.startswith(FIELDS) else "alone"
