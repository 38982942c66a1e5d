"""Attention over the sentences of a document: flat over sentences, flat over words, hierarchical (H-Attention).

    bank = attention.prepare(keys, values, layout)       once per batch of documents
    read = attention(queries, query_layout, bank)        any number of times

Queries say which document of the bank they read and at which position their sentence stands; the rest is masked here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from weitblick.batches.layout import Layout
from weitblick.context.engine.bank import BANK_PARTS, BankLayout, ContextBank, WordPlaces
from weitblick.context.engine.collect import WeightsCollector
from weitblick.context.engine.dense import (
    CHUNK_ELEMENTS,
    KEPT_ELEMENTS,
    FlatDense,
    FlatWordDense,
    HierarchicalDense,
    Problem,
)
from weitblick.context.engine.queries import plan_of
from weitblick.context.engine.routed import HierarchicalRouted
from weitblick.context.module import Projected
from weitblick.context.order import Distance, Place
from weitblick.context.sparsemax import Kind, normalise
from weitblick.context.weights import AttentionWeights

Direction = Literal["offline", "online"]
Path = Literal["auto", "dense", "routed"]

# Where routing pays (benchmarks/context_attention.py): below that share of sentences in support, from so many
# sentences and so many pairs of a word and a sentence of a document; sorting few of them costs more than it saves.
# Online the choice must not depend on weights, or future sentences could change it: there length alone decides.
ROUTED_SUPPORT = 0.35
ROUTED_SENTENCES = 8
ROUTED_PAIRS = 2000
ROUTED_ONLINE_SENTENCES = 400
# A step of decoding has few queries, whatever the document: there it pays from so many sentences on.
ROUTED_STEP_SENTENCES = 64
SAMPLED_SENTENCES = 32

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
    """What the three kinds share: projections without biases, query places, the way in and out."""

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
        self.dimension, self.heads = dimension, heads
        self.sentence_attention, self.word_attention = sentence_attention, word_attention
        self.direction, self.path, self.retrieval_start = direction, path, retrieval_start
        self.ordered = order
        self.chunk_elements, self.kept_elements = CHUNK_ELEMENTS, KEPT_ELEMENTS
        self.output = self._projection()

    def _projection(self, strength: float = 1.0) -> nn.Linear:
        linear = nn.Linear(self.dimension, self.dimension, bias=False)
        nn.init.xavier_uniform_(linear.weight)
        if self.retrieval_start:
            # Query and key share the strength; heads see slices of the dimension, so the identity is one per head.
            with torch.no_grad():
                linear.weight.mul_(RETRIEVAL_NOISE).add_(torch.eye(self.dimension) * math.sqrt(strength))
        return linear

    def project(self, keys: Tensor, values: Tensor, layout: Layout) -> Projected:
        """Projects the words of packed keys and values [T, d] (the last token of a sentence is no word)."""
        places = WordPlaces(layout)
        words = places.take_words(keys)
        rows = self._rows(places, words, words if values is keys else places.take_words(values))
        return Projected(layout, rows)

    def bank(self, projected: Projected) -> ContextBank:
        """Sentences that `project` gave, laid out for attention."""
        places = BankLayout(projected.layout, self.heads)
        cells = {
            name: (places.sentence_gather if name.startswith("sentence") else places.word_gather)(self._cells(rows))
            for name, rows in projected.rows.items()
        }
        return ContextBank(places, *map(cells.get, BANK_PARTS))

    def prepare(self, keys: Tensor, values: Tensor, layout: Layout) -> ContextBank:
        return self.bank(self.project(keys, values, layout))

    def forward(
        self, queries: Tensor, layout: Layout, bank: ContextBank, need_weights: bool = False
    ) -> AttentionOutput:
        """queries [Tq, d], packed by `layout`, whose documents are those of the bank, in any order."""
        plan = plan_of(layout, bank.layout)
        wide = torch.promote_types(queries.dtype, torch.float32)
        collector = WeightsCollector(bank.layout, plan, self.online, self.has_words, wide) if need_weights else None
        problem = Problem(
            bank.layout,
            plan,
            self.online,
            self.sentence_attention,
            self.word_attention,
            self.dimension // self.heads,
            differentiable=torch.is_grad_enabled(),
            collector=collector,
            elements=self.chunk_elements,
            kept=self.kept_elements,
        )
        cells, support = self._attend(queries, layout, bank, problem)
        output = self.output(plan.collect(cells).view(-1, self.dimension).to(queries.dtype))
        return AttentionOutput(
            output,
            plan.visible(self.online),
            support[plan.token_place] / self.heads,
            collector.finish(layout, flat=isinstance(self, WordAttention)) if collector else None,
        )

    @property
    def online(self) -> bool:
        return self.direction == "online"

    has_words = True

    @abstractmethod
    def _rows(self, places: WordPlaces, words: Tensor, value_words: Tensor) -> dict[str, Tensor]:
        """Keys and values [words or sentences, d], by their names in `ContextBank`."""

    @abstractmethod
    def _attend(self, queries: Tensor, layout: Layout, bank: ContextBank, problem: Problem) -> tuple[Tensor, Tensor]:
        """Outputs [query cells + 1, d_k] and support [places + 1], summed over heads."""

    def _cells(self, rows: Tensor) -> Tensor:
        """[n, H * d_k] -> [n * H, d_k], in float32 at least: under autocast projections come in half precision."""
        wide = torch.promote_types(rows.dtype, torch.float32)
        return rows.to(wide).view(-1, rows.shape[-1] // self.heads)


class SentenceAttention(ContextAttention):
    """Flat attention over sentences: keys and values are means over words."""

    has_words = False

    def __init__(self, dimension: int, heads: int, **options) -> None:  # type: ignore[no-untyped-def]
        super().__init__(dimension, heads, **options)
        self.query, self.key = self._projection(SENTENCE_STRENGTH), self._projection(SENTENCE_STRENGTH)
        self.value = self._projection()
        self.distance = Distance(dimension, heads) if self.ordered else None

    def _rows(self, places: WordPlaces, words: Tensor, value_words: Tensor) -> dict[str, Tensor]:
        means = places.means(words)
        value_means = means if value_words is words else places.means(value_words)
        keys = self.key(means)
        if self.distance is not None:
            keys = self.distance.of_positions(keys, places.sentence_positions)
        return {"sentence_keys": keys, "sentence_values": self.value(value_means)}

    def _attend(self, queries: Tensor, layout: Layout, bank: ContextBank, problem: Problem) -> tuple[Tensor, Tensor]:
        q = problem.plan.spread(self._cells(_with_distance(self.query(queries), queries, layout, self.distance)))
        return FlatDense.apply(q, bank.sentence_keys, bank.sentence_values, problem)


class WordAttention(ContextAttention):
    """Flat attention over all words of the document."""

    def __init__(self, dimension: int, heads: int, **options) -> None:  # type: ignore[no-untyped-def]
        super().__init__(dimension, heads, **options)
        self.query, self.key = self._projection(WORD_STRENGTH), self._projection(WORD_STRENGTH)
        self.value = self._projection()
        self.distance = Distance(dimension, heads) if self.ordered else None
        self.place = Place(dimension) if self.ordered else None

    def _rows(self, places: WordPlaces, words: Tensor, value_words: Tensor) -> dict[str, Tensor]:
        keys = self.key(words)
        if self.distance is not None and self.place is not None:
            keys = self.distance.of_positions(self.place(keys, places.word_places), places.word_positions)
        return {"word_keys": keys, "word_values": self.value(value_words)}

    def _attend(self, queries: Tensor, layout: Layout, bank: ContextBank, problem: Problem) -> tuple[Tensor, Tensor]:
        q = problem.plan.spread(self._cells(_with_distance(self.query(queries), queries, layout, self.distance)))
        return FlatWordDense.apply(q, bank.word_keys, bank.word_values, problem)


class HierarchicalAttention(ContextAttention):
    """H-Attention: over sentences, then over the words inside each, the second rescaled by the first."""

    def __init__(self, dimension: int, heads: int, **options) -> None:  # type: ignore[no-untyped-def]
        super().__init__(dimension, heads, **options)
        self.sentence_query, self.sentence_key = (self._projection(SENTENCE_STRENGTH) for _ in range(2))
        self.word_query, self.word_key = (self._projection(WORD_STRENGTH) for _ in range(2))
        self.value = self._projection()
        # Within a sentence the distance is the same for all words: there it tells them apart by what they are.
        self.sentence_distance = Distance(dimension, heads) if self.ordered else None
        self.word_distance = Distance(dimension, heads) if self.ordered else None
        self.place = Place(dimension) if self.ordered else None

    def _rows(self, places: WordPlaces, words: Tensor, value_words: Tensor) -> dict[str, Tensor]:
        sentence_keys, word_keys = self.sentence_key(places.means(words)), self.word_key(words)
        if self.sentence_distance is not None and self.word_distance is not None and self.place is not None:
            sentence_keys = self.sentence_distance.of_positions(sentence_keys, places.sentence_positions)
            word_keys = self.place(word_keys, places.word_places)
            word_keys = self.word_distance.of_states(word_keys, words, places.word_positions)
        rows = {"sentence_keys": sentence_keys, "word_keys": word_keys, "word_values": self.value(value_words)}
        return {**rows, "probes": self._probes(places, words)} if self._chooses_by_support else rows

    def _attend(self, queries: Tensor, layout: Layout, bank: ContextBank, problem: Problem) -> tuple[Tensor, Tensor]:
        sentence_queries, word_queries = self.sentence_query(queries), self.word_query(queries)
        sentence_queries = _with_distance(sentence_queries, queries, layout, self.sentence_distance)
        if self.word_distance is not None:
            word_queries = self.word_distance.of_positions(word_queries, layout.positions[layout.sentence])
        qs, qw = (problem.plan.spread(self._cells(rows)) for rows in (sentence_queries, word_queries))
        tensors = (qs, qw, bank.sentence_keys, bank.word_keys, bank.word_values)
        routed = bank.routed
        if routed is not None and self.path == "auto" and layout.longest == 1:  # a step of decoding
            routed = routed & (bank.layout.count_of >= ROUTED_STEP_SENTENCES)
        if routed is None or not routed.any():
            return HierarchicalDense.apply(*tensors, problem)
        if all(routed[queries.group.documents].all() for queries in problem.plan.groups):
            return HierarchicalRouted.apply(*tensors, problem)
        dense, dense_support = HierarchicalDense.apply(*tensors, problem.choosing(~routed))
        sparse, sparse_support = HierarchicalRouted.apply(*tensors, problem.choosing(routed))
        return dense + sparse, dense_support + sparse_support

    def bank(self, projected: Projected) -> ContextBank:
        """Here it is decided which documents are routed: by what they are, never by who reads them or what else is in
        the batch."""
        rows = dict(projected.rows)
        probes = rows.pop("probes", None)
        bank = super().bank(Projected(projected.layout, rows))
        return replace(bank, routed=self._routed(bank, probes))

    @property
    def _chooses_by_support(self) -> bool:
        """Online the choice must not depend on weights, or future sentences could change it."""
        return self.path == "auto" and self.sentence_attention != "soft" and not self.online

    @torch.no_grad()
    def _probes(self, places: WordPlaces, words: Tensor) -> Tensor:
        """[S', d] the sentence query of one word of each sentence: how widely a document's own words read it."""
        middle = torch.from_numpy(places.word_starts + places.words // 2).to(words.device)
        chosen = words.detach().index_select(0, middle)
        probes = self.sentence_query(chosen)
        if self.sentence_distance is not None:
            probes = self.sentence_distance.of_states(probes, chosen, places.sentence_positions)
        return probes

    def _routed(self, bank: ContextBank, probes: Tensor | None) -> np.ndarray | None:
        """[documents + 1] which documents of a bank to route: by their own shape, and offline by their own support."""
        places = bank.layout
        if self.path == "dense" or self.sentence_attention == "soft":
            return None
        if self.path == "routed":
            return places.count_of > 0
        counts = places.count_of  # sentences with words
        tokens = np.bincount(places.documents, weights=places.words + 1, minlength=len(counts))
        long = counts >= (ROUTED_ONLINE_SENTENCES if self.online else ROUTED_SENTENCES)
        worth = long & (tokens * counts >= ROUTED_PAIRS)
        if worth.any() and probes is not None and bank.sentence_keys is not None:
            worth &= self._support(places, self._cells(probes), bank.sentence_keys) <= ROUTED_SUPPORT * counts
        return worth

    @torch.no_grad()
    def _support(self, places: BankLayout, probes: Tensor, keys: Tensor) -> np.ndarray:
        """[documents + 1] mean number of sentences in support of some sentences of each document, evenly spread."""
        found = np.zeros(len(places.count_of))
        cells = places.sentence_gather(probes)
        for group in places.groups:
            shape = (group.size, places.heads, group.slots, -1)
            k, q = (
                x.narrow(0, group.cells, group.size * places.heads * group.slots).view(shape) for x in (keys, cells)
            )
            share = np.arange(min(SAMPLED_SENTENCES, group.slots)) / min(SAMPLED_SENTENCES, group.slots)
            sample = torch.from_numpy((group.counts[:, None] * share).astype(np.int64)).to(k.device)  # [B, n]
            q = q.gather(2, sample[:, None, :, None].expand(-1, places.heads, -1, q.shape[-1]))
            hidden = group.positions[:, :, None] == group.positions.gather(1, sample)[:, None]  # [B, J, n]
            hidden |= group.positions[:, :, None] < 0
            scores = (k @ q.transpose(2, 3)).div_(math.sqrt(self.dimension // self.heads))
            scores.masked_fill_(hidden.unsqueeze(1), -torch.inf)
            weights = normalise(scores, self.sentence_attention, 2)
            found[group.documents] = (weights > 0).sum(2).to(torch.float64).mean((1, 2)).cpu().numpy()
        return found


def _with_distance(rows: Tensor, queries: Tensor, layout: Layout, distance: Distance | None) -> Tensor:
    """Projected queries, widened by what they say about distances."""
    return rows if distance is None else distance.of_states(rows, queries, layout.positions[layout.sentence])
