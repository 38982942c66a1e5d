"""The SQLite file of a memory: its tables, how it is opened, and what is said when it cannot be read or written."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weitblick.common.errors import UserError

FILE = "pairs.sqlite"
LOG = f"{FILE}-wal"
"""What was written last; it goes into the file itself when the last program closes it."""
FORMAT_VERSION = 1
MAP_BYTES = 1 << 32
LARGE_CACHE = 100_000
"""Kilobytes of a memory that are kept in RAM while many pairs are added."""
LONG_WAIT, SHORT_WAIT = 60.0, 1.0
"""Seconds for another program that writes: a large file is added in some ten."""

DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
UNWRITABLE = {
    sqlite3.SQLITE_BUSY: "wait until the other program is done, then try again",
    sqlite3.SQLITE_FULL: "free some space",
    sqlite3.SQLITE_READONLY: "change its permissions, or copy the folder",
    sqlite3.SQLITE_IOERR: "free some space, or look after the disc",
    sqlite3.SQLITE_CANTOPEN: "change the permissions of its folder, or copy it",
}

INDEX_NEW_PAIRS = """CREATE TRIGGER added AFTER INSERT ON pairs BEGIN
        INSERT INTO words (rowid, source) VALUES (new.id, new.source);
    END"""
SCHEMA = (
    """CREATE TABLE pairs (id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, target TEXT NOT NULL,
        origin TEXT NOT NULL, rank INTEGER NOT NULL)""",
    "CREATE INDEX by_source ON pairs (source)",
    "CREATE INDEX by_rank ON pairs (rank)",
    """CREATE VIRTUAL TABLE words USING fts5 (source, content='pairs', content_rowid='id', detail=none,
        tokenize="unicode61 remove_diacritics 0")""",
    "CREATE VIRTUAL TABLE terms USING fts5vocab (words, row)",
    INDEX_NEW_PAIRS,
    """CREATE TRIGGER removed AFTER DELETE ON pairs BEGIN
        INSERT INTO words (words, rowid, source) VALUES ('delete', old.id, old.source);
        DELETE FROM keys WHERE id = old.id;
    END""",
    """CREATE TABLE keys (id INTEGER NOT NULL, model TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (id, model))
        WITHOUT ROWID""",
    f"PRAGMA user_version = {FORMAT_VERSION}",
)


@contextmanager
def indexed_at_the_end(database: sqlite3.Connection) -> Iterator[None]:
    """Pairs that are added in this part of a transaction join the full-text index together, which takes a sixth of the
    time that it takes one by one. Meanwhile more of the file is kept in RAM, so that less of it is written twice."""
    (cache,) = database.execute("PRAGMA cache_size").fetchone()
    database.execute(f"PRAGMA cache_size = {-LARGE_CACHE}")
    try:
        (latest,) = database.execute("SELECT coalesce(max(id), 0) FROM pairs").fetchone()
        database.execute("DROP TRIGGER added")
        yield
        added = "SELECT id, source FROM pairs WHERE id > ? ORDER BY id"  # the order of the index
        database.execute(f"INSERT INTO words (rowid, source) {added}", (latest,))
        database.execute(INDEX_NEW_PAIRS)
    finally:
        database.execute(f"PRAGMA cache_size = {cache}")


class UnwritableError(UserError):
    """A memory that is in order, but cannot be changed, or not now."""


class Access:
    """One thread at a time has the database. What is wrong with it is said with its name."""

    def __init__(self, folder: Path | None) -> None:
        self.where = None if folder is None else folder / FILE
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._lock.release()
        if isinstance(error, sqlite3.Error) and (known := _explained(error, self.where)) is not None:
            raise known from None


def _explained(error: sqlite3.Error, where: Path | None) -> UserError | None:
    """None for what is a mistake in this program."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the kind; what is above tells the cause
    if code in DAMAGED:
        return UserError(f"is damaged ({error})", where=where, remedy="use a copy, or make it anew")
    if code in UNWRITABLE:
        return UnwritableError(f"cannot be written ({error})", where=where, remedy=UNWRITABLE[code])
    return None


def is_memory(path: str | Path) -> bool:
    return (Path(path) / FILE).is_file()


def connect(folder: Path | None) -> sqlite3.Connection:
    """The database in a folder, which is made if it is not there, or one in RAM."""
    if folder is None:
        return _opened(":memory:")
    if folder.exists() and not folder.is_dir():
        raise UserError("is a file, not the folder of a memory", where=folder, remedy="name a folder")
    try:
        if is_memory(folder) and not (os.access(folder, os.W_OK) and os.access(folder / FILE, os.W_OK)):
            return _opened_to_read(folder)
        folder.mkdir(parents=True, exist_ok=True)
        return _opened(folder / FILE)
    except sqlite3.Error as error:
        known = _explained(error, folder / FILE)
        if isinstance(known, UnwritableError):
            raise known from None
        raise _unreadable(folder / FILE, error) from None
    except OSError as error:
        raise _unreadable(folder / FILE, error) from None


def _unreadable(where: Path, error: Exception) -> UserError:
    reason = (isinstance(error, OSError) and error.strerror) or error
    return UserError(f"cannot be opened as a memory ({reason})", where=where, remedy="name another folder")


def _opened(where: Path | str) -> sqlite3.Connection:
    database = sqlite3.connect(where, isolation_level=None, check_same_thread=False, timeout=LONG_WAIT)
    if _version(database, where) == 0:
        _keep_log(database)
        database.execute("BEGIN IMMEDIATE")
        if _version(database, where) == 0:  # another program may have been faster
            for statement in SCHEMA:
                database.execute(statement)
        database.execute("COMMIT")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute(f"PRAGMA mmap_size = {MAP_BYTES}")
    return database


def _keep_log(database: sqlite3.Connection) -> None:
    """Changes go to a log first, so that others can read meanwhile. SQLite does not wait for a program that is just
    doing the same."""
    deadline = time.monotonic() + LONG_WAIT
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _opened_to_read(folder: Path) -> sqlite3.Connection:
    """SQLite makes files beside its own even to read, unless they are there, or it is told that nobody writes."""
    log = folder / LOG
    in_use = log.is_file() and log.stat().st_size > 0
    name = f"{(folder / FILE).resolve().as_uri()}?mode=ro" + ("" if in_use else "&immutable=1")
    database = sqlite3.connect(name, uri=True, isolation_level=None, check_same_thread=False, timeout=LONG_WAIT)
    if _version(database, folder / FILE) == 0:
        raise UserError("is empty and read-only", where=folder / FILE, remedy="name another folder")
    database.execute(f"PRAGMA mmap_size = {MAP_BYTES}")
    return database


def _version(database: sqlite3.Connection, where: Path | str) -> int:
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    if version not in (0, FORMAT_VERSION):
        raise UserError(
            f"is a memory of format {version}, this version of weitblick reads {FORMAT_VERSION}",
            where=where,
            remedy="export its pairs to TMX with the version that wrote it",
        )
    return version
