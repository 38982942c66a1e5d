"""Searching the rows of a document, and replacing in their translations: within bounded time, and as one step."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from weitblick.files.checks.matching import LONGEST, replaced
from weitblick.files.checks.own_rules import MOST_SECONDS, Worker
from weitblick.workbench.errors import Refused
from weitblick.workbench.schema import Segment, State, Write
from weitblick.workbench.store import Store

Side = Literal["source", "target", "both"]


@dataclass(frozen=True)
class Wanted:
    """What is searched for: words as they are, or a regular expression; with the very same capitals, or any."""

    text: str
    expression: bool = False
    cased: bool = False

    @property
    def pattern(self) -> str:
        return self.text if self.expression else re.escape(self.text)

    @property
    def flags(self) -> int:
        return 0 if self.cased else int(re.IGNORECASE)


@dataclass(frozen=True)
class Replacement:
    """What replacing makes of a row, and how often it has what is replaced."""

    row: Segment
    after: str
    hits: int


class Searching:
    """Searches for what people type. Regular expressions run in a process of their own, which is stopped if they take
    too long. Safe to use from several threads, one after the other."""

    def __init__(self, *, seconds: float = MOST_SECONDS) -> None:
        self.seconds = seconds
        self._worker: Worker | None = None
        self._lock = threading.Lock()

    def rows(self, wanted: Wanted, side: Side, rows: Sequence[Segment]) -> list[Segment]:
        """Those rows that have it in their source, their translation, or either."""
        sides = [name for name in ("source", "target") if side in (name, "both")]
        texts = [getattr(row, name) for row in rows for name in sides]
        found, size = self._has(wanted, texts), len(sides)
        return [row for number, row in enumerate(rows) if any(found[number * size : (number + 1) * size])]

    def replacements(self, wanted: Wanted, replacement: str, rows: Sequence[Segment]) -> list[Replacement]:
        """The rows whose translations have it, with it replaced. In the replacement for a regular expression \\1 is its
        first group, as in Python."""
        template = replacement if wanted.expression else replacement.replace("\\", r"\\")
        texts = [row.target for row in rows]
        if wanted.expression:
            pairs = self._ask(wanted, texts, template)
        else:
            pattern = re.compile(wanted.pattern, wanted.flags)
            pairs = [replaced(pattern, template, text) for text in texts]
        found = [Replacement(row, after, hits) for row, (after, hits) in zip(rows, pairs, strict=True) if hits]
        for one in found:
            if len(one.after) > LONGEST:
                raise Refused(422, f"row {one.row.position + 1} would have more than {LONGEST:,} characters")
        return found

    def _has(self, wanted: Wanted, texts: Sequence[str]) -> list[bool]:
        if wanted.expression:
            return [span is not None for span in self._ask(wanted, texts)]
        pattern = re.compile(wanted.pattern, wanted.flags)
        return [pattern.search(text) is not None for text in texts]

    def _ask(self, wanted: Wanted, texts: Sequence[str], replacement: str | None = None) -> list[Any]:
        try:
            compiled = re.compile(wanted.pattern, wanted.flags)
            if replacement is not None:
                compiled.sub(replacement, "")  # a template is read before anything is looked for
        except (re.error, OverflowError, RecursionError, IndexError) as error:
            what = f"{wanted.text[:60]!r} is no regular expression"
            if replacement is not None:
                what += f", or {replacement[:60]!r} no replacement for one"
            raise Refused(422, f"{what} ({error}): mend it; \\. is a full stop") from None
        with self._lock:
            self._worker = self._worker or Worker()
            answer = self._worker.ask(wanted.pattern, texts, self.seconds, wanted.flags, replacement)
            if answer is None:
                self._close()
        if answer is None:
            stopped = f"{wanted.text[:60]!r} was stopped after {self.seconds:g} s"
            raise Refused(422, f"{stopped}: write it without nested repetitions such as (a+)+")
        return answer

    def _close(self) -> None:
        if self._worker is not None:
            self._worker.close()
        self._worker = None

    def close(self) -> None:
        """Ends the process, if there is one."""
        with self._lock:
            self._close()


def chosen(
    rows: Sequence[Segment],
    states: Sequence[State],
    changed: bool,
    with_findings: set[int] | None,
    commented: bool = False,
) -> list[Segment]:
    """The rows in one of these states (none: in any), changed ones only if wanted, commented ones only if wanted, and
    with findings, if given."""
    return [
        row
        for row in rows
        if (not states or row.state in states)
        and (not changed or row.before is not None)
        and (not commented or bool(row.comments))
        and (with_findings is None or row.position in with_findings)
    ]


def replace_targets(
    store: Store,
    document: str,
    found: Mapping[int, str],
    seen: Mapping[int, int],
    confirmed: bool,
    writer: str | None = None,
    person: str | None = None,
) -> tuple[list[Segment], list[Segment]]:
    """Writes what replacing makes of rows, all in one transaction, as a person's changes that can be taken back. The
    second list has the rows that are something else by now than what was `seen`, and are left. A row that was confirmed
    is changed only with `confirmed`: it is open again then, and leaves the memory."""
    with store._change() as database:
        done: list[int] = []
        left: list[Segment] = []
        step = 0
        for position, version in sorted(seen.items()):
            row = store.segment(document, position)
            if row.version != version or position not in found or (row.is_approved and not confirmed):
                left.append(row)
                continue
            step = step or store.new_step(database, document, "replace", writer, person)
            edit = store.write(
                database, document, row, Write(found[position], "edited", version, None, 0, person), step
            )
            where = (edit, document, position)
            database.execute("UPDATE segments SET change = ? WHERE document = ? AND position = ?", where)
            done.append(position)
        return [store.segment(document, position) for position in done], left
