"""Attention over windows in the form that every other part of the system reads: columns of the whole document."""

from __future__ import annotations

import torch
from torch import Tensor

from weitblick.batches.layout import Layout
from weitblick.context.weights import AttentionWeights
from weitblick.context.window import WindowQueries, Windows


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
