"""Memories and glossaries that are brought along: TMX, TSV, JSONL, or two columns of CSV."""

from __future__ import annotations

import csv
import io

from weitblick.errors import UserError
from weitblick.memory.reading import read_pairs as read_memory
from weitblick.server.files import ENDING, own_folder


def read_pairs(name: str, content: bytes, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """Source and target of every pair of a file."""
    ending = ENDING.search(name.lower())
    kind = ending.group() if ending else ".tsv"
    pairs = _columns(content, kind) if kind in (".tsv", ".csv", ".txt") else None
    if pairs is None:
        with own_folder(name) as folder:
            path = folder / f"memory{kind}"
            path.write_bytes(content)
            pairs = [(source, target) for source, target, _ in read_memory(path, languages)]
    if not pairs:
        raise UserError(f"{name} holds no pair", remedy="give a TMX file, or two columns: source, target")
    return pairs


def _columns(content: bytes, kind: str) -> list[tuple[str, str]] | None:
    """Two columns, source and target; None if it is a table of another kind."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError("the file is not UTF-8 text", remedy="save it as UTF-8") from None
    rows = csv.reader(io.StringIO(text), delimiter="," if kind == ".csv" else "\t")
    try:
        found = [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise UserError(f"the file is no table ({error})", remedy="give two columns: source, target") from None
    if not found or any(len(row) != 2 for row in found):
        return None
    return [(source, target) for source, target in found if source and target]
