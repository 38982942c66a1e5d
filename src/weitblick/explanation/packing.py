"""Attention of pieces, as a model computes it, to attention of words, as an explanation keeps it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weitblick.explanation.attention import Attention
from weitblick.explanation.schema import Words
from weitblick.explanation.trace import SentenceTrace

MOST_SENTENCES = 24
LEAST_MASS = 0.002


def sums(values: np.ndarray, words: Words, axis: int) -> np.ndarray:
    """Values of pieces added up to values of words."""
    if not words:
        return np.zeros([0 if a == axis else size for a, size in enumerate(values.shape)])
    return np.add.reduceat(values, [word.start for word in words], axis=axis)


def means(values: np.ndarray, words: Words) -> np.ndarray:
    """Values of pieces [W, ...] to those of words, by the first pieces of all words, the second, and so on: each is a
    long row, along which `reduceat` would not go."""
    starts = np.array([word.start for word in words], dtype=np.int64)
    sizes = np.array([word.end - word.start for word in words], dtype=np.int64)
    total = values[starts]
    for place in range(1, sizes.max(initial=1)):
        longer = sizes > place
        total[longer] += values[starts[longer] + place]
    total /= sizes.astype(values.dtype).reshape(-1, *[1] * (values.ndim - 1))
    return total


def _runs(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """All numbers of runs one behind the other: from each start on, so many."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


class AttentionPacker:
    """A query word attends as its pieces do on average, a context word gets what its pieces get together.

    `contexts` are the context words of every sentence of the document; of each row the `most` heaviest sentences stay.
    """

    def __init__(self, contexts: Sequence[Words], most: int = MOST_SENTENCES) -> None:
        self.most = most
        self._counts = np.array([len(words) for words in contexts], dtype=np.int64)
        self._pieces = np.array([words[-1].end if words else 0 for words in contexts], dtype=np.int64)
        self._starts = np.array([word.start for words in contexts for word in words], dtype=np.int64)

    def pack(self, traced: SentenceTrace, queries: Words) -> Attention | None:
        if traced.sentence_weights is None or traced.sentences is None or not queries:
            return None
        masses = means(traced.sentence_weights, queries)  # [Q, H, J]
        starts, first = self._words(traced.sentences)
        words = None  # [Q, H, words of the document], rescaled
        if traced.word_weights is not None:
            words = np.add.reduceat(means(traced.word_weights, queries), starts, axis=-1)
        order = np.argsort(-masses, axis=-1, kind="stable")[..., : self.most]
        heaviest = np.take_along_axis(masses, order, -1)
        kept = (heaviest >= LEAST_MASS) | ((heaviest > 0) & (np.arange(order.shape[-1]) == 0))
        query, head, rank = np.nonzero(kept)
        columns, listed = order[query, head, rank], heaviest[query, head, rank]
        widths = np.zeros_like(columns) if words is None else np.diff(first)[columns]
        weights = np.zeros(0)
        if words is not None:
            starting = (query * words.shape[1] + head) * words.shape[2] + first[columns]
            weights = words.ravel()[_runs(starting, widths)] / np.repeat(listed, widths)
        return Attention.pack(
            (masses.shape[0], masses.shape[1]),
            counts=kept.sum(-1).ravel(),
            attended=(masses > 0).sum(-1).ravel(),
            rest=np.maximum(0.0, masses.sum(-1) - np.where(kept, heaviest, 0.0).sum(-1)).ravel(),
            sentences=traced.sentences[columns],
            masses=listed,
            widths=widths,
            weights=weights,
        )

    def _words(self, sentences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first piece of each context word of these columns, and the first word of each column [J + 1]."""
        counts, pieces = self._counts[sentences], self._pieces[sentences]
        own = self._starts[_runs((np.cumsum(self._counts) - self._counts)[sentences], counts)]
        return own + np.repeat(np.cumsum(pieces) - pieces, counts), np.concatenate([[0], np.cumsum(counts)])
