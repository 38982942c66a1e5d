"""What users of approved translations care about: approved words that are recalled, and corrections that stick."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
SHORTEST = 4
"""Letters of a content word in languages without a list of function words."""

Links = Sequence[tuple[str, str]]
"""Source and target words of a sentence that translate each other, as far as the model's attention can tell."""


class ContentWords:
    """The words of a sentence that carry its content: no function words, no digits, as they are spelled."""

    def __init__(self, language: str) -> None:
        from weitblick.metrics.meteor import METEOR_LANGUAGES
        from weitblick.metrics.meteor.scoring import shipped_function_words

        known = language in METEOR_LANGUAGES
        self.function_words = shipped_function_words(language) if known else frozenset[str]()
        self.shortest = 3 if known else SHORTEST

    def __call__(self, text: str) -> set[str]:
        return {word for word in WORD.findall(text) if self.counts(word)}

    def counts(self, word: str) -> bool:
        return len(word) >= self.shortest and word.lower() not in self.function_words


@dataclass(frozen=True)
class Recall:
    """Content words of the references that a translation has, too: those approved before in the document, and first
    occurrences."""

    approved: float
    first: float
    approved_words: int
    first_words: int


def recall(references: Sequence[Sequence[str]], translated: Sequence[Sequence[str]], content: ContentWords) -> Recall:
    right, every = [0, 0], [0, 0]
    for own, theirs in zip(references, translated, strict=True):
        seen: set[str] = set()
        for reference, translation in zip(own, theirs, strict=True):
            said = set(WORD.findall(translation))
            words = content(reference)
            for word in words:
                kind = int(word not in seen)
                every[kind] += 1
                right[kind] += word in said
            seen |= words
    approved, first = (right[kind] / max(1, every[kind]) for kind in (0, 1))
    return Recall(approved, first, *every)


@dataclass(frozen=True)
class Sticking:
    """cases: source words that come again in a document, translated alike both times by the human and wrongly by
    `none`; right: how many of these a system gets right. varied: those that the human translated otherwise the second
    time, and `none` rightly; harmed: how many of these a system gets wrong."""

    right: int
    cases: int
    harmed: int
    varied: int


@dataclass(frozen=True)
class Repetition:
    """A source word that comes again: the human's words for it there, and whether they are those of the time before."""

    document: int
    sentence: int
    words: frozenset[str]
    alike: bool


def repetitions(links: Sequence[Sequence[Links]]) -> Iterator[Repetition]:
    """links: of every sentence of every document, between content words of both sides."""
    for document, sentences in enumerate(links):
        last: dict[str, frozenset[str]] = {}
        for number, own in enumerate(sentences):
            here: dict[str, set[str]] = {}
            for source, target in own:
                here.setdefault(source.lower(), set()).add(target)
            for source, targets in here.items():
                if source in last:
                    same = targets & last[source]
                    yield Repetition(document, number, frozenset(same or targets), bool(same))
                last[source] = frozenset(targets)


def sticking(
    cases: Sequence[Repetition], none: Sequence[Sequence[str]], translated: Sequence[Sequence[str]]
) -> Sticking:
    right = wrong_before = harmed = varied = 0
    for case in cases:
        was, now = (
            bool(case.words & set(WORD.findall(texts[case.document][case.sentence]))) for texts in (none, translated)
        )
        if case.alike and not was:
            wrong_before += 1
            right += now
        elif not case.alike and was:
            varied += 1
            harmed += not now
    return Sticking(right, wrong_before, harmed, varied)


class StickingFigures(TypedDict):
    """Counts of `Sticking` and their quotients; None of nothing."""

    right: int
    cases: int
    rate: float | None
    harmed: int
    varied: int
    harm_rate: float | None


def as_numbers(sticks: Sticking) -> StickingFigures:
    return {
        "right": sticks.right,
        "cases": sticks.cases,
        "rate": sticks.right / sticks.cases if sticks.cases else None,
        "harmed": sticks.harmed,
        "varied": sticks.varied,
        "harm_rate": sticks.harmed / sticks.varied if sticks.varied else None,
    }
