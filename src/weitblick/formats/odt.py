"""OpenDocument text (.odt): paragraphs and headings, wherever they stand: body, tables, notes, frames, headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

from weitblick.errors import UserError
from weitblick.formats.blocks import Block, Pieces
from weitblick.formats.encoding import Encoding, decode, xml_declared
from weitblick.formats.file import Content, reference
from weitblick.formats.markup import Role, Token, check_xml, ends_of, escape, inline, tokens_of
from weitblick.formats.packages import Package

PARTS = ("content.xml", "styles.xml")  # headers and footers are styles
PARAGRAPHS = {"text:p", "text:h"}
UNREAD = {"text:tracked-changes", "office:annotation"}  # what is deleted, and what reviewers say
FIELDS = (
    "text:page-",
    "text:date",
    "text:time",
    "text:author",
    "text:sequence",
    "text:reference-ref",
    "text:bookmark-ref",
)


def read_odt(data: bytes, path: Path) -> Content:
    package = Package(data, path)
    if "content.xml" not in package:
        raise UserError("is a zip file, but no OpenDocument text", where=path, remedy="save it as .odt")
    if b"manifest:encryption-data" in (
        package.read("META-INF/manifest.xml") if "META-INF/manifest.xml" in package else b""
    ):
        raise UserError("is protected by a password", where=path, remedy="save it without a password")
    texts: dict[str, str] = {}
    encodings: dict[str, Encoding] = {}
    blocks: list[Block] = []
    for part in PARTS:
        if part in package:
            raw = package.read(part)
            check_xml(raw, f"{path}({part})")
            texts[part], encodings[part] = decode(raw, path, xml_declared(raw))
            blocks += _blocks(part, texts[part])

    def save(new: Mapping[str, str]) -> bytes:
        return package.replaced({name: encodings[name].encode(text) for name, text in new.items()})

    return Content(texts, blocks, save)


def _blocks(part: str, text: str) -> Iterator[Block]:
    tokens = tokens_of(text)
    ends = ends_of(tokens)
    unread_until = -1

    def keep(start: int, end: int) -> str:
        raw = text[start:end]
        return reference(start, end) if "<text:p" in raw or "<text:h" in raw else raw

    for number, token in enumerate(tokens):
        if token.kind != "open" or number <= unread_until:
            continue
        if token.name in UNREAD:
            unread_until = ends[number]
        elif token.name in PARAGRAPHS:
            pieces = Pieces(collapse=True)
            inline(tokens, ends, range(number + 1, ends[number]), _role, pieces, keep, count(1))
            if pieces.has_text:
                span = token.end, tokens[ends[number]].start
                yield Block(*span, *pieces.content(), part=part, write=escape)


def _role(token: Token) -> Role:
    if token.name in ("text:span", "text:a", "text:meta", "text:ruby-base"):
        return "pair"
    if token.name in ("text:tab", "text:line-break"):
        return "break"
    return "word" if token.name.startswith(FIELDS) else "alone"
