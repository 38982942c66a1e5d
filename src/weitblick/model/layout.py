"""Packed sentences: tokens of many sentences laid end to end, without padding.

Shapes, here and in all of `weitblick.model`: B documents, S sentences of a batch, T tokens of a batch, J sentences of a
document, W tokens of a sentence, H heads, d the model's dimension.

Every packed sentence ends with one token that is not a word: `</s>` on the source side, the step that predicts `</s>`
on the target side. So the words of a sentence are all of its tokens but the last, on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """Where the tokens of S sentences stand in a packed row of T, and where each sentence stands in its document.

    lengths    [S] tokens of each sentence (words + 1), at least 1
    documents  [S] index of its document in the batch, never decreasing
    positions  [S] index of the sentence in its document, increasing within a document
    """

    lengths: Tensor
    documents: Tensor
    positions: Tensor

    @classmethod
    def of(
        cls,
        lengths: Sequence[int],
        documents: Sequence[int] | None = None,
        positions: Sequence[int] | None = None,
        device: torch.device | str = "cpu",
    ) -> Layout:
        """Sentences without a document of their own (stage 1) count as documents of one sentence."""
        count = len(lengths)
        return cls(
            torch.tensor(lengths, dtype=torch.long, device=device),
            torch.tensor(range(count) if documents is None else documents, dtype=torch.long, device=device),
            torch.tensor([0] * count if positions is None else positions, dtype=torch.long, device=device),
        )

    def to(self, device: torch.device | str) -> Layout:
        return Layout(self.lengths.to(device), self.documents.to(device), self.positions.to(device))

    @property
    def sentences(self) -> int:
        return self.lengths.shape[0]

    @cached_property
    def tokens(self) -> int:
        return int(self.lengths.sum())

    @cached_property
    def longest(self) -> int:
        return int(self.lengths.max()) if self.sentences else 0

    @cached_property
    def starts(self) -> Tensor:
        """[S] index of the first token of each sentence."""
        return self.lengths.cumsum(0) - self.lengths

    @cached_property
    def sentence(self) -> Tensor:
        """[T] sentence of each token."""
        return torch.repeat_interleave(
            torch.arange(self.sentences, device=self.lengths.device), self.lengths, output_size=self.tokens
        )

    @cached_property
    def offset(self) -> Tensor:
        """[T] index of each token in its sentence."""
        return torch.arange(self.tokens, device=self.lengths.device) - self.starts[self.sentence]

    @cached_property
    def is_word(self) -> Tensor:
        """[T] true for words, false for the last token of each sentence."""
        return self.offset < (self.lengths - 1)[self.sentence]

    @cached_property
    def padded_index(self) -> Tensor:
        """[T] place of each token in a padded [S * W] grid, W the longest sentence."""
        return self.sentence * self.longest + self.offset

    @cached_property
    def mask(self) -> Tensor:
        """[S, W] true where the padded grid holds a token."""
        return torch.arange(self.longest, device=self.lengths.device) < self.lengths[:, None]

    def pad(self, packed: Tensor) -> Tensor:
        """[T, ...] -> [S, W, ...], zeros where there is no token."""
        flat = _Scatter.apply(packed, self.padded_index, self.sentences * self.longest)
        return flat.view(self.sentences, self.longest, *packed.shape[1:])

    def pack(self, padded: Tensor) -> Tensor:
        """[S, W, ...] -> [T, ...]; what stands at padding is dropped."""
        return _Gather.apply(padded.flatten(0, 1), self.padded_index)


class _Scatter(torch.autograd.Function):
    """Copies rows to distinct places: both directions are plain copies, where autograd's own would accumulate."""

    @staticmethod
    def forward(ctx, rows: Tensor, index: Tensor, size: int) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(index)
        return rows.new_zeros(size, *rows.shape[1:]).index_copy_(0, index, rows)

    @staticmethod
    def backward(ctx, gradient: Tensor):  # type: ignore[override]
        (index,) = ctx.saved_tensors
        return gradient.index_select(0, index), None, None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor, index: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(index)
        ctx.rows = rows.shape
        return rows.index_select(0, index)

    @staticmethod
    def backward(ctx, gradient: Tensor):  # type: ignore[override]
        (index,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.rows).index_copy_(0, index, gradient), None
