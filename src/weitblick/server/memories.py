"""The memories of projects: what the store keeps of approved pairs, as the model reads them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from weitblick.memory import Memory
from weitblick.server.store import Store, origin_of

MOST_OPEN = 32
"""Projects whose memories are kept in RAM: the latest that were asked for."""


@dataclass
class _Open:
    """memory: perhaps empty; pairs: which of it stand for rows, by document and position; imported: which stand for
    themselves; approved: sentences whose translation has been approved and the latest of them, None until it is asked
    for."""

    memory: Memory
    imported: set[int] = field(default_factory=set)
    pairs: dict[tuple[str, int], int] = field(default_factory=dict)
    approved: dict[str, str] | None = None


class Memories:
    """One memory for each project, made when it is first asked for. The store is the truth: a memory can always be made
    again from it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._open: OrderedDict[str, _Open] = OrderedDict()

    def of(self, project: str) -> Memory:
        """The memory of a project, perhaps empty."""
        with self._lock:
            return self._opened(project).memory

    def approved(self, project: str) -> dict[str, str]:
        """Sentences whose translation has been approved, and the latest of them."""
        with self._lock:
            opened = self._opened(project)
            if opened.approved is None:
                opened.approved = self.store.approved(project)
            return opened.approved

    def rows(self, project: str, document: str) -> dict[int, int]:
        """The pairs that stand for rows of a document, and which rows these are."""
        with self._lock:
            pairs = self._opened(project).pairs
            return {pair: position for (owner, position), pair in pairs.items() if owner == document}

    def confirm(self, project: str, document: str, position: int, source: str, target: str) -> None:
        with self._lock:
            opened = self._changed(project, document, position)
            if source.strip() and target.strip():
                origin = origin_of(self.store.document(document).name, position)
                opened.pairs[document, position] = opened.memory.add(source, target, origin)

    def reopen(self, project: str, document: str, position: int) -> None:
        with self._lock:
            self._changed(project, document, position)

    def reload(self, project: str) -> None:
        """After imports, terms and deletions: made again from the store when next asked for."""
        with self._lock:
            self._open.pop(project, None)

    def _opened(self, project: str) -> _Open:
        if project not in self._open:
            self._open[project] = self._load(project)
            if len(self._open) > MOST_OPEN:  # whoever still reads the oldest keeps it until then
                self._open.popitem(last=False)
        self._open.move_to_end(project)
        return self._open[project]

    def _changed(self, project: str, document: str, position: int) -> _Open:
        """What a row had approved is forgotten, unless the same pair was imported, or approved in another row, too."""
        opened = self._opened(project)
        opened.approved = None
        known = opened.pairs.pop((document, position), None)
        others = known in opened.imported or known in opened.pairs.values()
        if known is not None and not others and known in opened.memory:
            opened.memory.remove(known)
        return opened

    def _load(self, project: str) -> _Open:
        opened = _Open(Memory())
        pairs = [pair for pair in self.store.pairs(project) if pair.source.strip() and pair.target.strip()]
        ids = opened.memory.extend((pair.source, pair.target, pair.origin) for pair in pairs)
        for pair, identity in zip(pairs, ids, strict=True):
            if pair.document is not None and pair.position is not None:
                opened.pairs[pair.document, pair.position] = identity
            else:
                opened.imported.add(identity)
        return opened
