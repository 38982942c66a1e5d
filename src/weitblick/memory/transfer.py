"""A pointer for a model that has none, without training and without translations by humans.

How large the share is depends on similarity, confidence and agreement, which mean the same in every model: that network
is taken over from a trained pointer as it is. Keys are a model's own: principal components of its decoder states, at
the steps of its own translations of some text in its source language.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from weitblick.memory.pointer import MemoryPointer
from weitblick.model.batch import pack_pairs
from weitblick.model.sentence_model import SentenceModel

ENOUGH = 300
"""Sentences that keys are fitted on at most: some seconds of translation."""
FEWEST = 10
"""Sentences without which none is fitted. So few of news, with 401 steps, do about as well as 144 (docs/memory.md)."""
PART = 32
"""Sentences decoded at a time."""

Pair = tuple[Sequence[int], Sequence[int]]
"""Ids of a sentence and of the model's translation."""


def chosen_sentences(texts: Iterable[str], seed: int = 1) -> list[str]:
    """Different sentences of a text, in its order: all, or ENOUGH at random."""
    different = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if len(different) <= ENOUGH:
        return different
    return [different[index] for index in sorted(random.Random(seed).sample(range(len(different)), ENOUGH))]


def transferred_pointer(sentence: SentenceModel, trained: MemoryPointer, pairs: Sequence[Pair]) -> MemoryPointer:
    """A pointer with the share of a trained one, for another sentence model of any width; pairs: its translations."""
    width = min(trained.section.dimension, sentence.dimension)
    with torch.random.fork_rng(devices=[]):  # start values, none of which stays
        pointer = MemoryPointer(trained.section.model_copy(update={"dimension": width}), sentence.dimension)
    pointer.share.load_state_dict(trained.share.state_dict())
    pointer.start_from(torch.cat(list(_states(sentence, pairs))))
    return pointer.eval().requires_grad_(False).to(next(sentence.parameters()).device)


@torch.no_grad()
def _states(sentence: SentenceModel, pairs: Sequence[Pair]) -> Iterator[Tensor]:
    """[T, d] what the decoder has attended to at the steps of some translations."""
    device = next(sentence.parameters()).device
    order = sorted(pairs, key=lambda pair: len(pair[1]))
    for begin in range(0, len(order), PART):
        sources, targets = zip(*order[begin : begin + PART], strict=True)
        packed = pack_pairs(sources, targets).to(device)
        encoded = sentence.encode(packed.source.tokens, packed.source.layout)
        decoded = sentence.decode(packed.target.tokens, packed.target.layout, encoded, packed.source.layout)
        yield decoded.attended.float().cpu()
