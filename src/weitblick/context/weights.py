"""What context attention looked at: the one form in which attention weights reach every other part of the system."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor


@dataclass(frozen=True)
class AttentionWeights:
    """Attention weights of Tq queries, with columns in the order of the document.

    A query's columns are those of the document it read, row `documents[t]` of the column tables; rows of a table are
    padded to the same length, -1 marks padding. Only sentences with words have columns.

    sentence_weights   [Tq, H, J] sum to one over visible sentences, zeros if there are none
    word_weights       [Tq, H, N] before rescaling: sum to one within each sentence (flat word attention: within the
                       document). Zero for sentences of weight zero if attention was routed. None for sentence attention
    documents          [Tq] row of the column tables, -1 for a query whose document has no context
    sentence_positions [D, J] position of the sentence in its document
    word_columns       [D, N] column of the word's sentence
    word_indices       [D, N] index of the word in its sentence
    visible            [Tq, J] whether the query could attend to the sentence
    flat               whether word weights already are shares of the whole document
    """

    sentence_weights: Tensor
    word_weights: Tensor | None
    documents: Tensor
    sentence_positions: Tensor
    word_columns: Tensor
    word_indices: Tensor
    visible: Tensor
    flat: bool

    @cached_property
    def rescaled(self) -> Tensor | None:
        """[Tq, H, N] word weights times the weight of their sentence: what the values were multiplied with."""
        if self.word_weights is None or self.flat:
            return self.word_weights
        columns = self.word_columns[self.documents].clamp_min(0)  # [Tq, N]
        shares = self.sentence_weights.gather(2, columns.unsqueeze(1).expand_as(self.word_weights))
        return self.word_weights * shares

    @property
    def sentence_mask(self) -> Tensor:
        """[D, J] true where a column is a sentence."""
        return self.sentence_positions >= 0

    @property
    def word_mask(self) -> Tensor:
        """[D, N] true where a column is a word."""
        return self.word_columns >= 0
