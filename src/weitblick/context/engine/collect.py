"""Attention weights, collected chunk by chunk as the engine computes them and put in the order of the document."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from weitblick.batches.layout import Layout
from weitblick.context.engine.bank import BankLayout, Group, Segment
from weitblick.context.engine.queries import Chunk, QueryPlan
from weitblick.context.weights import AttentionWeights


class WeightsCollector:
    """Collects weights chunk by chunk as attention computes them, and puts them in the order of the document."""

    def __init__(self, bank: BankLayout, plan: QueryPlan, online: bool, with_words: bool, dtype: torch.dtype) -> None:
        self.bank, self.plan, self.online = bank, plan, online
        self._tabulate()
        heads, device = bank.heads, bank.device
        j, n = self.sentence_positions.shape[1], self.word_columns.shape[1]
        # One more row and column than there are take what stands in padding.
        self.sentence_weights = torch.zeros(plan.tokens + 1, heads, j + 1, dtype=dtype, device=device)
        self.word_weights = (
            torch.zeros(plan.tokens + 1, heads, n + 1, dtype=dtype, device=device) if with_words else None
        )
        tokens = np.where(plan.place_token < 0, plan.tokens, plan.place_token)
        self.place_token = torch.from_numpy(tokens).to(device)

    def _tabulate(self) -> None:
        """Columns of every document by position, and of every sentence of the bank."""
        bank = self.bank
        order = np.lexsort((bank.positions, bank.documents))
        numbers, starts, counts = np.unique(bank.documents[order], return_index=True, return_counts=True)
        table = np.searchsorted(numbers, bank.documents[order])
        column = np.arange(len(order)) - starts[table]
        self.column_of = np.full(len(order) + 1, counts.max(initial=0))  # the last answers for empty slots
        self.column_of[order] = column
        self.table_of = np.full(len(bank.group_of), -1)
        self.table_of[numbers] = np.arange(len(numbers))
        words = bank.words[order]
        ends = np.cumsum(words)
        before = ends - words  # words before each sentence, over all documents
        first = before - before[starts][table] if len(order) else before
        totals = np.add.reduceat(words, starts) if len(starts) else starts
        self.first_word = np.full(len(order) + 1, totals.max(initial=0))
        self.first_word[order] = first
        self.sentence_positions = np.full((max(len(numbers), 1), counts.max(initial=0)), -1)
        self.sentence_positions[table, column] = bank.positions[order]
        self.word_columns = np.full((max(len(numbers), 1), totals.max(initial=0)), -1)
        self.word_indices = self.word_columns.copy()
        index = np.arange(words.sum()) - np.repeat(before, words)
        place = (np.repeat(table, words), np.repeat(first, words) + index)
        self.word_columns[place] = np.repeat(column, words)
        self.word_indices[place] = index

    def _tokens(self, chunk: Chunk) -> Tensor:
        """[b, q] packed query of each place of a chunk; the extra row for padding."""
        q = chunk.queries
        places = self.place_token[q.places : q.places + q.group.size * q.length].view(-1, q.length)
        return places[chunk.first : chunk.last, chunk.start : chunk.stop]

    def sentences(self, chunk: Chunk, weights: Tensor) -> None:
        columns = self.column_of[chunk.queries.group.sentences[chunk.first : chunk.last]]  # [b, J]
        self._put(self.sentence_weights, self._tokens(chunk), torch.from_numpy(columns), weights.transpose(2, 3))

    def words(self, chunk: Chunk, segment: Segment, weights: Tensor) -> None:
        assert self.word_weights is not None
        sentences = chunk.queries.group.sentences[chunk.first : chunk.last, segment.first : segment.last]
        columns = self._word_columns(sentences, segment.width)
        by_query = weights.flatten(1, 2).transpose(1, 2).unflatten(0, (chunk.size, -1))  # [b, H, q, J * W]
        self._put(self.word_weights, self._tokens(chunk), columns.flatten(1), by_query)

    def routed_words(self, group: Group, segment: Segment, cells: Tensor, rows: Tensor, weights: Tensor) -> None:
        """weights [m, W] of the queries in `cells` [m] for the sentences in `rows` [m] of the segment."""
        assert self.word_weights is not None
        heads = self.bank.heads
        row = rows.cpu().numpy()
        head = row // segment.sentences  # of B * H
        sentences = group.sentences[head // heads, segment.first + row % segment.sentences]
        columns = self._word_columns(sentences, segment.width)  # [m, W]
        query = next(q for q in self.plan.groups if q.group is group)
        place = query.places + (head // heads) * query.length + (cells.cpu().numpy() - query.cells) % query.length
        tokens = self.place_token[torch.from_numpy(place).to(self.bank.device)]
        heads_of = torch.from_numpy(head % heads).to(self.bank.device)
        self.word_weights[tokens[:, None], heads_of[:, None], columns.to(self.bank.device)] = weights

    def _word_columns(self, sentences: np.ndarray, width: int) -> Tensor:
        """[...] bank sentences -> [..., W] columns of their words; the extra column for padding."""
        lengths = np.append(self.bank.words, 0)[sentences][..., None]
        place = np.arange(width)
        beyond = self.word_columns.shape[1]
        return torch.from_numpy(np.where(place < lengths, self.first_word[sentences][..., None] + place, beyond))

    def _put(self, target: Tensor, tokens: Tensor, columns: Tensor, weights: Tensor) -> None:
        """target[tokens[b, q], h, columns[b, c]] = weights[b, h, q, c]"""
        heads = torch.arange(self.bank.heads, device=target.device)[:, None, None]
        target[tokens[:, None, :, None], heads, columns.to(target.device)[:, None, None, :]] = weights

    def finish(self, layout: Layout, flat: bool) -> AttentionWeights:
        """The weights of the queries packed by `layout`."""
        lengths = layout.lengths.cpu().numpy()
        positions = np.repeat(layout.positions.cpu().numpy(), lengths)
        rows = np.repeat(self.table_of[self.bank.known(layout.documents.cpu().numpy())], lengths)
        keys = self.sentence_positions[rows]  # [Tq, J]
        unseen = keys >= positions[:, None] if self.online else keys == positions[:, None]
        visible = (rows[:, None] >= 0) & (keys >= 0) & ~unseen
        return AttentionWeights(
            self.sentence_weights[:-1, :, :-1],
            None if self.word_weights is None else self.word_weights[:-1, :, :-1],
            documents=self._tensor(rows),
            sentence_positions=self._tensor(self.sentence_positions),
            word_columns=self._tensor(self.word_columns),
            word_indices=self._tensor(self.word_indices),
            visible=self._tensor(visible),
            flat=flat,
        )

    def _tensor(self, table: np.ndarray) -> Tensor:
        return torch.from_numpy(table).to(self.bank.device)
