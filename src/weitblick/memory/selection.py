"""Which of the sentences at hand are worth a look for another: those that share its rarer words."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence


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
