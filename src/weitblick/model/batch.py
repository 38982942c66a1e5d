"""Packed sentences: tokens of many sentences laid end to end, without padding.

Shapes, here and in `weitblick.model`: B documents, S sentences of a batch, T tokens of a batch, J sentences of a
document, W tokens of a sentence, H heads, d the model's dimension.

Every packed sentence ends with one token that is not a word: `</s>` on the source side, the step that predicts `</s>`
on the target side. So the words of a sentence are all of its tokens but the last, on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weitblick.text.base import BOS, EOS


@dataclass(frozen=True)
class Layout:
    """Where the tokens of S sentences stand in a packed row of T, and where each sentence stands in its document.

    lengths    [S] tokens of each sentence (words + 1), at least 1
    documents  [S] index of its document in the batch
    positions  [S] index of the sentence in its document

    Where sentences are context, documents never decrease, and positions increase within a document; those that read
    context, as in a search, may come in any order.
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

    @staticmethod
    def join(parts: Sequence[Layout]) -> Layout:
        """The sentences of all parts, one part behind the other, with the documents and positions that they have."""
        columns = zip(*((part.lengths, part.documents, part.positions) for part in parts), strict=True)
        return Layout(*(torch.cat(column) for column in columns))

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
    def without_ends(self) -> Layout:
        """The words of every sentence alone; a sentence that has none keeps its last token."""
        return Layout((self.lengths - 1).clamp_min(1), self.documents, self.positions)

    @cached_property
    def places_without_ends(self) -> Tensor:
        """[T'] where the tokens of `without_ends` stand here."""
        return (self.is_word | (self.lengths == 1)[self.sentence]).nonzero()[:, 0]

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
        flat = Scatter.apply(packed, self.padded_index, self.sentences * self.longest)
        return flat.view(self.sentences, self.longest, *packed.shape[1:])

    def pack(self, padded: Tensor) -> Tensor:
        """[S, W, ...] -> [T, ...]; what stands at padding is dropped."""
        return TakeRows.apply(padded.flatten(0, 1), self.padded_index)

    @cached_property
    def grid(self) -> Grid:
        """The sentences in groups of similar length, each padded on its own: what attention computes on."""
        return Grid(self, _length_groups(self.host_lengths))

    @cached_property
    def host_lengths(self) -> list[int]:
        return self.lengths.tolist()


MOST_GROUPS = 4
ENOUGH_REAL = 0.85  # one padded grid will do when so much of it is real tokens


def _length_groups(lengths: list[int]) -> list[list[int]]:
    """Sentence indexes in at most MOST_GROUPS groups of similar length and about equally many tokens."""
    if not lengths or sum(lengths) >= ENOUGH_REAL * len(lengths) * max(lengths):
        return [list(range(len(lengths)))]
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    share = sum(lengths) / MOST_GROUPS
    groups: list[list[int]] = [[]]
    filled = 0
    for index in order:
        if groups[-1] and filled >= share * len(groups):
            groups.append([])
        groups[-1].append(index)
        filled += lengths[index]
    return groups


@dataclass(frozen=True)
class Group:
    """Sentences padded together: S of them, W long, from `start` of the grid's rows."""

    start: int
    sentences: int
    width: int
    lengths: Tensor

    def key_bias(self, dtype: torch.dtype) -> Tensor | None:
        """[S, 1, 1, W], -inf at padding, to add to attention scores; None where nothing is padded."""
        mask = torch.arange(self.width, device=self.lengths.device) < self.lengths[:, None]
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)[:, None, None]


class Grid:
    """Padded grids of groups of sentences, one behind the other in one buffer of rows."""

    def __init__(self, layout: Layout, groups: list[list[int]]) -> None:
        self.members = groups
        self.tokens = layout.tokens
        device, lengths = layout.lengths.device, layout.host_lengths
        first_row, widths = [0] * len(lengths), [0] * len(lengths)
        self.groups: list[Group] = []
        self.rows = 0
        for members in groups:
            width = max((lengths[i] for i in members), default=0)
            for rank, i in enumerate(members):
                first_row[i], widths[i] = self.rows + rank * width, width
            chosen = torch.tensor([lengths[i] for i in members], device=device)
            self.groups.append(Group(self.rows, len(members), width, chosen))
            self.rows += len(members) * width
        # [T] of the sentence of each token its first row and the width of its group; of the token its offset and row
        self.first = torch.tensor(first_row, device=device)[layout.sentence]
        self.width = torch.tensor(widths, device=device)[layout.sentence]
        self.offset = layout.offset
        self.index = self.first + self.offset
        self.head_places: dict[int, Any] = {}  # what attention of so many heads derives from this, kept for all layers

    def pad(self, packed: Tensor) -> list[Tensor]:
        """[T, d] -> [S, W, d] for each group"""
        rows = Scatter.apply(packed, self.index, self.rows)
        return [
            rows[g.start : g.start + g.sentences * g.width].view(g.sentences, g.width, *packed.shape[1:])
            for g in self.groups
        ]

    def pack(self, padded: list[Tensor]) -> Tensor:
        """The inverse of `pad`."""
        parts = [part.flatten(0, 1) for part in padded]
        return TakeRows.apply(parts[0] if len(parts) == 1 else torch.cat(parts), self.index)


class Scatter(torch.autograd.Function):
    """Copies rows to distinct places among zeros: both directions are plain copies, where autograd's own would add."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(index)
        return rows.new_zeros(size, *rows.shape[1:]).index_copy_(0, index, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (index,) = ctx.saved_tensors
        return gradient.index_select(0, index), None, None


class TakeRows(torch.autograd.Function):
    """Rows at distinct places: both directions are plain copies."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows = rows.shape
        return rows.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.rows).index_copy_(0, index, gradient), None


# A batch: packed source and target sentences of whole documents.


@dataclass(frozen=True)
class Packed:
    """Token ids [T] of packed sentences and their layout."""

    tokens: Tensor
    layout: Layout

    def to(self, device: torch.device | str) -> Packed:
        return Packed(self.tokens.to(device), self.layout.to(device))

    def choose(self, sentences: Tensor) -> Packed:
        """Those sentences for which [S] is true."""
        layout = self.layout
        chosen = Layout(layout.lengths[sentences], layout.documents[sentences], layout.positions[sentences])
        return Packed(self.tokens[sentences[layout.sentence]], chosen)

    def next_tokens(self) -> Tensor:
        """[T] of target sentences as the decoder reads them: what each step must predict, the next word or the end."""
        following = self.tokens.roll(-1)
        following[self.layout.starts + self.layout.lengths - 1] = EOS
        return following


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs: the source; the target as the decoder reads it (shifted right); and what it must predict [T]."""

    source: Packed
    target: Packed
    labels: Tensor

    def to(self, device: torch.device | str) -> Pairs:
        return Pairs(self.source.to(device), self.target.to(device), self.labels.to(device))

    @property
    def sentences(self) -> int:
        return self.source.layout.sentences

    def choose(self, sentences: Tensor) -> Pairs:
        """Those sentences for which [S] is true, with the documents and positions that they have."""
        labels = self.labels[sentences[self.target.layout.sentence]]
        return Pairs(self.source.choose(sentences), self.target.choose(sentences), labels)


@dataclass(frozen=True)
class Batch:
    """`current`: the sentences to translate or train on. `context`: all sentences of their documents, or None where
    these are the same. `rest`: those of `context` that are not current, where the current ones are context as they are
    (not with other targets). `name` says where the batch comes from, for messages."""

    current: Pairs
    context: Pairs | None = None
    name: str = ""
    rest: Pairs | None = None

    def to(self, device: torch.device | str) -> Batch:
        context, rest = (None if pairs is None else pairs.to(device) for pairs in (self.context, self.rest))
        return Batch(self.current.to(device), context, self.name, rest)

    @property
    def all_sentences(self) -> Pairs:
        return self.current if self.context is None else self.context


IdLists = Sequence[Sequence[int] | np.ndarray]


def runs(sizes: Iterable[int], budget: int) -> Iterator[range]:
    """Neighbours together as long as their sizes sum up to at most `budget`; a larger one stands alone."""
    first, filled, count = 0, 0, 0
    for index, size in enumerate(sizes):
        if index > first and filled + size > budget:
            yield range(first, index)
            first, filled = index, 0
        filled, count = filled + size, index + 1
    if first < count:
        yield range(first, count)


def pack_source(
    sentences: IdLists, documents: Sequence[int] | None = None, positions: Sequence[int] | None = None
) -> Packed:
    """Word ids -> words and `</s>` of every sentence."""
    tokens = _concatenate(sentences, EOS)
    return Packed(tokens, Layout.of([len(s) + 1 for s in sentences], documents, positions))


def pack_target(
    sentences: IdLists, documents: Sequence[int] | None = None, positions: Sequence[int] | None = None
) -> tuple[Packed, Tensor]:
    """Word ids -> `<s>` and words (what the decoder reads), and words and `</s>` (what it must predict)."""
    layout = Layout.of([len(s) + 1 for s in sentences], documents, positions)
    return Packed(_concatenate(sentences, BOS), layout), _concatenate(sentences, EOS)


def pack_pairs(
    sources: IdLists, targets: IdLists, documents: Sequence[int] | None = None, positions: Sequence[int] | None = None
) -> Pairs:
    target, labels = pack_target(targets, documents, positions)
    return Pairs(pack_source(sources, documents, positions), target, labels)


def _concatenate(sentences: IdLists, special: int) -> Tensor:
    """All ids in one row, with `<s>` before or `</s>` behind each sentence."""
    lengths = np.fromiter((len(s) for s in sentences), dtype=np.int64, count=len(sentences))
    out = np.full(int(lengths.sum()) + len(sentences), special, dtype=np.int64)
    ends = (lengths + 1).cumsum()
    keep = np.ones(len(out), dtype=bool)
    keep[ends - lengths - 1 if special == BOS else ends - 1] = False
    if lengths.sum():
        out[keep] = np.concatenate([np.asarray(s, dtype=np.int64) for s in sentences])
    return torch.from_numpy(out)
