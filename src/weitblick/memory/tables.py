"""Approved pairs in a table (TSV, CSV): which columns hold them, and cells as spreadsheets quote them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from weitblick.documents.corpora import guess_format
from weitblick.documents.corpora.reading import LineSource
from weitblick.errors import UserError

TITLES = ("source", "target")
COLUMNS_OF_PAIRS = {2: (0, 1), 3: (1, 2)}
"""Where source and target stand in a table without titles, by its width; of three columns the first is the document."""


def is_table(path: Path) -> bool:
    if _is_csv(path):
        return True
    if not path.is_file() or guess_format([path]) not in ("tsv", "text"):
        return False
    return "\t" in next((line for line in LineSource(path) if line.strip()), "")


def table_rows(path: Path, languages: tuple[str, str]) -> Iterator[tuple[str, str | None, int]]:
    """Source, target and line of every row that is not empty; a target is None where the table has none."""
    width = 0
    source, target = 0, -1
    for cells, line in _csv_cells(path) if _is_csv(path) else _tab_cells(path):
        if not any(cells):
            continue
        if not width:
            width = len(cells)
            titled = _titled(cells, languages)
            source, target = titled or _untitled(path, line, width)
            if titled:
                continue
        if len(cells) != width:
            raise UserError(
                f"has {len(cells)} column{'s' * (len(cells) != 1)}, not {width} as before",
                where=path,
                line=line,
                remedy="put a tab between two columns, and none inside of them; in CSV, quote what holds commas",
            )
        yield cells[source], cells[target] if target >= 0 else None, line


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _tab_cells(path: Path) -> Iterator[tuple[list[str], int]]:
    lines = LineSource(path)
    for line in lines:
        yield [unquoted(cell.strip()) for cell in line.split("\t")], lines.count


def _csv_cells(path: Path) -> Iterator[tuple[list[str], int]]:
    """Rows and the lines on which they end: a cell may run over several."""
    lines = LineSource(path)
    first = lines.peek()
    separator = max(";,\t", key=first.count)  # where a comma is a decimal point, spreadsheets write semicolons
    try:
        for cells in csv.reader((line + "\n" for line in lines), delimiter=separator, strict=True):
            yield [" ".join(cell.split("\n")).strip() for cell in cells], lines.count
    except csv.Error as error:
        raise UserError(
            f"is no CSV ({error})", where=path, line=lines.count, remedy="quote cells as spreadsheets do, or use tabs"
        ) from None


def _titled(cells: list[str], languages: tuple[str, str]) -> tuple[int, int] | None:
    """The columns of source and target (-1: none) by their titles, which may be the languages; None without titles."""
    titles = [cell.lower() for cell in cells]
    for ours, theirs in (TITLES, languages):
        if ours in titles and theirs in titles:
            return titles.index(ours), titles.index(theirs)
    return (1, -1) if titles == ["id", "source"] else None


def _untitled(path: Path, line: int, width: int) -> tuple[int, int]:
    if width not in COLUMNS_OF_PAIRS:
        raise UserError(
            f"has {width} columns, and nothing says which are source and target",
            where=path,
            line=line,
            remedy="keep these two, or name them so in a first line",
        )
    return COLUMNS_OF_PAIRS[width]


def unquoted(cell: str) -> str:
    """A cell with quotation marks inside, which spreadsheets double: "say ""yes"".". Others are text as they stand."""
    inside = cell[1:-1]
    if len(cell) < 4 or cell[0] != '"' or cell[-1] != '"' or '""' not in inside or '"' in inside.replace('""', ""):
        return cell
    return inside.replace('""', '"')
