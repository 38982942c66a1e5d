"""A review that comes back: all of it is applied as one step, or nothing.

A row whose text the reviewer has changed becomes edited. What somebody has written at the workbench since the file went
out is never written over: the reviewer's text is then a comment. Comments come along; a row that was confirmed and that
the reviewer calls reviewed is reviewed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weitblick.files.checks.matching import LONGEST
from weitblick.workbench.errors import Refused
from weitblick.workbench.review_files import ReviewedRow, said_in_one_line
from weitblick.workbench.schema import Segment, Write
from weitblick.workbench.steps import add_comment
from weitblick.workbench.store import Store

MOST_NAMED = 5


@dataclass
class AppliedReview:
    """What a review has done: the rows with new texts or states, those whose new text is a comment because they were
    written meanwhile, and how many comments came along."""

    edited: list[int] = field(default_factory=list)
    reviewed: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    comments: int = 0
    rows: list[Segment] = field(default_factory=list)


def apply_review(
    store: Store,
    document: str,
    found: Sequence[ReviewedRow],
    by: Write,
    check: Callable[[int, str], None],
) -> AppliedReview:
    """Applies a review to the rows of its document, in one transaction. `check` refuses a text that a row cannot have.
    A file of another document, or one whose rows are not those of this one, is refused."""
    with store._change() as database:
        rows = store.segments(document)
        refuse_others(store, document, rows, found)
        applied, step, touched = AppliedReview(), 0, set()
        for given in sorted(found, key=lambda one: one.number):
            row = rows[given.number - 1]
            write = _write_of(store, document, row, given, by, applied)
            said = list(_new_comments(row, given))
            if row.position in applied.left:
                said.append((f"Review: {given.target.strip()}", by.person))
            if write is None and not said:
                continue
            step = step or store.new_step(database, document, "import", by.writer, by.person)
            if write is not None:
                check(row.position, write.target)
                store.write(database, document, row, write, step)
            for text, author in said:
                add_comment(store, database, (document, row.position), text, author or by.person, step)
            applied.comments += len(said)
            touched.add(row.position)
        applied.rows = [store.segment(document, position) for position in sorted(touched)]
        return applied


def _write_of(
    store: Store, document: str, row: Segment, given: ReviewedRow, by: Write, applied: AppliedReview
) -> Write | None:
    """What a review writes in a row, if anything; `applied` is told."""
    if _is_changed(store, document, row, given):
        if given.version < row.written:
            applied.left.append(row.position)
            return None
        applied.edited.append(row.position)
        return replace(by, target=given.target.strip(), state="edited", version=row.version)
    if row.state == "confirmed" and given.state == "reviewed" and given.target.strip() == row.target.strip():
        applied.reviewed.append(row.position)
        return replace(by, target=row.target, state="reviewed", version=row.version)
    return None


def refuse_others(store: Store, document: str, rows: Sequence[Segment], found: Sequence[ReviewedRow]) -> None:
    """Refuses what is no review of these rows, in one line that says what differs."""
    name = store.document(document).name
    strange = next((one for one in found if one.document != document[:8]), None)
    if strange is not None:
        raise Refused(409, f"row {strange.number} is of another document than {name}: nothing was changed")
    numbers = [one.number for one in found]
    twice = sorted(number for number, often in Counter(numbers).items() if often > 1)
    missing = sorted(set(range(1, len(rows) + 1)) - set(numbers))
    unknown = sorted(set(numbers) - set(range(1, len(rows) + 1)))
    for wrong, what in ((missing, "missing in the review"), (unknown, f"no rows of {name}"), (twice, "there twice")):
        if wrong:
            raise Refused(409, f"{_named(wrong)} {'is' if len(wrong) == 1 else 'are'} {what}: nothing was changed")
    for one in found:
        source = rows[one.number - 1].source
        if one.source.split() != source.split():
            said = f"{one.source.strip()[:60]!r}, not {source[:60]!r}"
            raise Refused(409, f"the source of row {one.number} is {said}: nothing was changed")
        if len(one.target) > LONGEST:
            raise Refused(422, f"row {one.number} has more than {LONGEST:,} characters: nothing was changed")


def _named(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:MOST_NAMED]))
    more = f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else ""
    return f"row{'s' if len(numbers) > 1 else ''} {shown}{more}"


def _is_changed(store: Store, document: str, row: Segment, given: ReviewedRow) -> bool:
    """Whether the reviewer has changed a text. Of a row that has changed here, too, what went out is in its history."""
    if given.target.strip() == row.target.strip():
        return False
    if given.version == row.version:
        return True
    edits = store.edits(document, row.position)
    return given.target.strip() not in {text.strip() for edit in edits for text in (edit.before, edit.after)}


def _new_comments(row: Segment, given: ReviewedRow) -> Sequence[tuple[str, str | None]]:
    """What the reviewer says that the row does not say yet."""
    known: Mapping[str, None] = dict.fromkeys(
        text for one in row.comments for text in (one.text, said_in_one_line(one.text, one.person))
    )
    return [(text.strip(), author) for text, author in given.comments if text.strip() not in known]
