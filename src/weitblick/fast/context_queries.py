"""Which queries read which documents of a bank: their places, and the chunks in which they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from weitblick.fast.context_bank import BankLayout, DocumentGroup, GatherCells
from weitblick.model.batch import Layout, TakeRows


@dataclass(frozen=True)
class QueryGroup:
    """The queries that read the documents of one group, padded to Q a document."""

    group: DocumentGroup
    cells: int  # the first of its B * H * Q cells
    places: int  # the first of its B * Q places; a place is one query with all heads
    length: int  # Q
    counts: np.ndarray  # [B] queries of each document
    positions: Tensor  # [B, Q] position of the query's sentence in its document
    own_slots: Tensor  # [B, Q] slot of the query's own sentence; any if the bank does not have it
    own_scores: Tensor  # [B, Q] what to add to its score to hide it: -inf; 0 if the bank does not have it


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
    """Which place of the bank's groups each packed query takes.

    A group of B documents has B rows of Q places, Q the most queries that one of them has; head by head, a place is a
    cell. With documents 0 and 1 in one group, queries that read documents 0, 1, 0, and one that reads document 9, which
    the bank does not have, Q = 2 and there are 4 places:

        row of document 0: place 0, place 1        queries 0, 2
        row of document 1: place 2, place 3        query 1, -
        place 4, the extra one: query 3

    so `token_place` is [0, 2, 1, 4].
    """

    def __init__(self, layout: Layout, bank: BankLayout) -> None:
        lengths, positions = layout.lengths.cpu().numpy(), layout.positions.cpu().numpy()
        documents = bank.known(layout.documents.cpu().numpy())  # [Sq]
        of_token = np.repeat(documents, lengths)  # [Tq]
        self.tokens = len(of_token)
        self.present: np.ndarray = np.repeat(self._present(documents, positions, bank), lengths, axis=0)
        counts = np.bincount(of_token, minlength=len(bank.group_of))  # [documents + 1] queries of each document
        widths = [int(counts[group.documents].max()) for group in bank.groups]  # Q of each group
        sizes = np.array([group.size * width for group, width in zip(bank.groups, widths, strict=True)], dtype=np.int64)
        starts = np.cumsum(sizes) - sizes  # the first place of each group
        self.places = int(sizes.sum())
        self.cells = self.places * bank.heads
        place, cells = self._place(of_token, counts, starts, np.array(widths, dtype=np.int64), bank)
        self._index(place, cells, bank)
        own_slots = bank.slots_at(documents, positions)
        of_place = np.zeros((2, self.places + 1), dtype=np.int64)
        of_place[:, place] = np.repeat([positions, own_slots], lengths, axis=1)
        self.groups = list(self._groups(bank, counts, starts, widths, torch.from_numpy(of_place).to(bank.device)))

    def _place(
        self, documents: np.ndarray, counts: np.ndarray, starts: np.ndarray, widths: np.ndarray, bank: BankLayout
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of queries that read these documents [Tq]: places [Tq] and cells [Tq, H]; the extra one without a group."""
        order = np.argsort(documents, kind="stable")
        rank = np.empty(self.tokens, dtype=np.int64)  # of a query among those of its document
        rank[order] = np.arange(self.tokens) - np.repeat(np.cumsum(counts) - counts, counts)
        group, row = bank.group_of[documents], bank.row_of[documents]
        known = group >= 0
        safe = np.where(known, group, 0)
        start, width = (table[safe] if len(table) else safe for table in (starts, widths))
        place = np.where(known, start + row * width + rank, self.places)
        first = (start + row * width) * bank.heads + rank  # the cell of the first head; the next is a row further
        cells = first[:, None] + np.arange(bank.heads) * width[:, None]
        return place, np.where(known[:, None], cells, self.cells)

    def _index(self, place: np.ndarray, cells: np.ndarray, bank: BankLayout) -> None:
        """The ways from packed queries to their places and cells, and back."""
        self.token_place = torch.from_numpy(place).to(bank.device)
        index = np.zeros(self.cells + 1, dtype=np.int64)
        index[cells.reshape(-1)] = np.arange(self.tokens * bank.heads)
        self.index = torch.from_numpy(index).to(bank.device)  # [cells + 1] the row of each cell
        self.inverse = torch.from_numpy(cells.reshape(-1)).to(bank.device)  # [Tq * H] the cell of each row

    @staticmethod
    def _groups(
        bank: BankLayout, counts: np.ndarray, starts: np.ndarray, widths: list[int], of_place: Tensor
    ) -> Iterator[QueryGroup]:
        """The groups that anyone reads; of_place [2, places + 1]: position and own slot of the query in each place."""
        for group, begin, width in zip(bank.groups, starts.tolist(), widths, strict=True):
            if width:
                at, own = of_place[:, begin : begin + group.size * width].view(2, group.size, width)
                hide = torch.zeros_like(own, dtype=torch.float32).masked_fill_(own >= 0, -torch.inf)
                of_documents = counts[group.documents]
                yield QueryGroup(group, begin * bank.heads, begin, width, of_documents, at, own.clamp_min(0), hide)

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
        return GatherCells.apply(rows, self.index, self.inverse)

    def collect(self, cells: Tensor) -> Tensor:
        """[cells + 1, d_k] -> [Tq * H, d_k]; the gradient of empty cells is zero."""
        return TakeRows.apply(cells, self.inverse)

    def scores(self, heads: int, chosen: np.ndarray | None = None) -> int:
        """How many word scores the chosen documents have in all, padding included."""
        return sum(
            heads
            * q.length
            * q.group.columns
            * (q.group.size if chosen is None else int(chosen[q.group.documents].sum()))
            for q in self.groups
        )

    def chunks(
        self,
        elements: int,
        scores: Callable[[DocumentGroup], int],
        heads: int,
        chosen: np.ndarray | None = None,
    ) -> Iterator[Chunk]:
        """Splits the work so that about `elements` scores are held at a time.

        scores: how many a query has in one head of a group; chosen: [bank documents] which documents to give (all if
        None).
        """
        for queries in self.groups:
            group = queries.group
            per_query = heads * scores(group)
            rows = max(1, elements // (per_query * queries.length))
            step = queries.length if rows > 1 else max(16, min(queries.length, elements // per_query))
            for begin, end in _runs(queries.counts > 0 if chosen is None else chosen[group.documents]):
                for first in range(begin, end, rows):
                    last = min(first + rows, end)
                    length = int(queries.counts[first:last].max())
                    for start in range(0, length, step):
                        yield Chunk(queries, first, last, start, min(start + step, length))


def plan_of(layout: Layout, bank: BankLayout) -> QueryPlan:
    """The plan of these queries. The bank keeps it until others come: a decoder asks with the same at each step."""
    if bank.planned is None or bank.planned[0] is not layout:
        bank.planned = layout, QueryPlan(layout, bank)
    return bank.planned[1]


def _runs(chosen: np.ndarray) -> Iterator[tuple[int, int]]:
    """(begin, end) of each run of true values."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    yield from zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True)
