"""CSV of localisation: a header names the column of the source and, if there is one, that of the target.

Rows with a target are locked, empty targets are filled in; without a column of targets the source is replaced.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from weitblick.common.errors import UserError
from weitblick.files.blocks import Block, Code, Pieces
from weitblick.files.encoding import decode
from weitblick.files.messages import Message, message_blocks, message_pieces
from weitblick.files.translatable_file import COPY, Content

SOURCES = {"source", "source text", "source string", "original", "msgid", "text", "string", "value", "english"}
TARGETS = {"target", "target text", "target string", "translation", "translated", "msgstr", "german"}
LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][a-z]{2,4})?")
NO_LANGUAGE = {"id", "no", "nr"}  # columns of numbers, far more often than of Indonesian and Norwegian
DELIMITERS = ",;\t|"

Cell = tuple[int, int, str]
"""[start, end) in the file, quotes included, and what the cell says."""


def read_csv(data: bytes, path: Path) -> Content:
    """The content of a CSV file of localisation."""
    text, encoding = decode(data, path)
    first = text.split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=first.count)
    rows = list(_rows(text, delimiter, path))
    if not rows:
        return Content({"": text}, [], lambda new: data)
    source, target = _columns([name for _, _, name in rows[0]], path)
    blocks: list[Block] = []
    for number, row in enumerate(rows[1:], 2):
        if len(row) > source and (target is None or len(row) > target):
            name = row[0][2] if source else str(number)
            blocks += _cell(row[source], row[target] if target is not None else None, name, delimiter, text)
    rows_read = [block for block in blocks if block.part != COPY]
    locked = sum(block.status == "locked" for block in rows_read)
    notes = [f"{locked} of {len(rows_read)} rows are translated already and stay as they are"] if locked else []
    return Content.of_text(text, encoding, blocks, notes)


def _rows(text: str, delimiter: str, path: Path) -> Iterator[list[Cell]]:
    """The cells of each row that is not empty. The library says what a cell is; where it stands, we find."""
    cell = re.compile(rf'"(?:[^"]|"")*"(?=[{re.escape(delimiter)}\n]|\Z)|[^{re.escape(delimiter)}\n]*')
    position = 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for values in reader:
            row: list[Cell] = []
            for value in values:
                found = cell.match(text, position)
                start, end = found.span() if found else (position, position)
                if _said(text[start:end]) != value:
                    raise csv.Error("a quote stands inside a cell")
                row.append((start, end, value))
                position = end + 1
            position += not values
            if row:
                yield row
    except csv.Error as error:
        raise UserError(f"is not CSV ({error})", where=path, line=reader.line_num, remedy="save it again") from None


def _said(raw: str) -> str:
    return raw[1:-1].replace('""', '"') if raw.startswith('"') and len(raw) > 1 else raw


def _columns(names: list[str], path: Path) -> tuple[int, int | None]:
    """Where source and target are: by name, or as the first two languages."""
    lower = [" ".join(name.lower().replace("_", " ").split()) for name in names]
    source = next((n for n, name in enumerate(lower) if name in SOURCES), None)
    target = next((n for n, name in enumerate(lower) if name in TARGETS), None)
    codes = [name.strip().lower() for name in names]
    languages = [n for n, name in enumerate(codes) if LANGUAGE.fullmatch(name) and name not in NO_LANGUAGE]
    languages = [n for n in languages if n not in (source, target)]
    if source is None:
        source = next(iter(languages), None)
    if target is None:
        target = next((n for n in languages if n != source), None)
    if source is None:
        raise UserError(
            f"its first row names no column of texts ({', '.join(names)[:60]})",
            where=path,
            remedy="name columns source and target, or en and de; --from txt takes all of it for text",
        )
    return source, target


def _cell(source: Cell, target: Cell | None, name: str, delimiter: str, text: str) -> Iterator[Block]:
    """A row's text, and the cell that its translation goes to; then the cases of its message, if it has some (ICU)."""
    start, end, said = source
    quotes = int(end - start > len(said))
    first, raw = start + quotes, text[start + quotes : end - quotes]
    pieces, cases = message_pieces(raw, first, CELL, COPY)
    if not pieces.has_text and not cases:
        return
    place = source if target is None else target
    done = target is not None and bool(target[2].strip())
    yield Block(
        place[0],
        place[1],
        *pieces.content(),
        target=target[2] if target is not None and done else None,
        status="locked" if done else None,
        id=name,
        bilingual=target is not None or bool(cases),
        given=None if target is None else (target[2].replace("\n", " "), ()),
        finish=_finish(delimiter, place[1] - place[0] > len(place[2]) or bool(cases)),
    )
    for begin, stop in cases if not done else ():
        yield from message_blocks(raw[begin:stop], first + begin, name, CELL, COPY, 1)


def _add(pieces: Pieces, raw: str) -> None:
    for number, line in enumerate(raw.replace('""', '"').split("\n")):
        if number:
            pieces.code(Code("break", "\n"))
        pieces.text(line)


CELL = Message(_add, lambda text, style: text.replace('"', '""'))
"""Cells with cases are always written in quotes, and what is in them with quotes doubled."""


def _finish(delimiter: str, quoted: bool) -> Callable[[str], str]:
    def finish(text: str) -> str:
        if quoted or any(letter in text for letter in (delimiter, '"', "\n")):
            return '"' + text.replace('"', '""') + '"'
        return text

    return finish
