"""Source terms that a document translates in several ways."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import snowballstemmer

from weitblick.evaluation.meteor import METEOR_LANGUAGES, shipped_function_words
from weitblick.translation.alignment import Alignment
from weitblick.translation.translator import Translator
from weitblick.workbench.parameters import NAMES
from weitblick.workbench.schema import Segment

MOST_TERMS = 100
MOST_STEMS = 50_000
SHORTEST_TERM = 4
"""Letters: shorter words are mostly function words, which have many translations for good reasons."""
WORD = re.compile(r"[^\W\d_][\w'’-]*")
CLEAR = 0.4
"""Share of a target word that must come from the term for it to count as its translation."""
COMMON = 0.35
"""Where function words are not known: words that occur in more than this share of the rows are some."""

CAPITAL_NOUNS = ("de", "lb")
"""Languages that write nouns with a capital letter."""

Use = tuple[str, str, int]
"""A source word, what it became, and the row."""


@dataclass(frozen=True)
class Variant:
    target: str
    count: int
    positions: list[int]
    approved: bool


@dataclass(frozen=True)
class Term:
    source: str
    variants: list[Variant]


class Vocabulary:
    """Words of one language: which can be terms, and their stems, so that inflected forms count as one."""

    def __init__(self, language: str) -> None:
        name = NAMES.get(language, "").lower()
        known = name in snowballstemmer.algorithms()
        self._stem = lru_cache(MOST_STEMS)(snowballstemmer.stemmer(name).stemWord if known else str)
        self.has_capital_nouns = language in CAPITAL_NOUNS
        self.knows_function_words = language in METEOR_LANGUAGES
        self._function_words = shipped_function_words(language) if self.knows_function_words else frozenset[str]()

    def can_be_term(self, word: str) -> bool:
        known = word.lower() in self._function_words
        return len(word) >= SHORTEST_TERM and not known and WORD.fullmatch(word) is not None

    def of(self, word: str) -> str:
        return str(self._stem(word.lower()))

    def spoken(self, text: str) -> list[str]:
        """All words of a text that can be terms."""
        return [word for word in WORD.findall(text) if self.can_be_term(word)]

    def terms(self, text: str) -> set[str]:
        """Their stems."""
        return {self.of(word) for word in self.spoken(text)}


def inconsistencies(
    translator: Translator, rows: Sequence[Segment], approved: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Terms with more than one translation, the most frequent first."""
    filled = [row for row in rows if row.target.strip() and row.source.strip()]
    alignments = translator.align([(row.source, row.target) for row in filled])
    sides = Vocabulary(translator.pipeline.source_language), Vocabulary(translator.pipeline.target_language)
    known = {(sides[0].of(source), sides[1].of(target)) for source, target in approved}
    found: dict[str, dict[str, list[Use]]] = defaultdict(lambda: defaultdict(list))
    compounds: list[tuple[str, str, Use]] = []
    for row, alignment in zip(filled, alignments, strict=True):
        pairs = _pairs(row, alignment, *sides)
        parts = Counter(place for _, _, place in pairs)
        for source, target, place in pairs:
            stems, use = (sides[0].of(source), sides[1].of(target)), (source, target, row.position)
            if parts[place] > 1:
                compounds.append((*stems, use))
            else:
                found[stems[0]][stems[1]].append(use)
    for source, target, use in compounds:
        _count_compound(found[source], target, use)
    most = math.inf if sides[0].knows_function_words else max(3.0, COMMON * len(filled))
    terms = [
        _term(stem, variants, known)
        for stem, all_variants in found.items()
        for variants in _kinds(all_variants, sides[1])
        if len(variants) > 1 and 1 < sum(map(len, variants.values())) <= most
    ]
    terms.sort(key=lambda term: (-sum(variant.count for variant in term.variants), term.source))
    return [asdict(term) for term in terms[:MOST_TERMS]]


def _pairs(row: Segment, alignment: Alignment, ours: Vocabulary, theirs: Vocabulary) -> list[tuple[str, str, int]]:
    """Telling source words, the target word that each became, and where that begins."""
    pairs = []
    for index, (start, end) in enumerate(alignment.source):
        word = row.source[start:end]
        if not ours.can_be_term(word) or not len(alignment.target):
            continue
        best = int(alignment.weights[:, index].argmax())
        first, last = alignment.target[best]
        target = row.target[first:last]
        if alignment.weights[best, index] >= CLEAR and theirs.can_be_term(target):
            pairs.append((word, target, first))
    return pairs


def _kinds(variants: dict[str, list[Use]], theirs: Vocabulary) -> list[dict[str, list[Use]]]:
    """Nouns apart from the rest, where they can be told: *reduce* may be *verringern* here and *Reduzierung* there."""
    if not theirs.has_capital_nouns:
        return [variants]
    nouns = {stem for stem, uses in variants.items() if all(target[0].isupper() for _, target, _ in uses)}
    return [{stem: uses for stem, uses in variants.items() if (stem in nouns) is kind} for kind in (True, False)]


def _count_compound(variants: dict[str, list[Use]], compound: str, use: Use) -> None:
    """A word that several source words became (insurance directive: Versicherungsrichtlinie) is a use of that variant
    which it holds, and tells nothing if it holds none."""
    part = max((stem for stem in variants if stem in compound), key=len, default=None)
    if part is not None:
        variants[part].append(use)


def _term(stem: str, variants: dict[str, list[Use]], known: set[tuple[str, str]]) -> Term:
    sources = Counter(source for uses in variants.values() for source, _, _ in uses)
    shown = [
        Variant(
            Counter(target for _, target, _ in uses).most_common(1)[0][0],
            len(uses),
            sorted({position for _, _, position in uses}),
            (stem, target_stem) in known,
        )
        for target_stem, uses in variants.items()
    ]
    shown.sort(key=lambda variant: (-variant.count, variant.target))
    return Term(sources.most_common(1)[0][0], shown)
