"""Approved pairs and the search for them: which share words with a source, and how like two sources are.

Translators count likeness by words that have to be put in, taken out or replaced (`similarity`). Candidates for a
sentence are found by the words they share, the rarer the better: among the pairs of a memory through its full-text
index (`Search`), among the sentences at hand by counting (`Sentences`).
"""

from __future__ import annotations

import heapq
import math
import re
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
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
    """Words and punctuation marks."""
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


T = TypeVar("T")
WORD = re.compile(r"\w+")
MOST_VALUES = 10_000
"""In a query; SQLite refuses more than 32766."""
MOST_TERMS = 16
MOST_ROWS = 3_000
"""Entries of the index that a search may read: words that more pairs share say little about any of them."""


class Search:
    """The search for pairs that share words with some sources, while nobody changes the memory.

    `common`: words too frequent to search by, which take time to count, and how many pairs have them; what is found to
    be common is added.
    """

    def __init__(self, database: sqlite3.Connection, sources: Sequence[str], common: dict[str, int]) -> None:
        self._database = database
        self._size = int(database.execute("SELECT count(*) FROM pairs").fetchone()[0])
        self._words = [words_of(source) for source in sources]
        self._counts = self._counted({word for words in self._words for word in words if word not in common})
        self._having: dict[str, np.ndarray] = {}
        common.update((word, count) for word, count in self._counts.items() if count > MOST_ROWS)

    def _counted(self, words: set[str]) -> dict[str, int]:
        """How many pairs have each word that any pair has."""
        counts: dict[str, int] = {}
        for some in parts(sorted(words)):
            query = f"SELECT term, doc FROM terms WHERE term IN ({marks(some)})"
            counts.update(self._database.execute(query, some).fetchall())
        return counts

    def best(self, number: int, limit: int) -> dict[int, float]:
        """At most so many pairs that have words of a source, with the summed weights of these: the rarer a word, the
        more it tells."""
        rarest = sorted((self._counts[word], word) for word in self._words[number] if word in self._counts)
        ids: list[np.ndarray] = []
        weights: list[float] = []
        total = 0
        for count, word in rarest[:MOST_TERMS]:
            total += count
            if total > MOST_ROWS:
                break
            ids.append(self._pairs_with(word))
            weights.append(math.log(1 + self._size / count))
        if not ids:
            return {}
        found, place = np.unique(np.concatenate(ids), return_inverse=True)
        summed = np.bincount(place, np.repeat(weights, [len(own) for own in ids]))
        best = np.lexsort((found, summed))[-limit:]
        return dict(zip(found[best].tolist(), summed[best].tolist(), strict=True))

    def _pairs_with(self, word: str) -> np.ndarray:
        """Ids; as one text, which is read faster than row by row."""
        if word not in self._having:
            query = "SELECT group_concat(rowid) FROM words WHERE words MATCH ?"
            (text,) = self._database.execute(query, (f'"{word}"',)).fetchone()
            self._having[word] = np.fromstring(text or "", np.int64, sep=",")
        return self._having[word]


def words_of(source: str) -> set[str]:
    return {word.lower() for word in WORD.findall(source)}


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Values in lists as long as a query can take."""
    return (values[start : start + MOST_VALUES] for start in range(0, len(values), MOST_VALUES))


def marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))


class Sentences:
    """Sentences as bags of words (or pieces), added one after the other."""

    def __init__(self, sentences: Sequence[Sequence[Hashable]] = ()) -> None:
        self.count = 0
        self._having: defaultdict[Hashable, list[int]] = defaultdict(list)
        for words in sentences:
            self.add(words)

    def add(self, words: Sequence[Hashable]) -> None:
        for word in set(words):
            self._having[word].append(self.count)
        self.count += 1

    def nearest(self, words: Sequence[Hashable], limit: int, among: Collection[int] | None = None) -> list[int]:
        """The numbers of at most so many sentences, the best first, of equal ones the latest."""
        allowed: Collection[int] = range(self.count) if among is None else among
        if len(allowed) <= limit:
            return sorted(allowed, reverse=True)
        scores = dict.fromkeys(allowed, 0.0)
        for word in sorted(set(words) & self._having.keys(), key=lambda word: (len(self._having[word]), str(word))):
            weight = math.log((self.count + 1) / len(self._having[word]))
            for number in self._having[word]:
                if number in scores:
                    scores[number] += weight
        return heapq.nlargest(limit, scores, key=lambda number: (scores[number], number))
