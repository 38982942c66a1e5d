"""Glossaries as others export them: tables (TSV, CSV with commas or semicolons, XLSX) and TBX.

A table has two columns, source and target, or a line of titles that says which columns these are: `source` and
`target`, codes or names of languages. Further columns may say that a term is written in just this case, is not
translated, or must not be used.
"""

from __future__ import annotations

import csv
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weitblick.common.errors import UserError
from weitblick.common.files import read_lines
from weitblick.memory.stems import base_language
from weitblick.memory.terms import Term

LANGUAGES = {
    "en": ("english", "englisch", "anglais", "inglés"), "de": ("german", "deutsch", "allemand"),
    "fr": ("french", "französisch", "français"), "es": ("spanish", "spanisch", "español"),
    "it": ("italian", "italienisch", "italiano"), "nl": ("dutch", "niederländisch", "nederlands"),
    "pt": ("portuguese", "portugiesisch", "português"), "pl": ("polish", "polnisch", "polski"),
    "cs": ("czech", "tschechisch", "čeština"), "ru": ("russian", "russisch", "русский"),
}  # fmt: skip
SOURCE_TITLES = ("source", "source term", "term", "src", "source_term", "sourceterm")
TARGET_TITLES = ("target", "target term", "translation", "tgt", "target_term", "targetterm")
CASE_TITLES = ("case", "case sensitive", "casesensitive", "case-sensitive", "match case")
KEEP_TITLES = ("do not translate", "dnt", "non-translatable", "untranslatable", "keep")
FORBIDDEN_TITLES = ("forbidden", "is forbidden", "deprecated", "do not use")
YES = ("yes", "y", "true", "1", "x", "ja", "wahr", "case-sensitive", "case sensitive")
COLUMN = re.compile(r"([A-Z]+)\d+")
XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
MOST_BYTES = 256 << 20
"""Of an unpacked sheet: more is no glossary."""
REMEDY = "write two columns with a tab between them, or a line of titles: source, target"

Row = tuple[int, list[str]]
"""The number of a line, and its cells."""


@dataclass(frozen=True)
class _Columns:
    source: int
    target: int
    case: int | None = None
    keep: int | None = None
    forbidden: int | None = None


def read_terms(path: str | Path, languages: tuple[str, str]) -> Iterator[Term]:
    """The terms of one file, for a model of these languages."""
    suffix = Path(path).suffix.lower()
    if suffix == ".tbx":
        found = list(_read_tbx(Path(path), languages))
        if not found:
            raise UserError(
                f"holds no term with a translation from {languages[0]} to {languages[1]}",
                where=path,
                remedy="name a TBX file of these languages",
            )
        yield from found
        return
    if suffix == ".xls":
        raise UserError("is a sheet of the old Excel format", where=path, remedy="save it as XLSX or CSV")
    yield from _terms(path, _sheet(Path(path)) if suffix == ".xlsx" else _table(path), languages)


def read_kept(path: str | Path) -> Iterator[Term]:
    """Terms that stay as they are, one a line."""
    found = False
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            found = True
            yield Term(line.strip(), line.strip(), f"{Path(path).name}:{number}")
    if not found:
        raise UserError("holds no term", where=path, remedy="write a term a line")


def _terms(path: str | Path, rows: Iterator[Row], languages: tuple[str, str]) -> Iterator[Term]:
    columns: _Columns | None = None
    found = titled = False
    for number, cells in rows:
        if not any(cells):
            continue
        if columns is None:
            titles = _titles(cells, languages)
            columns, titled = titles or _Columns(0, 1), titles is not None
            if titles is not None:
                continue
        term = _term(path, number, cells, columns, titled, languages)
        found = True
        if term is not None:
            yield term
    if not found:
        raise UserError("holds no term", where=path, remedy=REMEDY)


def _term(
    path: str | Path, number: int, cells: list[str], columns: _Columns, titled: bool, languages: tuple[str, str]
) -> Term | None:
    """The term of a row; None of one that a person has left empty, or that must not be used."""

    def cell(place: int | None) -> str:
        return cells[place] if place is not None and place < len(cells) else ""

    source, target = cell(columns.source), cell(columns.target)
    is_yes = {name: cell(getattr(columns, name)).lower() in YES for name in ("case", "keep", "forbidden")}
    if titled:
        if is_yes["forbidden"] or not source or not (target or is_yes["keep"]):
            return None
    elif (len(cells) != 2 and not _says_languages(cells, languages)) or not source or not target:
        shown = "\t".join(cells)
        raise UserError(f"{shown!r} is not a term and its translation", where=path, line=number, remedy=REMEDY)
    if is_yes["keep"]:
        target = source
    return Term(source, target, f"{Path(path).name}:{number}", cased=is_yes["case"])


def _says_languages(cells: Sequence[str], languages: tuple[str, str]) -> bool:
    """Whether two more cells of a row are the codes of its languages, as DeepL writes them."""
    return len(cells) == 4 and tuple(map(base_language, cells[2:])) == tuple(map(base_language, languages))


def _titles(cells: Sequence[str], languages: tuple[str, str]) -> _Columns | None:
    """Which columns a first row names; None if it is a row like the others."""
    lower = [cell.lower().strip() for cell in cells]
    if _says_languages(cells, languages) and not set(lower[:2]) & {*SOURCE_TITLES, *TARGET_TITLES}:
        return None

    def place(*names: str) -> int | None:
        return next((n for n, cell in enumerate(lower) if cell in names), None)

    def of_language(language: str) -> int | None:
        code = base_language(language)
        exact = place(code, *LANGUAGES.get(code, ()))
        regional = (n for n, cell in enumerate(lower) if re.fullmatch(rf"{code}[-_][a-z]{{2,4}}", cell))
        named = (n for n, cell in enumerate(lower) if cell.split(" ")[0].strip("_") in LANGUAGES.get(code, ()))
        return exact if exact is not None else next(regional, next(named, None))

    source, target = place(*SOURCE_TITLES), place(*TARGET_TITLES)
    if source is None or target is None:
        source, target = of_language(languages[0]), of_language(languages[1])
    if source is None or target is None or source == target:
        return None
    return _Columns(source, target, place(*CASE_TITLES), place(*KEEP_TITLES), place(*FORBIDDEN_TITLES))


def _table(path: str | Path) -> Iterator[Row]:
    """The rows of a text: separated by tabs, or as CSV by what its first line has most of."""
    lines = list(read_lines(path))
    first = next((line for line in lines if line.strip()), "")
    if "\t" in first or Path(path).suffix.lower() != ".csv":
        for number, line in enumerate(lines, 1):
            yield number, [cell.strip() for cell in line.strip("\r\n ").split("\t")]
        return
    separator = max(",;", key=first.count)
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator)
    try:
        for row in reader:
            yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise UserError(f"is no table ({error})", where=path, line=reader.line_num, remedy=REMEDY) from None


def _xml(data: bytes, path: Path) -> Any:
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise UserError(f"is no valid XML ({error})", where=path, remedy="export it again") from None


def _name(element: Any) -> str:
    """The name of an XML element without its namespace; empty for comments."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _sheet(path: Path) -> Iterator[Row]:
    """The rows of the first sheet of an XLSX file."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(
                (n for n in archive.namelist() if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", n)),
                key=lambda name: int(re.sub(r"\D", "", name)),
            )
            parts = [name for name in (*names[:1], "xl/sharedStrings.xml") if name in archive.namelist()]
            if not names or any(archive.getinfo(name).file_size > MOST_BYTES for name in parts):
                raise UserError("holds no sheet that could be a glossary", where=path, remedy="save it as XLSX or CSV")
            content = {name: archive.read(name) for name in parts}
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise UserError(f"cannot be read as XLSX ({error})", where=path, remedy="save it as XLSX or CSV") from None
    shared: list[str] = []
    if "xl/sharedStrings.xml" in content:
        strings = _xml(content["xl/sharedStrings.xml"], path)
        shared = ["".join(t.text or "" for t in one.iter() if _name(t) == "t") for one in strings if _name(one) == "si"]
    for row in (one for one in _xml(content[names[0]], path).iter() if _name(one) == "row"):
        cells: dict[int, str] = {}
        for place, cell in enumerate(one for one in row if _name(one) == "c"):
            matched = COLUMN.fullmatch(cell.get("r", ""))
            cells[_column(matched[1]) if matched else place] = _value(cell, shared)
        number = row.get("r", "")
        yield int(number) if number.isdigit() else 0, [cells.get(n, "") for n in range(max(cells, default=-1) + 1)]


def _column(letters: str) -> int:
    number = 0
    for letter in letters[:3]:
        number = 26 * number + ord(letter) - 64
    return number - 1


def _value(cell: Any, shared: Sequence[str]) -> str:
    text = "".join(one.text or "" for one in cell.iter() if _name(one) in ("v", "t")).strip()
    if cell.get("t") != "s":
        return text
    return shared[int(text)].strip() if text.isdigit() and int(text) < len(shared) else ""


def _read_tbx(path: Path, languages: tuple[str, str]) -> Iterator[Term]:
    """Concepts with terms in both languages; those that are deprecated or not admitted are left out."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror or error})", where=path) from None
    codes = tuple(map(base_language, languages))
    for entry in (one for one in _xml(data, path).iter() if _name(one) in ("termEntry", "conceptEntry")):
        terms: dict[str, list[str]] = {}
        for section in (one for one in entry.iter() if _name(one) in ("langSet", "langSec")):
            code = base_language(section.get(XML_LANGUAGE) or section.get("lang") or "")
            for group in (one for one in section.iter() if _name(one) in ("tig", "ntig", "termSec")):
                word = next(("".join(one.itertext()) for one in group.iter() if _name(one) == "term"), "")
                notes = " ".join((one.text or "").lower() for one in group.iter() if _name(one) == "termNote")
                if word.strip() and not re.search(r"deprecated|superseded|forbidden|notrecommended", notes):
                    terms.setdefault(code, []).append(" ".join(word.split()))
        sources, targets = terms.get(codes[0], []), terms.get(codes[1], [])
        for source in sources:
            if targets:
                yield Term(source, "|".join(targets), f"{path.name}:{entry.sourceline}")
