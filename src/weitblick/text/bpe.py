"""Byte-pair encoding as subword-nmt does it: the same merges and the same segmentation, learned several times faster.

A heap finds the most frequent pair where subword-nmt searches all of them. Ties go, as there, to the pair that sorts
last.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise

from subword_nmt import apply_bpe

SEPARATOR = "@@"  # marks a piece that does not end its word
END_OF_WORD = "</w>"
LEAST_FREQUENCY = 2
LONGEST_WORD = 200  # longer words (of data, not of language) are spelled: merging them takes quadratic time
VERSION_LINE = "#version: 0.2"

Pair = tuple[str, str]


def learn_merges(words: Mapping[str, int], merges: int) -> list[Pair]:
    """At most `merges` pairs of symbols, in the order in which they are merged."""
    statistics = _PairStatistics(words)
    learned: list[Pair] = []
    while len(learned) < merges and (pair := statistics.pop_most_frequent()):
        learned.append(pair)
        statistics.merge(pair)
    return learned


class _PairStatistics:
    """The words as symbols, how often symbols are neighbours, and in which words."""

    def __init__(self, words: Mapping[str, int]) -> None:
        words = {word: count for word, count in words.items() if len(word) <= LONGEST_WORD}
        self.words: list[list[str]] = [[*word[:-1], word[-1] + END_OF_WORD] for word in words]
        self.counts = list(words.values())
        self.frequency: Counter[Pair] = Counter()
        self.places: defaultdict[Pair, set[int]] = defaultdict(set)
        self._sort_keys: dict[str, str] = {}
        for place, (symbols, count) in enumerate(zip(self.words, self.counts, strict=True)):
            for pair in pairwise(symbols):
                self.frequency[pair] += count
                self.places[pair].add(place)
        self.heap = [self._entry(pair) for pair in self.frequency]
        heapq.heapify(self.heap)

    def _entry(self, pair: Pair) -> tuple[int, str, str, Pair]:
        return -self.frequency[pair], self._sort_key(pair[0]), self._sort_key(pair[1]), pair

    def _sort_key(self, symbol: str) -> str:
        """A string that sorts first where the symbol sorts last."""
        key = self._sort_keys.get(symbol)
        if key is None:
            key = "".join(chr(0x10FFFF - ord(character)) for character in symbol) + "\U0010ffff"
            self._sort_keys[symbol] = key
        return key

    def pop_most_frequent(self) -> Pair | None:
        while self.heap:
            entry = heapq.heappop(self.heap)
            pair = entry[-1]
            frequency = self.frequency[pair]
            if frequency < LEAST_FREQUENCY:
                continue
            if frequency == -entry[0]:
                return pair
            # Entries are added when a frequency rises; one that fell in the meantime takes its place here.
            heapq.heappush(self.heap, self._entry(pair))
        return None

    def merge(self, pair: Pair) -> None:
        changes: Counter[Pair] = Counter()
        for place in self.places.pop(pair):
            old, count = self.words[place], self.counts[place]
            new = _merged(old, pair)
            if len(new) == len(old):
                continue
            self.words[place] = new
            for neighbours in pairwise(old):
                changes[neighbours] -= count
            for neighbours in pairwise(new):
                changes[neighbours] += count
                self.places[neighbours].add(place)
        for changed, change in changes.items():
            if change:
                self.frequency[changed] += change
            if change > 0:
                heapq.heappush(self.heap, self._entry(changed))
        self.frequency.pop(pair, None)


def _merged(symbols: list[str], pair: Pair) -> list[str]:
    first, second = pair
    merged: list[str] = []
    position = 0
    last = len(symbols) - 1
    while position <= last:
        symbol = symbols[position]
        if symbol == first and position < last and symbols[position + 1] == second:
            merged.append(first + second)
            position += 2
        else:
            merged.append(symbol)
            position += 1
    return merged


class Segmenter:
    """Splits words into pieces, those inside a word marked with `@@`. Pieces outside `vocabulary` are split again."""

    def __init__(self, merges: Sequence[Pair], vocabulary: Container[str] | None = None) -> None:
        ranked = list(enumerate(merges))
        self._ranks = {pair: rank for rank, pair in reversed(ranked)}
        self._halves = {pair[0] + pair[1]: pair for pair in self._ranks}
        self._vocabulary = vocabulary

    def segment(self, word: str) -> list[str]:
        if len(word) > LONGEST_WORD:
            pieces: Sequence[str] = word
        else:
            pieces = apply_bpe.encode(
                word, self._ranks, self._halves, self._vocabulary, SEPARATOR, version=(0, 2), cache={}
            )
        return [piece + SEPARATOR for piece in pieces[:-1]] + [pieces[-1]]

    def count_pieces(self, words: Mapping[str, int]) -> Counter[str]:
        pieces: Counter[str] = Counter()
        for word, count in words.items():
            for piece in self.segment(word):
                pieces[piece] += count
        return pieces


def join(pieces: Iterable[str]) -> list[str]:
    """The words of which these are the pieces; a last word may be cut short."""
    text = " ".join(pieces).replace(f"{SEPARATOR} ", "")
    return text.removesuffix(SEPARATOR).split()
