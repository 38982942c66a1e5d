"""Context attention as a module: projections, and where a sentence and a word stand as part of the scores.

The signed distance Delta of two sentences enters as waves: with coefficients a and b that are linear in a state,

    score += sum over waves of  a cos(w Delta) + b sin(w Delta)         Delta = position of the key - of the query

is a dot product of features of the query and of the key alone, since cos(w (k - q)) = cos wk cos wq + sin wk sin wq. So
queries and keys only get wider, and every path (dense, routed, streamed) computes it without knowing. A word's place in
its sentence is a vector added to its key. All of it starts at zero: a trained layer starts unchanged.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weitblick.model.batch import Layout, TakeRows
from weitblick.model.context_module import Projected
from weitblick.model.layers import Dropout, Linear
from weitblick.model.plain_attention import (
    PROBES,
    Attended,
    AttentionBank,
    AttentionSettings,
    Path,
    WeightDropout,
    attend,
    lay_out,
)
from weitblick.model.sparsemax import Kind


class WordPlaces:
    """The words of packed sentences, of which the last token is none, and the sentences that have any."""

    def __init__(self, layout: Layout) -> None:
        self.device = layout.lengths.device
        words = layout.lengths.cpu().numpy() - 1
        kept = np.flatnonzero(words > 0)
        self.layout, self.kept = layout, torch.from_numpy(kept).to(self.device)  # [S'] sentences with words
        self.words: np.ndarray = words[kept]  # [S'] words of each
        self.word_starts: np.ndarray = np.cumsum(self.words) - self.words
        self.word_tokens = torch.from_numpy(_word_tokens(words)).to(self.device)

    @property
    def sentence_positions(self) -> Tensor:
        """[S'] position of each sentence with words in its document."""
        return self.layout.positions[self.kept]

    @property
    def word_positions(self) -> Tensor:
        """[words] position of each word's sentence in its document."""
        return self.layout.positions[self.layout.sentence[self.word_tokens]]

    @property
    def word_places(self) -> Tensor:
        """[words] place of each word in its sentence."""
        return self.layout.offset[self.word_tokens]

    def take_words(self, packed: Tensor) -> Tensor:
        """[T, d] -> [words, d]"""
        return packed if len(self.word_tokens) == len(packed) else TakeRows.apply(packed, self.word_tokens)

    def means(self, words: Tensor) -> Tensor:
        """[words, d] -> [S', d], the mean over the words of each sentence that has any."""
        if not len(words):
            return words
        starts, lengths = (torch.from_numpy(x).to(self.device) for x in (self.word_starts, self.words))
        return _SentenceMeans.apply(words, starts, lengths)


class _SentenceMeans(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, words: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
        ctx.save_for_backward(lengths)
        index = torch.arange(len(words), device=words.device)
        return F.embedding_bag(index, words, starts, mode="sum") / lengths[:, None]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (lengths,) = ctx.saved_tensors
        return (gradient / lengths[:, None]).repeat_interleave(lengths, 0), None, None


def _word_tokens(words: np.ndarray) -> np.ndarray:
    """Packed tokens that are words: all but the last of each sentence, of `words` [S] words."""
    is_word = np.ones(int(words.sum()) + len(words), dtype=bool)
    is_word[np.cumsum(words + 1) - 1] = False
    return np.flatnonzero(is_word)


PERIODS = (4, 8, 16, 32, 64, 256)
"""Sentences of a whole wave: the short ones tell neighbours apart, the long ones near from far."""
PLACES = 48
"""Places in a sentence that are told apart; all behind them count as the last."""


class Distance(nn.Module):
    """The score of a signed distance between sentences, for each head, with coefficients from one of the two states.

    `of_states` widens the side that the coefficients come from, `of_positions` the other side.
    """

    def __init__(self, dimension: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        features = heads * 2 * len(PERIODS)
        self.weight, self.bias = nn.Parameter(torch.zeros(features, dimension)), nn.Parameter(torch.zeros(features))

    def of_states(self, rows: Tensor, states: Tensor, positions: Tensor) -> Tensor:
        """rows [n, d] and the states [n, d] they come from -> [n, H * (d_k + 2 P)]"""
        cosine, sine = _waves(positions, rows)  # [n, 1, P]
        coefficients = F.linear(states, self.weight, self.bias)
        a, b = coefficients.unflatten(-1, (2, self.heads, -1)).unbind(1)  # [n, H, P]
        return self._widen(rows, torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1))

    def of_positions(self, rows: Tensor, positions: Tensor) -> Tensor:
        """rows [n, d] -> [n, H * (d_k + 2 P)]"""
        return self._widen(rows, torch.cat(_waves(positions, rows), -1).expand(-1, self.heads, -1))

    def _widen(self, rows: Tensor, features: Tensor) -> Tensor:
        # Scores are divided by the root of d_k; features should not be.
        scaled = features * math.sqrt(math.sqrt(rows.shape[-1] / self.heads))
        return torch.cat([rows.unflatten(-1, (self.heads, -1)), scaled.to(rows.dtype)], -1).flatten(1)


class Place(nn.Module):
    """What is added to the key of a word for its place in its sentence."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(PLACES, dimension))

    def forward(self, keys: Tensor, places: Tensor) -> Tensor:
        """keys [n, d], places [n] -> [n, d]"""
        return keys + self.table[places.clamp(max=PLACES - 1)].to(keys.dtype)


def _waves(positions: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine [n, 1, P] of positions [n], exact however long the document: waves repeat."""
    periods = torch.tensor(PERIODS, device=positions.device)
    angles = (positions[:, None] % periods).double() * (2 * math.pi / periods.double())
    return angles.cos().to(like.dtype).unsqueeze(1), angles.sin().to(like.dtype).unsqueeze(1)


# Attention over the sentences of a document: flat over sentences, flat over words, hierarchical (H-Attention).
#
#     bank = attention.prepare(keys, values, layout)       once per batch of documents
#     read = attention(queries, query_layout, bank)        any number of times
#
# Queries say which document of the bank they read and at which position their sentence stands. What is computed stands
# in `attention_definition`; here are the projections around it.

Direction = Literal["offline", "online"]
Rows = dict[str, Tensor]

# "Like attends to like" at once: a normalised state scores strength * sqrt(d_k) with itself, about 0 with others.
# A sentence key is a mean, in which one word counts little, so it takes more to set its sentence apart.
WORD_STRENGTH, SENTENCE_STRENGTH = 2.0, 4.0
RETRIEVAL_NOISE = 0.1


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
        dropout: float = 0.0,
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
        self.dropout = Dropout(dropout)

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

    def bank(self, projected: Projected) -> AttentionBank:
        """Sentences that `project` gave, laid out for attention."""
        return lay_out(projected, self.settings)

    def prepare(self, keys: Tensor, values: Tensor, layout: Layout) -> AttentionBank:
        return self.bank(self.project(keys, values, layout))

    def forward(self, queries: Tensor, layout: Layout, bank: AttentionBank, need_weights: bool = False) -> Attended:
        """queries [Tq, d], packed by `layout`, whose documents are those of the bank, in any order -> what they read,
        output [Tq, d] behind the output projection."""
        read = self._attend(self._queries(queries, layout), layout, bank, need_weights)
        return replace(read, output=self.output(read.output.to(queries.dtype)))

    def _attend(self, rows: Rows, layout: Layout, bank: AttentionBank, need_weights: bool) -> Attended:
        how = rows, layout, bank, self.settings, WeightDropout.drawn(self.dropout)
        return attend.plain(*how) if need_weights else attend(*how)

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
        return {**rows, PROBES: self._probes(places, words)} if self.settings.wants_probes else rows

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
