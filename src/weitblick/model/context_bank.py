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
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from weitblick.model.layout import Layout

ABSENT = -1
"""Position of a sentence slot that holds no sentence."""
HIDDEN_SCORE = -1e30
"""Added to the score of an empty place: finite, so that a sentence slot of empty places alone gives no NaN."""

# Documents join a group down to this share of its largest document: the padding of one more costs less than one more
# round of small tensor operations.
GROUP_RATIO = 0.7
GROUP_SLACK = 128
# A further segment must save at least so many words per document.
SEGMENT_COST = 24


@dataclass(frozen=True)
class Segment:
    """Sentence slots `first` to `last` of a group, each with room for `width` words."""

    first: int
    last: int
    width: int
    cells: int  # the first of its B * H * (last - first) * width cells
    rows: int  # the first of its B * H * (last - first) rows; a row is one head of one sentence
    lengths: Tensor  # [B * H * (last - first)] words of the sentence of each row
    bias: Tensor  # [B * H, 1, (last - first) * width] 0 or HIDDEN_SCORE

    @property
    def sentences(self) -> int:
        return self.last - self.first

    @property
    def columns(self) -> int:
        return self.sentences * self.width


@dataclass(frozen=True)
class Group:
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
        self.word_tokens = torch.from_numpy(_word_tokens(words)).to(self.device)
        self.word_starts: np.ndarray = np.cumsum(self.words) - self.words
        self.groups: list[Group] = []
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
        lengths = np.where(filled, self.words[chosen], 0)
        sentence_cells = self.rows
        self._sentence_index.append(self._by_head(np.where(filled, chosen, ABSENT)))
        segments = []
        for first, last, width in _segments(lengths.max(0)):
            segments.append(self._segment(first, last, width, chosen[:, first:last], lengths[:, first:last]))
        positions = torch.from_numpy(np.where(filled, self.positions[chosen], ABSENT)).to(self.device)
        sentences = np.where(filled, chosen, ABSENT)
        self.groups.append(Group(documents, counts, sentences, positions, sentence_cells, segments))

    def _segment(self, first: int, last: int, width: int, chosen: np.ndarray, lengths: np.ndarray) -> Segment:
        size, slots = chosen.shape
        place = np.arange(width)
        filled = place < lengths[..., None]  # [B, J, W]
        index = np.where(filled, self.word_starts[chosen][..., None] + place, ABSENT)
        self._word_index.append(self._by_head(index.reshape(size, -1)))
        bias = np.where(filled.reshape(size, 1, -1), 0.0, HIDDEN_SCORE).astype(np.float32)
        segment = Segment(
            first,
            last,
            width,
            self.word_cells,
            self.rows,
            torch.from_numpy(np.repeat(lengths[:, None], self.heads, axis=1).reshape(-1)).to(self.device),
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

    def take_words(self, packed: Tensor) -> Tensor:
        """[T, d] -> [words, d]"""
        return packed if len(self.word_tokens) == len(packed) else _TakeRows.apply(packed, self.word_tokens)

    def means(self, words: Tensor) -> Tensor:
        """[words, d] -> [S', d], the mean over the words of each sentence that has any."""
        if not len(words):
            return words
        starts, lengths = (torch.from_numpy(x).to(self.device) for x in (self.word_starts, self.words))
        return _SentenceMeans.apply(words, starts, lengths)

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
        return _GatherCells.apply(rows, self.index, self.inverse)


class _GatherCells(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return rows.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (inverse,) = ctx.saved_tensors
        return gradient.index_select(0, inverse), None, None


@dataclass(frozen=True)
class ContextBank:
    """Keys and values of all context sentences of a batch; built once, read at every step of decoding.

    A flat attention over sentences has no word cells; one over words has no sentence cells.
    """

    layout: BankLayout
    sentence_keys: Tensor | None = None  # [B * H * J cells, d_k]
    sentence_values: Tensor | None = None
    word_keys: Tensor | None = None  # [B * H * J * W cells, d_k]
    word_values: Tensor | None = None


@dataclass(frozen=True)
class QueryGroup:
    """The queries that read the documents of one group, padded to Q a document."""

    group: Group
    cells: int  # the first of its B * H * Q cells
    places: int  # the first of its B * Q places; a place is one query with all heads
    length: int  # Q
    counts: np.ndarray  # [B] queries of each document
    positions: Tensor  # [B, Q] position of the query's sentence in its document


@dataclass(frozen=True)
class Chunk:
    """Documents `first` to `last` of a group and queries `start` to `stop` of each: what is computed at a time."""

    queries: QueryGroup
    first: int
    last: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.last - self.first


class QueryPlan:
    """Which place of the bank's groups each packed query takes. The last cell and place are for queries without one."""

    def __init__(self, layout: Layout, bank: BankLayout) -> None:
        heads, device = bank.heads, bank.device
        lengths = layout.lengths.cpu().numpy()
        positions = layout.positions.cpu().numpy()
        documents = bank.known(layout.documents.cpu().numpy())
        token_document = np.repeat(documents, lengths)
        self.tokens = len(token_document)
        self.present: np.ndarray = np.repeat(self._present(documents, positions, bank), lengths, axis=0)
        counts = np.bincount(token_document, minlength=len(bank.group_of))
        order = np.argsort(token_document, kind="stable")
        rank = np.empty(self.tokens, dtype=np.int64)
        rank[order] = np.arange(self.tokens) - np.repeat(np.cumsum(counts) - counts, counts)

        group, row = bank.group_of[token_document], bank.row_of[token_document]
        longest = [int(counts[g.documents].max()) for g in bank.groups]
        sizes = np.array([g.size * length for g, length in zip(bank.groups, longest, strict=True)], dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        self.places = int(sizes.sum())
        known = group >= 0
        safe = np.where(known, group, 0)
        start = starts[safe] if len(starts) else safe
        length = np.array(longest, dtype=np.int64)[safe] if longest else safe
        place = np.where(known, start + row * length + rank, self.places)  # [Tq]
        first = start * heads + row * heads * length + rank  # [Tq] cell of the first head
        cells = np.where(known[:, None], first[:, None] + np.arange(heads) * length[:, None], self.places * heads)
        place_position = np.zeros(self.places + 1, dtype=np.int64)
        place_position[place] = np.repeat(positions, lengths)
        place_token = np.full(self.places + 1, ABSENT)
        place_token[place] = np.arange(self.tokens)
        self.place_token: np.ndarray = place_token[:-1]  # [places] the packed query, or ABSENT
        self.token_place = torch.from_numpy(place).to(device)
        index = np.zeros(self.places * heads + 1, dtype=np.int64)
        index[cells.reshape(-1)] = np.arange(self.tokens * heads)
        self.index = torch.from_numpy(index).to(device)
        self.inverse = torch.from_numpy(cells.reshape(-1)).to(device)
        self.cells = self.places * heads
        all_positions = torch.from_numpy(place_position).to(device)
        self.groups = [
            QueryGroup(
                g,
                int(begin) * heads,
                int(begin),
                width,
                counts[g.documents],
                all_positions[begin : begin + g.size * width].view(g.size, width),
            )
            for g, begin, width in zip(bank.groups, starts, longest, strict=True)
            if width
        ]

    @staticmethod
    def _present(documents: np.ndarray, positions: np.ndarray, bank: BankLayout) -> np.ndarray:
        """[Sq, 2] whether any context sentence is visible offline, online."""
        others = bank.count_of[documents] - (
            (bank.count_of[documents] == 1) & (bank.first_position[documents] == positions)
        )
        return np.stack([others > 0, bank.first_position[documents] < positions], axis=-1)

    def visible(self, online: bool) -> Tensor:
        """[Tq] whether each query has any context sentence to read."""
        return torch.from_numpy(self.present[:, int(online)].copy()).to(self.index.device)

    def spread(self, rows: Tensor) -> Tensor:
        """[Tq * H, d_k] -> [cells + 1, d_k]; empty cells hold some query."""
        return _GatherCells.apply(rows, self.index, self.inverse)

    def collect(self, cells: Tensor) -> Tensor:
        """[cells + 1, d_k] -> [Tq * H, d_k]; the gradient of empty cells is zero."""
        return _TakeRows.apply(cells, self.inverse)

    def chunks(self, elements: int, columns: str, heads: int, chosen: np.ndarray | None = None) -> Iterator[Chunk]:
        """Splits the work so that about `elements` scores are held at a time.

        columns: "widest", "slots" or "columns", the attribute of a group that says how many scores a query has;
        chosen: [bank documents] which documents to give (all if None).
        """
        for queries in self.groups:
            group = queries.group
            per_query = heads * getattr(group, columns)
            rows = max(1, elements // (per_query * queries.length))
            step = queries.length if rows > 1 else max(16, min(queries.length, elements // per_query))
            for begin, end in _runs(queries.counts > 0 if chosen is None else chosen[group.documents]):
                for first in range(begin, end, rows):
                    last = min(first + rows, end)
                    length = int(queries.counts[first:last].max())
                    for start in range(0, length, step):
                        yield Chunk(queries, first, last, start, min(start + step, length))


class _TakeRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.shape = rows.shape
        return rows.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        (index,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.shape).index_copy_(0, index, gradient), None


class _SentenceMeans(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, words: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
        ctx.save_for_backward(lengths)
        index = torch.arange(len(words), device=words.device)
        return F.embedding_bag(index, words, starts, mode="sum") / lengths[:, None]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (lengths,) = ctx.saved_tensors
        return (gradient / lengths[:, None]).repeat_interleave(lengths, 0), None, None


def _word_tokens(words: np.ndarray) -> np.ndarray:
    """Packed tokens that are words: all but the last of each sentence, of `words` [S] words."""
    is_word = np.ones(int(words.sum()) + len(words), dtype=bool)
    is_word[np.cumsum(words + 1) - 1] = False
    return np.flatnonzero(is_word)


def _groups(words: np.ndarray) -> Iterator[np.ndarray]:
    """Documents of like size together: indices of `words` [D], the words of each document."""
    order = np.argsort(-words, kind="stable")
    begin = 0
    while begin < len(order):
        least = words[order[begin]] * GROUP_RATIO - GROUP_SLACK
        end = begin + int(np.searchsorted(-words[order[begin:]], -least, side="right"))
        yield order[begin:end]
        begin = end


def _segments(widths: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """(first, last, width) of each segment: the split of falling `widths` [J] that needs the least room."""
    # Only where the width falls can a segment begin; the best split up to each of these places, from left to right.
    begins = np.flatnonzero(np.diff(widths, prepend=widths[0] + 1))
    edges = np.append(begins, len(widths))
    best, origin = np.zeros(len(edges)), np.zeros(len(edges), dtype=np.int64)
    for end in range(1, len(edges)):
        costs = best[:end] + (edges[end] - edges[:end]) * widths[edges[:end]] + SEGMENT_COST
        origin[end] = int(np.argmin(costs))
        best[end] = costs[origin[end]]
    cuts = [len(edges) - 1]
    while cuts[-1]:
        cuts.append(int(origin[cuts[-1]]))
    for left, right in zip(cuts[::-1], cuts[-2::-1], strict=False):
        yield int(edges[left]), int(edges[right]), int(widths[edges[left]])


def _runs(chosen: np.ndarray) -> Iterator[tuple[int, int]]:
    """(begin, end) of each run of true values."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    yield from zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True)
