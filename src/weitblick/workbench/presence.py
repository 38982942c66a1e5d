"""Who is at work in a document: the row that each tab writes in, and for how long others are kept out of it.

All of it is in RAM. A row is held by typing and is free by itself some seconds after the last key. Holding one never
decides what is saved: that is for the versions of rows alone.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from typing import Any

from weitblick.workbench.events import Hub

HELD_SECONDS = 8.0
"""For so long after it was last told that somebody types in a row, that row is held."""


@dataclass(frozen=True, slots=True)
class Typist:
    """Whoever types: the tab or program, the browser that it is part of, and a name, if given."""

    writer: str
    browser: str | None = None
    person: str | None = None

    def is_same_person(self, other: Typist) -> bool:
        """Whether this may be the same person: the same tab, or another one of that browser, under the same name."""
        if self.writer == other.writer:
            return True
        return self.browser is not None and (self.browser, self.person) == (other.browser, other.person)


@dataclass(frozen=True, slots=True)
class _Held:
    typist: Typist
    until: float


class Presence:
    """The tabs that listen to documents, the rows that they write in, and those that are held by typing."""

    def __init__(self, hub: Hub, clock: Callable[[], float] = time.monotonic) -> None:
        self._hub, self._clock = hub, clock
        self._lock = threading.Lock()
        self._cursors: defaultdict[str, dict[str | None, int]] = defaultdict(dict)  # by document and tab
        self._listening: Counter[tuple[str, str | None]] = Counter()
        self._held: defaultdict[str, dict[int, _Held]] = defaultdict(dict)  # by document and row

    def focus(self, document: str, position: int | None, writer: str | None = None) -> None:
        """The row that somebody writes in a tab, which the model leaves alone; None: no row any more."""
        with self._lock:
            cursors = self._cursors[document]
            if position is None:
                cursors.pop(writer, None)
            else:
                cursors[writer] = position

    def under_cursor(self, document: str) -> set[int]:
        """The rows that the model leaves alone."""
        with self._lock:
            return set(self._cursors.get(document, {}).values())

    async def news(self, document: str, writer: str | None) -> AsyncIterator[str]:
        """The events of a document for one tab, for as long as it listens; the row that it writes goes with it."""
        tab = (document, writer)
        self._listening[tab] += 1  # one that connects again may be here twice for a while
        try:
            async for event in self._hub.listen(document):
                yield event
        finally:
            self._listening[tab] -= 1
            if not self._listening[tab]:
                del self._listening[tab]
                self.focus(document, None, writer)
                if writer is not None:
                    self.release(document, writer)

    # Rows that are held

    def hold(self, document: str, position: int, typist: Typist) -> dict[str, Any] | None:
        """Somebody types in a row: others are kept out of it for a while, and told. If somebody else holds it, that is
        what you get, and nothing changes."""
        with self._lock:
            now = self._clock()
            rows = self._held[document]
            known = rows.get(position)
            if known is not None and known.until > now and not known.typist.is_same_person(typist):
                return _told(position, known, now)
            left = [row for row, held in rows.items() if held.typist.writer == typist.writer and row != position]
            freed = [_told(row, rows.pop(row), None) for row in left]
            rows[position] = _Held(typist, now + HELD_SECONDS)
            told = _told(position, rows[position], now)
        for one in (*freed, told):
            self._hub.publish(document, "typing", one)
        return None

    def release(self, document: str, writer: str) -> None:
        """A tab writes in no row any more: what it has held is free."""
        with self._lock:
            rows = self._held.get(document, {})
            left = [row for row, held in rows.items() if held.typist.writer == writer]
            freed = [_told(row, rows.pop(row), None) for row in left]
            if not rows:
                self._held.pop(document, None)
        for one in freed:
            self._hub.publish(document, "typing", one)

    def held(self, document: str) -> list[dict[str, Any]]:
        """The rows that are held now, each with who holds it and for how many seconds, if no further key is pressed."""
        with self._lock:
            now = self._clock()
            return [_told(row, held, now) for row, held in self._held.get(document, {}).items() if held.until > now]

    def held_by_others(self, document: str, writer: str | None, positions: Collection[int]) -> set[int]:
        """Which of these rows somebody types in elsewhere than in this tab."""
        others = {one["position"] for one in self.held(document) if one["writer"] != writer}
        return others & set(positions)

    def forget(self, document: str) -> None:
        """A document that is gone."""
        with self._lock:
            self._cursors.pop(document, None)
            self._held.pop(document, None)


def _told(position: int, held: _Held, now: float | None) -> dict[str, Any]:
    """What pages are told of a row that is held, or is not any more (None)."""
    typist = held.typist
    seconds = 0.0 if now is None else round(held.until - now, 1)
    who = {"writer": typist.writer, "browser": typist.browser, "person": typist.person}
    return {"position": position, **who, "seconds": seconds}
