"""What users of approved translations care about: approved words that are recalled, and corrections that stick."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

import torch

from weitblick.model.batch import pack_source, pack_target
from weitblick.translation.translator import Translator

WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
SHORTEST = 4
"""Letters of a content word in languages without a list of function words."""

Links = Sequence[tuple[str, str]]
"""Source and target words of a sentence that translate each other, as far as the model's attention can tell."""


class ContentWords:
    """The words of a sentence that carry its content: no function words, no digits, as they are spelled."""

    def __init__(self, language: str) -> None:
        from weitblick.evaluation.meteor import METEOR_LANGUAGES, shipped_function_words

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


# Which source word each reference word translates: the word that the model's attention looks at most.

PART_TOKENS = 2000


@torch.no_grad()
def link_words(translator: Translator, documents: Sequence[Sequence[tuple[str, str]]]) -> list[list[Links]]:
    """Links between the content words of all (source, target) sentences of all documents."""
    pipeline = translator.pipeline
    content = ContentWords(pipeline.source_language), ContentWords(pipeline.target_language)
    flat = [pair for document in documents for pair in document]
    longest = pipeline.longest_sentence
    sources = [ids[:longest] for ids in pipeline.encode_source([source for source, _ in flat])]
    targets = [ids[:longest] for ids in pipeline.encode_target([target for _, target in flat])]
    links: list[Links] = [[] for _ in flat]
    usable = [index for index in range(len(flat)) if sources[index] and targets[index]]
    for part in _parts(usable, sources, targets):
        weights = _weights(translator, [sources[i] for i in part], [targets[i] for i in part])
        for row, index in enumerate(part):
            own = weights[row, : len(targets[index]), : len(sources[index])]
            links[index] = _links(translator, own, sources[index], targets[index], content)
    rows = iter(links)
    return [[next(rows) for _ in document] for document in documents]


def _parts(order: list[int], sources: Sequence[list[int]], targets: Sequence[list[int]]) -> Iterator[list[int]]:
    order = sorted(order, key=lambda index: len(sources[index]) + len(targets[index]))
    while order:
        count = max(1, PART_TOKENS // (len(sources[order[0]]) + len(targets[order[0]])))
        yield order[:count]
        order = order[count:]


def _weights(translator: Translator, sources: list[list[int]], targets: list[list[int]]) -> torch.Tensor:
    sentence = translator.model.sentence
    device = next(sentence.parameters()).device
    source, target = pack_source(sources).to(device), pack_target(targets)[0].to(device)
    encoded = sentence.encode(source.tokens, source.layout)
    return sentence.source_weights(target.tokens, target.layout, encoded, source.layout).cpu()


def _links(
    translator: Translator,
    weights: torch.Tensor,
    source: list[int],
    target: list[int],
    content: tuple[ContentWords, ContentWords],
) -> Links:
    pipeline = translator.pipeline
    source_words, target_words = pipeline.words(source, "source"), pipeline.words(target, "target")
    found = []
    for start, end, text in target_words:
        shares = [float(weights[start:end, first:last].sum()) for first, last, _ in source_words]
        best = max(range(len(shares)), key=shares.__getitem__)
        ours, theirs = source_words[best][2].strip(".,;:!?()\"'»«„“”"), text.strip(".,;:!?()\"'»«„“”")
        if content[0].counts(ours) and content[1].counts(theirs):
            found.append((ours, theirs))
    return found
