"""The rows of documents in the database: what people and the model write in them, and what becomes of it.

Every change of a row is a transaction that keeps what the row was as an edit. What a person does is part of a step,
which `weitblick.workbench.steps` takes back as a whole."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, cast

from weitblick.files.inline_marks import PlacedFormat, follow
from weitblick.workbench.database import transaction
from weitblick.workbench.errors import Changed, Refused
from weitblick.workbench.schema import (
    APPROVED,
    Comment,
    Edit,
    Origin,
    Segment,
    State,
    StepKind,
    Write,
    Written,
)

SEGMENTS = """SELECT segments.position, source, target, state, metadata, change, edits.before, edits.cause,
    version, written, writer, writer_edit, segments.person, decided, origin, match, matched_source, placed
    FROM segments LEFT JOIN edits ON edits.id = segments.change"""
COMMENTS = "SELECT position, id, text, person, time, version FROM comments WHERE text IS NOT NULL AND document = ?"
KEPT = ("change", "person", "decided", "origin", "match", "matched_source", "placed")
"""What an edit keeps of a row besides its text and state."""
TYPING_SECONDS = 30.0
"""What is typed in one row with shorter pauses is one step."""


class RowStore:
    """The rows of all documents. Safe to use from several threads."""

    _database: sqlite3.Connection
    _lock: threading.RLock

    def segments(self, document: str) -> list[Segment]:
        """The rows of a document, in order."""
        self._row("SELECT 1 FROM documents WHERE id = ?", document, what="document")
        with self._lock:
            rows = self._rows(f"{SEGMENTS} WHERE segments.document = ? ORDER BY segments.position", document)
            comments = self._comments(document)
        return [_segment(row, comments.get(row[0], ())) for row in rows]

    def segment(self, document: str, position: int) -> Segment:
        """One row of a document."""
        query = f"{SEGMENTS} WHERE segments.document = ? AND segments.position = ?"
        row = self._row(query, document, position, what="segment")
        return _segment(row, self._comments(document, position).get(position, ()))

    def _comments(self, document: str, position: int | None = None) -> dict[int, list[Comment]]:
        """By row, oldest first."""
        found: defaultdict[int, list[Comment]] = defaultdict(list)
        if position is None:
            rows = self._rows(f"{COMMENTS} ORDER BY id", document)
        else:
            rows = self._rows(f"{COMMENTS} AND position = ? ORDER BY id", document, position)
        for row, *values in rows:
            found[row].append(Comment(*values))
        return found

    # What a person writes

    def edit(self, document: str, position: int, write: Write) -> Written:
        """A person's change: row, history and memory in one transaction. A segment that is confirmed or reviewed joins
        the memory of its project, one that is reopened leaves it. `Changed` if somebody else has written the row since
        it was seen."""
        with self._change() as database:
            before = self.segment(document, position)
            if write.has_arrived(before):
                return Written(before, before, None)
            if not write.may_replace(before):
                raise Changed(before)
            typed = self._typed_just_now(database, document, before, write)
            edit = self._take_back(database, document, before, write, typed) if typed else None
            if edit is None:
                kind = kind_of(before, write)
                new = None if typed and kind == "type" else self.new_step(database, document, kind, *_author(write))
                edit = self.write(database, document, before, write, new or typed or 0)
            return Written(before, self.segment(document, position), edit)

    def write(self, database: sqlite3.Connection, document: str, before: Segment, write: Write, step: int) -> int:
        """Writes a row as part of a step, in a transaction that is open, and keeps the memory in line with it."""
        edit = self._set(database, document, before, write.target, write.state, write=write, step=step)
        self.remember(database, document, before.position, before.source, write.target, write.state)
        return edit

    def _typed_just_now(self, database: sqlite3.Connection, document: str, before: Segment, write: Write) -> int | None:
        """The latest step, if that is what the same tab has typed in the row without a long pause since."""
        if write.writer is None:
            return None
        latest = database.execute(
            """SELECT steps.id, kind, writer, undone, max(edits.time) FROM steps JOIN edits ON edits.step = steps.id
            WHERE steps.id = (SELECT max(id) FROM steps WHERE document = ?) AND edits.position = ?""",
            (document, before.position),
        ).fetchone()
        recent = latest[1:4] == ("type", write.writer, 0) and time.time() - latest[4] < TYPING_SECONDS
        return int(latest[0]) if recent else None

    def _take_back(
        self, database: sqlite3.Connection, document: str, before: Segment, write: Write, step: int
    ) -> int | None:
        """Writes a row that becomes what it was before it was typed in: it is as it was in everything else, too, and
        there is nothing left to take back. None if it becomes something else."""
        query = """SELECT before, state_before, kept FROM edits WHERE document = ? AND position = ? AND step = ?
            ORDER BY id"""
        target, state, kept = database.execute(query, (document, before.position, step)).fetchone()
        if (target, state) != (write.target, write.state):
            return None
        edit = self.write(database, document, before, write, step)
        self.set_kept(database, document, before.position, json.loads(kept or "{}"))
        database.execute("DELETE FROM steps WHERE id = ?", (step,))
        return edit

    def set_kept(self, database: sqlite3.Connection, document: str, position: int, kept: dict[str, object]) -> None:
        """Gives a row what an edit has kept of it, in a transaction that is open."""
        names = [name for name in KEPT if name != "placed"]
        columns = ", ".join(f"{name} = ?" for name in names)
        values = [kept.get(name) for name in names]
        query = f"UPDATE segments SET {columns} WHERE document = ? AND position = ?"
        database.execute(query, (*values, document, position))
        self.set_placed(database, document, position, kept.get("placed"))

    def new_step(
        self, database: sqlite3.Connection, document: str, kind: StepKind, writer: str | None, person: str | None
    ) -> int:
        """Begins a step. What was taken back before cannot be done again from then on."""
        database.execute("DELETE FROM steps WHERE document = ? AND undone", (document,))
        query = "INSERT INTO steps (document, kind, writer, person, time) VALUES (?, ?, ?, ?, ?)"
        return database.execute(query, (document, kind, writer, person, time.time())).lastrowid or 0

    # What the model writes

    def translate(
        self,
        document: str,
        position: int,
        target: str,
        expected: Segment,
        cause: int | None = None,
        origin: Origin | None = None,
        match: int | None = None,
        matched_source: str | None = None,
    ) -> Segment | None:
        """The model's translation, unless the segment is not what it was any more; None then. With the confirming
        edit that caused it, a changed text is marked as a change: against what stood there when changes were last
        seen to, however often the model changes it until then. Without an `origin`, it is the model's own."""
        with self._change() as database:
            now = self.segment(document, position)
            if (now.target, now.state) != (expected.target, expected.state) or now.state not in ("empty", "draft"):
                return None
            if now.target == target and now.state == "draft":
                return now
            edit = self._set(database, document, now, target, "draft", cause)
            if origin is not None:
                self._set_origin(database, document, position, origin, match, matched_source)
            elif now.origin not in ("fuzzy", "repetition"):  # which the model's are as well
                self._set_origin(database, document, position, "machine", None, None)
            if cause is not None and now.state == "draft" and target != now.before:
                database.execute(
                    "UPDATE segments SET change = ? WHERE document = ? AND position = ?",
                    (now.change or edit, document, position),
                )
        return self.segment(document, position)

    def set_origin(
        self, document: str, position: int, origin: Origin, match: int | None = None, matched_source: str | None = None
    ) -> Segment:
        """Notes where a row's draft comes from, whatever its state is; the text stays."""
        with self._change() as database:
            self._set_origin(database, document, position, origin, match, matched_source)
            self.touch(database, document, position)
            return self.segment(document, position)

    def _set_origin(
        self,
        database: sqlite3.Connection,
        document: str,
        position: int,
        origin: Origin | None,
        match: int | None,
        matched_source: str | None,
    ) -> None:
        database.execute(
            "UPDATE segments SET origin = ?, match = ?, matched_source = ? WHERE document = ? AND position = ?",
            (origin, match, matched_source, document, position),
        )

    def touch(self, database: sqlite3.Connection, document: str, position: int) -> None:
        """Something about a row is new, but not what a person has written in it."""
        database.execute(
            "UPDATE segments SET version = version + 1 WHERE document = ? AND position = ?", (document, position)
        )

    # What is done about changes of the model

    def keep(self, document: str, position: int, version: int, write: Write | None = None) -> Segment:
        """A changed draft becomes again what it was: a person's choice, which later confirmations leave alone. `write`
        tells who does it."""
        with self._change() as database:
            segment = self._seen_change(document, position, version)
            step = self.new_step(database, document, "keep", *_author(write))
            self._restore(database, document, segment, "edited", step, write)
            return self.segment(document, position)

    def accept(self, document: str, position: int, version: int) -> Segment:
        """A changed draft stays as it is now, and counts as seen to."""
        with self._change() as database:
            self._seen_change(document, position, version)
            self._forget_change(database, document, position)
            return self.segment(document, position)

    def undo_changes(
        self, document: str, seen: Mapping[int, int], write: Write | None = None
    ) -> tuple[list[Segment], list[Segment]]:
        """Changed drafts become again what they were, all in one transaction. `seen` has the versions of the rows that
        were looked at: the second list has those that are something else by now and are left."""
        with self._change() as database:
            same, left = self._as_seen(document, seen)
            step = self.new_step(database, document, "undo", *_author(write)) if same else 0
            for segment in same:
                self._restore(database, document, segment, "draft", step, write)
            return [self.segment(document, segment.position) for segment in same], left

    def accept_changes(self, document: str, seen: Mapping[int, int]) -> tuple[list[Segment], list[Segment]]:
        """Changed drafts stay as they are now, all in one transaction, as `undo_changes` has it."""
        with self._change() as database:
            same, left = self._as_seen(document, seen)
            for segment in same:
                self._forget_change(database, document, segment.position)
            return [self.segment(document, segment.position) for segment in same], left

    def _restore(
        self,
        database: sqlite3.Connection,
        document: str,
        segment: Segment,
        state: State,
        step: int,
        write: Write | None = None,
    ) -> None:
        """A row becomes what it was before its change: one that a person has replaced words in with its state, too."""
        state_before, kept = self._row("SELECT state_before, kept FROM edits WHERE id = ?", segment.change, what="edit")
        state = state_before if segment.state == "edited" else state
        writer, person = _author(write)
        own = Write(segment.before or "", state, segment.version, writer, 0, person)
        self._set(database, document, segment, own.target, state, write=None if state == "draft" else own, step=step)
        was = json.loads(kept or "{}")
        if was:
            origin = was["origin"], was["match"], was["matched_source"]
            self._set_origin(database, document, segment.position, *origin)
            self.set_placed(database, document, segment.position, was.get("placed"))
        self.remember(database, document, segment.position, segment.source, own.target, state)

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
        query = """SELECT id, position, time, before, state_before, after, state_after, cause, person, step FROM edits
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
        step: int | None = None,
    ) -> int:
        """Changes a segment and notes that in its history. `write`: of a person; the model's have none."""
        now = time.time()
        kept = json.dumps(kept_of(before), ensure_ascii=False)
        person = write.person if write is not None else None
        edit = database.execute(
            """INSERT INTO edits
            (document, position, time, before, state_before, after, state_after, cause, person, step, kept)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (document, before.position, now, before.target, before.state, target, state, cause, person, step, kept),
        ).lastrowid
        version = before.version + 1
        author = (before.written, before.writer, before.writer_edit, before.person, before.decided)
        if write is not None:
            author = (version, write.writer, write.writer_edit, write.person, now)
        database.execute(
            """UPDATE segments SET target = ?, state = ?, change = NULL, version = ?, written = ?, writer = ?,
            writer_edit = ?, person = ?, decided = ? WHERE document = ? AND position = ?""",
            (target, state, version, *author, document, before.position),
        )
        if before.placed:
            self.set_placed(database, document, before.position, follow(before.placed, before.target, target))
        assert edit is not None
        return edit

    def set_placed(
        self, database: sqlite3.Connection, document: str, position: int, placed: Sequence[PlacedFormat] | object
    ) -> None:
        """Notes where a person has put the formatting of a row. What an edit has kept of it is JSON already."""
        given = [asdict(one) if isinstance(one, PlacedFormat) else one for one in cast(Sequence[object], placed or ())]
        database.execute(
            "UPDATE segments SET placed = ? WHERE document = ? AND position = ?",
            (json.dumps(given) if given else None, document, position),
        )

    def remember(
        self, database: sqlite3.Connection, document: str, position: int, source: str, target: str, state: State
    ) -> None:
        """Keeps the memory in line with a row: it has the pair of one that is approved, and of no other."""
        database.execute("DELETE FROM pairs WHERE document = ? AND position = ?", (document, position))
        if state in APPROVED and target.strip():
            database.execute(
                """INSERT INTO pairs (project, kind, source, target, origin, document, position, time)
                SELECT project, 'segment', ?, ?, name || ?, id, ?, ? FROM documents WHERE id = ?""",
                (source, target, f", row {position + 1}", position, time.time(), document),
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


def kind_of(before: Segment, write: Write) -> StepKind:
    """What a person would call a write."""
    if write.state != before.state and write.state in APPROVED:
        return "confirm" if write.state == "confirmed" else "review"
    if before.is_approved and write.target == before.target:
        return "reopen"
    return write.act or "type"


def kept_of(row: Segment) -> dict[str, object]:
    """What an edit keeps of a row besides its text and state."""
    kept = {name: getattr(row, name) for name in KEPT}
    return {**kept, "placed": [asdict(one) for one in row.placed]}


def _author(write: Write | None) -> tuple[str | None, str | None]:
    return (None, None) if write is None else (write.writer, write.person)


def _segment(row: tuple, comments: Sequence[Comment]) -> Segment:  # type: ignore[type-arg]
    position, source, target, state, metadata, *rest, placed = row
    formats = tuple(PlacedFormat(**one) for one in _parsed(placed, [])) if placed else ()
    segment = Segment(position, source, target, state, _parsed(metadata, {}), *rest)
    return replace(segment, placed=formats, comments=tuple(comments))


def _parsed(text: str, damaged: Any) -> Any:
    """JSON of the database; what it says about a row can be missed if it is damaged, the row cannot."""
    try:
        return json.loads(text)
    except ValueError:
        return damaged
