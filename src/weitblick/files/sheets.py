"""Excel files: a workbook is read, its texts are translated, and what refers to them follows (equal cells, columns of
tables, formulas, lists, filters, caches)."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from itertools import chain, count
from pathlib import Path

from weitblick.files.cells import CELL, INLINE, SHARED, TYPE, Cell, String, cells_of, length, strings_of
from weitblick.files.drawing import with_strings
from weitblick.files.formulas import texts_in, with_columns
from weitblick.files.markup import escape, tokens_of, with_attribute
from weitblick.files.office import Package
from weitblick.files.ooxml import Parts, Texts, escaped, escaped_attribute, unescaped
from weitblick.files.sheet_texts import HEADER, HEADER_LIMIT, VALIDATION, escaped_item, list_fits, list_items
from weitblick.files.translatable_file import Content
from weitblick.files.workbook import COLUMN, FORMULA, Workbook, column_names

TOTAL = re.compile(r"(\stotalsRowLabel=\")([^\"]*)(\")")
FILTER = re.compile(r"(<(?:[\w.-]+:)?(?:filter|customFilter)\s[^>]*?\bval=\")([^\"]*)(\")")
PIVOT = re.compile(r"(<(?:[\w.-]+:)?(?:cacheField\s[^>]*?\bname|s\s[^>]*?\bv)=\")([^\"]*)(\")")
RANGE = re.compile(r"\$?([A-Z]+)\$?(\d+)(?::\$?([A-Z]+)\$?(\d+))?")
RESULT = re.compile(r"<((?:[\w.-]+:)?v)>([^<]*)</\1\s*>")
RESULT_FORMULA = re.compile(r"<(?:[\w.-]+:)?f(?:\s[^>]*)?>([^<]*)</")
CALCULATION = re.compile(r"<(?:[\w.-]+:)?calcPr(?=[\s/>])[^>]*>")
BEFORE_CALCULATION = ("sheets", "functionGroups", "externalReferences", "definedNames")


class Changes:
    """The parts of a workbook after its translation, as they are changed one after the other."""

    def __init__(self, book: Workbook, new: Texts, words: Mapping[str, str] | None = None) -> None:
        """`new`: parts whose blocks are translated; `words`: what strings become besides."""
        self.book, self.texts = book, dict(new)
        self.words = dict(words or {})
        self.columns: dict[str, dict[str, str]] = {}
        self._shared: tuple[str, list[String]] = "", []

    def now(self, part: str) -> str:
        """A part as it is by now."""
        return self.texts.get(part, self.book.parts.text(part))

    def change(self, part: str, by: Callable[[str], str]) -> None:
        """Change a part."""
        self.texts[part] = by(self.now(part))

    def complete(self) -> Texts:
        """All parts, changed as they must be."""
        sheets = [part for _, part in self.book.sheets]
        places = [(part, INLINE) for part in sheets] + ([(self.book.shared, SHARED)] if self.book.shared else [])
        for part, kind in reversed(places):  # shared strings decide
            self._learn(part, kind)
        for part, kind in places:
            self._spread(part, kind)
        for part in sheets:
            self._name_columns(part)
        for part in sheets:
            self._lists(part)
            self._headers(part)
            self.change(part, lambda text: _attributes(FILTER, text, self.words))
            self.change(part, self._results)
        for part in [*sheets, self.book.main, *self.book.related("table")]:
            self.change(part, self._formulas)
        for part in sheets:
            self._caches(part)
        if any(re.search(r"<(?:[\w.-]+:)?f[\s>/]", self.now(part)) for part in sheets) and self._is_changed():
            self.change(self.book.main, _calculated_anew)
        return self.texts

    def _is_changed(self) -> bool:
        return any(text != self.book.parts.text(part) for part, text in self.texts.items())

    # Strings

    def _learn(self, part: str, kind: re.Pattern[str]) -> None:
        """What the strings of a part have become."""
        if part in self.texts:
            both = zip(strings_of(self.book.parts.text(part), kind), strings_of(self.texts[part], kind), strict=True)
            for old, new in both:
                if old.plain_text != new.plain_text:
                    self.words.setdefault(old.plain_text, new.plain_text)

    def _spread(self, part: str, kind: re.Pattern[str]) -> None:
        """Plain strings that are equal become equal ones."""
        text = self.now(part)
        both = zip(strings_of(self.book.parts.text(part), kind), strings_of(text, kind), strict=True)
        edits = [
            (new.start, new.end, new.written(self.words[old.plain_text]))
            for old, new in both
            if old.plain_text == new.plain_text and old.plain_text in self.words and old.is_plain
        ]
        self.texts[part] = _edited(text, edits)

    # Tables: a column is called what its header cell says, and formulas call it so.

    def _name_columns(self, sheet: str) -> None:
        for table in self.book.parts.related(sheet, "table"):
            text = self.now(table.target)
            tag = next((t for t in tokens_of(text) if t.name.rpartition(":")[2] == "table"), None)
            place = RANGE.match(tag.attributes.get("ref", "")) if tag else None
            if tag is None or place is None:
                continue
            old = column_names(text)
            headed = tag.attributes.get("headerRowCount", "1") != "0"
            new = self._header(sheet, place, old) if headed else old
            named = iter(new)
            text = COLUMN.sub(lambda found: found[1] + escaped_attribute(next(named)) + found[3], text)  # noqa: B023
            self.texts[table.target] = _attributes(TOTAL, _attributes(FILTER, text, self.words), self.words)
            changed = {before.casefold(): after for before, after in zip(old, new, strict=True) if before != after}
            for name in (tag.attributes.get("displayName", ""), tag.attributes.get("name", "")):
                self.columns[name.casefold()] = changed

    def _header(self, sheet: str, place: re.Match[str], old: list[str]) -> list[str]:
        """The new names of columns. No two are the same: where translations are, the cells get numbers."""
        first, row = column_number(place[1]), int(place[2])
        cells = {
            column_number(cell.column) - first: cell
            for cell in cells_of(self.now(sheet))
            if cell.row == row and cell.column and cell.type in ("s", "inlineStr")
        }
        taken = {name.casefold() for name in old if name not in self.words}
        names: list[str] = []
        for number, before in enumerate(old):
            cell = cells.get(number) if before in self.words else None
            found = self._string(sheet, cell) if cell else None
            if found is None:
                names.append(before)
                continue
            part, string = found
            own = string.plain_text
            name = next(n for n in chain([own], (f"{own}{k}" for k in count(2))) if n.casefold() not in taken)
            if name != own:
                self._extend(part, string, name[len(own) :])
                self.words[before] = name
            taken.add(name.casefold())
            names.append(name)
        return names

    def _string(self, sheet: str, cell: Cell) -> tuple[str, String] | None:
        """The string of a cell as it is by now, and the part that it stands in."""
        if cell.type == "s":
            text, index = self.now(self.book.shared) if self.book.shared else "", cell.index
            if self._shared[0] != text:
                self._shared = text, strings_of(text, SHARED)
            known = index is not None and index < len(self._shared[1])
            return (self.book.shared or "", self._shared[1][index or 0]) if known else None
        text = self.now(sheet)
        start = re.search(rf"<(?:[\w.-]+:)?c\s[^<>]*?\br=[\"']{cell.place}[\"']", text)
        found = INLINE.search(text, start.start()) if start else None
        return (sheet, String(text, found.start(2), found.end(2))) if found and found[2] is not None else None

    def _extend(self, part: str, string: String, more: str) -> None:
        """Put something behind what a string says."""
        text = self.now(part)
        place = max(text.rfind("</t>", string.start, string.end), text.rfind(":t>", string.start, string.end))
        place = text.rfind("</", string.start, place + 4)
        self.texts[part] = text[:place] + escaped(more) + text[place:]

    def _formulas(self, text: str) -> str:
        if not any(self.columns.values()):
            return text

        def renamed(found: re.Match[str]) -> str:
            formula = html.unescape(found[3])
            new = with_columns(formula, self.columns)
            return found[1] + (found[3] if new == formula else escape(new))

        return FORMULA.sub(renamed, text)

    # Lists, headers, results of formulas

    def _lists(self, sheet: str) -> None:
        """Choices say what cells say; a list that cannot hold its translation stays as it was."""
        old, text = self.book.parts.text(sheet), self.now(sheet)
        edits: list[tuple[int, int, str]] = []
        for before, after in zip(VALIDATION.finditer(old), VALIDATION.finditer(text), strict=True):
            were, are = list_items(old, before), list_items(text, after)
            if len(were) != len(are):  # a comma in a translation
                whole = [list_place(one) for one in (before, after)]
                edits.append((*whole[1], old[slice(*whole[0])]))
                continue
            pairs = [(a, b) for (*_, a), (*_, b) in zip(were, are, strict=True)]
            new = [self.words.get(a, a) if a == b else b for a, b in pairs]
            wanted = new if list_fits(new) else [a for a, _ in pairs]
            edits += [(start, end, escaped_item(s)) for (start, end, b), s in zip(are, wanted, strict=True) if b != s]
        self.texts[sheet] = _edited(text, edits)

    def _headers(self, sheet: str) -> None:
        """A header that has become too long stays as it was."""
        olds = iter(HEADER.finditer(self.book.parts.text(sheet)))

        def fitting(found: re.Match[str]) -> str:
            old = next(olds)
            return old[0] if length(html.unescape(found[2])) > HEADER_LIMIT else found[0]

        self.change(sheet, lambda text: HEADER.sub(fitting, text))

    def _results(self, text: str) -> str:
        """What a formula showed last is what the cell that it shows says now, until it is computed again."""

        def cell(found: re.Match[str]) -> str:
            kind = TYPE.search(found["attributes"])
            value = RESULT.search(found["inside"] or "") if kind and kind[1] == "str" else None
            shown = unescaped(html.unescape(value[2])) if value else ""
            formula = RESULT_FORMULA.search(found["inside"] or "")
            own = texts_in(html.unescape(formula[1])) if formula else set()
            if value is None or shown not in self.words or shown in own:
                return found[0]
            start = found.start("inside") - found.start()
            new = escaped(self.words[shown])
            return found[0][: start + value.start(2)] + new + found[0][start + value.end(2) :]

        return CELL.sub(cell, text) if self.words and 't="str"' in text else text

    def _caches(self, sheet: str) -> None:
        """Charts and pivot tables keep copies of what cells say."""
        parts = self.book.parts
        for _, charts in self.book.drawings(sheet):
            for chart in charts:
                self.texts[chart] = with_strings(parts.text(chart), self.now(chart), self.words)
        for pivot in parts.related(sheet, "pivotTable"):
            for cache in parts.related(pivot.target, "pivotCacheDefinition"):
                records = [one.target for one in parts.related(cache.target, "pivotCacheRecords")]
                for part in [cache.target, *records]:
                    self.texts[part] = _attributes(PIVOT, parts.text(part), self.words)


def list_place(validation: re.Match[str]) -> tuple[int, int]:
    """Where the inside of a validation stands."""
    return validation.start(2), validation.end(2)


def column_number(letters: str) -> int:
    """A is 1, Z is 26, AA is 27."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    out, position = [], 0
    for start, end, new in edits:
        out += [text[position:start], new]
        position = end
    return "".join([*out, text[position:]])


def _attributes(pattern: re.Pattern[str], text: str, words: Mapping[str, str]) -> str:
    """Attributes, the second group of a pattern, that say what `words` know."""

    def changed(found: re.Match[str]) -> str:
        new = words.get(unescaped(html.unescape(found[2])))
        return found[0] if new is None else found[1] + escaped_attribute(new) + found[3]

    return pattern.sub(changed, text)


def _calculated_anew(workbook: str) -> str:
    """The workbook's part with the wish to compute formulas when it is opened: they may read translated cells."""
    found = CALCULATION.search(workbook)
    if found:
        return workbook[: found.start()] + with_attribute(found[0], "fullCalcOnLoad", "1") + workbook[found.end() :]
    ends = [one for name in BEFORE_CALCULATION for one in re.finditer(rf"</((?:[\w.-]+:)?){name}\s*>", workbook)]
    if not ends:
        return workbook
    last = max(ends, key=lambda one: one.end())
    return f'{workbook[: last.end()]}<{last[1]}calcPr fullCalcOnLoad="1"/>{workbook[last.end() :]}'


def read_xlsx(data: bytes, path: Path) -> Content:
    """The content of an Excel file."""
    book = Workbook(Parts(Package(data, path)))
    blocks = list(book.blocks())

    def complete(new: Texts) -> tuple[Texts, Mapping[str, bytes]]:
        return Changes(book, new).complete(), {}

    return book.parts.content(blocks, complete, book.notes(), book.review)


def with_cells(data: bytes, path: Path, words: Mapping[str, str]) -> bytes:
    """A workbook whose cells say something else where `words` know it: that of a chart in another file."""
    book = Workbook(Parts(Package(data, path)))
    return book.parts.replaced(Changes(book, {}, words).complete(), {})
