"""The memories of projects: what the store keeps of approved pairs, as the model reads them."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from weitblick.memory.store import Memory
from weitblick.workbench.schema import StoredPair
from weitblick.workbench.store import Store

MOST_OPEN = 32
"""Projects whose memories are kept in RAM: the latest that were asked for."""


@dataclass
class _Open:
    """A memory and what it was made of. `ids` has, for each pair of the store, the memory's pair that says the same;
    `shared` counts how many have one. `rows` has the pairs that stand for rows: document and position. `approved` is
    made when it is asked for."""

    memory: Memory = field(default_factory=Memory)
    revision: int = -1
    ids: dict[int, int] = field(default_factory=dict)
    shared: Counter[int] = field(default_factory=Counter)
    rows: dict[int, tuple[str, int]] = field(default_factory=dict)
    approved: dict[str, str] | None = None

    def follow(self, revision: int, changed: Mapping[int, StoredPair | None]) -> None:
        """Takes over which pairs the store has got, and which it has no longer (None), up to a revision."""
        for known in changed.keys() & self.ids.keys():
            self._remove(known)
        new = [pair for pair in changed.values() if pair is not None and pair.source.strip() and pair.target.strip()]
        ids = self.memory.extend((pair.source, pair.target, pair.origin) for pair in new) if new else []
        for pair, identity in zip(new, ids, strict=True):
            self.ids[pair.id] = identity
            self.shared[identity] += 1
            if pair.document is not None and pair.position is not None:
                self.rows[pair.id] = (pair.document, pair.position)
        if changed:
            self.approved = None
        self.revision = revision

    def _remove(self, pair: int) -> None:
        """The memory forgets a pair, unless another pair of the store says the same."""
        identity = self.ids.pop(pair)
        self.rows.pop(pair, None)
        self.shared[identity] -= 1
        if not self.shared[identity]:
            del self.shared[identity]
            self.memory.remove(identity)


class Memories:
    """One memory for each project, made when it is first asked for. It is derived from the store's pairs and brought up
    to date whenever it is asked for: it holds what they held at that moment, whatever has changed them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._open: OrderedDict[str, _Open] = OrderedDict()

    def of(self, project: str) -> Memory:
        """The memory of a project, perhaps empty."""
        with self._lock:
            return self._current(project).memory

    def approved(self, project: str) -> dict[str, str]:
        """Sentences whose translation has been approved, and the latest of them."""
        with self._lock:
            opened = self._current(project)
            if opened.approved is None:
                opened.approved = self.store.approved(project)
            return opened.approved

    def rows(self, project: str, document: str) -> dict[int, int]:
        """The memory's pairs that stand for rows of a document, and which rows these are."""
        with self._lock:
            opened = self._current(project)
            return {opened.ids[pair]: position for pair, (owner, position) in opened.rows.items() if owner == document}

    def _current(self, project: str) -> _Open:
        opened = self._open.pop(project, None) or _Open()
        opened.follow(*self.store.pair_changes(project, opened.revision))
        self._open[project] = opened
        self.store.forget_pair_changes(min(one.revision for one in self._open.values()))
        if len(self._open) > MOST_OPEN:  # whoever still reads the oldest keeps it until then
            self._open.popitem(last=False)
        return opened
