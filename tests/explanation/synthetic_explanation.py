"""Explanations as a model would make them, without a model: real sentences, invented but lifelike weights."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np

from weitblick.explanation.attention import AttendedSentence, Attention, AttentionRow, visible
from weitblick.explanation.schema import Explanation, ModelInfo, SentenceExplanation, Word, Words, WordScore

Line = tuple[str, str, str | None]

# English, German with context, and (where it differs) German without.
STORY: list[Line] = [
    (line["source"], line["target"], line["without"])
    for line in json.loads(Path(__file__).with_name("story.json").read_text(encoding="utf-8"))
]


def split(text: str) -> Words:
    """Words and punctuation, with the white space that the reader should see."""
    words: list[Word] = []
    start = 0
    for match in re.finditer(r"\w+(?:['’]\w+)?|[^\w\s]", text):
        pieces = max(1, round(len(match.group()) / 6))
        space = match.start() > 0 and text[match.start() - 1].isspace()
        words.append(Word(match.group(), start, start + pieces, space))
        start += pieces
    return tuple(words)


def _row(random_: np.random.Generator, index: int, contexts: list[Words], query: str, direction: str) -> AttentionRow:
    """Attends to a few near sentences, and in them mostly to the query itself and to long words."""
    allowed = [
        other
        for other in range(max(0, index - 12), min(len(contexts), index + 13))
        if contexts[other] and (other < index or (other > index and direction == "offline"))
    ]
    near = sorted(allowed, key=lambda other: abs(other - index))[:12]
    chosen = random_.permutation(near)[: random_.choice([1, 1, 2, 3, 3, 4, 6])]
    masses = random_.dirichlet(np.ones(len(chosen))) if len(chosen) else []
    entries = []
    for other, mass in zip(chosen, masses, strict=True):
        likeness = np.array(
            [0.25 * math.log(len(word.text)) + 2.5 * (word.text.lower() == query.lower()) for word in contexts[other]]
        )
        weights = np.exp(likeness + 1.6 * random_.random(len(likeness)))
        entries.append(AttendedSentence(int(other), float(mass), weights / weights.sum()))
    return visible(entries)


def _scores(random_: np.random.Generator, target: Words, without: Words) -> tuple[WordScore, ...]:
    others = {word.text for word in without}
    scores = []
    for place, word in enumerate(target):
        if word.text in others:
            base = -random_.random()
            scores.append(WordScore(base, base - random_.normal(0, 0.03), abs(random_.normal(0, 0.02))))
        else:
            base = -random_.random() * 0.5
            instead = without[min(place, len(without) - 1)].text
            scores.append(WordScore(base, base - 0.7 - 2.5 * random_.random(), 0.4 + random_.random(), instead))
    return tuple(scores)


def build(
    sentences: int = len(STORY),
    heads: int = 4,
    kind: str = "hierarchical",
    integration: str = "encoder",
    direction: str = "offline",
    story: list[Line] | None = None,
    seed: int = 1,
) -> Explanation:
    random_ = np.random.default_rng(seed)
    story = story or STORY
    lines = [story[index % len(story)] for index in range(sentences)]
    sources = [split(source) for source, _, _ in lines]
    targets = [split(target) for _, target, _ in lines]
    withouts = [split(target if without is None else without) for _, target, without in lines]
    contexts = sources if integration == "encoder" else withouts
    made = []
    for index in range(sentences):
        queries = sources[index] if integration == "encoder" else targets[index]
        attention = None
        if kind != "none":
            rows = [_row(random_, index, contexts, word.text, direction) for word in queries for _ in range(heads)]
            attention = Attention.of(len(queries), heads, rows)
        ratio = len(sources[index]) / max(1, len(targets[index]))
        aligned = []
        for place in range(len(targets[index])):
            first = min(int(place * ratio), len(sources[index]) - 1)
            second = min(first + 1, len(sources[index]) - 1)
            aligned.append(((first, 0.7), (second, 0.2)) if first != second else ((first, 0.9),))
        made.append(
            SentenceExplanation(
                sources[index],
                targets[index],
                targets[index] if kind == "none" else withouts[index],
                contexts[index],
                _scores(random_, targets[index], targets[index] if kind == "none" else withouts[index]),
                tuple(aligned),
                () if kind == "none" else tuple(round(0.05 + 0.5 * random_.random() ** 2, 3) for _ in queries),
                attention,
            )
        )
    model = ModelInfo(
        "models/story",
        kind,  # type: ignore[arg-type]
        integration,  # type: ignore[arg-type]
        direction,  # type: ignore[arg-type]
        0 if kind == "none" else heads,
        "sparse",
        "soft",
        "live",
        7_612_416,
    )
    notes = ("The model has no context layer: there is no attention to show.",) if kind == "none" else ()
    return Explanation("The observatory", "en", "de", model, tuple(made), notes)
