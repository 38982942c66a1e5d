"""Completion while somebody types: the row under the cursor is kept ready, and asked again at every pause."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

from weitblick.translation.completion import PieceSpellings, SentenceCompleter
from weitblick.workbench.errors import Refused
from weitblick.workbench.schema import Segment

if TYPE_CHECKING:
    from weitblick.workbench.workbench import Workbench

MOST_READY = 8
"""Rows that are kept ready: the latest in which somebody has typed."""
NEVER = 2**60
"""A revision of the memory that is never reached."""

Row = tuple[str, int]
Seen = tuple[object, ...]
"""What a completion depends on besides what is typed."""


class Completing:
    """Completes rows of all documents. In the engine's thread only."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._spellings: PieceSpellings | None = None
        self._ready: OrderedDict[Row, tuple[Seen, SentenceCompleter]] = OrderedDict()

    def steps(self, document: str, position: int, typed: str) -> Generator[None, None, str]:
        """Steps to what follows the beginning of a row that somebody has typed."""
        completer = yield from self._completer(document, position)
        return self._workbench.masks.of(document).complete(position, typed, completer.complete)

    def prepare(self, document: str, position: int) -> Generator[None, None, None]:
        """Steps that make a row ready, before anything is typed in it."""
        yield from self._completer(document, position)

    def _completer(self, document: str, position: int) -> Generator[None, None, SentenceCompleter]:
        seen = self._seen(document, position)
        known = self._ready.pop((document, position), None)
        if known is None or known[0] != seen:
            completer = self._new(document, position)
            for _ in completer.prepare():
                yield
            known = seen, completer
        self._ready[document, position] = known
        while len(self._ready) > MOST_READY:
            self._ready.popitem(last=False)
        return known[1]

    def _seen(self, document: str, position: int) -> Seen:
        store = self._workbench.store
        others = "SELECT count(*), total(version) FROM segments WHERE document = ? AND position != ?"
        project = store.document(document).project
        revision, _ = store.pair_changes(project, NEVER)
        return (*store._rows(others, document, position)[0], revision, self._workbench.addressing.of(project))

    def _new(self, document: str, position: int) -> SentenceCompleter:
        workbench = self._workbench
        engine = workbench.service.engine
        if self._spellings is None:
            self._spellings = PieceSpellings(engine.translator)
        segments = workbench.store.segments(document)
        if not 0 <= position < len(segments):
            raise Refused(404, "no such segment")
        rows = [_open(row) if row.position == position else row for row in segments]
        whole = workbench.as_document(document, rows)
        return SentenceCompleter(
            engine.translator, whole, position, workbench.options(document), engine.kept, self._spellings
        )


def _open(row: Segment) -> Segment:
    """A row of which nothing is known but its source."""
    return replace(row, state="empty", target="")
