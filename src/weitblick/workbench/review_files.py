"""Files for a review outside of the workbench: the rows of a document as a table in Word, or as XLIFF, and read back.

Each row carries a mark, `12.5.3f2a91bc`: its number, the version of it that went out, and the document. By it a file
that comes back is known, whatever has happened to it or to the rows in the meantime.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from lxml import etree

from weitblick.common.errors import UserError
from weitblick.files.markup import check_xml
from weitblick.files.office import Package
from weitblick.workbench.parameters import Languages
from weitblick.workbench.schema import Segment, State

MARK = re.compile(r"(\d{1,9})\.(\d{1,15})\.([0-9a-f]{8})")
TABLE_MARK = re.compile(rf"\[{MARK.pattern}\]")
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
COLUMNS = ((700, "No."), (4700, "Source"), (4700, "Translation"), (1700, "State"), (2200, "Comments"))
"""Widths, in twentieths of a point, and titles."""
TYPES = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">\
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>\
<Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" \
ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"""
RELATIONS = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">\
<Relationship Id="rId1" Target="word/document.xml" \
Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>"""
BORDERS = "".join(
    f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="A0A0A0"/>'
    for side in ("top", "left", "bottom", "right", "insideH", "insideV")
)


@dataclass(frozen=True)
class ReviewedRow:
    """A row as it comes back: its number, the version and the document that it went out with, what it says, what the
    reviewer calls it, and what is said about it: texts, with their authors where these are known."""

    number: int
    version: int
    document: str
    source: str
    target: str
    state: State | None = None
    comments: tuple[tuple[str, str | None], ...] = ()


def mark_of(document: str, row: Segment) -> str:
    """By which a row is known when it comes back."""
    return f"{row.position + 1}.{row.version}.{document[:8]}"


# A table in Word


def review_table(document: str, name: str, rows: Sequence[Segment], languages: Languages) -> bytes:
    """A Word document with a row of a table for each row of a document."""
    names = languages.name(languages.source), languages.name(languages.target)
    titles = [title for _, title in COLUMNS]
    titles[1:3] = names
    heading = "".join(_cell(width, [title], bold=True) for (width, _), title in zip(COLUMNS, titles, strict=True))
    explained = (
        "Change translations, write comments in the last column or as comments of Word, and put “reviewed” in the "
        "State column of what is right. Leave numbers and sources as they are."
    )
    grid = "".join(f'<w:gridCol w:w="{width}"/>' for width, _ in COLUMNS)
    body = (
        f"{_paragraph(name, bold=True)}{_paragraph(explained)}"
        f'<w:tbl><w:tblPr><w:tblW w:w="0" w:type="auto"/><w:tblBorders>{BORDERS}</w:tblBorders>'
        f'<w:tblLayout w:type="fixed"/></w:tblPr><w:tblGrid>{grid}</w:tblGrid>'
        f"<w:tr><w:trPr><w:tblHeader/></w:trPr>{heading}</w:tr>{''.join(_row(document, row) for row in rows)}</w:tbl>"
        '<w:sectPr><w:pgSz w:w="16838" w:h="11906" w:orient="landscape"/><w:pgMar w:top="1000" w:right="1400" '
        'w:bottom="1000" w:left="1400" w:header="700" w:footer="700" w:gutter="0"/></w:sectPr>'
    )
    whole = f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<w:document xmlns:w="{WORD}"><w:body>{body}'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("[Content_Types].xml", TYPES)
        package.writestr("_rels/.rels", RELATIONS)
        package.writestr("word/document.xml", f"{whole}</w:body></w:document>")
    return out.getvalue()


def _row(document: str, row: Segment) -> str:
    number, hidden = str(row.position + 1), mark_of(document, row)
    texts: list[list[str]] = [
        [row.source],
        [row.target],
        [row.state],
        [said_in_one_line(one.text, one.person) for one in row.comments],
    ]
    widths = [width for width, _ in COLUMNS]
    first = (
        f'<w:tc><w:tcPr><w:tcW w:w="{widths[0]}" w:type="dxa"/></w:tcPr><w:p><w:r><w:t>{number}</w:t></w:r>'
        f"<w:r><w:rPr><w:vanish/></w:rPr><w:t>[{hidden}]</w:t></w:r></w:p></w:tc>"
    )
    cells = "".join(_cell(width, text) for width, text in zip(widths[1:], texts, strict=True))
    return f"<w:tr><w:trPr><w:cantSplit/></w:trPr>{first}{cells}</w:tr>"


def said_in_one_line(text: str, person: str | None) -> str:
    """A comment as the table has it, in one paragraph."""
    told = " ".join(text.split("\n"))
    return f"{person}: {told}" if person else told


def _cell(width: int, paragraphs: Sequence[str], bold: bool = False) -> str:
    inside = "".join(_paragraph(text, bold) for text in paragraphs) or "<w:p/>"
    return f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/></w:tcPr>{inside}</w:tc>'


def _paragraph(text: str, bold: bool = False) -> str:
    style = "<w:rPr><w:b/></w:rPr>" if bold else ""
    runs = '</w:t><w:tab/><w:t xml:space="preserve">'.join(escape(part) for part in text.split("\t"))
    return f'<w:p><w:r>{style}<w:t xml:space="preserve">{runs}</w:t></w:r></w:p>'


# What comes back


def read_review(name: str, content: bytes) -> list[ReviewedRow]:
    """The rows of a review file, in its order."""
    rows = list(_of_table(name, content) if content.startswith(b"PK") else _of_xliff(name, content))
    if not rows:
        raise UserError("has no rows of a review", where=name, remedy="read back what was exported for a review")
    return rows


def _of_table(name: str, content: bytes) -> Iterator[ReviewedRow]:
    package = Package(content, Path(name))
    body = _parsed(name, package.read("word/document.xml"))
    notes = _word_comments(name, package)
    for row in body.iter(f"{{{WORD}}}tr"):
        cells = row.findall(f"{{{WORD}}}tc")
        mark = TABLE_MARK.search(_text(cells[0])) if cells else None
        if mark is None:
            continue
        if len(cells) != len(COLUMNS):
            raise UserError(
                f"row {mark[1]} has {len(cells)} columns, not {len(COLUMNS)}",
                where=name,
                remedy="change no columns; export it again",
            )
        said: list[tuple[str, str | None]] = [(text, None) for text in _paragraphs(cells[4])]
        ids = [one.get(f"{{{WORD}}}id") for one in row.iter(f"{{{WORD}}}commentReference")]
        said += [notes[one] for one in ids if one in notes]
        state = _text(cells[3]).strip().lower()
        yield ReviewedRow(
            int(mark[1]),
            int(mark[2]),
            mark[3],
            " ".join(_paragraphs(cells[1])),
            " ".join(_paragraphs(cells[2])),
            "reviewed" if state == "reviewed" else None,
            tuple(said),
        )


def _word_comments(name: str, package: Package) -> dict[str | None, tuple[str, str | None]]:
    """Comments of Word by their ids: text and author."""
    if "word/comments.xml" not in package:
        return {}
    found = _parsed(name, package.read("word/comments.xml")).iter(f"{{{WORD}}}comment")
    said = {
        one.get(f"{{{WORD}}}id"): ("\n".join(_paragraphs(one)), one.get(f"{{{WORD}}}author") or None) for one in found
    }
    return {identity: note for identity, note in said.items() if note[0]}


def _paragraphs(cell: Any) -> list[str]:
    """The paragraphs of a cell that say something; what a tracked change has deleted is not there any more."""
    return [text for text in (_text(one) for one in cell.iter(f"{{{WORD}}}p")) if text.strip()]


def _text(element: Any) -> str:
    signs = {"tab": "\t", "br": " ", "cr": " ", "noBreakHyphen": "‑", "softHyphen": "\xad"}
    found = []
    for one in element.iter():
        kind = etree.QName(one).localname if isinstance(one.tag, str) else ""
        found.append(one.text or "" if kind == "t" else signs.get(kind, ""))
    return "".join(found)


def _of_xliff(name: str, content: bytes) -> Iterator[ReviewedRow]:
    root = _parsed(name, content)
    if etree.QName(root).localname != "xliff":
        raise UserError("is XML, but no XLIFF", where=name, remedy="read back what was exported for a review")
    for unit in root.iter("{*}trans-unit"):
        mark = MARK.fullmatch(unit.get("id", ""))
        if mark is None:
            raise UserError(
                f"unit {unit.get('id', '')[:60]!r} is none of a review", where=name, remedy="export the document again"
            )
        target = unit.find("{*}target")
        state = "" if target is None else target.get("state", "")
        approved = unit.get("approved") == "yes" or state in ("final", "signed-off")
        notes = [("".join(note.itertext()).strip(), note.get("from")) for note in unit.findall("{*}note")]
        yield ReviewedRow(
            int(mark[1]),
            int(mark[2]),
            mark[3],
            "".join(unit.find("{*}source").itertext()) if unit.find("{*}source") is not None else "",
            "" if target is None else "".join(target.itertext()),
            "reviewed" if approved else None,
            tuple((text, author) for text, author in notes if text),
        )


def _parsed(name: str, content: bytes) -> Any:
    check_xml(content, name)
    return etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
