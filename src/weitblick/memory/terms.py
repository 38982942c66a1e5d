"""Terms in texts: which of many a sentence says, each of their words perhaps inflected, or a part of a longer one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

SHORTEST_STEM = 4
LONGEST_ENDING = 3
"""Letters of a term that remain when it is inflected, and letters that may be added."""
MOST_PATTERNS = 50_000
START = re.compile(r"(?<!\w)\S")


def says(text: str, term: str, *, compounds: bool = False, cased: bool = False) -> bool:
    """Whether a text has a term, each of its words perhaps inflected; if wanted, as a part of a longer word as well, or
    only with the very same capitals."""
    return bool(term.split()) and _pattern(term, compounds, cased).search(text) is not None


@lru_cache(MOST_PATTERNS)
def _pattern(term: str, compounds: bool, cased: bool) -> re.Pattern[str]:
    words = []
    for word in term.split():
        stem = _stem(word)
        ending = len(word) - len(stem) + LONGEST_ENDING
        words.append(re.escape(stem) + (r"\w*" if compounds else f"\\w{{0,{ending}}}"))
    start = r"\w*" if compounds else ""
    return re.compile(rf"(?<!\w){start}" + r"\s+".join(words) + r"(?!\w)", 0 if cased else re.IGNORECASE)


def _stem(word: str) -> str:
    """What is left of a word in its inflected forms, at least: Häuser and Haus are taken for different terms."""
    return word if len(word) <= SHORTEST_STEM else word[: max(SHORTEST_STEM, len(word) - 2)]


class Terms:
    """Terms by how they begin, so that a sentence is not searched for each of thousands."""

    def __init__(self, terms: Iterable[str], cased: Iterable[str] = ()) -> None:
        self._cased = frozenset(cased)
        self._beginning: defaultdict[str, list[str]] = defaultdict(list)
        for term in dict.fromkeys(terms):
            self._beginning[_stem(term.split()[0])[:SHORTEST_STEM].lower()].append(term)

    def found_in(self, text: str) -> list[str]:
        """The terms that a text says, in the order in which they begin."""
        lower = text.lower()
        places = (start.start() for start in START.finditer(lower))
        beginnings = dict.fromkeys(lower[at : at + size] for at in places for size in range(1, SHORTEST_STEM + 1))
        return [
            term
            for beginning in beginnings
            if beginning in self._beginning
            for term in self._beginning[beginning]
            if says(text, term, cased=term in self._cased)
        ]
