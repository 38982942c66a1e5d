"""Approved pairs from files: tables (TSV, CSV), any corpus format that holds both sides, or a file for each side."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD
from weitblick.documents.corpora.formats import Corpus, guess_format
from weitblick.documents.corpora.reading import LineSource
from weitblick.documents.corpora.tmx import ANY_LANGUAGE, SOURCE_LANGUAGE, same_language, tmx_rows
from weitblick.memory.matches import LocatedPair

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


COMPRESSED = (".gz", ".xz")
NO_MEMORIES = {
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), "XLIFF"),
    **dict.fromkeys((".po", ".pot"), "a gettext catalogue"),
    **dict.fromkeys((".xls", ".xlsx", ".ods"), "a spreadsheet"),
    **dict.fromkeys((".docx", ".pptx", ".odt"), "a document"),
    **dict.fromkeys((".sdltm", ".mtm"), "the memory of another program"),
}
INSTEAD = "give TMX, which most tools write, or a table of two columns (TSV, CSV)"
BOTH_SIDES = "give a file that holds both sides (TMX, JSONL, TSV), or one for each side, as a.{} and a.{}"


def together(paths: Sequence[str | Path], languages: tuple[str, str]) -> list[list[Path]]:
    """Files that are read together: a.en and a.de, named one after the other, are the two sides of one."""
    groups: list[list[Path]] = []
    for path in map(Path, paths):
        alone = groups[-1][0] if groups and len(groups[-1]) == 1 else None
        if alone is not None and (_ending(alone), _ending(path)) == languages:
            groups[-1].append(path)
        else:
            groups.append([path])
    return groups


def read_pairs(path: str | Path | Sequence[str | Path], languages: tuple[str, str]) -> Iterator[LocatedPair]:
    """The pairs of a file, or of the two sides that two files hold. Drafts are not approved, and stay out."""
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(side) for side in path]
    _refuse_others(paths[0])
    table = len(paths) == 1 and is_table(paths[0])
    rows = table_rows(paths[0], languages) if table else _approved(paths, languages)
    found = False
    lacking: int | None = None  # the first line without a target: there may be more such in a file of many languages
    for source, target, line in rows:
        if target is None:
            lacking = lacking or line
        elif source.strip() and target.strip():
            found = True
            yield source.strip(), target.strip(), f"{paths[0].name}:{line}"
    if not found and lacking is not None:
        raise UserError(
            f"has no target side ({languages[1]}), and a memory is made of pairs",
            where=paths[0],
            line=lacking,
            remedy=BOTH_SIDES.format(*languages),
        )
    if not found:
        raise UserError("holds no approved pair", where=paths[0], remedy="give a file with at least one pair")


def _approved(paths: Sequence[Path], languages: tuple[str, str]) -> Iterator[tuple[str, str | None, int]]:
    """Source, target and line of every sentence that is no draft. A memory of millions of pairs, which is one document,
    is never whole in RAM."""
    corpus = Corpus(paths, languages=languages)
    if corpus.format.name == "tmx":
        for row, metadata in tmx_rows(LineSource(paths[0]), languages):
            _check_direction(paths[0], metadata, languages)
            if row.sentence.status != "draft" and row.sentence.source.strip():
                yield row.sentence.source, row.sentence.target, row.line
        return
    for document, lines in corpus.located():
        _check_direction(paths[0], document.metadata, languages)
        for sentence, line in zip(document.sentences, lines, strict=True):
            if sentence.status != "draft" and sentence.source.strip():
                yield sentence.source, sentence.target, line


def _refuse_others(path: Path) -> None:
    """What people may take for a memory, but no reader here knows."""
    if str(path) == STANDARD:
        raise UserError("standard input is not read as a memory", where="--memory", remedy="name a file or a folder")
    if path.is_dir():
        raise UserError("is a folder without a memory", where=path, remedy="make one: weitblick memory add FOLDER FILE")
    if (kind := NO_MEMORIES.get(path.suffix.lower())) is not None:
        raise UserError(f"is {kind}, which is not read as a memory", where=path, remedy=INSTEAD)


def _ending(path: Path) -> str:
    return Path(path.stem if path.suffix in COMPRESSED else path).suffix.removeprefix(".").lower()


def _check_direction(path: Path, metadata: Mapping[str, Any], languages: tuple[str, str]) -> None:
    """A file that says what it was translated from must say the same as the model."""
    declared = str(metadata.get(SOURCE_LANGUAGE, ANY_LANGUAGE))
    if declared != ANY_LANGUAGE and not same_language(declared, languages[0]):
        turning = f"--source-language {languages[0]} --target-language {languages[1]}"
        raise UserError(
            f"is a memory of translations from {declared}, not from {languages[0]}",
            where=path,
            remedy=f"if it serves both ways, turn it: weitblick data convert {path} -o NEW.tmx {turning}",
        )
