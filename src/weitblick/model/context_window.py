"""The few sentences before each sentence: all the context that the online baselines read.

A *window* is a sentence with words and the ones before it in its document, `size` at most. A query sentence reads the
window that ends last before its position. Only places are computed here, from lengths, documents and positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from weitblick.model.batch import Layout
from weitblick.model.context_module import AttentionWeights


@dataclass(frozen=True)
class WindowQueries:
    """Query sentences by the window they read; those that follow each other and read the same one (the hypotheses of a
    sentence) are one row, so that R rows of packed queries face R windows.

    rows     the packed queries [Tq] as R rows
    windows  [R] window of each row; any window where there is none
    present  [Tq] whether there is one
    """

    rows: Layout
    windows: Tensor
    present: Tensor


class Windows:
    """The N windows of a bank, one for each sentence with words, and how to find them."""

    def __init__(self, layout: Layout, size: int) -> None:
        self.layout, self.size = layout, size
        self.device = layout.lengths.device
        self._span = int(layout.positions.max()) + 2 if layout.sentences else 1
        kept = (layout.lengths > 1).nonzero()[:, 0]
        keys, order = self._key(layout.documents[kept], layout.positions[kept]).sort()
        self._keys = keys
        self.sentences = kept[order]  # [N] sentences with words, in the order of their documents

    def __len__(self) -> int:
        return self.sentences.shape[0]

    def _key(self, documents: Tensor, positions: Tensor) -> Tensor:
        """One number that orders sentences by document and position; beyond the last position all are alike."""
        return documents * self._span + positions.clamp(max=self._span - 1)

    @cached_property
    def members(self) -> Tensor:
        """[N, size] sentences of each window, the oldest first; -1 before the beginning of the document."""
        place = torch.arange(len(self), device=self.device)[:, None] - torch.arange(
            self.size - 1, -1, -1, device=self.device
        )
        known = place.clamp_min(0)
        same = self._keys[known] // self._span == (self._keys // self._span)[:, None]
        return torch.where((place >= 0) & same, self.sentences[known], -1)

    @cached_property
    def counts(self) -> Tensor:
        """[N] sentences of each window."""
        return (self.members >= 0).sum(1)

    def words(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Packed tokens [R, size, W] that are the words of these windows [R], and where there is one."""
        members = self.members[windows]
        lengths = torch.where(members >= 0, self.layout.lengths[members] - 1, 0)
        place = torch.arange(int(lengths.max()) if lengths.numel() else 0, device=self.device)
        filled = place < lengths[..., None]
        return torch.where(filled, self.layout.starts[members][..., None] + place, 0), filled

    def find(self, layout: Layout) -> Tensor:
        """[Sq] window that each query sentence reads, -1 if there is none."""
        window = torch.searchsorted(self._keys, self._key(layout.documents, layout.positions)) - 1
        if not len(self):
            return torch.full_like(window, -1)
        same = self._keys[window.clamp_min(0)] // self._span == layout.documents
        return torch.where((window >= 0) & same, window, -1)

    def queries(self, layout: Layout, use: Tensor | None) -> WindowQueries:
        """Who reads which window; query sentences with false in `use` [Sq] read none."""
        window = self.find(layout)
        present = window >= 0 if use is None else (window >= 0) & use.to(window.device)
        places = torch.stack([layout.documents, layout.positions, window])
        _, row = torch.unique_consecutive(places, dim=1, return_inverse=True)
        count = int(row[-1]) + 1 if layout.sentences else 0
        lengths = row.new_zeros(count).index_add_(0, row, layout.lengths)
        windows = row.new_empty(count).index_copy_(0, row, window.clamp_min(0))
        return WindowQueries(
            Layout(lengths, row.new_zeros(count), row.new_zeros(count)), windows, present[layout.sentence]
        )


class WindowCache:
    """What was computed for some windows, kept while decoding asks for the same ones, or fewer, at every step."""

    def __init__(self) -> None:
        self._windows: Tensor | None = None
        self._parts: tuple[Tensor, ...] = ()

    def get(self, windows: Tensor, compute: Callable[[Tensor], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """compute(windows): tensors with a row for each of `windows` [R]. With gradients, always computed anew."""
        if torch.is_grad_enabled():
            return compute(windows)
        if self._windows is None or not torch.equal(windows, self._windows):
            self._parts = self._chosen(windows) or compute(windows)
            self._windows = windows
        return self._parts

    def _chosen(self, windows: Tensor) -> tuple[Tensor, ...] | None:
        """The rows of `windows` out of those at hand, if all are there."""
        if self._windows is None or not len(self._windows):
            return None
        known, order = self._windows.sort()
        place = torch.searchsorted(known, windows).clamp_max(len(known) - 1)
        if not torch.equal(known[place], windows):
            return None
        return tuple(part.index_select(0, order[place]) for part in self._parts)


# Attention over windows in the form that every other part of the system reads: columns of the whole document.


class _Columns:
    """Columns of the sentences and words of each document of a bank, in their order; sentences without words have none.

    column      [S] of each sentence of the bank among those of its document
    first_word  [S] column of its first word
    table       [S] row of its document in the tables below
    """

    def __init__(self, windows: Windows) -> None:
        layout, order = windows.layout, windows.sentences  # [N]
        documents = layout.documents[order]
        _, table, counts = documents.unique_consecutive(return_inverse=True, return_counts=True)
        words = layout.lengths[order] - 1
        before = words.cumsum(0) - words
        first = counts.cumsum(0) - counts  # [D] the first sentence of each document
        self.column, self.first_word, self.table = (torch.zeros_like(layout.lengths) for _ in range(3))
        self.column[order] = torch.arange(len(order), device=windows.device) - first[table]
        self.first_word[order] = before - before[first][table]
        self.table[order] = table
        totals = torch.zeros_like(counts).index_add_(0, table, words)
        self.sentence_positions = order.new_full((len(counts), int(counts.max())), -1)
        self.sentence_positions[table, self.column[order]] = layout.positions[order]
        self.word_columns = order.new_full((len(counts), int(totals.max())), -1)
        self.word_indices = self.word_columns.clone()
        word_sentence = order.repeat_interleave(words)
        index = torch.arange(len(word_sentence), device=windows.device) - before.repeat_interleave(words)
        place = (self.table[word_sentence], self.first_word[word_sentence] + index)
        self.word_columns[place] = self.column[word_sentence]
        self.word_indices[place] = index


def window_weights(
    windows: Windows, layout: Layout, queries: WindowQueries, sentence_weights: Tensor, word_weights: Tensor
) -> AttentionWeights:
    """sentence_weights [Tq, H, n] and word_weights [Tq, H, n, W] of packed queries over the windows they read."""
    columns = _Columns(windows)
    members = windows.members[queries.windows[queries.rows.sentence]]  # [Tq, n]
    index, filled = windows.words(queries.windows)
    token = queries.rows.sentence
    heads, device = sentence_weights.shape[1], sentence_weights.device
    sentences, words = columns.sentence_positions.shape[1], columns.word_columns.shape[1]
    seen = (members >= 0) & queries.present[:, None]

    # One column more than there are takes what belongs to no sentence or no word.
    sentence_column = torch.where(seen, columns.column[members], sentences)
    by_sentence = sentence_weights.new_zeros(len(token), heads, sentences + 1)
    by_sentence.scatter_(2, sentence_column[:, None].expand_as(sentence_weights), sentence_weights)
    place = torch.arange(index.shape[-1], device=device)
    word_column = torch.where(
        filled[token] & seen[..., None], columns.first_word[members][..., None] + place, words
    ).flatten(1)  # [Tq, n * W]
    by_word = word_weights.new_zeros(len(token), heads, words + 1)
    flat = word_weights.flatten(2)
    by_word.scatter_(2, word_column[:, None].expand_as(flat), flat)
    visible = torch.zeros(len(token), sentences + 1, dtype=torch.bool, device=device).scatter_(1, sentence_column, True)
    return AttentionWeights(
        by_sentence[..., :-1],
        by_word[..., :-1],
        torch.where(queries.present, columns.table[members[:, -1]], -1),
        columns.sentence_positions,
        columns.word_columns,
        columns.word_indices,
        visible[:, :-1],
        flat=False,
    )
