"""Texts of an Excel sheet that are no cells: choices of lists, messages at cells to fill in, headers and footers."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import count

from weitblick.files.blocks import Block, Code, Pieces
from weitblick.files.cells import QUOTED, length
from weitblick.files.markup import escape, tokens_of
from weitblick.files.ooxml import escaped_attribute, pieces_of, unescaped

VALIDATION = re.compile(rf"<((?:[\w.-]+:)?)dataValidation(?=\s){QUOTED}(?:/>|>(.*?)</\1dataValidation\s*>)", re.DOTALL)
LIST = re.compile(r"<((?:[\w.-]+:)?)formula1>\s*(\"|&quot;)([^<]*)\2\s*</\1formula1\s*>")
MESSAGES = {"promptTitle": 32, "prompt": 255, "errorTitle": 32, "error": 225}  # attributes, and characters in them
HEADER = re.compile(r"<((?:[\w.-]+:)?(?:odd|even|first)(?:Header|Footer))(?=[\s>])[^<>]*>([^<]+)</\1\s*>")
HEADER_CODE = re.compile(
    r"&amp;((?:\"|&quot;).*?(?:\"|&quot;)|K[0-9A-Fa-f]{6}|K\d\d[+-]\d{3}|\d+|&amp;|[A-Za-z])", re.DOTALL
)
SECTION = re.compile(r"&amp;[LCR]")
FIELDS = "PNDTAFZ"  # page, pages, date, time, sheet, file, folder
LIST_LIMIT = HEADER_LIMIT = 255


def as_list(block: Block | None) -> Sequence[Block]:
    """The block if there is one."""
    return [] if block is None else [block]


# Lists of choices: "Yes,No,Perhaps"


def list_items(text: str, validation: re.Match[str]) -> list[tuple[int, int, str]]:
    """Where the choices of a list stand in the sheet, and what they say; none if the list is elsewhere."""
    if validation[2] is None:
        return []
    tag = tokens_of(text[validation.start() : validation.start(2)])[0]
    found = LIST.search(text, validation.start(2), validation.end(2))
    if found is None or tag.attributes.get("type") != "list":
        return []
    items, position = [], found.start(3)
    for raw in found[3].split(","):
        lead = len(raw) - len(raw.lstrip())
        said_there = html.unescape(raw.strip()).replace('""', '"')
        items.append((position + lead, position + lead + len(raw.strip()), said_there))
        position += len(raw) + 1
    return items


def list_fits(items: Sequence[str]) -> bool:
    """Whether a list can hold these choices."""
    whole = ",".join(item.replace('"', '""') for item in items)
    return length(whole) <= LIST_LIMIT and not any("," in item or "\n" in item for item in items)


def escaped_item(text: str, style: str | None = None) -> str:
    """A choice as a list in a sheet spells it."""
    return escape(text.replace('"', '""')).replace('"', "&quot;")


def item_block(start: int, end: int, item: str, part: str, id: str) -> Block | None:
    """One choice of a list."""
    pieces = Pieces()
    pieces.text(item)
    return Block(start, end, *pieces.content(), part=part, id=id, write=escaped_item) if pieces.has_text else None


# Messages at cells to fill in: attributes of their validation.


def messages(text: str, validation: re.Match[str]) -> Iterator[tuple[int, int, int]]:
    """Where messages stand in the sheet, and how many characters each may have."""
    tag = tokens_of(text[validation.start() : validation.end()])[0]
    for attribute, limit in MESSAGES.items():
        found = re.search(rf"\s{attribute}\s*=\s*([\"'])(.*?)\1", tag.raw, re.DOTALL)
        if found:
            yield validation.start() + found.start(2), validation.start() + found.end(2), limit


def message_block(start: int, end: int, raw: str, part: str, id: str, limit: int) -> Block | None:
    """A message; a translation that is too long for it is not taken."""
    pieces = pieces_of(html.unescape(raw), lambda end: end.replace("\n", "&#10;").replace("\t", "&#9;"))
    if not pieces.has_text:
        return None

    def finish(new: str) -> str:
        return new if length(unescaped(html.unescape(new))) <= limit else raw

    return Block(start, end, *pieces.content(), part=part, id=id, write=escaped_attribute, finish=finish)


# Headers and footers: three sections (&L, &C, &R), with fields (&P) and formats (&B, &12, &"Arial") in their text.


def header_blocks(header: re.Match[str], part: str, id: str) -> Iterator[Block]:
    """The sections of a header or footer that have text."""
    raw = header[2]
    starts = [code.end() for code in HEADER_CODE.finditer(raw) if SECTION.fullmatch(code[0])]
    ends = [code.start() for code in HEADER_CODE.finditer(raw) if SECTION.fullmatch(code[0])]
    for start, end in zip([0, *starts], [*ends, len(raw)], strict=True):
        pieces = _header_pieces(raw[start:end])
        if pieces.has_text:
            span = header.start(2) + start, header.start(2) + end
            yield Block(*span, *pieces.content(), part=part, id=id, write=_header_text)


def _header_pieces(raw: str) -> Pieces:
    pieces, position, names = Pieces(), 0, count(1)

    def add(text: str) -> None:
        for number, line in enumerate(html.unescape(text).split("\n")):
            if number:
                pieces.code(Code("break", "\n"))
            pieces.text(line)

    for code in HEADER_CODE.finditer(raw):
        add(raw[position : code.start()])
        if code[1] == "&amp;":
            pieces.text("&")
        elif code[1] in FIELDS:
            pieces.code(Code("word", code[0], f"⟦{next(names)}⟧"))
        else:
            pieces.code(Code("alone", code[0]))
        position = code.end()
    add(raw[position:])
    return pieces


def _header_text(text: str, style: str | None) -> str:
    return escape(text.replace("&", "&&"))
