"""Projects on disk: one SQLite file in which nothing that was typed is ever lost.

Every change is a transaction that is on disk before it is answered (WAL, synchronous FULL), and every change of a
segment is kept as an edit. One server has a folder at a time; backups are made while it runs.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from weitblick.documents.document import Sentence
from weitblick.errors import UserError
from weitblick.files import atomic_path
from weitblick.server.errors import Refused
from weitblick.server.records import Edit, PairKind, Project, Segment, State, StoredDocument, StoredPair
from weitblick.server.schema import migrate

FILE = "workbench.sqlite"
LOCK = "workbench.lock"

PROJECTS = """SELECT projects.id, name, created,
    (SELECT count(*) FROM documents WHERE project = projects.id),
    (SELECT count(*) FROM segments JOIN documents ON document = documents.id WHERE project = projects.id),
    (SELECT count(*) FROM segments JOIN documents ON document = documents.id
     WHERE project = projects.id AND state = 'confirmed'),
    (SELECT count(*) FROM pairs WHERE project = projects.id)
    FROM projects"""
DOCUMENTS = """SELECT id, project, name, created,
    (SELECT count(*) FROM segments WHERE document = documents.id),
    (SELECT count(*) FROM segments WHERE document = documents.id AND state = 'confirmed')
    FROM documents"""
SEGMENTS = """SELECT segments.position, source, target, state, metadata, change, edits.before, edits.cause
    FROM segments LEFT JOIN edits ON edits.id = segments.change"""


class Store:
    """Safe to use from several threads."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._held = _hold(self.folder)
        self._lock = threading.RLock()
        self.path = self.folder / FILE
        self._database = _connect(self.path)

    def close(self) -> None:
        with self._lock:
            self._database.close()
            self._held.close()

    # Projects

    def projects(self) -> list[Project]:
        return [Project(*row) for row in self._rows(f"{PROJECTS} ORDER BY created")]

    def project(self, project: str) -> Project:
        return Project(*self._row(f"{PROJECTS} WHERE projects.id = ?", project, what="project"))

    def add_project(self, name: str) -> Project:
        with self._change() as database:
            identity = _identity()
            database.execute("INSERT INTO projects VALUES (?, ?, ?)", (identity, name, time.time()))
        return self.project(identity)

    def project_id(self, name: str) -> str | None:
        """Of the oldest project of that name."""
        found = self._rows("SELECT id FROM projects WHERE name = ? ORDER BY created LIMIT 1", name)
        return str(found[0][0]) if found else None

    def rename_project(self, project: str, name: str) -> Project:
        self.project(project)
        with self._change() as database:
            database.execute("UPDATE projects SET name = ? WHERE id = ?", (name, project))
        return self.project(project)

    def delete_project(self, project: str) -> None:
        self.project(project)
        self._delete("DELETE FROM projects WHERE id = ?", project)

    # Documents

    def documents(self, project: str) -> list[StoredDocument]:
        self.project(project)
        rows = self._rows(f"{DOCUMENTS} WHERE project = ? ORDER BY created", project)
        return [StoredDocument(*row) for row in rows]

    def document(self, document: str) -> StoredDocument:
        return StoredDocument(*self._row(f"{DOCUMENTS} WHERE id = ?", document, what="document"))

    def file(self, document: str) -> bytes:
        """The file that a document was uploaded as."""
        (content,) = self._row("SELECT file FROM documents WHERE id = ?", document, what="document")
        return bytes(content)

    def add_document(self, project: str, name: str, sentences: Sequence[Sentence], file: bytes) -> str:
        """Locked sentences are confirmed rows, drafts are drafts, all others are empty."""
        self.project(project)
        now = time.time()
        with self._change() as database:
            identity = _identity()
            database.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", (identity, project, name, file, now))
            for position, sentence in enumerate(sentences):
                state = _state_of(sentence)
                metadata = json.dumps(dict(sentence.metadata), ensure_ascii=False, default=str)
                row = (identity, position, sentence.source, sentence.target or "", state, metadata, None)
                database.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)", row)
                if state == "confirmed":
                    self._approve(database, identity, position, sentence.source, sentence.target or "")
        return identity

    def delete_document(self, document: str) -> None:
        self.document(document)
        self._delete("DELETE FROM documents WHERE id = ?", document)

    # Segments

    def segments(self, document: str) -> list[Segment]:
        self.document(document)
        rows = self._rows(f"{SEGMENTS} WHERE segments.document = ? ORDER BY segments.position", document)
        return [_segment(row) for row in rows]

    def segment(self, document: str, position: int) -> Segment:
        query = f"{SEGMENTS} WHERE segments.document = ? AND segments.position = ?"
        return _segment(self._row(query, document, position, what="segment"))

    def edit(self, document: str, position: int, target: str, state: State) -> tuple[Segment, int]:
        """A human's change; a confirmed segment joins the memory of its project, one that is reopened leaves it.
        Gives the segment and the number of the edit."""
        with self._change() as database:
            edit = self._set(database, document, position, target, state)
            if state == "confirmed" and target.strip():
                source = self.segment(document, position).source
                self._approve(database, document, position, source, target)
            else:
                database.execute("DELETE FROM pairs WHERE document = ? AND position = ?", (document, position))
        return self.segment(document, position), edit

    def translate(
        self, document: str, position: int, target: str, expected: Segment, cause: int | None = None
    ) -> Segment | None:
        """The model's translation, unless the segment is not what it was any more; None then. With the confirming
        edit that caused it, a changed text is marked as a change: against what stood there when changes were last
        seen to, however often the model changes it until then."""
        with self._change() as database:
            now = self.segment(document, position)
            if (now.target, now.state) != (expected.target, expected.state) or now.state not in ("empty", "draft"):
                return None
            if now.target == target and now.state == "draft":
                return now
            edit = self._set(database, document, position, target, "draft", cause)
            if cause is not None and now.state == "draft" and target != now.before:
                database.execute(
                    "UPDATE segments SET change = ? WHERE document = ? AND position = ?",
                    (now.change or edit, document, position),
                )
        return self.segment(document, position)

    def keep(self, document: str, position: int, state: State) -> Segment:
        """A changed draft becomes again what it was before, in this state, and counts as seen to."""
        with self._change() as database:
            segment = self.segment(document, position)
            if segment.before is None:
                raise Refused(409, "this row has not been changed")
            self._set(database, document, position, segment.before, state)
        return self.segment(document, position)

    def accept(self, document: str, position: int) -> Segment:
        """A changed draft stays as it is now, and counts as seen to."""
        with self._change() as database:
            database.execute(
                "UPDATE segments SET change = NULL WHERE document = ? AND position = ?", (document, position)
            )
        return self.segment(document, position)

    def edits(self, document: str, position: int) -> list[Edit]:
        """All changes of a segment, oldest first."""
        query = """SELECT id, position, time, before, state_before, after, state_after, cause FROM edits
            WHERE document = ? AND position = ? ORDER BY id"""
        return [Edit(*row) for row in self._rows(query, document, position)]

    def _set(
        self,
        database: sqlite3.Connection,
        document: str,
        position: int,
        target: str,
        state: State,
        cause: int | None = None,
    ) -> int:
        before = self.segment(document, position)
        edit = database.execute(
            """INSERT INTO edits (document, position, time, before, state_before, after, state_after, cause)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (document, position, time.time(), before.target, before.state, target, state, cause),
        ).lastrowid
        database.execute(
            "UPDATE segments SET target = ?, state = ?, change = NULL WHERE document = ? AND position = ?",
            (target, state, document, position),
        )
        assert edit is not None
        return edit

    # The memory of a project

    def pairs(self, project: str, *kinds: PairKind) -> list[StoredPair]:
        """Oldest first."""
        self.project(project)
        marks = ",".join("?" * len(kinds))
        only = f" AND kind IN ({marks})" if kinds else ""
        query = f"""SELECT id, kind, source, target, origin, document, position FROM pairs
            WHERE project = ?{only} ORDER BY id"""
        return [StoredPair(*row) for row in self._rows(query, project, *kinds)]

    def approved(self, project: str) -> dict[str, str]:
        """Of whole sentences that have been approved, the latest translation. A term is no sentence."""
        pairs = self.pairs(project, "segment", "import", "suggestion")
        return {pair.source: pair.target for pair in pairs}

    def add_pairs(self, project: str, kind: PairKind, pairs: Sequence[tuple[str, str]], origin: str) -> list[int]:
        """Of terms, the latest for a source replaces those before."""
        self.project(project)
        now = time.time()
        with self._change() as database:
            ids = []
            for source, target in pairs:
                if kind == "term":
                    database.execute(
                        "DELETE FROM pairs WHERE project = ? AND kind = 'term' AND source = ?", (project, source)
                    )
                row = (project, kind, source, target, origin, now)
                ids.append(
                    database.execute(
                        "INSERT INTO pairs (project, kind, source, target, origin, time) VALUES (?, ?, ?, ?, ?, ?)", row
                    ).lastrowid
                    or 0
                )
        return ids

    def remove_pair(self, project: str, pair: int) -> None:
        with self._change() as database:
            if not database.execute("DELETE FROM pairs WHERE project = ? AND id = ?", (project, pair)).rowcount:
                raise Refused(404, "no such pair")

    def _approve(self, database: sqlite3.Connection, document: str, position: int, source: str, target: str) -> None:
        project = self.document(document).project
        database.execute("DELETE FROM pairs WHERE document = ? AND position = ?", (document, position))
        database.execute(
            """INSERT INTO pairs (project, kind, source, target, origin, document, position, time)
            VALUES (?, 'segment', ?, ?, ?, ?, ?, ?)""",
            (
                project,
                source,
                target,
                origin_of(self.document(document).name, position),
                document,
                position,
                time.time(),
            ),
        )

    # The database

    def _rows(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        with self._lock:
            return self._database.execute(query, values).fetchall()

    def _row(self, query: str, *values: object, what: str) -> tuple:  # type: ignore[type-arg]
        found = self._rows(query, *values)
        if not found:
            raise Refused(404, f"no such {what}")
        return found[0]

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is on disk afterwards, or nothing."""
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def _delete(self, query: str, identity: str) -> None:
        """For good: the rows are overwritten with zeros, and no copy stays in the log."""
        with self._change() as database:
            database.execute(query, (identity,))
        with self._lock:
            self._database.execute("VACUUM")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def back_up(folder: str | Path, path: str | Path) -> None:
    """A complete copy of a folder's database, also while a server works in it."""
    source = Path(folder) / FILE
    if not source.is_file():
        raise UserError("holds no projects", where=folder, remedy="name the folder that --data names for the server")
    if Path(path).exists():
        raise UserError("is there already", where=path, remedy="name a new file for the backup")
    with atomic_path(path) as temporary:
        try:
            original = sqlite3.connect(f"file:{source}?mode=ro", uri=True)
            copy = sqlite3.connect(temporary)
            try:
                original.backup(copy)
            finally:
                copy.close()
                original.close()
        except sqlite3.Error as error:
            raise UserError(f"cannot be backed up ({error})", where=source) from None


def _hold(folder: Path) -> IO[str]:
    """The folder for this process alone, until the file is closed or the process ends, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = open(folder / LOCK, "a+", encoding="utf-8")  # noqa: SIM115
    except OSError as error:
        raise UserError(
            f"cannot hold projects ({error.strerror})", where=folder, remedy="name another folder with --data"
        ) from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.seek(0)
        owner = held.read().strip() or "unknown"
        held.close()
        raise UserError(
            f"is in use by another server (process {owner})",
            where=folder,
            remedy="stop that one, or name another folder with --data",
        ) from None
    held.truncate(0)
    held.write(str(os.getpid()))
    held.flush()
    return held


def _connect(path: Path) -> sqlite3.Connection:
    try:
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA foreign_keys = ON")
        database.execute("PRAGMA secure_delete = ON")
        migrate(database, path)
    except sqlite3.Error as error:
        raise UserError(
            f"is no database of a workbench ({error})", where=path, remedy="restore a backup, or move the file away"
        ) from None
    return database


def origin_of(name: str, position: int) -> str:
    """Where a pair comes from, as people see it."""
    return f"{name}, row {position + 1}"


def _identity() -> str:
    return secrets.token_hex(8)


def _state_of(sentence: Sentence) -> State:
    if sentence.target is None or sentence.status is None:
        return "empty"
    return "confirmed" if sentence.status == "locked" else "draft"


def _segment(row: tuple) -> Segment:  # type: ignore[type-arg]
    position, source, target, state, metadata, change, before, cause = row
    return Segment(position, source, target, state, json.loads(metadata), change, before, cause)
