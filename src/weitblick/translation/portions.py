"""In which portions the sentences of a document are looked at and translated: small ones first, then larger ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weitblick.translation.units import Unit

STEP_TOKENS = 512
"""Source tokens of a step: how long others wait for their turn, against what large batches save."""
FIRST_SENTENCES = 1
"""Sentences of the first step, each later step may have twice as many: the first result comes soon."""
WEIGHED, MOST_WEIGHED = 4, 32
"""Sentences of which it is looked up at a time whether approved translations pull at their words: a few at first, so
that the first result comes soon, each time twice as many."""


def blocks(sentences: list[int]) -> Iterator[list[int]]:
    """A few, then more and more."""
    begin, size = 0, WEIGHED
    while begin < len(sentences):
        yield sentences[begin : begin + size]
        begin, size = begin + size, min(2 * size, MOST_WEIGHED)


def groups(sentences: Sequence[int], members: dict[int, list[int]], units: Sequence[Unit]) -> Iterator[list[int]]:
    """Sentences in their order, a few at first, then of about STEP_TOKENS a group."""
    most = FIRST_SENTENCES
    group: list[int] = []
    tokens = 0
    for index in sentences:
        size = sum(len(units[number].source) + 1 for number in members[index])
        if group and (tokens + size > STEP_TOKENS or len(group) >= most):
            yield group
            most, group, tokens = 2 * most, [], 0
        group.append(index)
        tokens += size
    if group:
        yield group
