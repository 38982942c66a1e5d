"""Concordance: how words were translated before, in the rows of all documents of a project, its memory and glossary."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from weitblick.workbench.store import Store

MOST_HITS = 200
Side = Literal["source", "target", "both"]
Kind = Literal["term", "row", "memory"]


@dataclass(frozen=True)
class Hit:
    """A pair of texts that has the words: a term, a row of a document, or an imported or suggested pair. `origin` says
    where it stands, for people; only rows have a document, a position and a state."""

    kind: Kind
    source: str
    target: str
    origin: str
    document: str | None = None
    position: int | None = None
    state: str | None = None


ROWS = """
    SELECT 'row', source, target, documents.name, documents.id, position, state
    FROM segments JOIN documents ON documents.id = segments.document
    WHERE documents.project = ? AND ({}) ORDER BY documents.id != ?, documents.created DESC, position LIMIT ?
"""
PAIRS = """
    SELECT ?, source, target, origin, NULL, NULL, NULL FROM pairs
    WHERE project = ? AND kind IN ({}) AND ({}) ORDER BY id DESC LIMIT ?
"""


def concordance(
    store: Store, project: str, text: str, side: Side = "both", document: str = "", limit: int = MOST_HITS
) -> tuple[list[Hit], bool]:
    """Where these words stand: terms first, then rows, those of this document before others, then the memory; and
    whether there are more than the limit. One pass over the texts, no index: 100,000 pairs take milliseconds."""
    store.project(project)
    words = " ".join(text.split())
    patterns = [f"%{_escaped(one)}%" for one in _spellings(words)]
    columns = ["source", "target"] if side == "both" else [side]
    having = " OR ".join(f"{column} LIKE ? ESCAPE '!'" for column in columns for _ in patterns)
    wanted = patterns * len(columns)
    found = [
        *store._rows(PAIRS.format("'term'", having), "term", project, *wanted, limit + 1),
        *store._rows(ROWS.format(having), project, *wanted, document, limit + 1),
        *store._rows(PAIRS.format("'import', 'suggestion'", having), "memory", project, *wanted, limit + 1),
    ]
    return [Hit(*row) for row in found[:limit]], len(found) > limit


def _spellings(words: str) -> list[str]:
    """SQLite takes a letter for its capital only in English: others are spelled in both ways, at the beginning of words
    and as a whole."""
    capital = re.sub(r"\b\w", lambda found: found[0].upper(), words)
    small = re.sub(r"\b\w", lambda found: found[0].lower(), words)
    first = words[:1].upper() + words[1:].lower()
    every = [words] if words.isascii() else [words, capital, small, first, words.lower(), words.upper()]
    return list(dict.fromkeys(every))


def _escaped(words: str) -> str:
    return re.sub("([!%_])", r"!\1", words)
