"""`weitblick serve --recover`: what can still be read of a damaged database becomes a new one; the old one is kept."""

from __future__ import annotations

import sqlite3
import struct
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from weitblick.common.errors import UserError
from weitblick.common.files import atomic_path
from weitblick.common.system import SYSTEM
from weitblick.translation.options import Formality
from weitblick.workbench.database import FILE, connect, copied, hold_folder, transaction
from weitblick.workbench.schema import APPROVED, TABLES
from weitblick.workbench.transfer import read_upload

PAGE, UTF8, SQLITE_VERSION = 4096, 1, 3_040_000
"""What the header of a database says of itself: bytes of a page, the encoding, the version that wrote it."""
LONGEST_GAP = 200_000
"""Numbers after which no further row is looked for behind a damaged place."""
RECOVERED = "recovered"
MOST_ROWS = 10_000_000
LOST = "�"
"""The source of a row that is lost, and that no file tells any more."""
Row = dict[str, Any]


@dataclass
class Recovered:
    """What was saved: rows by table, and what is lost, in words. `kept` is where the damaged file is now."""

    saved: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    kept: Path | None = None

    def __str__(self) -> str:
        saved = ", ".join(f"{self.saved[table]} {table}" for table in TABLES)
        lost = "; ".join(self.lost[:10]) + (f"; and {len(self.lost) - 10} more" if len(self.lost) > 10 else "")
        return f"saved {saved}" + (f" (lost: {lost})" if lost else "") + f"; the damaged file is {self.kept}"


def recover(folder: Path, language: str) -> Recovered | None:
    """Saves what can be read of the database in a folder; None if nothing is wrong with it. `language` is that of the
    sources: rows that are lost are read again from the files that were uploaded."""
    path = folder / FILE
    if not path.is_file():
        raise UserError("holds no projects", where=folder, remedy="name the folder that --data names for the server")
    held = hold_folder(folder)
    try:
        if _is_sound(path):
            return None
        with copied(path) as copy, atomic_path(folder / f"recovered-{FILE}", private=True) as fresh:
            found = Recovered()
            content = _Content(copy, path)
            new = connect(fresh)
            try:
                _fill(new, content, found, language)
                new.execute("PRAGMA journal_mode = DELETE")  # all in one file, which is renamed
            finally:
                new.close()
        found.kept = path.with_name(f"{FILE}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
        SYSTEM.replace(path, found.kept)
        for ending in ("-wal", "-shm"):
            if (beside := path.with_name(f"{FILE}{ending}")).exists():
                SYSTEM.replace(beside, found.kept.with_name(f"{found.kept.name}{ending}"))
        SYSTEM.replace(folder / f"recovered-{FILE}", path)
        return found
    finally:
        held.close()


def _is_sound(path: Path) -> bool:
    """Looked for in a copy: what opens a database may change it."""
    try:
        with copied(path) as copy:
            connect(copy).close()
    except UserError:
        return False
    return True


def _restore_header(copy: Path) -> None:
    """Writes the first 100 bytes of a database anew, as SQLite's file format has them: without them it reads nothing,
    and nothing in them belongs to a user."""
    with open(copy, "r+b") as file:
        pages = file.seek(0, 2) // PAGE
        file.seek(0)
        file.write(b"SQLite format 3\0" + struct.pack(">H6B", PAGE, 2, 2, 0, 64, 32, 32))  # with a log; no reserve
        file.write(struct.pack(">8I", 1, pages, 0, 0, 1, 4, 0, 0))  # changes, pages, none free, schema, format 4
        file.write(struct.pack(">4I20x2I", UTF8, 0, 0, 0, 1, SQLITE_VERSION))


class _Content:
    """What SQLite can read of a damaged database, around the places where it cannot."""

    def __init__(self, copy: Path, named: Path) -> None:
        self.broken: set[str] = set()  # tables of which something could not be read
        there, reason = self._open(copy)
        if not there & set(TABLES):
            self._database.close()
            _restore_header(copy)
            there, reason = self._open(copy)
        if not there & set(TABLES):
            raise UserError(
                f"holds nothing that can be read{reason}",
                where=named,
                remedy="restore a backup, or move the file away",
            )

    def _open(self, copy: Path) -> tuple[set[str], str]:
        """The tables that are there, and why they cannot be told."""
        self._database = sqlite3.connect(copy, isolation_level=None)
        self._database.text_factory = lambda text: text.decode("utf-8", "replace")
        self._database.row_factory = sqlite3.Row
        try:
            self._database.execute("PRAGMA writable_schema = ON")  # a damaged schema is read as far as it goes
            found = self._database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return set(), f" ({error})"
        return {row[0] for row in found}, ""

    def rows(self, query: str, *values: object) -> Iterator[Row]:
        """The rows of a query up to the first that cannot be read."""
        try:
            for row in self._database.execute(query, values):
                yield dict(row)
        except (sqlite3.Error, OverflowError):
            return

    def numbered(self, table: str, number: str, where: str = "TRUE", *values: object) -> Iterator[Row]:
        """The rows of a table by a number that counts them; what cannot be read is stepped over."""
        at, gap = -1, 0
        query = f"SELECT * FROM {table} WHERE {where} AND {number} > ? ORDER BY {number} LIMIT 1"
        while gap < LONGEST_GAP and at < MOST_ROWS:
            try:
                row = self._database.execute(query, (*values, at)).fetchone()
            except (sqlite3.Error, OverflowError):
                at, gap = at + 1, gap + 1
                self.broken.add(table)
                continue
            if row is None or not isinstance(row[number], int) or row[number] <= at:
                return
            at, gap = row[number], 0
            yield dict(row)

    def identities(self, table: str, *elsewhere: tuple[str, str]) -> list[str]:
        """All ids of a table that anything tells: it itself, from either end, its indexes, or columns elsewhere."""
        found: dict[str, None] = {}
        queries = [
            f"SELECT id FROM {table} {how} ORDER BY id {order}" for how in ("NOT INDEXED", "") for order in ("", "DESC")
        ]
        queries += [f"SELECT id FROM {table} INDEXED BY documents_of_project"] if table == "documents" else []
        queries += [f"SELECT DISTINCT {column} AS id FROM {name}" for name, column in elsewhere]
        for query in queries:
            found.update((row["id"], None) for row in self.rows(query) if isinstance(row["id"], str))
        return list(found)

    def one(self, table: str, identity: str, *columns: str) -> Row:
        """As many columns of a row as can be read, in their order; none if it cannot be found."""
        row: Row = {}
        for column in columns:
            row |= next(self.rows(f"SELECT {column} FROM {table} WHERE id = ?", identity), {})
        return row


Place = tuple[str, int]
"""A document and a position in it."""


@dataclass
class _Traces:
    """What history and memory know about rows: the last text of each, with its state, and the sources of approved
    ones."""

    last: dict[Place, tuple[str, str]] = field(default_factory=dict)
    sources: dict[Place, str] = field(default_factory=dict)
    projects: dict[str, str] = field(default_factory=dict)  # of documents

    def positions(self, document: str) -> list[int]:
        return [position for of, position in (*self.last, *self.sources) if of == document]


def _fill(new: sqlite3.Connection, content: _Content, found: Recovered, language: str) -> None:
    edits, pairs, comments = (list(content.numbered(table, "id")) for table in ("edits", "pairs", "comments"))
    traces = _Traces(
        {(row["document"], row["position"]): (row["after"], row["state_after"]) for row in edits},
        {(row["document"], row["position"]): row["source"] for row in pairs if row["document"] is not None},
        {row["document"]: row["project"] for row in pairs if row["document"] is not None},
    )
    with transaction(new):
        projects = content.identities("projects", ("documents", "project"))
        for number, identity in enumerate(dict.fromkeys([*projects, *(row["project"] for row in pairs)]), 1):
            row = {"name": f"Recovered {number}", "created": time.time()}
            row |= content.one("projects", identity, "name", "created", "formality")
            if row.get("formality") not in get_args(Formality):  # none yet, or what damage has made of it
                row.pop("formality", None)
            _insert(new, found, "projects", {"id": identity, **row})
        documents = content.identities("documents", ("segments", "document"))
        for identity in dict.fromkeys([*documents, *(row["document"] for row in edits), *traces.projects]):
            _save_document(new, content, found, identity, language, traces)
        for row in edits:  # which steps they were part of is not saved
            row["step"] = None
        for table, rows in (("edits", edits), ("pairs", pairs), ("comments", comments)):
            for row in rows:
                _insert(new, found, table, row)
            if table in content.broken:
                found.lost.append(f"some of the {table}")
        new.execute("UPDATE segments SET change = NULL WHERE change NOT IN (SELECT id FROM edits)")


def _save_document(
    new: sqlite3.Connection, content: _Content, found: Recovered, identity: str, language: str, traces: _Traces
) -> None:
    row = content.one("documents", identity, "project", "name", "created", "file")
    if "project" not in row and (project := traces.projects.get(identity)) is not None:
        row["project"] = project
    elif "project" not in row:
        row["project"] = RECOVERED
        if not new.execute("SELECT 1 FROM projects WHERE id = ?", (RECOVERED,)).fetchone():
            _insert(new, found, "projects", {"id": RECOVERED, "name": "Recovered", "created": time.time()})
    name = row.setdefault("name", f"recovered-{identity}.txt")
    if not isinstance(row.get("file"), bytes):
        row["file"] = b""
        found.lost.append(f"the file of {name}, whose rows can be exported as XLIFF, TMX and JSONL")
    if not _insert(new, found, "documents", {"created": time.time(), **row, "id": identity}):
        return
    segments = {one["position"]: one for one in content.numbered("segments", "position", "document = ?", identity)}
    sources = _sources(name, row["file"], language)
    if any(one["source"] != source for at, source in enumerate(sources) if (one := segments.get(at)) is not None):
        sources = []  # the file is read in another way than when it was uploaded
    for position in range(1 + max([len(sources) - 1, *segments, *traces.positions(identity)], default=-1)):
        if position in segments and _insert(new, found, "segments", segments[position]):
            continue
        place = identity, position
        source = sources[position] if position < len(sources) else traces.sources.get(place, LOST)
        _insert(new, found, "segments", _again(place, source, traces))
        found.lost.append(f"row {position + 1} of {name}, made again from what else is known")


def _again(place: Place, source: str, traces: _Traces) -> Row:
    """A row that is lost, with what its history says that it held. Whoever confirmed it looks at it again."""
    target, state = traces.last.get(place, ("", "empty"))
    state = "edited" if state in APPROVED else state
    written = int(state == "edited")
    columns = ("document", "position", "source", "target", "state", "version", "written")
    return dict(zip(columns, (*place, source, target, state, 1, written), strict=True))


def _sources(name: str, file: bytes, language: str) -> list[str]:
    try:
        return list(read_upload(name, file, language).document.sources) if file else []
    except UserError:
        return []


def _insert(new: sqlite3.Connection, found: Recovered, table: str, row: Row) -> bool:
    """Whether a row is one that can be: what damage has made of others is left out."""
    names = ", ".join(row)
    try:
        new.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
    except sqlite3.Error:
        if table not in ("segments",):
            found.lost.append(f"one of the {table}")
        return False
    found.saved[table] += 1
    return True
