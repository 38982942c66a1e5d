"""Attention over the sentences of a document: flat over sentences, flat over words, hierarchical (H-Attention).

    bank = attention.prepare(keys, values, layout)       once per batch of documents
    read = attention(queries, query_layout, bank)        any number of times

Queries say which document of the bank they read and at which position their sentence stands. What is computed stands
in `definition`; here are the projections around it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from weitblick.batches.layout import Layout
from weitblick.context import engine
from weitblick.context.attend import Attended, AttentionSettings, Path, attend_by_definition
from weitblick.context.engine.bank import ContextBank, WordPlaces
from weitblick.context.engine.routing import PROBES, wants_probes
from weitblick.context.module import Projected
from weitblick.context.order import Distance, Place
from weitblick.context.sparsemax import Kind
from weitblick.context.weights import AttentionWeights
from weitblick.sentence.layers import Linear

Direction = Literal["offline", "online"]
Rows = dict[str, Tensor]

# "Like attends to like" at once: a normalised state scores strength * sqrt(d_k) with itself, about 0 with others.
# A sentence key is a mean, in which one word counts little, so it takes more to set its sentence apart.
WORD_STRENGTH, SENTENCE_STRENGTH = 2.0, 4.0
RETRIEVAL_NOISE = 0.1


@dataclass(frozen=True)
class AttentionOutput:
    """What Tq queries read.

    output  [Tq, d] after the output projection; zeros where nothing is visible
    present [Tq] whether any context sentence is visible
    support [Tq] mean number of sentences with weight, over heads
    """

    output: Tensor
    present: Tensor
    support: Tensor
    weights: AttentionWeights | None = None


class ContextAttention(nn.Module, ABC):
    """What the three kinds share: projections without biases, the way in and out."""

    def __init__(
        self,
        dimension: int,
        heads: int,
        *,
        sentence_attention: Kind = "sparse",
        word_attention: Kind = "soft",
        direction: Direction = "offline",
        path: Path = "auto",
        retrieval_start: bool = False,
        order: bool = False,
    ) -> None:
        super().__init__()
        if dimension % heads:
            raise ValueError(f"dimension {dimension} is not a multiple of heads {heads}")
        self.dimension = dimension
        self.settings = AttentionSettings(
            heads, dimension // heads, sentence_attention, word_attention, direction == "online", path
        )
        self.retrieval_start, self.ordered = retrieval_start, order
        self.output = self._projection()

    def _projection(self, strength: float = 1.0) -> Linear:
        linear = Linear(self.dimension, self.dimension, bias=False)
        nn.init.xavier_uniform_(linear.weight)
        if self.retrieval_start:
            # Query and key share the strength; heads see slices of the dimension, so the identity is one per head.
            with torch.no_grad():
                linear.weight.mul_(RETRIEVAL_NOISE).add_(torch.eye(self.dimension) * math.sqrt(strength))
        return linear

    def _distance(self) -> Distance | None:
        return Distance(self.dimension, self.settings.heads) if self.ordered else None

    def _place(self) -> Place | None:
        return Place(self.dimension) if self.ordered else None

    def project(self, keys: Tensor, values: Tensor, layout: Layout) -> Projected:
        """Projects the words of packed keys and values [T, d] (the last token of a sentence is no word)."""
        places = WordPlaces(layout)
        words = places.take_words(keys)
        rows = self._rows(places, words, words if values is keys else places.take_words(values))
        return Projected(layout, rows)

    def bank(self, projected: Projected) -> ContextBank:
        """Sentences that `project` gave, laid out for attention."""
        return engine.lay_out(projected, self.settings)

    def prepare(self, keys: Tensor, values: Tensor, layout: Layout) -> ContextBank:
        return self.bank(self.project(keys, values, layout))

    def forward(
        self, queries: Tensor, layout: Layout, bank: ContextBank, need_weights: bool = False
    ) -> AttentionOutput:
        """queries [Tq, d], packed by `layout`, whose documents are those of the bank, in any order."""
        rows = self._queries(queries, layout)
        read = self._attend(rows, layout, bank, need_weights)
        return AttentionOutput(self.output(read.values.to(queries.dtype)), read.present, read.support, read.weights)

    def _attend(self, rows: Rows, layout: Layout, bank: ContextBank, need_weights: bool) -> Attended:
        if need_weights:
            return attend_by_definition(rows, layout, bank.projected, self.settings)
        return engine.attend(rows, layout, bank, self.settings)

    @abstractmethod
    def _rows(self, places: WordPlaces, words: Tensor, value_words: Tensor) -> Rows:
        """`sentence_keys`, `sentence_values` [S', ...], `word_keys`, `word_values` [words, ...], as they are read."""

    @abstractmethod
    def _queries(self, queries: Tensor, layout: Layout) -> Rows:
        """`sentence_queries`, `word_queries` [Tq, ...]: those that read."""


class SentenceAttention(ContextAttention):
    """Flat attention over sentences: keys and values are means over words."""

    def __init__(self, dimension: int, heads: int, **options: Any) -> None:
        super().__init__(dimension, heads, **options)
        self.query, self.key = self._projection(SENTENCE_STRENGTH), self._projection(SENTENCE_STRENGTH)
        self.value = self._projection()
        self.distance = self._distance()

    def _rows(self, places: WordPlaces, words: Tensor, value_words: Tensor) -> Rows:
        means = places.means(words)
        value_means = means if value_words is words else places.means(value_words)
        keys = self.key(means)
        if self.distance is not None:
            keys = self.distance.of_positions(keys, places.sentence_positions)
        return {"sentence_keys": keys, "sentence_values": self.value(value_means)}

    def _queries(self, queries: Tensor, layout: Layout) -> Rows:
        return {"sentence_queries": _with_distance(self.query(queries), queries, layout, self.distance)}


class WordAttention(ContextAttention):
    """Flat attention over all words of the document."""

    def __init__(self, dimension: int, heads: int, **options: Any) -> None:
        super().__init__(dimension, heads, **options)
        self.query, self.key = self._projection(WORD_STRENGTH), self._projection(WORD_STRENGTH)
        self.value = self._projection()
        self.distance, self.place = self._distance(), self._place()

    def _rows(self, places: WordPlaces, words: Tensor, value_words: Tensor) -> Rows:
        keys = self.key(words)
        if self.distance is not None and self.place is not None:
            keys = self.distance.of_positions(self.place(keys, places.word_places), places.word_positions)
        return {"word_keys": keys, "word_values": self.value(value_words)}

    def _queries(self, queries: Tensor, layout: Layout) -> Rows:
        return {"word_queries": _with_distance(self.query(queries), queries, layout, self.distance)}


class HierarchicalAttention(ContextAttention):
    """H-Attention: over sentences, then over the words inside each, the second rescaled by the first."""

    def __init__(self, dimension: int, heads: int, **options: Any) -> None:
        super().__init__(dimension, heads, **options)
        self.sentence_query, self.sentence_key = (self._projection(SENTENCE_STRENGTH) for _ in range(2))
        self.word_query, self.word_key = (self._projection(WORD_STRENGTH) for _ in range(2))
        self.value = self._projection()
        # Within a sentence the distance is the same for all words: there it tells them apart by what they are.
        self.sentence_distance, self.word_distance, self.place = self._distance(), self._distance(), self._place()

    def _rows(self, places: WordPlaces, words: Tensor, value_words: Tensor) -> Rows:
        sentence_keys, word_keys = self.sentence_key(places.means(words)), self.word_key(words)
        if self.sentence_distance is not None and self.word_distance is not None and self.place is not None:
            sentence_keys = self.sentence_distance.of_positions(sentence_keys, places.sentence_positions)
            word_keys = self.place(word_keys, places.word_places)
            word_keys = self.word_distance.of_states(word_keys, words, places.word_positions)
        rows = {"sentence_keys": sentence_keys, "word_keys": word_keys, "word_values": self.value(value_words)}
        return {**rows, PROBES: self._probes(places, words)} if wants_probes(self.settings) else rows

    @torch.no_grad()
    def _probes(self, places: WordPlaces, words: Tensor) -> Tensor:
        """[S', ...] the sentence query of the word in the middle of each sentence."""
        middle = torch.from_numpy(places.word_starts + places.words // 2).to(words.device)
        chosen = words.detach().index_select(0, middle)
        probes = self.sentence_query(chosen)
        if self.sentence_distance is not None:
            probes = self.sentence_distance.of_states(probes, chosen, places.sentence_positions)
        return probes

    def _queries(self, queries: Tensor, layout: Layout) -> Rows:
        of_sentences, of_words = self.sentence_query(queries), self.word_query(queries)
        if self.word_distance is not None:
            of_words = self.word_distance.of_positions(of_words, layout.positions[layout.sentence])
        of_sentences = _with_distance(of_sentences, queries, layout, self.sentence_distance)
        return {"sentence_queries": of_sentences, "word_queries": of_words}


def _with_distance(rows: Tensor, queries: Tensor, layout: Layout, distance: Distance | None) -> Tensor:
    """Projected queries, widened by what they say about distances."""
    return rows if distance is None else distance.of_states(rows, queries, layout.positions[layout.sentence])
