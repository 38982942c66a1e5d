"""How much there is to translate, by where drafts come from; how far it is; and how much drafts were changed."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, get_args

from rapidfuzz.distance import Levenshtein

from weitblick.memory.matches import tokens
from weitblick.workbench.schema import Segment, State
from weitblick.workbench.store import Store

WORD = re.compile(r"\S*\w\S*")
BANDS = ((95, "95-99 %"), (85, "85-94 %"), (75, "75-84 %"))
"""Fuzzy matches by how like they are, from this on."""
CLASSES = ("context", "100 %", "repetition", *(name for _, name in BANDS), "new", "rule", "file")
STATES = get_args(State)
FORMULA = re.compile(r"[=+\-@\t\r]")
COLUMNS = ("document", "by", "name", "rows", "words", "characters")


@dataclass
class Amount:
    """How much text: rows, and the words and characters of their sources."""

    rows: int = 0
    words: int = 0
    characters: int = 0

    def add(self, row: Segment) -> None:
        """Counts a row."""
        self.rows += 1
        self.words += len(WORD.findall(row.source))
        self.characters += len(row.source)

    def add_all(self, other: Amount) -> None:
        """Counts what another amount has counted."""
        self.rows += other.rows
        self.words += other.words
        self.characters += other.characters


@dataclass
class Distance:
    """How far approved translations are from their drafts: of how many rows and words (and signs), how many words had
    to be put in, taken out or replaced, and how many rows stayed as they were."""

    rows: int = 0
    words: int = 0
    changed: int = 0
    unchanged_rows: int = 0

    @property
    def share(self) -> float | None:
        """Changed words per word; None if nothing was approved."""
        return round(self.changed / self.words, 4) if self.words else None


@dataclass
class Statistics:
    """The figures of one document, or of several together."""

    total: Amount = field(default_factory=Amount)
    classes: dict[str, Amount] = field(default_factory=lambda: {name: Amount() for name in CLASSES})
    states: dict[str, Amount] = field(default_factory=lambda: {name: Amount() for name in STATES})
    today: Amount = field(default_factory=Amount)
    distance: Distance = field(default_factory=Distance)

    def add(self, other: Statistics) -> None:
        """Adds the figures of a document."""
        for mine, theirs in ((self.classes, other.classes), (self.states, other.states)):
            for name, amount in theirs.items():
                mine[name].add_all(amount)
        self.total.add_all(other.total)
        self.today.add_all(other.today)
        for name in ("rows", "words", "changed", "unchanged_rows"):
            setattr(self.distance, name, getattr(self.distance, name) + getattr(other.distance, name))

    def as_json(self) -> dict[str, Any]:
        """As the API gives them."""
        figures = asdict(self)
        figures["distance"]["share"] = self.distance.share
        return figures


def class_of(row: Segment) -> str:
    """What a row counts as: by its origin, and of fuzzy matches by how like they are."""
    if row.origin in ("fuzzy", "repaired"):
        return next((name for least, name in BANDS if (row.match or 0) >= least), "new")
    return {"exact": "100 %", "machine": "new", None: "new"}.get(row.origin, row.origin or "new")


def document_statistics(store: Store, document: str, now: float | None = None) -> Statistics:
    """The figures of a document. Today is the day of this machine's clock and place."""
    figures = Statistics()
    midnight = datetime.fromtimestamp(time.time() if now is None else now).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    drafts = _drafts(store, document)
    for row in store.segments(document):
        figures.total.add(row)
        figures.classes[class_of(row)].add(row)
        figures.states[row.state].add(row)
        if not row.is_approved:
            continue
        if row.decided is not None and row.decided >= midnight.timestamp():
            figures.today.add(row)
        if row.position in drafts:
            _measure(figures.distance, drafts[row.position], row.target)
    return figures


def _measure(distance: Distance, draft: str, final: str) -> None:
    before, after = tokens(draft), tokens(final)
    changed = Levenshtein.distance(before, after)
    distance.rows += 1
    distance.words += max(len(before), len(after))
    distance.changed += changed
    distance.unchanged_rows += draft == final


def _drafts(store: Store, document: str) -> Mapping[int, str]:
    """The last draft of each row that had one before a person wrote in it."""
    query = "SELECT position, before, state_before, after, state_after FROM edits WHERE document = ? ORDER BY id"
    found: dict[int, str] = {}
    for position, before, state_before, after, state_after in store._rows(query, document):
        if state_before == "draft":
            found[position] = before
        if state_after == "draft":
            found[position] = after
    return found


def project_statistics(store: Store, project: str) -> list[tuple[str, str, Statistics]]:
    """Id, name and figures of every document of a project."""
    return [(one.id, one.name, document_statistics(store, one.id)) for one in store.documents(project)]


def together(figures: Iterable[Statistics]) -> Statistics:
    """The figures of several documents as one."""
    whole = Statistics()
    for one in figures:
        whole.add(one)
    return whole


def as_csv(documents: Sequence[tuple[str, Statistics]]) -> str:
    """A table of names of documents and their figures: a line for each class and state, of those approved today and of
    how far approved translations are from their drafts, whose words are those that were changed."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for name, figures in documents:
        safe = f"'{name}" if FORMULA.match(name) else name  # a table program would compute it
        amounts = [("class", one, amount) for one, amount in figures.classes.items()]
        amounts += [("state", one, amount) for one, amount in figures.states.items()]
        amounts += [("all", "approved today", figures.today), ("all", "total", figures.total)]
        for kind, one, amount in amounts:
            writer.writerow([safe, kind, one, amount.rows, amount.words, amount.characters])
        distance = figures.distance
        writer.writerow([safe, "distance", "words changed", distance.rows, distance.changed, ""])
        writer.writerow([safe, "distance", "words in all", distance.rows, distance.words, ""])
    return out.getvalue()
