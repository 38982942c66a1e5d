"""Excel (.xlsx): what cells say, sheet by sheet and row by row, then headers, lists, text boxes, charts and notes.

A string that stands in several cells is one unit, at its first place: formulas look cells up by what they say, so equal
cells stay equal. For the same reason strings that a formula compares with stay as they are (see `formulas`). What must
follow a translated cell elsewhere is changed in `sheets`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence

from weitblick.files.blocks import Block
from weitblick.files.cells import CELL_LIMIT, INLINE, NOTE_TEXT, SHARED, String, cells_of, element, length, strings_of
from weitblick.files.drawing import Drawing, chart_blocks
from weitblick.files.formulas import compared_texts
from weitblick.files.markup import tokens_of
from weitblick.files.ooxml import Parts, Relation, unescaped
from weitblick.files.sheet_texts import (
    HEADER,
    HEADER_LIMIT,
    LIST_LIMIT,
    VALIDATION,
    as_list,
    header_blocks,
    item_block,
    list_fits,
    list_items,
    message_block,
    messages,
)

FORMULA = re.compile(
    r"(<((?:[\w.-]+:)?(?:f|formula[12]?|calculatedColumnFormula|totalsRowFormula|definedName))(?=[\s>])[^<>]*>)([^<]+)(?=</)"
)
COLUMN = re.compile(r"(<(?:[\w.-]+:)?tableColumn\s[^>]*?\bname=\")([^\"]*)(\")")


class Workbook:
    """The sheets of a workbook, its strings, and what its formulas compare with."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.main = parts.main("workbook", "Excel workbook", ".xlsx")
        relations = {one.id: one for one in parts.relations(self.main)}
        self.shared = next((one.target for one in relations.values() if one.kind == "sharedStrings"), None)
        self.sheets = list(self._sheets(relations))
        self.strings = strings_of(parts.text(self.shared), SHARED) if self.shared else []
        self.compared = {text for formula in self._compared() for text in formula}
        self.kept: list[str] = []  # strings that stay for the formulas' sake
        self._seen: set[str] = set()
        self._limits: dict[tuple[str, int], int] = {}
        self._lists: list[tuple[str, list[str]]] = []
        self._headers: dict[tuple[str, int], tuple[str, int]] = {}  # of blocks: whose, and how long with its codes

    def _sheets(self, relations: Mapping[str, Relation]) -> Iterator[tuple[str, str]]:
        """Names and parts, in the order of the tabs, hidden ones as well."""
        for token in tokens_of(self.parts.text(self.main)):
            if token.name.rpartition(":")[2] == "sheet":
                attributes = token.attributes
                id = next((value for name, value in attributes.items() if name.endswith(":id")), "")
                if id in relations and relations[id].kind in ("worksheet", "chartsheet"):
                    yield attributes.get("name", ""), relations[id].target

    def _compared(self) -> Iterator[set[str]]:
        for part in [self.main, *(part for _, part in self.sheets), *self.related("table")]:
            for found in FORMULA.finditer(self.parts.text(part)):
                if '"' in found[3] or "&quot;" in found[3]:
                    name = found[2].rpartition(":")
                    yield compared_texts(html.unescape(found[3]), is_rule=name[2] != "f" or name[0] == "xm")

    def related(self, kind: str) -> list[str]:
        """The parts of a kind that sheets refer to."""
        return [one.target for _, part in self.sheets for one in self.parts.related(part, kind)]

    def drawings(self, part: str) -> Iterator[tuple[str, list[str]]]:
        """The drawings of a sheet, each with its charts."""
        for drawing in self.parts.related(part, "drawing"):
            yield drawing.target, [chart.target for chart in self.parts.related(drawing.target, "chart")]

    # What is read

    def blocks(self) -> Iterator[Block]:
        """The texts of all sheets."""
        for name, part in self.sheets:
            text = self.parts.text(part)
            yield from self._cells(name, part, text)
            yield from self._validations(name, part, text)
            yield from self._header_texts(name, part, text)
            for drawing, charts in self.drawings(part):
                yield from Drawing(drawing, self.parts.text(drawing)).blocks()
                for chart in charts:
                    yield from chart_blocks(chart, self.parts.text(chart), only_own=True)
            for one in self.parts.related(part, "comments"):
                yield from self._notes(name, one.target, self.parts.text(one.target))

    def _cells(self, name: str, part: str, text: str) -> Iterator[Block]:
        done: set[int] = set()
        for cell in cells_of(text):
            id, index = f"{name}!{cell.place}", cell.index
            if index is not None and index < len(self.strings) and index not in done and self.shared:
                done.add(index)
                yield from self._string(self.strings[index], self.shared, id)
            elif cell.type == "inlineStr":
                found = INLINE.search(text, cell.start, cell.start + len(cell.inside))
                if found and found[2] is not None:
                    yield from self._string(String(text, found.start(2), found.end(2)), part, id)

    def _string(self, string: String, part: str, id: str) -> Iterator[Block]:
        """A string that is new: where it stands again it is the same unit, plain ones wherever they stand."""
        key = string.plain_text if string.is_plain else f"{part}\0{string.start}"
        if key in self._seen:
            return
        self._seen.add(key)
        if string.plain_text.strip().casefold() in self.compared:
            self.kept.append(string.plain_text)
        else:
            yield from as_list(string.block(part, id))

    def _validations(self, name: str, part: str, text: str) -> Iterator[Block]:
        """The choices of lists that stand in the sheet itself, and what is said to people who fill it in."""
        for number, found in enumerate(VALIDATION.finditer(text), 1):
            id = f"{name}!validation {number}"
            items = list_items(text, found)
            self._lists += [(id, [item for *_, item in items])] if items else []
            for start, end, item in items:
                if item not in self._seen and item.casefold() not in self.compared:
                    self._seen.add(item)
                    yield from as_list(item_block(start, end, item, part, id))
            for start, end, limit in messages(text, found):
                self._limits[part, start] = limit
                yield from as_list(message_block(start, end, text[start:end], part, id, limit))

    def _header_texts(self, name: str, part: str, text: str) -> Iterator[Block]:
        for header in HEADER.finditer(text):
            id = f"{name}!{header[1].rpartition(':')[2]}"
            for block in header_blocks(header, part, id):
                self._headers[part, block.start] = id, length(html.unescape(header[2]))
                yield block

    def _notes(self, name: str, part: str, text: str) -> Iterator[Block]:
        """Notes at cells. Conversations of reviewers, which have a stand-in here for old programs, are left."""
        authors = [html.unescape(found[2] or "") for found in element("author").finditer(text)]
        for found in element("comment").finditer(text):
            tag = tokens_of(found[0])[0].attributes
            number = int(tag["authorId"]) if tag.get("authorId", "").isdigit() else len(authors)
            author = authors[number] if number < len(authors) else ""
            inside = NOTE_TEXT.search(text, found.start(), found.end())
            if inside and inside[2] is not None and not author.startswith("tc="):
                id = f"{name}!{tag.get('ref', '?')} note"
                yield from as_list(String(text, inside.start(2), inside.end(2)).block(part, id, author))

    # What there is to say

    def notes(self) -> list[str]:
        """What a reader of the translation should know; ask when all blocks have been read."""
        if not self.kept:
            return []
        named = ", ".join(f"“{text[:30]}”" for text in self.kept[:5]) + (" ..." if len(self.kept) > 5 else "")
        return [f"formulas compare cells with {named}: these cells stay as they are"]

    def review(self, texts: Sequence[tuple[Block, str]]) -> list[str]:
        """What Excel has no room for, and so stays in the source language."""
        notes, words, grown = list[str](), dict[str, str](), dict[tuple[str, int], int]()
        for block, shown in texts:
            place = block.part, block.start
            words.setdefault(block.reads, shown)
            limit = self._limits.get(place, CELL_LIMIT)
            if length(shown) > limit:
                notes.append(f"{block.id}: {length(shown):,} characters, Excel holds {limit:,}: left as it was")
            if place in self._headers:
                grown[place] = length(shown.replace("&", "&&")) - length(block.reads.replace("&", "&&"))
        for id, items in self._lists:
            if not list_fits([words.get(item, item) for item in items]):
                notes.append(f"{id}: its translation has commas in it or over {LIST_LIMIT} characters: left as it was")
        for table in self.related("table"):
            names = [words.get(name, name).casefold() for name in column_names(self.parts.text(table))]
            if len(set(names)) < len(names):
                notes.append(f"{table}: columns have the same name in translation: they are numbered")
        for id, size in dict(self._headers.values()).items():
            if size + sum(more for place, more in grown.items() if self._headers[place][0] == id) > HEADER_LIMIT:
                notes.append(f"{id}: over {HEADER_LIMIT} characters: left as it was")
        return notes


def column_names(table: str) -> list[str]:
    """The names of a table's columns."""
    return [unescaped(html.unescape(found[2])) for found in COLUMN.finditer(table)]
