"""A pointer for a model that has none, without training and without any text.

Keys are a model's own: principal components of its decoder states. The network that decides on the share is taken over
from a trained pointer: it looks at confidence and agreement, which mean the same in every model, and at how like the
best place is, which does not: states of one model are more alike than those of another. So that feature is brought to
the mean and spread that it has in the model that the network was trained on, which its first layer takes over.

Both are measured on random pieces of a model's vocabularies, as source and as translation. That does as well as text
(docs/memory.md), and every model has them, in any language; of what a weak model says itself all states would be alike.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from weitblick.memory.pointer import LIKEST, SMALLEST, MemoryPointer
from weitblick.model.batch import pack_pairs
from weitblick.model.sentence_model import SentenceModel
from weitblick.text.base import SPECIAL_TOKENS, TextPipeline, Vocabulary

PAIRS = 150
"""Made up for a model: about 1,600 steps, in a second."""
PIECES = range(4, 17)
"""Of the source or the translation of such a pair."""
MARKS = "▁@"
"""By which vocabularies tell where a word begins or goes on."""
PART = 32
"""Pairs decoded at a time."""

Pair = tuple[Sequence[int], Sequence[int]]
"""Ids of a source and of a translation."""


@dataclass(frozen=True)
class States:
    """attended [T, d]: what a decoder has attended to at the steps of some pairs; pair [T]: of which."""

    attended: Tensor
    pair: Tensor


@dataclass(frozen=True)
class TrainedPointer:
    """A trained pointer, and how like the nearest key of another sentence is: its mean and spread."""

    pointer: MemoryPointer
    likeness: tuple[float, float]


def trained_pointer(sentence: SentenceModel, pipeline: TextPipeline, pointer: MemoryPointer) -> TrainedPointer:
    """The pointer of a model, measured so that others can take it over."""
    return TrainedPointer(pointer, likeness(pointer, decoder_states(sentence, made_pairs(pipeline))))


def transferred_pointer(sentence: SentenceModel, pipeline: TextPipeline, trained: TrainedPointer) -> MemoryPointer:
    """A pointer with the share of a trained one, for another sentence model of any width."""
    states = decoder_states(sentence, made_pairs(pipeline))
    own = trained.pointer
    width = min(own.section.dimension, sentence.dimension)
    with torch.random.fork_rng(devices=[]):  # start values, none of which stays
        pointer = MemoryPointer(own.section.model_copy(update={"dimension": width}), sentence.dimension)
    pointer.share.load_state_dict(own.share.state_dict())
    pointer.start_from(states.attended)
    _normalise_likeness(pointer, likeness(pointer, states), trained.likeness)
    return pointer.eval().requires_grad_(False).to(next(sentence.parameters()).device)


@torch.no_grad()
def _normalise_likeness(pointer: MemoryPointer, here: tuple[float, float], there: tuple[float, float]) -> None:
    """What has the first mean and spread comes to the share network with the second."""
    first = pointer.share_layers[0]
    scale = there[1] / here[1]
    weight = first.weight[:, LIKEST].clone()
    first.bias.add_(weight * (there[0] - scale * here[0]))
    first.weight[:, LIKEST] = weight * scale


@torch.no_grad()
def likeness(pointer: MemoryPointer, states: States) -> tuple[float, float]:
    """Mean and spread of the similarity of every key to the nearest one of another pair."""
    keys = F.normalize(pointer.key(states.attended.to(pointer.key.weight)), dim=-1)
    similar = (keys @ keys.t()).masked_fill(states.pair[:, None] == states.pair, -1.0)
    nearest = similar.amax(1)
    return float(nearest.mean()), max(float(nearest.std()), SMALLEST)


def made_pairs(pipeline: TextPipeline, seed: int = 1) -> list[Pair]:
    """Random pieces as source, with whatever the pipeline puts before every source, and others as translation."""
    chance = random.Random(seed)
    sources, targets = (_made(pipeline.vocabulary(side), chance) for side in ("source", "target"))
    encoded = pipeline.encode_source(pipeline.decode(sources, "source"))
    return [(source, target) for source, target in zip(encoded, targets, strict=True) if source]


def _made(vocabulary: Vocabulary, chance: random.Random) -> list[list[int]]:
    """Of pieces of letters; of any, where a vocabulary has no letters."""
    ordinary = range(len(SPECIAL_TOKENS), len(vocabulary))
    letters = [number for number in ordinary if vocabulary.token(number).strip(MARKS).isalpha()]
    return [chance.choices(letters or ordinary, k=chance.choice(PIECES)) for _ in range(PAIRS)]


def decoder_states(sentence: SentenceModel, pairs: Sequence[Pair]) -> States:
    parts, numbers = zip(*_states(sentence, pairs), strict=True)
    return States(torch.cat(parts), torch.cat(numbers))


@torch.no_grad()
def _states(sentence: SentenceModel, pairs: Sequence[Pair]) -> Iterator[tuple[Tensor, Tensor]]:
    device = next(sentence.parameters()).device
    order = sorted(range(len(pairs)), key=lambda number: len(pairs[number][1]))
    for begin in range(0, len(order), PART):
        part = order[begin : begin + PART]
        sources, targets = zip(*(pairs[number] for number in part), strict=True)
        packed = pack_pairs(sources, targets).to(device)
        encoded = sentence.encode(packed.source.tokens, packed.source.layout)
        decoded = sentence.decode(packed.target.tokens, packed.target.layout, encoded, packed.source.layout)
        steps = torch.tensor([len(target) + 1 for target in targets])  # and the end
        yield decoded.attended.float().cpu(), torch.repeat_interleave(torch.tensor(part), steps)
