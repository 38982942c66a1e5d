"""How the context of a batch of documents is laid out for attention: groups of documents, segments of sentences, cells.

Documents of like size form a *group*, padded to each other. In a group, the sentences of a document stand in order of
their length, the longest first; ranks of similar length form a *segment*, a grid [B, J, W] with few empty places.
A *cell* holds one head's key, value or query, of d_k numbers. The cells of all groups and segments lie in one tensor
[cells, d_k], filled by a single gather and read as views [B * H, columns, d_k] that matrix products take as they are.

Only places are computed here, with NumPy, from lengths, documents and positions; never anything from the states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from weitblick.model.batch import Layout
from weitblick.model.tuning import tuning_for

if TYPE_CHECKING:
    from weitblick.fast.context_queries import QueryPlan

ABSENT = -1
"""Position of a sentence slot that holds no sentence."""
HIDDEN_SCORE = -1e30
"""Added to the score of an empty place: finite, so that a sentence slot of empty places alone gives no NaN."""

# Documents join a group down to this share of its largest document: the padding of one more costs less than one more
# round of small tensor operations.
GROUP_RATIO = 0.7
GROUP_SLACK = 128


@dataclass(frozen=True)
class Segment:
    """Sentence slots `first` to `last` of a group, each with room for `width` words."""

    first: int
    last: int
    width: int
    cells: int  # the first of its B * H * (last - first) * width cells
    rows: int  # the first of its B * H * (last - first) rows; a row is one head of one sentence
    bias: Tensor  # [B * H, (last - first) * width, 1] 0 or HIDDEN_SCORE

    @property
    def sentences(self) -> int:
        return self.last - self.first

    @property
    def columns(self) -> int:
        return self.sentences * self.width


@dataclass(frozen=True)
class DocumentGroup:
    """B documents padded to the same J sentence slots."""

    documents: np.ndarray  # [B] document numbers as in the layout
    counts: np.ndarray  # [B] sentences with words
    sentences: np.ndarray  # [B, J] index among the sentences with words, by falling length; ABSENT if none
    positions: Tensor  # [B, J] position in the document, or ABSENT
    cells: int  # the first of its B * H * J sentence cells
    segments: list[Segment]

    @property
    def size(self) -> int:
        return len(self.documents)

    @property
    def slots(self) -> int:
        return self.sentences.shape[1]

    @cached_property
    def online_positions(self) -> Tensor:
        """Positions [B, J] for comparing who comes first: an empty slot comes after all."""
        return self.positions.masked_fill(self.positions < 0, torch.iinfo(self.positions.dtype).max)

    @cached_property
    def widest(self) -> int:
        return max(segment.columns for segment in self.segments)

    @cached_property
    def columns(self) -> int:
        return sum(segment.columns for segment in self.segments)


class BankLayout:
    """The places of all words and sentences with words of a packed `Layout`, for H heads."""

    def __init__(self, layout: Layout, heads: int) -> None:
        self.heads, self.device = heads, layout.lengths.device
        words = layout.lengths.cpu().numpy() - 1
        kept = np.flatnonzero(words > 0)
        self.words: np.ndarray = words[kept]  # [S'] words of each sentence with words
        self.documents: np.ndarray = layout.documents.cpu().numpy()[kept]
        self.positions: np.ndarray = layout.positions.cpu().numpy()[kept]
        self.word_starts: np.ndarray = np.cumsum(self.words) - self.words
        self.slots: np.ndarray = np.zeros(len(kept), dtype=np.int64)  # [S'] slot of each in its group
        self.groups: list[DocumentGroup] = []
        self.planned: tuple[Layout, QueryPlan] | None = None  # the last queries and their plan
        self.rows = 0  # one head of one sentence slot
        self.word_cells = 0
        self._sentence_index: list[np.ndarray] = []
        self._word_index: list[np.ndarray] = []
        by_length = np.lexsort((self.positions, -self.words, self.documents))
        numbers, starts, counts = np.unique(self.documents[by_length], return_index=True, return_counts=True)
        totals = np.add.reduceat(self.words[by_length], starts) if len(starts) else starts
        for members in _groups(totals):
            self._add_group(numbers[members], by_length, starts[members], counts[members])
        self._tabulate()

    def _add_group(self, documents: np.ndarray, order: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> None:
        slots = np.arange(counts.max())
        filled = slots < counts[:, None]  # [B, J]
        chosen = order[np.minimum(starts[:, None] + slots, len(order) - 1)]
        self.slots[chosen[filled]] = np.broadcast_to(slots, filled.shape)[filled]
        lengths = np.where(filled, self.words[chosen], 0)
        sentence_cells = self.rows
        self._sentence_index.append(self._by_head(np.where(filled, chosen, ABSENT)))
        segments = []
        for first, last, width in _segments(lengths.max(0), tuning_for(self.device).segment_cost):
            segments.append(self._segment(first, last, width, chosen[:, first:last], lengths[:, first:last]))
        positions = torch.from_numpy(np.where(filled, self.positions[chosen], ABSENT)).to(self.device)
        sentences = np.where(filled, chosen, ABSENT)
        self.groups.append(DocumentGroup(documents, counts, sentences, positions, sentence_cells, segments))

    def _segment(self, first: int, last: int, width: int, chosen: np.ndarray, lengths: np.ndarray) -> Segment:
        size, slots = chosen.shape
        place = np.arange(width)
        filled = place < lengths[..., None]  # [B, J, W]
        index = np.where(filled, self.word_starts[chosen][..., None] + place, ABSENT)
        self._word_index.append(self._by_head(index.reshape(size, -1)))
        bias = np.where(filled.reshape(size, -1, 1), 0.0, HIDDEN_SCORE).astype(np.float32)
        segment = Segment(
            first,
            last,
            width,
            self.word_cells,
            self.rows,
            torch.from_numpy(np.repeat(bias, self.heads, axis=0)).to(self.device),
        )
        self.word_cells += size * self.heads * slots * width
        self.rows += size * self.heads * slots
        return segment

    def _by_head(self, index: np.ndarray) -> np.ndarray:
        """[B, columns] rows -> [B * H * columns] cells of those rows, ABSENT kept."""
        cells = index[:, None] * self.heads + np.arange(self.heads)[:, None]
        return np.where(index[:, None] < 0, ABSENT, cells).reshape(-1)

    def _tabulate(self) -> None:
        self.word_gather = Gather.of(self._word_index, int(self.words.sum()) * self.heads, self.device)
        self.sentence_gather = Gather.of(self._sentence_index, len(self.words) * self.heads, self.device)
        last = int(self.documents.max()) if len(self.documents) else -1
        # The last entry of each table answers for documents the bank does not have.
        self.group_of, self.row_of = np.full(last + 2, ABSENT), np.zeros(last + 2, dtype=np.int64)
        self.first_position = np.full(last + 2, np.iinfo(np.int64).max)
        self.count_of = np.zeros(last + 2, dtype=np.int64)
        for number, group in enumerate(self.groups):
            self.group_of[group.documents] = number
            self.row_of[group.documents] = np.arange(group.size)
            self.count_of[group.documents] = group.counts
        np.minimum.at(self.first_position, self.documents, self.positions)

    def known(self, documents: np.ndarray) -> np.ndarray:
        """Document numbers with those that the bank does not have replaced by its last, empty entry."""
        last = len(self.group_of) - 1
        return np.where((documents < 0) | (documents > last), last, documents)

    def slots_at(self, documents: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Slots of the sentences at these positions of their documents; ABSENT where the bank has none."""
        span = max(self.positions.max(initial=0), positions.max(initial=0)) + 1
        places = self.documents * span + self.positions
        order = np.append(np.argsort(places), ABSENT)
        wanted = documents * span + positions
        found = order[np.searchsorted(places, wanted, sorter=order[:-1])]
        return np.where(np.append(places, ABSENT)[found] == wanted, np.append(self.slots, ABSENT)[found], ABSENT)

    @cached_property
    def row_cells(self) -> Tensor:
        """[rows] the sentence cell of each row: rows go by segment, sentence cells by group."""
        parts = [np.zeros(0, dtype=np.int64)]
        for group in self.groups:
            cells = group.cells + np.arange(group.size * self.heads * group.slots).reshape(-1, group.slots)
            parts += [cells[:, segment.first : segment.last].reshape(-1) for segment in group.segments]
        return torch.from_numpy(np.concatenate(parts)).to(self.device)

    @cached_property
    def cell_rows(self) -> Tensor:
        """[sentence cells] the row of each sentence cell."""
        rows = torch.empty_like(self.row_cells)
        rows[self.row_cells] = torch.arange(len(rows), device=rows.device)
        return rows


@dataclass(frozen=True)
class Gather:
    """A copy of rows to cells where every row has one cell, so that the way back is a copy as well."""

    index: Tensor  # [cells] row of each cell; any row for an empty cell
    inverse: Tensor  # [rows] cell of each row

    @classmethod
    def of(cls, parts: list[np.ndarray], rows: int, device: torch.device) -> Gather:
        index = np.concatenate([*parts, np.zeros(0, dtype=np.int64)])
        filled = np.flatnonzero(index >= 0)
        inverse = np.zeros(rows, dtype=np.int64)
        inverse[index[filled]] = filled
        return cls(torch.from_numpy(np.maximum(index, 0)).to(device), torch.from_numpy(inverse).to(device))

    def __call__(self, rows: Tensor) -> Tensor:
        """[rows, d_k] -> [cells, d_k]; an empty cell holds some row, which attention must mask."""
        return GatherCells.apply(rows, self.index, self.inverse)


class GatherCells(torch.autograd.Function):
    """Copies where `inverse` leads back, so that the gradient of empty cells is dropped."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return rows.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (inverse,) = ctx.saved_tensors
        return gradient.index_select(0, inverse), None, None


@dataclass(frozen=True)
class BankCells:
    """Keys and values of all context sentences of a batch as cells.

    A flat attention over sentences has no word cells; one over words has no sentence cells.
    """

    layout: BankLayout
    sentence_keys: Tensor | None = None  # [B * H * J cells, d_k]
    sentence_values: Tensor | None = None
    word_keys: Tensor | None = None  # [B * H * J * W cells, d_k]
    word_values: Tensor | None = None
    routed: np.ndarray | None = None  # [documents + 1] whose words are read by routing; none if None


def _groups(words: np.ndarray) -> Iterator[np.ndarray]:
    """Documents of like size together: indices of `words` [D], the words of each document."""
    order = np.argsort(-words, kind="stable")
    begin = 0
    while begin < len(order):
        least = words[order[begin]] * GROUP_RATIO - GROUP_SLACK
        end = begin + int(np.searchsorted(-words[order[begin:]], -least, side="right"))
        yield order[begin:end]
        begin = end


def _segments(widths: np.ndarray, cost: int) -> Iterator[tuple[int, int, int]]:
    """(first, last, width) of each segment: the split of falling `widths` [J] that needs the least room, where
    each segment itself needs `cost`."""
    # Only where the width falls can a segment begin; the best split up to each of these places, from left to right.
    begins = np.flatnonzero(np.diff(widths, prepend=widths[0] + 1))
    edges = np.append(begins, len(widths))
    best, origin = np.zeros(len(edges)), np.zeros(len(edges), dtype=np.int64)
    for end in range(1, len(edges)):
        costs = best[:end] + (edges[end] - edges[:end]) * widths[edges[:end]] + cost
        origin[end] = int(np.argmin(costs))
        best[end] = costs[origin[end]]
    cuts = [len(edges) - 1]
    while cuts[-1]:
        cuts.append(int(origin[cuts[-1]]))
    for left, right in zip(cuts[::-1], cuts[-2::-1], strict=False):
        yield int(edges[left]), int(edges[right]), int(widths[edges[left]])
