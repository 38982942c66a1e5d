"""Approved pairs in a table with tabs: which columns hold them, and cells as spreadsheets quote them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from weitblick.documents.corpora import guess_format
from weitblick.documents.corpora.reading import LineSource
from weitblick.errors import UserError

TITLES = ("source", "target")
COLUMNS_OF_PAIRS = {2: (0, 1), 3: (1, 2)}
"""Where source and target stand in a table without titles, by its width; of three columns the first is the document."""


def is_table(path: Path) -> bool:
    if not path.is_file() or guess_format([path]) not in ("tsv", "text"):
        return False
    return "\t" in next((line for line in LineSource(path) if line.strip()), "")


def table_rows(path: Path, languages: tuple[str, str]) -> Iterator[tuple[str, str | None, int]]:
    """Source, target and line of every row that is not empty; a target is None where the table has none."""
    lines = LineSource(path)
    width = 0
    source, target = 0, -1
    for line in lines:
        cells = [unquoted(cell.strip()) for cell in line.split("\t")]
        if not any(cells):
            continue
        if not width:
            width = len(cells)
            titled = _titled(cells, languages)
            source, target = titled or _untitled(path, lines.count, width)
            if titled:
                continue
        if len(cells) != width:
            raise UserError(
                f"has {len(cells)} column{'s' * (len(cells) != 1)}, not {width} as before",
                where=path,
                line=lines.count,
                remedy="put a tab between two columns, and none inside of them",
            )
        yield cells[source], cells[target] if target >= 0 else None, lines.count


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
