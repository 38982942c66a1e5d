"""Where the drafts of rows come from: approved translations of the same sentence, or of a like one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weitblick.memory.matches import Pair
from weitblick.memory.store import Memory
from weitblick.workbench.schema import Origin, Segment
from weitblick.workbench.store import Store

LEAST = 0.75
"""Likeness from which on a match is worth telling."""
NEIGHBOURS = """SELECT segments.position - pairs.position, segments.source, pairs.id FROM pairs
    JOIN segments ON segments.document = pairs.document AND abs(segments.position - pairs.position) = 1
    WHERE pairs.project = ? AND pairs.source = ? AND pairs.target = ?"""


def exact_origin(store: Store, project: str, rows: Sequence[Segment], row: Segment, target: str) -> Origin:
    """Of a row that takes over an approved translation of its very source: whether that stood between the same
    neighbours. A sentence that has none on a side, in both places, has the same there."""
    here = {step: rows[row.position + step].source for step in (-1, 1) if 0 <= row.position + step < len(rows)}
    there: dict[int, dict[int, str]] = {}
    for step, source, pair in store._rows(NEIGHBOURS, project, row.source, target):
        there.setdefault(pair, {})[step] = source
    return "context" if here and any(found == here for found in there.values()) else "exact"


def best_match(memory: Memory, source: str) -> tuple[int, Pair] | None:
    """How like the likest approved sentence is, in per cent, and that pair; None if there is none. What is not the very
    same sentence is never 100 per cent like it."""
    found = memory.matches(source, limit=1, at_least=LEAST)
    if not found:
        return None
    best = found[0]
    return min(99, math.floor(100 * best.similarity)), best.pair
