"""Source terms that a document translates in several ways."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import snowballstemmer

from weitblick.server.languages import NAMES
from weitblick.server.records import Segment
from weitblick.translation.alignment import Alignment
from weitblick.translation.translator import Translator

MOST_TERMS = 100
SHORTEST_TERM = 4
"""Letters: shorter words are mostly function words, which have many translations for good reasons."""
CLEAR = 0.4
"""Share of a target word that must come from the term for it to count as its translation."""
COMMON = 0.35
"""Words that occur in more than this share of the rows say nothing about terms."""


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


class Stems:
    """Words of one language by their stem, so that inflected forms count as one."""

    def __init__(self, language: str) -> None:
        name = NAMES.get(language, "").lower()
        known = name in snowballstemmer.algorithms()
        self._stem = snowballstemmer.stemmer(name).stemWord if known else str

    def of(self, word: str) -> str:
        return str(self._stem(word.lower()))


def inconsistencies(
    translator: Translator, rows: Sequence[Segment], approved: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Terms with more than one translation, the most frequent first."""
    filled = [row for row in rows if row.target.strip() and row.source.strip()]
    alignments = translator.align([(row.source, row.target) for row in filled])
    stems = Stems(translator.pipeline.source_language), Stems(translator.pipeline.target_language)
    known = {(stems[0].of(source), stems[1].of(target)) for source, target in approved}
    found: dict[str, dict[str, list[tuple[str, str, int]]]] = defaultdict(lambda: defaultdict(list))
    for row, alignment in zip(filled, alignments, strict=True):
        for source, target in _pairs(row, alignment):
            found[stems[0].of(source)][stems[1].of(target)].append((source, target, row.position))
    most = max(3.0, COMMON * len(filled))
    terms = [
        _term(stem, variants, known)
        for stem, variants in found.items()
        if len(variants) > 1 and 1 < sum(map(len, variants.values())) <= most
    ]
    terms.sort(key=lambda term: (-sum(variant.count for variant in term.variants), term.source))
    return [asdict(term) for term in terms[:MOST_TERMS]]


def _pairs(row: Segment, alignment: Alignment) -> list[tuple[str, str]]:
    """Telling source words and the target word that each became."""
    pairs = []
    for index, (start, end) in enumerate(alignment.source):
        word = row.source[start:end]
        if len(word) < SHORTEST_TERM or not re.fullmatch(r"[^\W\d_][\w'’-]*", word) or not len(alignment.target):
            continue
        best = int(alignment.weights[:, index].argmax())
        first, last = alignment.target[best]
        target = row.target[first:last]
        if alignment.weights[best, index] >= CLEAR and any(map(str.isalpha, target)):
            pairs.append((word, target))
    return pairs


def _term(stem: str, variants: dict[str, list[tuple[str, str, int]]], known: set[tuple[str, str]]) -> Term:
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
