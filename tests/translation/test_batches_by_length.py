"""Which sentences are searched together."""

from __future__ import annotations

import pytest

from weitblick.model.context import Sources
from weitblick.translation.searching import batches_by_length


def sources(lengths: list[int]) -> Sources:
    """Sentences of so many tokens, their end among them."""
    return Sources([[5] * (length - 1) for length in lengths], [0] * len(lengths), list(range(len(lengths))))


@pytest.mark.parametrize("tokens", [1, 30, 100, 1000])
def test_batches_hold_every_sentence_once_and_no_more_than_they_may(tokens: int) -> None:
    lengths = [2 + 37 * number % 41 for number in range(60)]
    batches = list(batches_by_length(sources(lengths), range(60), tokens))
    order = [index for batch in batches for index in batch]
    assert sorted(order) == list(range(60))
    assert [lengths[index] for index in order] == sorted(lengths, reverse=True)
    for batch in batches:
        of_batch = [lengths[index] for index in batch]
        assert len(batch) == 1 or sum(of_batch) <= tokens
        assert len(batch) == 1 or len(batch) * max(of_batch) <= 2 * tokens


def test_few_sentences_of_any_length_are_one_batch() -> None:
    lengths = [70, 50, 30, 20, 10]
    assert list(batches_by_length(sources(lengths), range(5), 200)) == [[0, 1, 2, 3, 4]]
    assert list(batches_by_length(sources([100, 2, 2, 2, 2, 2]), range(6), 200)) == [[0, 1, 2, 3], [4, 5]]
