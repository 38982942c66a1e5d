"""Which pairs of a memory share words with some sources, by its full-text index: one look at a word serves all."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")
WORD = re.compile(r"\w+")
MOST_VALUES = 10_000
"""In a query; SQLite refuses more than 32766."""
MOST_TERMS = 16
MOST_ROWS = 3_000
"""Entries of the index that a search may read: words that more pairs share say little about any of them."""


class Search:
    """For some sources, while nobody changes the memory. `common`: words too frequent to search by, which take time to
    count, and how many pairs have them; what is found to be common is added."""

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
    """As many as a query can take."""
    return (values[start : start + MOST_VALUES] for start in range(0, len(values), MOST_VALUES))


def marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
