"""The database file of a workbench: held by one server at a time, private, opened, checked, backed up while in use."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from weitblick.common.errors import UserError
from weitblick.common.files import atomic_path
from weitblick.common.system import SYSTEM
from weitblick.workbench.schema import FIRST_TABLES, TABLES, migrate, note_pair_changes

FILE = "workbench.sqlite"
LOG = f"{FILE}-wal"
LOCK = "workbench.lock"
RECOVER = "restore a backup, or save what can be read: weitblick serve --recover"


def is_full(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def back_up(folder: str | Path, path: str | Path) -> None:
    """A complete copy of a folder's database, also while a server works in it, and where nothing can be written."""
    source = Path(folder) / FILE
    if not source.is_file():
        raise UserError("holds no projects", where=folder, remedy="name the folder that --data names for the server")
    if Path(path).exists():
        raise UserError("is there already", where=path, remedy="name a new file for the backup")
    with atomic_path(path, private=True) as temporary:
        try:
            _copy(source, temporary)
        except sqlite3.Error as error:
            if is_damage(error):
                raise UserError(f"is damaged ({error})", where=source, remedy=RECOVER) from None
            try:
                with copied(source) as copy:
                    _copy(copy, temporary)
            except sqlite3.Error:
                raise UserError(f"cannot be backed up ({error})", where=source) from None


def _copy(source: Path, target: Path) -> None:
    original = sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)
    copy = sqlite3.connect(target)
    try:
        original.backup(copy)
    finally:
        copy.close()
        original.close()


@contextmanager
def copied(source: Path) -> Iterator[Path]:
    """A copy of a database that nobody writes, with its log, in a folder where SQLite can make the files it needs."""
    with tempfile.TemporaryDirectory() as name:
        for path in (source, source.with_name(LOG)):
            if path.exists():
                shutil.copyfile(path, Path(name) / path.name)
        yield Path(name) / source.name


def hold_folder(folder: Path) -> IO[str]:
    """The folder for this process alone, until the file is closed or the process ends, however it ends."""
    try:
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            SYSTEM.make_private(folder)
        held = SYSTEM.open_private(folder / LOCK)
    except OSError as error:
        raise UserError(
            f"cannot hold projects ({error.strerror})", where=folder, remedy="name another folder with --data"
        ) from None
    if not SYSTEM.lock(held, wait=False):
        held.seek(0)
        owner = held.read().strip() or "unknown"
        held.close()
        raise UserError(
            f"is in use by another server (process {owner})",
            where=folder,
            remedy="stop that one, or name another folder with --data",
        )
    held.truncate(0)
    held.write(str(os.getpid()))
    held.flush()
    return held


def connect(path: Path) -> sqlite3.Connection:
    """The database of a folder, whole, and brought to the schema of today. A text that is no UTF-8 is read with marks
    in the place of what is not."""
    _make_private(path)
    try:
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        database.text_factory = lambda text: text.decode("utf-8", "replace")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA foreign_keys = ON")
        database.execute("PRAGMA secure_delete = ON")
        _check(database, path)
        if int(database.execute("PRAGMA user_version").fetchone()[0]):
            _check_tables(database, path, FIRST_TABLES)
        migrate(database, path)
        _check_tables(database, path, TABLES)
        note_pair_changes(database)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.Error) and not is_damage(error):
            raise UserError(f"cannot be opened ({error})", where=path, remedy="look after the disc") from None
        raise UserError(f"is no database of a workbench ({error})", where=path, remedy=RECOVER) from None
    return database


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """All of what is changed in the block is on disc afterwards, or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _make_private(path: Path) -> None:
    """Makes the file, or one that is there private; SQLite gives its log the same permissions."""
    try:
        SYSTEM.open_private(path).close()
        for beside in (path.with_name(LOG), path.with_name(f"{FILE}-shm")):
            with suppress(FileNotFoundError):
                SYSTEM.make_private(beside)
    except OSError as error:
        raise UserError(f"cannot be written ({error.strerror})", where=path, remedy="change its permissions") from None


def _check(database: sqlite3.Connection, path: Path) -> None:
    found = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
    if found != "ok":
        raise UserError(f"is damaged ({found})", where=path, remedy=RECOVER)


def _check_tables(database: sqlite3.Connection, path: Path, tables: Sequence[str]) -> None:
    there = {str(name) for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if missing := [name for name in tables if name not in there]:
        raise UserError(f"is no database of a workbench (no table {missing[0]})", where=path, remedy=RECOVER)
