"""Hypotheses that are no translations: told by their ids, and taken only where a search has found nothing else."""

from __future__ import annotations

import pytest
import torch

from weitblick.text.base import EOS
from weitblick.translation.beam import SearchOptions, _BeamSearch, _Hypotheses
from weitblick.translation.degenerate import degenerate, repeats

SENSIBLE = [
    [5, 6, 7, 8, 9, 10],
    [5, 5, 6, 7],  # die die
    [5, 5, 5, 6],
    [5, 6, 5, 6, 7],  # sehr, sehr
    [5, 6, 7, 5, 6, 7, 8],
    [5, 6, 7, 8, 9, 5, 6, 7, 8, 10],
    [5],
]
REPEATED = [
    [9, 5, 5, 5, 5, 9],
    [5, 6, 5, 6, 5, 6],
    [9, 5, 6, 7, 5, 6, 7, 5, 6, 7],
    [5, 6, 7, 8, 5, 6, 7, 8],  # abwesendes abwesendes
]


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[5] * (longest - len(row))] for row in rows])  # what lies behind does not count
    return ids, torch.tensor([len(row) for row in rows])


@pytest.mark.parametrize(("rows", "expected"), [(SENSIBLE, False), (REPEATED, True)])
def test_what_is_said_again_and_again_is_told(rows: list[list[int]], expected: bool) -> None:
    assert repeats(*padded(rows)).tolist() == [expected] * len(rows)
    for row in rows:  # alone as in a batch
        assert repeats(*padded([row])).tolist() == [expected]


def test_empty_endless_and_repeated_hypotheses_are_none_unless_the_source_repeats_itself() -> None:
    rows = [[5, 6, 7, EOS], [EOS], [5, 6, 7, 8, 9, EOS], [5, 5, 5, 5, EOS]]
    ids, lengths = padded(rows)
    limits = torch.tensor([5])
    for source_repeats, expected in ((False, [False, True, True, True]), (True, [False, True, True, False])):
        found = degenerate(ids[None], lengths[None], limits, torch.tensor([source_repeats]))
        assert found.tolist() == [expected]


def test_the_next_hypothesis_takes_the_place_of_one_that_is_none() -> None:
    search = _BeamSearch.__new__(_BeamSearch)
    search.options, search.all_limits = SearchOptions(beam=3, n_best=2), torch.tensor([20, 20, 20])
    ids, lengths = padded([[5, 6, 5, 6, 5, 6, EOS], [5, 6, 7, EOS], [8, EOS]])
    scores = torch.tensor([[-1.0, -2.0, -3.0], [-1.0, -torch.inf, -torch.inf], [-1.0, -2.0, -torch.inf]])
    together = ids.expand(3, 3, -1), lengths.expand(3, 3)
    search.results = _Hypotheses(
        scores, scores, together[1], torch.zeros_like(together[1]), together[0], together[0] * 0.0
    )
    found = search._sensible_first(torch.tensor([False, False, True])).lists()
    assert [[h.score for h in row] for row in found] == [[-2.0, -3.0], [-1.0], [-1.0, -2.0]]
