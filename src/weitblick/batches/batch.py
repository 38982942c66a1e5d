"""A batch: packed source and target sentences of whole documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from weitblick.batches.layout import Layout
from weitblick.text.special import BOS, EOS


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


def pack_source(
    sentences: IdLists, documents: Sequence[int] | None = None, positions: Sequence[int] | None = None
) -> Packed:
    """Word ids -> words and `</s>` of every sentence."""
    tokens = _concatenate(sentences, last=EOS)
    return Packed(tokens, Layout.of([len(s) + 1 for s in sentences], documents, positions))


def pack_target(
    sentences: IdLists, documents: Sequence[int] | None = None, positions: Sequence[int] | None = None
) -> tuple[Packed, Tensor]:
    """Word ids -> `<s>` and words (what the decoder reads), and words and `</s>` (what it must predict)."""
    layout = Layout.of([len(s) + 1 for s in sentences], documents, positions)
    return Packed(_concatenate(sentences, first=BOS), layout), _concatenate(sentences, last=EOS)


def pack_pairs(
    sources: IdLists, targets: IdLists, documents: Sequence[int] | None = None, positions: Sequence[int] | None = None
) -> Pairs:
    target, labels = pack_target(targets, documents, positions)
    return Pairs(pack_source(sources, documents, positions), target, labels)


def _concatenate(sentences: IdLists, *, first: int | None = None, last: int | None = None) -> Tensor:
    """All ids in one row, with one special id before or behind each sentence."""
    lengths = np.fromiter((len(s) for s in sentences), dtype=np.int64, count=len(sentences))
    out = np.full(int(lengths.sum()) + len(sentences), BOS if first is not None else EOS, dtype=np.int64)
    ends = (lengths + 1).cumsum()
    special = ends - lengths - 1 if first is not None else ends - 1
    keep = np.ones(len(out), dtype=bool)
    keep[special] = False
    if lengths.sum():
        out[keep] = np.concatenate([np.asarray(s, dtype=np.int64) for s in sentences])
    return torch.from_numpy(out)
