"""Approved pairs, and how like two source sentences are: by their words, as translators count it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz.distance import Levenshtein

TOKEN = re.compile(r"\w+|[^\w\s]")

LocatedPair = tuple[str, str, str]
"""Source, target, and where the pair stands."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A source sentence and its approved translation. `rank` grows with every approval: the latest has the highest.
    `origin` says where it comes from, as approved.tmx:12."""

    id: int
    source: str
    target: str
    origin: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """A part of a source sentence beside that of a match: the same in both, or different, perhaps empty on one side."""

    kind: Literal["equal", "different"]
    here: str
    there: str


@dataclass(frozen=True, slots=True)
class Match:
    """An approved pair whose source is like a given one; similarity 1 is the same sentence."""

    pair: Pair
    similarity: float
    source: str

    def difference(self) -> list[Change]:
        """The given source beside that of the pair, part by part."""
        return list(_changes(tokens(self.source), tokens(self.pair.source)))


def tokens(text: str) -> list[str]:
    return TOKEN.findall(text)


def similarity(here: Sequence[str], there: Sequence[str], at_least: float = 0.0) -> float:
    """1 less the words that have to be put in, taken out or replaced, over those of the longer sentence; 0 where that
    is below `at_least`."""
    return Levenshtein.normalized_similarity(here, there, score_cutoff=at_least or None)


def _changes(here: list[str], there: list[str]) -> Iterator[Change]:
    for part in Levenshtein.opcodes(here, there):
        ours = " ".join(here[part.src_start : part.src_end])
        theirs = " ".join(there[part.dest_start : part.dest_end])
        yield Change("equal" if part.tag == "equal" else "different", ours, theirs)
