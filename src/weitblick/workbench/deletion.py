"""Deleting for good, also when the disc is full: text is overwritten with zeros, and no copy stays in the log."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from weitblick.common.system import SYSTEM
from weitblick.workbench.database import LOG, is_full, transaction
from weitblick.workbench.errors import Refused

RESERVE = "workbench.reserve"
LEAST = 4 << 20
LARGEST = "SELECT coalesce(max(length(file)), 0) FROM documents"
Row = tuple[str, str]
"""A table and the id of what is deleted, with all that belongs to it."""


class Deletion:
    """Deletes rows of a database, and keeps room on the disc for it: to delete something, SQLite must write."""

    def __init__(self, database: sqlite3.Connection, folder: Path) -> None:
        self._database, self._path = database, folder / RESERVE
        self.keep_room()

    def keep_room(self) -> None:
        """Takes enough of the disc to delete the largest document, if there is so much."""
        size = LEAST + 2 * int(self._database.execute(LARGEST).fetchone()[0])
        with suppress(OSError), SYSTEM.open_private(self._path) as stream:
            missing = size - os.fstat(stream.fileno()).st_size
            chunk = os.urandom(min(1 << 16, max(0, missing)))  # nothing that a file system could pack
            try:
                for _ in range(0, missing, 1 << 16):
                    os.write(stream.fileno(), chunk)
            except OSError:
                os.ftruncate(stream.fileno(), 0)

    def __call__(self, rows: Sequence[Row]) -> None:
        """Deletes all rows, in one transaction; on a full disc in the room that was kept, one by one, for that takes
        less of it. What is refused says how far it came."""
        try:
            with transaction(self._database):
                for row in rows:
                    self._delete(row)
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            self._delete_one_by_one(rows)
        self._tidy()
        self.keep_room()

    def _delete(self, row: Row) -> None:
        self._database.execute(f"DELETE FROM {row[0]} WHERE id = ?", (row[1],))

    def _delete_one_by_one(self, rows: Sequence[Row]) -> None:
        with suppress(OSError):
            self._path.unlink()
        for done, row in enumerate(rows):
            self._empty_log()
            try:
                with transaction(self._database):
                    self._delete(row)
            except sqlite3.OperationalError as error:
                if not is_full(error):
                    raise
                self._empty_log()
                what = f"{done} of {len(rows) - 1} documents were deleted" if done else "nothing was changed"
                raise Refused(507, f"the disc is full: {what}; free some space and try again") from None

    def _tidy(self) -> None:
        """Gives free pages back and empties the log. The pages were overwritten when they became free: where there is
        no room for the first, the file only stays larger."""
        try:
            self._database.execute("VACUUM")
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
        if not self._empty_log():
            raise Refused(507, f"it is deleted, but its text is still in {LOG}: free some space, and end the server")

    def _empty_log(self) -> bool:
        """Whether that could be done: what the log holds has to fit into the database."""
        try:
            busy, *_ = self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            return False
        return not busy
