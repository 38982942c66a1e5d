"""Attention of pieces becomes attention of words as a loop over all of them says."""

from __future__ import annotations

import numpy as np
import pytest

from weitblick.explanation.packing import LEAST_MASS, AttentionPacker
from weitblick.explanation.schema import Word, Words
from weitblick.explanation.trace import Predictions, SentenceTrace

HEADS = 2
NOTHING = np.zeros(0)


def words(*sizes: int) -> Words:
    ends = np.cumsum(sizes)
    return tuple(Word("w", int(end) - size, int(end)) for size, end in zip(sizes, ends, strict=True))


CONTEXTS = [words(1, 2), words(3), words(2, 1, 1), words(1, 1, 4, 1)]
QUERIES = words(1, 3, 2)


def traced(columns: list[int], of_words: bool) -> SentenceTrace:
    """Random attention of the pieces of QUERIES to the pieces of these sentences; the first query piece and head see
    the first one alone, and very little of the second."""
    sizes = [CONTEXTS[column][-1].end for column in columns]
    weights = np.random.default_rng(5).random((QUERIES[-1].end, HEADS, sum(sizes))).astype(np.float32)
    weights[0, 0, sizes[0] :] = 0
    weights[0, 0, sizes[0]] = LEAST_MASS / 10
    weights /= weights.sum(-1, keepdims=True)
    starts = np.cumsum([0, *sizes[:-1]])
    return SentenceTrace(
        Predictions(*[NOTHING] * 5),
        NOTHING,
        sentence_weights=np.add.reduceat(weights, starts, axis=-1),
        word_weights=weights if of_words else None,
        sentences=np.array(columns),
        word_columns=np.repeat(np.arange(len(columns)), sizes),
    )


@pytest.mark.parametrize("of_words", [True, False])
@pytest.mark.parametrize("most", [2, 24])
@pytest.mark.parametrize("columns", [[0, 1, 2, 3], [1, 3]])
def test_packed_attention_is_what_a_loop_finds(columns: list[int], most: int, of_words: bool) -> None:
    trace = traced(columns, of_words)
    attention = AttentionPacker(CONTEXTS, most).pack(trace, QUERIES)
    for index, query in enumerate(QUERIES):
        for head in range(HEADS):
            masses = trace.sentence_weights[query.start : query.end, head].mean(0)
            row = attention.row(index, head)
            heaviest = sorted(range(len(columns)), key=lambda column: -masses[column])[:most]
            listed = [column for n, column in enumerate(heaviest) if n == 0 or masses[column] >= LEAST_MASS]
            assert [entry.sentence for entry in row.entries] == [columns[column] for column in listed]
            assert row.attended == (masses > 0).sum()
            assert row.rest == pytest.approx(1 - masses[listed].sum(), abs=1e-4)
            for entry, column in zip(row.entries, listed, strict=True):
                assert entry.mass == pytest.approx(masses[column], abs=1e-5)
                if not of_words:
                    assert not len(entry.words)
                    continue
                pieces = trace.word_weights[query.start : query.end, head][:, trace.word_columns == column].mean(0)
                inside = [pieces[word.start : word.end].sum() / masses[column] for word in CONTEXTS[columns[column]]]
                np.testing.assert_allclose(entry.words, inside, atol=1 / 255)
