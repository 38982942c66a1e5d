"""Undoing and redoing by steps: what a person would call one step is taken back as a whole, and done again as one.

A step is what was typed in a row without a pause, a confirmation with all that it has changed in other rows, a
replacement, or what was done to several rows at once. Taking one back writes the rows anew, so that history is never
rewritten. A row that is not what the step has left it is left alone.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from weitblick.files.inline_marks import PlacedFormat
from weitblick.workbench.errors import Changed, Refused
from weitblick.workbench.row_store import kept_of
from weitblick.workbench.schema import Segment, State, Step, Write
from weitblick.workbench.store import Store

STEPS = """SELECT steps.id, kind, writer, person, time,
    (SELECT count(*) FROM (SELECT position FROM edits WHERE step = steps.id UNION SELECT comments.position
        FROM comment_edits JOIN comments ON comments.id = comment WHERE step = steps.id)),
    coalesce((SELECT min(position) FROM edits WHERE step = steps.id), (SELECT min(position)
        FROM comment_edits JOIN comments ON comments.id = comment WHERE step = steps.id))
    FROM steps WHERE document = ?"""
Direction = Literal["undo", "redo"]


@dataclass(frozen=True)
class Steps:
    """What would be taken back next in a document, and what would be done again."""

    undo: Step | None
    redo: Step | None


@dataclass(frozen=True)
class Stepped:
    """The rows of a step that was taken back or done again, those that were left because they have changed since, and
    the edits that the step is made of."""

    kind: str
    rows: list[Segment]
    left: list[Segment]


@dataclass(frozen=True)
class _Was:
    """What a row becomes again."""

    target: str
    state: State
    kept: dict[str, object]

    def differs(self, row: Segment) -> bool:
        """Whether a row of the same text and state has another change to be seen to, or formatting elsewhere."""
        now = kept_of(row)
        return any((self.kept.get(name) or None) != (now[name] or None) for name in ("change", "placed"))


def steps_of(store: Store, document: str) -> Steps:
    """The next steps of a document in either direction."""
    with store._lock:
        undo = store._rows(f"{STEPS} AND NOT undone ORDER BY id DESC LIMIT 1", document)
        redo = store._rows(f"{STEPS} AND undone ORDER BY id LIMIT 1", document)
    return Steps(Step(*undo[0]) if undo else None, Step(*redo[0]) if redo else None)


def go(store: Store, document: str, direction: Direction, step: int, by: Write) -> Stepped:
    """Takes a step back, or does it again, in one transaction. It must be the next one: whoever asks has seen it. `by`
    tells who asks."""
    with store._change() as database:
        steps = steps_of(store, document)
        following = steps.undo if direction == "undo" else steps.redo
        if following is None or following.id != step:
            what = "another step is the latest by now" if following else f"there is nothing to {direction}"
            raise Refused(409, f"{what}: nothing was changed")
        rows, left = [], []
        sign = 1 if direction == "undo" else -1
        for position in _positions(database, document, sign * step):
            row = store.segment(document, position)
            was = _was(database, document, row, sign * step)
            if was is None:
                left.append(row)
            elif (was.target, was.state) != (row.target, row.state) or was.differs(row):
                rows.append(_become(store, database, document, row, was, -sign * step, by))
        if direction == "undo":
            rows += _undo_consequences(store, database, document, step, by)
        commented = _go_comments(store, database, document, step, direction)
        database.execute("UPDATE steps SET undone = ? WHERE id = ?", (direction == "undo", step))
        changed = sorted({row.position for row in rows} | commented)
        return Stepped(following.kind, [store.segment(document, one) for one in changed], left)


def _positions(database: sqlite3.Connection, document: str, step: int) -> list[int]:
    query = "SELECT DISTINCT position FROM edits WHERE document = ? AND step = ? ORDER BY position"
    return [position for (position,) in database.execute(query, (document, step))]


def _was(database: sqlite3.Connection, document: str, row: Segment, step: int) -> _Was | None:
    """What a row was before this step (below zero: before that was taken back); None if it is not what it was after
    it."""
    query = """SELECT before, state_before, kept, after, state_after FROM edits
        WHERE document = ? AND position = ? AND step = ? ORDER BY id"""
    edits = database.execute(query, (document, row.position, step)).fetchall()
    if edits[-1][3:] != (row.target, row.state):
        return None
    before, state, kept, *_ = edits[0 if step > 0 else -1]  # done again, a step has more edits; the first is before all
    return _Was(before, state, json.loads(kept or "{}"))


def _become(
    store: Store, database: sqlite3.Connection, document: str, row: Segment, was: _Was, step: int, by: Write
) -> Segment:
    """Writes a row as it was, with everything that was known about it."""
    write = replace(by, target=was.target, state=was.state, version=row.version)
    store.write(database, document, row, write, step)
    store.set_kept(database, document, row.position, was.kept)
    return store.segment(document, row.position)


def _undo_consequences(
    store: Store, database: sqlite3.Connection, document: str, step: int, by: Write
) -> list[Segment]:
    """Drafts that the model has changed because of a step, and that nobody has seen to, are as before, too."""
    query = """SELECT segments.position FROM segments JOIN edits ON edits.id = segments.change
        WHERE segments.document = ? AND segments.state = 'draft'
        AND edits.cause IN (SELECT id FROM edits WHERE step = ?)"""
    found = [position for (position,) in database.execute(query, (document, step))]
    for position in found:
        store._restore(database, document, store.segment(document, position), "draft", -step, by)
    return [store.segment(document, position) for position in found]


def _go_comments(
    store: Store, database: sqlite3.Connection, document: str, step: int, direction: Direction
) -> set[int]:
    """Comments as they were before a step, or after it; gives their rows."""
    query = """SELECT comment, comments.position, before, after, text FROM comment_edits
        JOIN comments ON comments.id = comment WHERE step = ? ORDER BY comment_edits.id"""
    changed = set()
    for comment, position, before, after, now in database.execute(query, (step,)).fetchall():
        text, expected = (before, after) if direction == "undo" else (after, before)
        if now == expected:
            database.execute("UPDATE comments SET text = ?, version = version + 1 WHERE id = ?", (text, comment))
            store.touch(database, document, position)
            changed.add(position)
    return changed


# Formatting


def place_formats(
    store: Store, document: str, position: int, placed: Sequence[PlacedFormat], seen: str, by: Write
) -> Segment:
    """Notes where a person has put the formatting of a row, as a step; a draft is a person's then. `seen` is the text
    in which it was placed, `by` has the version of the row that was seen."""
    with store._change() as database:
        row = store.segment(document, position)
        if row.target != seen or not by.may_replace(row):
            raise Changed(row)
        if row.placed == tuple(placed):
            return row
        step = store.new_step(database, document, "format", by.writer, by.person)
        write = replace(by, target=row.target, state="edited" if row.state == "draft" else row.state)
        store.write(database, document, row, write, step)
        store.set_placed(database, document, position, placed)
        return store.segment(document, position)


# Comments


def comment_on(store: Store, document: str, position: int, text: str, by: Write) -> Segment:
    """Adds a comment to a row, as a step."""
    with store._change() as database:
        store.segment(document, position)
        step = store.new_step(database, document, "comment", by.writer, by.person)
        add_comment(store, database, (document, position), text, by.person, step)
        return store.segment(document, position)


def add_comment(
    store: Store, database: sqlite3.Connection, row: tuple[str, int], text: str, person: str | None, step: int
) -> None:
    """Adds a comment to a row as part of a step, in a transaction that is open."""
    query = "INSERT INTO comments (document, position, person, time) VALUES (?, ?, ?, ?)"
    identity = database.execute(query, (*row, person, time.time())).lastrowid or 0
    set_comment(store, database, row, identity, None, text, step)


def change_comment(
    store: Store, document: str, position: int, comment: int, text: str | None, version: int, by: Write
) -> Segment:
    """Changes a comment, or deletes it (None), as a step. `version` is the comment's that was seen."""
    with store._change() as database:
        row = store.segment(document, position)
        known = next((one for one in row.comments if one.id == comment), None)
        if known is None:
            raise Refused(404, "no such comment: it was deleted")
        if known.text == text:
            return row
        if known.version != version:
            raise Refused(409, "this comment was changed elsewhere meanwhile")
        step = store.new_step(database, document, "comment", by.writer, by.person)
        set_comment(store, database, (document, position), comment, known.text, text, step)
        if text is not None:
            database.execute("UPDATE comments SET person = ?, time = ? WHERE id = ?", (by.person, time.time(), comment))
        return store.segment(document, position)


def set_comment(
    store: Store,
    database: sqlite3.Connection,
    row: tuple[str, int],
    comment: int,
    before: str | None,
    after: str | None,
    step: int,
) -> None:
    """Writes a comment of a row as part of a step, in a transaction that is open."""
    query = "INSERT INTO comment_edits (comment, step, time, before, after) VALUES (?, ?, ?, ?, ?)"
    database.execute(query, (comment, step, time.time(), before, after))
    database.execute("UPDATE comments SET text = ?, version = version + 1 WHERE id = ?", (after, comment))
    store.touch(database, *row)
