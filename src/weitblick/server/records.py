"""What the store gives: plain records of projects, documents and segments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["empty", "draft", "edited", "confirmed"]
PairKind = Literal["segment", "import", "term", "suggestion"]


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    name: str
    created: float
    documents: int = 0
    segments: int = 0
    confirmed: int = 0
    pairs: int = 0


@dataclass(frozen=True, slots=True)
class StoredDocument:
    id: str
    project: str
    name: str
    created: float
    segments: int = 0
    confirmed: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """A row of the workbench. `before` is what stood here until a confirmed row elsewhere changed it, as long as nobody
    has seen to that, and `cause` the edit that did so."""

    position: int
    source: str
    target: str
    state: State
    metadata: dict[str, Any] = field(default_factory=dict)
    change: int | None = None
    before: str | None = None
    cause: int | None = None


@dataclass(frozen=True, slots=True)
class StoredPair:
    id: int
    kind: PairKind
    source: str
    target: str
    origin: str
    document: str | None
    position: int | None


@dataclass(frozen=True, slots=True)
class Edit:
    id: int
    position: int
    time: float
    before: str
    state_before: State
    after: str
    state_after: State
    cause: int | None
