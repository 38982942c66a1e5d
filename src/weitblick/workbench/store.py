"""Projects on disk: one SQLite file in which nothing that was typed is ever lost.

Every change is a transaction that is on disk before it is answered (WAL, synchronous FULL), and every change of a
segment is kept as an edit. One server has a folder at a time; backups are made while it runs.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from weitblick.documents.document import Sentence
from weitblick.workbench.database import FILE, connect, hold_folder, transaction
from weitblick.workbench.deletion import Deletion
from weitblick.workbench.errors import Changed, Refused
from weitblick.workbench.schema import (
    Edit,
    PairKind,
    Project,
    Segment,
    State,
    StoredDocument,
    StoredPair,
    Write,
    Written,
)

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
SEGMENTS = """SELECT segments.position, source, target, state, metadata, change, edits.before, edits.cause,
    version, written, writer, writer_edit
    FROM segments LEFT JOIN edits ON edits.id = segments.change"""

PAIR_REVISION = "SELECT coalesce(max(seq), 0) FROM temp.sqlite_sequence WHERE name = 'pair_changes'"


class Store:
    """Safe to use from several threads."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._held = hold_folder(self.folder)
        self._lock = threading.RLock()
        self.path = self.folder / FILE
        try:
            self._database = connect(self.path)
        except BaseException:
            self._held.close()
            raise
        self._deletion = Deletion(self._database, self.folder)

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
        documents = [("documents", document.id) for document in self.documents(project)]
        with self._lock:
            self._deletion([*documents, ("projects", project)])

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
                row = (identity, position, sentence.source, sentence.target or "", state, metadata)
                columns = "document, position, source, target, state, metadata"
                database.execute(f"INSERT INTO segments ({columns}) VALUES (?, ?, ?, ?, ?, ?)", row)
                if state == "confirmed":
                    self._approve(database, identity, position, sentence.source, sentence.target or "")
            self._deletion.keep_room()
        return identity

    def delete_document(self, document: str) -> None:
        self.document(document)
        with self._lock:
            self._deletion([("documents", document)])

    # Segments

    def segments(self, document: str) -> list[Segment]:
        self.document(document)
        rows = self._rows(f"{SEGMENTS} WHERE segments.document = ? ORDER BY segments.position", document)
        return [_segment(row) for row in rows]

    def segment(self, document: str, position: int) -> Segment:
        query = f"{SEGMENTS} WHERE segments.document = ? AND segments.position = ?"
        return _segment(self._row(query, document, position, what="segment"))

    def edit(self, document: str, position: int, write: Write) -> Written:
        """A person's change: row, history and memory in one transaction. A confirmed segment joins the memory of its
        project, one that is reopened leaves it. `Changed` if somebody else has written the row since it was seen."""
        with self._change() as database:
            before = self.segment(document, position)
            if write.has_arrived(before):
                return Written(before, before, None)
            if not write.may_replace(before):
                raise Changed(before)
            edit = self._set(database, document, before, write.target, write.state, write=write)
            if write.state == "confirmed" and write.target.strip():
                self._approve(database, document, position, before.source, write.target)
            else:
                database.execute("DELETE FROM pairs WHERE document = ? AND position = ?", (document, position))
            return Written(before, self.segment(document, position), edit)

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
            edit = self._set(database, document, now, target, "draft", cause)
            if cause is not None and now.state == "draft" and target != now.before:
                database.execute(
                    "UPDATE segments SET change = ? WHERE document = ? AND position = ?",
                    (now.change or edit, document, position),
                )
        return self.segment(document, position)

    def keep(self, document: str, position: int, version: int) -> Segment:
        """A changed draft becomes again what it was: a person's choice, which later confirmations leave alone."""
        with self._change() as database:
            segment = self._seen_change(document, position, version)
            self._restore(database, document, segment, "edited")
            return self.segment(document, position)

    def accept(self, document: str, position: int, version: int) -> Segment:
        """A changed draft stays as it is now, and counts as seen to."""
        with self._change() as database:
            self._seen_change(document, position, version)
            self._forget_change(database, document, position)
            return self.segment(document, position)

    def undo_changes(self, document: str, seen: Mapping[int, int]) -> tuple[list[Segment], list[Segment]]:
        """Changed drafts become again what they were, all in one transaction. `seen` has the versions of the rows that
        were looked at: the second list has those that are something else by now and are left."""
        with self._change() as database:
            same, left = self._as_seen(document, seen)
            for segment in same:
                self._restore(database, document, segment, "draft")
            return [self.segment(document, segment.position) for segment in same], left

    def accept_changes(self, document: str, seen: Mapping[int, int]) -> tuple[list[Segment], list[Segment]]:
        """Changed drafts stay as they are now, all in one transaction, as `undo_changes` has it."""
        with self._change() as database:
            same, left = self._as_seen(document, seen)
            for segment in same:
                self._forget_change(database, document, segment.position)
            return [self.segment(document, segment.position) for segment in same], left

    def _restore(self, database: sqlite3.Connection, document: str, segment: Segment, state: State) -> None:
        """A row becomes what it was before its change: one that a person has replaced words in with its state, too."""
        if segment.state == "edited":
            ((state,),) = self._rows("SELECT state_before FROM edits WHERE id = ?", segment.change)
        write = None if state == "draft" else Write(segment.before or "", state, segment.version)
        self._set(database, document, segment, segment.before or "", state, write=write)
        if state == "confirmed":
            self._approve(database, document, segment.position, segment.source, segment.before or "")

    def _seen_change(self, document: str, position: int, version: int) -> Segment:
        segment = self.segment(document, position)
        if segment.before is None:
            raise Changed(segment, "this row has no change that is open")
        if segment.version != version:
            raise Changed(segment)
        return segment

    def _as_seen(self, document: str, seen: Mapping[int, int]) -> tuple[list[Segment], list[Segment]]:
        rows = [self.segment(document, position) for position in sorted(seen)]
        same = [row for row in rows if row.before is not None and row.version == seen[row.position]]
        return same, [row for row in rows if row not in same]

    def _forget_change(self, database: sqlite3.Connection, document: str, position: int) -> None:
        database.execute(
            "UPDATE segments SET change = NULL, version = version + 1 WHERE document = ? AND position = ?",
            (document, position),
        )

    def edits(self, document: str, position: int) -> list[Edit]:
        """All changes of a segment, oldest first."""
        query = """SELECT id, position, time, before, state_before, after, state_after, cause FROM edits
            WHERE document = ? AND position = ? ORDER BY id"""
        return [Edit(*row) for row in self._rows(query, document, position)]

    def _set(
        self,
        database: sqlite3.Connection,
        document: str,
        before: Segment,
        target: str,
        state: State,
        cause: int | None = None,
        write: Write | None = None,
    ) -> int:
        """Changes a segment and notes that in its history. `write`: of a person; the model's have none."""
        edit = database.execute(
            """INSERT INTO edits (document, position, time, before, state_before, after, state_after, cause)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (document, before.position, time.time(), before.target, before.state, target, state, cause),
        ).lastrowid
        version = before.version + 1
        author = (before.written, before.writer, before.writer_edit)
        if write is not None:
            author = (version, write.writer, write.writer_edit)
        database.execute(
            """UPDATE segments SET target = ?, state = ?, change = NULL, version = ?, written = ?, writer = ?,
            writer_edit = ? WHERE document = ? AND position = ?""",
            (target, state, version, *author, document, before.position),
        )
        assert edit is not None
        return edit

    # The memory of a project

    def pairs(self, project: str, *kinds: PairKind) -> list[StoredPair]:
        """Oldest first."""
        self.project(project)
        marks = ",".join("?" * len(kinds))
        only = f" AND kind IN ({marks})" if kinds else ""
        return self._pairs(f"project = ?{only}", project, *kinds)

    def _pairs(self, which: str, *values: object) -> list[StoredPair]:
        query = f"SELECT id, kind, source, target, origin, document, position FROM pairs WHERE {which} ORDER BY id"
        return [StoredPair(*row) for row in self._rows(query, *values)]

    def pair_changes(self, project: str, since: int) -> tuple[int, dict[int, StoredPair | None]]:
        """The revision of the pairs now, and which of them were added or removed (None) since an earlier revision. From
        revision -1 on everything is new."""
        with self._lock:
            (revision,) = self._row(PAIR_REVISION, what="revision")
            if since < 0:
                return revision, {pair.id: pair for pair in self.pairs(project)}
            query = "SELECT DISTINCT pair FROM pair_changes WHERE project = ? AND revision > ?"
            changed: dict[int, StoredPair | None] = {pair: None for (pair,) in self._rows(query, project, since)}
            if changed:
                only = f"id IN ({query})"
                changed.update({pair.id: pair for pair in self._pairs(only, project, since)})
        return revision, changed

    def forget_pair_changes(self, until: int) -> None:
        """Nobody asks any more for what changed up to this revision."""
        with self._lock:
            self._database.execute("DELETE FROM pair_changes WHERE revision <= ?", (until,))

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
        with self._lock, transaction(self._database):
            yield self._database


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
    position, source, target, state, metadata, *rest = row
    try:
        known = json.loads(metadata)
    except ValueError:  # damaged: what it says about the row can be missed, the row cannot
        known = {}
    return Segment(position, source, target, state, known, *rest)
