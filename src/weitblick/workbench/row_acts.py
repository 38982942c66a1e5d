"""What a person does to rows besides typing: several at once, step by step back and forth, comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from weitblick.files.checks.findings import Finding
from weitblick.files.inline_marks import InlineMark, PlacedFormat
from weitblick.workbench import steps
from weitblick.workbench.errors import Refused
from weitblick.workbench.review_files import read_review
from weitblick.workbench.reviews import AppliedReview, apply_review
from weitblick.workbench.schema import Segment, State, StepKind, Write, Written
from weitblick.workbench.store import Store

if TYPE_CHECKING:
    from weitblick.workbench.workbench import Workbench

Act = Literal["confirm", "reopen", "review", "copy", "clear"]
STATES: Mapping[Act, State] = {
    "confirm": "confirmed",
    "reopen": "edited",
    "review": "reviewed",
    "copy": "edited",
    "clear": "edited",
}


@dataclass(frozen=True)
class Acted:
    """The rows that were changed, those that were left because they are not what was seen any more, and what looks
    wrong in rows that were not confirmed for it."""

    written: list[Written]
    left: list[Segment]
    findings: list[Finding]


class RowActs:
    """Acts on rows of the workbench. Each is one transaction and one step."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench, self._store = workbench, workbench.store

    def several(
        self, document: str, act: Act, seen: Mapping[int, int], by: Write, *, approved: bool = False, ask: bool = False
    ) -> Acted:
        """Does the same to several rows. Rows that somebody has approved are neither cleared nor written over, unless
        `approved` says so. With `ask`, rows in which something looks wrong are not confirmed. Rows that somebody types
        in elsewhere are left."""
        findings: list[Finding] = []
        if ask and act in ("confirm", "review"):
            findings = [one for one in self._workbench.checks.of_document(document) if one.row - 1 in seen]
            open_rows = {row.position for row in self._store.segments(document) if not row.is_approved}
            findings = [one for one in findings if one.row - 1 in open_rows]
        held = self._workbench.presence.held_by_others(document, by.writer, seen)
        refused = {one.row - 1 for one in findings} | held
        chosen = {position: version for position, version in seen.items() if position not in refused}
        written, left = write_several(self._store, document, act, chosen, by, approved)
        left += [self._store.segment(document, position) for position in sorted(held)]
        self._workbench.tell(document, *(one.after for one in written))
        self._workbench.learn(document, written)
        return Acted(written, left, findings)

    def go(self, document: str, direction: steps.Direction, step: int, by: Write) -> steps.Stepped:
        """Takes a step back, or does it again. What is being made anew because of it is not waited for."""
        if direction == "undo":
            self._workbench.stop_improving(document)
        done = steps.go(self._store, document, direction, step, by)
        self._workbench.tell(document, *done.rows)
        return done

    def comment(self, document: str, position: int, text: str, by: Write) -> Segment:
        """Adds a comment to a row."""
        return self._told(document, steps.comment_on(self._store, document, position, text, by))

    def change_comment(
        self, document: str, position: int, comment: int, text: str | None, version: int, by: Write
    ) -> Segment:
        """Changes a comment of a row, or deletes it (None)."""
        changed = steps.change_comment(self._store, document, position, comment, text, version, by)
        return self._told(document, changed)

    def place(self, document: str, position: int, placed: Sequence[PlacedFormat], seen: str, by: Write) -> Segment:
        """Puts formatting of a row where a person wants it, all other formatting where its words go."""
        marks = [mark for mark in self._workbench.masks.of(document).marks()[position] if mark.kind == "format"]
        check_placed(placed, marks, seen)
        ordered = sorted(placed, key=lambda one: one.mark)
        return self._told(document, steps.place_formats(self._store, document, position, ordered, seen, by))

    def review(self, document: str, name: str, content: bytes, by: Write) -> AppliedReview:
        """Reads a review back, all of it or nothing."""
        found = read_review(name, content)
        check = partial(self._workbench.checks.refuse_unholdable, document)
        applied = apply_review(self._store, document, found, by, check)
        self._workbench.tell(document, *applied.rows)
        return applied

    def _told(self, document: str, row: Segment) -> Segment:
        self._workbench.tell(document, row)
        return row


def check_placed(placed: Sequence[PlacedFormat], marks: Sequence[InlineMark], target: str) -> None:
    """Refuses formatting that the source does not have, that stands outside of the text, or that crosses other."""
    if len({one.mark for one in placed}) < len(placed):
        raise Refused(422, "formats: the same formatting is placed twice")
    for one in placed:
        if one.mark >= len(marks):
            raise Refused(422, f"formats: there is no formatting {one.mark}, the source has {len(marks)}")
        if not one.start < one.end <= len(target):
            part = f"[{one.start}, {one.end})"
            raise Refused(422, f"formats: {part} is no part of the translation, which has {len(target)} characters")
    for one, other in combinations(placed, 2):
        inner, outer = sorted((one, other), key=lambda each: each.end - each.start)
        apart = one.end <= other.start or other.end <= one.start
        around, within = marks[outer.mark], marks[inner.mark]
        nested = around.start <= within.start and within.end <= around.end
        if not apart and not (nested and outer.start <= inner.start and inner.end <= outer.end):
            raise Refused(422, f"formats: {one.mark} and {other.mark} cross each other")


def write_several(
    store: Store, document: str, act: Act, seen: Mapping[int, int], by: Write, approved: bool
) -> tuple[list[Written], list[Segment]]:
    """Writes rows as one step, in one transaction. The second list has those that are something else by now."""
    written: list[Written] = []
    left: list[Segment] = []
    with store._change() as database:
        step = 0
        for position, version in sorted(seen.items()):
            row = store.segment(document, position)
            if row.version != version:
                left.append(row)
                continue
            if not _changes(act, row, approved):
                continue
            kind: StepKind = act
            step = step or store.new_step(database, document, kind, by.writer, by.person)
            target = {"copy": row.source, "clear": ""}.get(act, row.target)
            write = replace(by, target=target, state=STATES[act], version=version)
            edit = store.write(database, document, row, write, step)
            written.append(Written(row, store.segment(document, position), edit))
    return written, left


def _changes(act: Act, row: Segment, approved: bool) -> bool:
    """Whether an act makes something else of a row, and may."""
    if act == "reopen":
        return row.is_approved
    if act in ("confirm", "review"):
        return bool(row.target.strip()) and row.state != STATES[act] and not (act == "confirm" and row.is_approved)
    if row.is_approved and not approved:
        return False
    return row.target != (row.source if act == "copy" else "")
