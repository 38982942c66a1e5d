"""Moses truecasing: the most frequent casing of each word, learned where the position does not force one.

The same rules as sacremoses' `MosesTruecaser` (with `use_known`, as the Perl script does: a casing that was seen inside
sentences is kept there), over tokens and counts instead of text, so that a corpus is read only once.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from sacremoses import MosesTruecaser

SENTENCE_END = frozenset({".", ":", "?", "!"})
# After these a sentence still has to start.
DELAYED_START = frozenset({"(", "[", '"', "'"})

_LETTER = re.compile(f"[{MosesTruecaser.Lowercase_Letter}{MosesTruecaser.Uppercase_Letter}]")


@cache
def _has_letter(token: str) -> bool:
    return _LETTER.search(token) is not None


def starts(tokens: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each token, and whether a sentence starts with it."""
    first = True
    for token in tokens:
        yield token, first
        if token in SENTENCE_END:
            first = True
        elif token not in DELAYED_START:
            first = False


@dataclass
class TokenCounts:
    """All of a tokenised text that truecasing and BPE are learned from.

    `first` and `inner` count tokens by whether they start a sentence; `cased` those that show their own casing.
    """

    first: Counter[str] = field(default_factory=Counter)
    inner: Counter[str] = field(default_factory=Counter)
    cased: Counter[str] = field(default_factory=Counter)

    def add(self, tokens: Iterable[str]) -> None:
        tokens = list(tokens)
        for token, first in starts(tokens):
            (self.first if first else self.inner)[token] += 1
        self.cased.update(_tokens_with_own_casing(tokens))

    def update(self, other: TokenCounts) -> None:
        self.first.update(other.first)
        self.inner.update(other.inner)
        self.cased.update(other.cased)


def _tokens_with_own_casing(tokens: Iterable[str]) -> Iterator[str]:
    first = True
    for token in tokens:
        if token in DELAYED_START:
            continue
        if token in SENTENCE_END and not first:
            first = True
            continue
        if not first and _has_letter(token):
            yield token
        first = False


class Truecaser:
    """`best` is the preferred casing of a lower-cased word, `known` holds the other casings seen."""

    def __init__(self, best: Iterable[str], known: Iterable[str]) -> None:
        self.best = {token.lower(): token for token in best}
        self.known = frozenset(known)

    @classmethod
    def learn(cls, cased: Mapping[str, int]) -> Truecaser:
        casings: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for token, count in cased.items():
            casings[token.lower()][token] = count
        ranked = [counts.most_common() for counts in casings.values()]
        best = [casing[0][0] for casing in ranked]
        return cls(best, (token for casing in ranked for token, _ in casing[1:]))

    def truecase(self, token: str, first: bool) -> str:
        if not first and token in self.known:
            return token
        return self.best.get(token.lower(), token)

    def truecased(self, counts: TokenCounts) -> Counter[str]:
        """The counts of the words of a text after truecasing."""
        words: Counter[str] = Counter()
        for first, tokens in ((True, counts.first), (False, counts.inner)):
            for token, count in tokens.items():
                words[self.truecase(token, first)] += count
        return words
