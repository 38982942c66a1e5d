"""The first drafts of a document: the rows on somebody's screen first, then the others in reading order.

A long document is filled some rows at a time. Each time is a document of its own for the model: the rows that are
translated and the CONTEXT_ROWS before them that have a translation. So the first drafts do not wait for the last row,
and whoever scrolls gets drafts there next. Models that read what follows a sentence get the whole document at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from weitblick.files.masked_document import BY_RULE
from weitblick.memory.matches import Pair
from weitblick.translation.match_repair import NearMatch, repair_matches
from weitblick.translation.options import TranslationOptions
from weitblick.workbench.origins import best_match, exact_origin
from weitblick.workbench.schema import Origin, Segment

if TYPE_CHECKING:
    from weitblick.workbench.engine import Steps
    from weitblick.workbench.workbench import Workbench

CONTEXT_ROWS = 30
"""Rows before those that are translated, which are their context."""
FIRST_ROWS, MOST_ROWS = 6, 96
"""Rows that are translated at a time: a few at first, so that they come soon, each time twice as many."""
SCREEN_ROWS = 24
"""Rows of a screen that nobody has told of."""
MATCHED_TOGETHER = 16
"""Rows that are compared with what is approved in one step."""

Tell = Callable[[str, Segment], None]
Unmask = Callable[[str, dict[int, str], TranslationOptions], dict[int, str]]


class Filling:
    """Fills the empty rows of documents."""

    def __init__(self, workbench: Workbench, tell: Tell, unmask: Unmask) -> None:
        """tell: says how a row is now; unmask: gives what a model says for rows as people read it."""
        self._workbench, self._tell, self._unmask = workbench, tell, unmask
        self._lock = threading.Lock()
        self._views: dict[str, tuple[int, int]] = {}  # by document, the rows on the screen of the latest tab

    def look_at(self, document: str, first: int, last: int) -> None:
        """Somebody sees these rows, from the first to the last."""
        with self._lock:
            self._views[document] = first, last

    def forget(self, document: str) -> None:
        """A document that is gone."""
        with self._lock:
            self._views.pop(document, None)

    # In the engine's thread

    def steps(self, document: str) -> Steps:
        """Steps that translate all rows that are empty."""
        self._take_over(document)
        yield
        empty = _empty(self._workbench.store.segments(document))
        total, done, size, tried = len(empty), 0, FIRST_ROWS, set[int]()
        while group := self._next(document, tried, size):
            view = self._view(document)
            for finished in self._translate(document, group):
                tried.update(finished)
                done += len(finished)
                self._workbench.hub.publish(document, "progress", {"done": done, "total": max(total, done)})
                yield
                if self._view(document) != view and self._is_wanted_more(document, group):
                    break  # the rest of the group comes later
            size = min(2 * size, MOST_ROWS)
        yield from self._note_matches(document)

    def _is_wanted_more(self, document: str, group: Sequence[int]) -> bool:
        """Whether somebody sees empty rows, and none of these."""
        first, last = self._view(document)
        rows = self._workbench.store.segments(document)[first : last + 1]
        return bool(_empty(rows)) and not any(first <= position <= last for position in group)

    def _view(self, document: str) -> tuple[int, int]:
        with self._lock:
            return self._views.get(document, (0, SCREEN_ROWS))

    def _take_over(self, document: str) -> None:
        """Empty rows whose very source has been approved in the project become drafts that say the same."""
        workbench, store = self._workbench, self._workbench.store
        project = store.document(document).project
        approved = workbench.service.memories.approved(project)
        rows = store.segments(document) if approved else []
        for segment in rows:
            target = approved.get(segment.source)
            if segment.state == "empty" and target is not None:
                origin = exact_origin(store, project, rows, segment, target)
                matched = (origin, 100, segment.source)
                taken = store.translate(document, segment.position, target, segment, None, *matched)
                if taken is not None:
                    self._tell(document, taken)

    def _note_matches(self, document: str) -> Steps:
        """Drafts of the model say how like the likest approved sentence is; where the words that differ can be put into
        its translation, they give way to that."""
        store = self._workbench.store
        memory = self._workbench.service.memories.of(store.document(document).project)
        drafts = [row for row in store.segments(document) if row.origin == "machine"] if len(memory) else []
        for begin in range(0, len(drafts), MATCHED_TOGETHER):
            some = drafts[begin : begin + MATCHED_TOGETHER]
            matched = [(row, *found) for row in some if (found := best_match(memory, row.source)) is not None]
            repaired = self._repaired(document, [(row, pair) for row, _, pair in matched])
            for row, likeness, pair in matched:
                self._note_match(document, row, likeness, pair.source, repaired.get(row.position))
            yield

    def _note_match(self, document: str, row: Segment, likeness: int, source: str, repaired: str | None) -> None:
        store = self._workbench.store
        taken = None
        if repaired is not None and repaired != row.target and row.state == "draft":
            taken = store.translate(document, row.position, repaired, row, None, "repaired", likeness, source)
        if taken is None:
            kind: Origin = "repaired" if repaired == row.target else "fuzzy"
            taken = store.set_origin(document, row.position, kind, likeness, source)
        self._tell(document, taken)

    def _repaired(self, document: str, matched: Sequence[tuple[Segment, Pair]]) -> dict[int, str]:
        """By position, drafts that an approved translation of a like sentence makes; none for rows with placeholders,
        or where a term of the project would be lost."""
        workbench = self._workbench
        mask, terms = workbench.masks.of(document), workbench.terms.of(workbench.store.document(document).project)
        plain = [(row, pair) for row, pair in matched if mask.source(row.position) == row.source]
        near = [NearMatch(row.source, row.target, pair.source, pair.target) for row, pair in plain]
        found = repair_matches(workbench.service.engine.translator, near) if near else []
        return {
            row.position: text
            for (row, _), text in zip(plain, found, strict=True)
            if text is not None and (terms is None or terms.are_said(row.source, text))
        }

    def _next(self, document: str, tried: set[int], size: int) -> list[int]:
        """The rows to translate next, in reading order."""
        empty = [position for position in _empty(self._workbench.store.segments(document)) if position not in tried]
        if not self._in_parts:
            return empty
        first, last = self._view(document)
        seen = [position for position in empty if first <= position <= last]
        return (seen or [position for position in empty if position >= first] or empty)[:size]

    @property
    def _in_parts(self) -> bool:
        """Whether what is translated first does not depend on what is translated later."""
        model = self._workbench.service.engine.translator.model
        return model.context is None or (model.reads_translations and model.section.direction == "online")

    def _translate(self, document: str, group: Sequence[int]) -> Iterator[list[int]]:
        """Translates some rows; after each step those that it has finished."""
        workbench = self._workbench
        every = workbench.store.segments(document)
        wanted = set(group)
        rows = [row for row in every if row.position in wanted or self._is_context(row, group)]
        order = [place for place, row in enumerate(rows) if row.position in wanted]
        options = workbench.options(document)
        for finished in workbench.service.engine.document_steps(workbench.as_document(document, rows), options, order):
            said = {rows[place].position: found[0].text for place, found in finished.items() if found}
            shown = self._unmask(document, said, options)
            for place in finished:
                before = rows[place]
                target = shown.get(before.position, before.target or before.source)
                drafted = workbench.store.translate(document, before.position, target, before)
                if drafted is not None and drafted != before:
                    self._tell(document, drafted)
            yield [rows[place].position for place in finished]

    def _is_context(self, row: Segment, group: Sequence[int]) -> bool:
        if not self._in_parts:
            return True
        return row.state != "empty" and group[0] - CONTEXT_ROWS <= row.position <= group[-1]


def may_change(row: Segment) -> bool:
    """Whether the model may translate a row again: a draft, but not one that a rule has made."""
    return row.state == "draft" and not row.metadata.get(BY_RULE)


def _empty(rows: Sequence[Segment]) -> list[int]:
    return [row.position for row in rows if row.state == "empty"]
