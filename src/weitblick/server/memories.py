"""The memories of projects: what the store keeps of approved pairs, as the model reads them."""

from __future__ import annotations

import threading

from weitblick.memory import Memory
from weitblick.server.store import Store, origin_of


class Memories:
    """One memory for each project that has approved anything, made when it is first asked for. The store is the truth:
    a memory can always be made again from it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._memories: dict[str, Memory] = {}
        self._approved: dict[str, dict[str, str]] = {}
        self._of_segment: dict[tuple[str, int], int] = {}  # pair ids of the memory, by document and position

    def of(self, project: str) -> Memory:
        """The memory of a project, perhaps empty."""
        with self._lock:
            if project not in self._memories:
                self._memories[project] = self._load(project)
            return self._memories[project]

    def approved(self, project: str) -> dict[str, str]:
        """Sentences whose translation has been approved, and the latest of them."""
        with self._lock:
            if project not in self._approved:
                self._approved[project] = self.store.approved(project)
            return self._approved[project]

    def confirm(self, project: str, document: str, position: int, source: str, target: str) -> None:
        memory = self.of(project)
        with self._lock:
            self._approved.pop(project, None)
            self._forget(memory, document, position)
            if source.strip() and target.strip():
                origin = origin_of(self.store.document(document).name, position)
                self._of_segment[document, position] = memory.add(source, target, origin)

    def reopen(self, project: str, document: str, position: int) -> None:
        memory = self.of(project)
        with self._lock:
            self._approved.pop(project, None)
            self._forget(memory, document, position)

    def reload(self, project: str) -> None:
        """After imports, terms and deletions: made again from the store when next asked for."""
        with self._lock:
            self._memories.pop(project, None)
            self._approved.pop(project, None)

    def _forget(self, memory: Memory, document: str, position: int) -> None:
        known = self._of_segment.pop((document, position), None)
        shared = known is not None and known in self._of_segment.values()  # the same pair, approved in another row
        if known is not None and not shared and known in memory:
            memory.remove(known)

    def _load(self, project: str) -> Memory:
        memory = Memory()
        pairs = [pair for pair in self.store.pairs(project) if pair.source.strip() and pair.target.strip()]
        ids = memory.extend((pair.source, pair.target, pair.origin) for pair in pairs)
        for pair, identity in zip(pairs, ids, strict=True):
            if pair.document is not None and pair.position is not None:
                self._of_segment[pair.document, pair.position] = identity
        return memory
