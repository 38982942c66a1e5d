"""Words that a translation took from approved ones: which word of which approved sentence, and how much of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from weitblick.explanation.schema import Fetched, Words
from weitblick.explanation.wording import words_in
from weitblick.model.approved import Approved
from weitblick.model.words import WordDistribution
from weitblick.text.base import TextPipeline
from weitblick.translation.approvals import Origin

LEAST_SHARE = 0.5
"""Of the probability of a word: what comes from memory to a lesser part was the model's own choice."""

Taken = tuple[float, int, int]
"""Of a piece: the share of its probability that comes from approved places; the approved sentence with the heaviest of
these, by its number, and the place in it."""


@torch.no_grad()
def taken(words: WordDistribution, labels: Tensor, rows: slice, pointer: Approved, position: int) -> list[Taken] | None:
    """Of every piece of one sentence of document 0; None if it had nothing to look at."""
    pointed = words.pointed
    reader = pointer.readers.get((0, position))
    if pointed is None or pointed.places is None or reader is None or not reader.numbers:
        return None
    own = pointed[rows]
    same = own.weights * (own.ids == labels[rows, None])  # [W, n]
    said, place = same.max(-1)
    share = own.share * same.sum(-1) / words.log_probabilities(labels)[rows].exp().clamp_min(1e-9)
    assert own.places is not None
    places = own.places.gather(1, place[:, None])[:, 0]
    found = []
    for part, weight, index in zip(share.tolist(), said.tolist(), places.tolist(), strict=True):
        number, word = pointer.origin(0, position, index) if weight > 0 else (0, 0)
        found.append((min(1.0, part), number, word))
    return found


def fetched_words(
    pipeline: TextPipeline, target: Words, pieces: Sequence[Taken] | None, origins: Sequence[Origin]
) -> tuple[Fetched, ...] | None:
    """The words of a translation that come from memory for the greater part."""
    if pieces is None:
        return None
    found = []
    for index, word in enumerate(target):
        own = pieces[word.start : word.end]
        share = sum(part for part, _, _ in own) / max(1, len(own))
        if share < LEAST_SHARE or not own:
            continue
        _, number, place = max(own)
        origin = origins[number]
        approved = words_in(pipeline, pipeline.encode_target([origin.target])[0], "target", origin.target)
        at = next((n for n, one in enumerate(approved) if one.start <= place < one.end), None)
        if at is not None:
            found.append(
                Fetched(
                    index,
                    share,
                    origin.source,
                    origin.target,
                    at,
                    approved[at].text,
                    origin.pair,
                    origin.sentence,
                    origin.name,
                )
            )
    return tuple(found)
