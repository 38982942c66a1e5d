"""Tell the two languages of a corpus apart, learned from the corpus itself: most of its lines are on the right side.

Naive Bayes over character trigrams. It needs no list of languages, and a few hundred sentences are enough.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

FEWEST_LETTERS = 22  # with the spaces between words; less text does not show its language
SMOOTHING = 0.1


WORD = re.compile(r"[^\W\d_]+")


def letters_of(text: str) -> str:
    """The words alone: digits, punctuation and case tell nothing about the language."""
    return f" {' '.join(WORD.findall(text.lower()))} "


def trigrams(words: str) -> Counter[str]:
    return Counter(map("".join, zip(words, words[1:], words[2:], strict=False)))


class LanguageSides:
    """How much a line looks like the source and like the target side of its corpus."""

    def __init__(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        self.counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for counts, lines in zip(self.counts, (sources, targets), strict=True):
            for line in lines:
                counts.update(trigrams(letters_of(line)))
        self.totals = tuple(sum(counts.values()) for counts in self.counts)
        self.types = len(set(self.counts[0]) | set(self.counts[1])) or 1

    def evidence(self, text: str, side: int) -> float:
        """Mean log-odds per trigram that `text`, found on `side` (0 source, 1 target), is of the other side's language.

        The line's own trigrams are taken out of its side first: a line must not vouch for itself.
        """
        words = letters_of(text)
        if len(words) < FEWEST_LETTERS or not all(self.totals):
            return -math.inf
        own = trigrams(words)
        size = len(words) - 2
        here, there = self.counts[side], self.counts[1 - side]
        total_here = max(self.totals[side] - size, 0) + SMOOTHING * self.types
        total_there = self.totals[1 - side] + SMOOTHING * self.types
        score = 0.0
        for trigram, count in own.items():
            odds = (there.get(trigram, 0) + SMOOTHING) / (max(here.get(trigram, 0) - count, 0) + SMOOTHING)
            score += count * math.log(odds)
        return score / size + math.log(total_here / total_there)
