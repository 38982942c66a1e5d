"""What a row has been, as somebody would tell it: the draft, what was edited, what a review has changed, each with who
and when, and as a difference to what stood there before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from rapidfuzz.distance import Indel

from weitblick.workbench.schema import Edit, State, StepKind
from weitblick.workbench.store import Store

PIECE = re.compile(r"\s+|\w+|[^\w\s]")
VersionKind = Literal["draft", "model"] | StepKind
"""How a version came about: a first draft (or what the file had), a change of a draft by the model, or a person's step;
`undo`: a step, or a change of the model, was taken back."""
Against = Literal["before", "draft"]


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of two texts: both have it, only the new one (added), or only the old one (removed)."""

    kind: Literal["equal", "added", "removed"]
    text: str


@dataclass(frozen=True, slots=True)
class RowVersion:
    """A text and state of a row, how it came about, who made it and when, and the row because of which the model did.
    `difference` is to the version before, or to the draft."""

    kind: VersionKind
    text: str
    state: State
    person: str | None = None
    time: float | None = None
    because: int | None = None
    difference: tuple[Part, ...] = ()


def versions_of(store: Store, document: str, position: int, against: Against = "before") -> list[RowVersion]:
    """All versions of a row, oldest first."""
    row, edits = store.segment(document, position), store.edits(document, position)
    first = edits[0] if edits else None
    versions = []
    if first is None:
        versions = [RowVersion("draft", row.target, row.state)] if row.target else []
    elif first.before:
        versions = [RowVersion("draft", first.before, first.state_before)]
    versions += _grouped(store, edits)
    found = []
    for number, version in enumerate(versions):
        other = versions[0 if against == "draft" else max(0, number - 1)].text
        found.append(replace(version, difference=tuple(difference(other, version.text))))
    return found


def difference(before: str, after: str) -> Iterator[Part]:
    """Two texts as one: what both have, and what only one of them has, by words, signs and spaces."""
    old, new = PIECE.findall(before), PIECE.findall(after)
    for part in Indel.opcodes(old, new):
        if part.tag == "equal":
            yield Part("equal", "".join(new[part.dest_start : part.dest_end]))
        elif part.tag == "delete":
            yield Part("removed", "".join(old[part.src_start : part.src_end]))
        else:
            yield Part("added", "".join(new[part.dest_start : part.dest_end]))


def _grouped(store: Store, edits: Sequence[Edit]) -> list[RowVersion]:
    """What one person did in one step is one version; what changes neither text nor state is none."""
    found = []
    for _, together in groupby(edits, key=lambda edit: (edit.step or -edit.id, edit.person)):
        own = list(together)
        first, last = own[0], own[-1]
        if (first.before, first.state_before) != (last.after, last.state_after):
            kind, because = _kind(store, last, is_first=not first.before), _because(store, last)
            found.append(RowVersion(kind, last.after, last.state_after, last.person, last.time, because))
    return found


def _kind(store: Store, edit: Edit, *, is_first: bool) -> VersionKind:
    if edit.step is None:
        return "draft" if is_first and edit.state_after == "draft" else "model"
    if edit.step < 0:
        return "undo"
    known = store._rows("SELECT kind FROM steps WHERE id = ?", edit.step)
    if known:
        return known[0][0]
    return {"confirmed": "confirm", "reviewed": "review"}.get(edit.state_after, "type")  # type: ignore[return-value]


def _because(store: Store, edit: Edit) -> int | None:
    """The row whose approval has changed a draft."""
    if edit.cause is None or edit.cause <= 0:
        return None
    found = store._rows("SELECT position FROM edits WHERE id = ?", edit.cause)
    return found[0][0] if found else None
