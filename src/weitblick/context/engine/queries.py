"""Which queries read which documents of a bank: their places, and the chunks in which they are computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from weitblick.batches.layout import Layout
from weitblick.context.engine.bank import ABSENT, BankLayout, GatherCells, Group, TakeRows


@dataclass(frozen=True)
class QueryGroup:
    """The queries that read the documents of one group, padded to Q a document."""

    group: Group
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
        place_sentence = np.zeros((2, self.places + 1), dtype=np.int64)
        place_sentence[:, place] = np.repeat([positions, bank.slots_at(documents, positions)], lengths, axis=1)
        place_token = np.full(self.places + 1, ABSENT)
        place_token[place] = np.arange(self.tokens)
        self.place_token: np.ndarray = place_token[:-1]  # [places] the packed query, or ABSENT
        self.token_place = torch.from_numpy(place).to(device)
        index = np.zeros(self.places * heads + 1, dtype=np.int64)
        index[cells.reshape(-1)] = np.arange(self.tokens * heads)
        self.index = torch.from_numpy(index).to(device)
        self.inverse = torch.from_numpy(cells.reshape(-1)).to(device)
        self.cells = self.places * heads
        by_place = torch.from_numpy(place_sentence).to(device)
        self.groups: list[QueryGroup] = []
        for g, begin, width in zip(bank.groups, starts, longest, strict=True):
            if not width:
                continue
            at, own = by_place[:, begin : begin + g.size * width].view(2, g.size, width)
            hide = torch.zeros_like(own, dtype=torch.float32).masked_fill_(own >= 0, -torch.inf)
            self.groups.append(
                QueryGroup(g, int(begin) * heads, int(begin), width, counts[g.documents], at, own.clamp_min(0), hide)
            )

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


def plan_of(layout: Layout, bank: BankLayout) -> QueryPlan:
    """The plan of these queries. The bank keeps it until others come: a decoder asks with the same at each step."""
    if bank.planned is None or bank.planned[0] is not layout:
        bank.planned = layout, QueryPlan(layout, bank)
    return bank.planned[1]


def _runs(chosen: np.ndarray) -> Iterator[tuple[int, int]]:
    """(begin, end) of each run of true values."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    yield from zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True)
