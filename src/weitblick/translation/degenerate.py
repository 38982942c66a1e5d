"""Hypotheses that no reader would take for a translation: the same words over and over, no end, nothing at all.

A small model falls into them now and then. They are told by their ids alone, for all hypotheses of a search at once;
where one is the best, the next one of the same search that is none takes its place (`beam`).
"""

from __future__ import annotations

import torch
from torch import Tensor

LONGEST_PERIOD = 12
"""Pieces of what is repeated, at most."""


def repetitions_allowed(period: int) -> int:
    """How often in a row something of so many pieces may stand: *sehr, sehr* is German, six pieces twice are not."""
    return 3 if period == 1 else 2 if period < 4 else 1


def repeats(ids: Tensor, lengths: Tensor) -> Tensor:
    """[N] whether the first `lengths` [N] of the ids [N, L] say the same more often in a row than anybody would."""
    found = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    places = torch.arange(ids.shape[1], device=ids.device)
    for period in range(1, min(LONGEST_PERIOD, ids.shape[1] - 1) + 1):
        same = (ids[:, period:] == ids[:, :-period]) & (places[period:] < lengths[:, None])  # [N, L - period]
        needed = period * repetitions_allowed(period)
        if same.shape[1] >= needed:
            windows = same.to(torch.int32).cumsum(1)
            windows = torch.nn.functional.pad(windows, (1, 0))
            found |= ((windows[:, needed:] - windows[:, :-needed]) == needed).any(1)
    return found


def degenerate(ids: Tensor, lengths: Tensor, limits: Tensor, source_repeats: Tensor) -> Tensor:
    """[S, K] which hypotheses are no translations: ids [S, K, L], of which `lengths` [S, K] count, EOS among them; they
    went on to their limit [S], are empty, or repeat themselves although their source [S] does not."""
    sentences, hypotheses, longest = ids.shape
    words = lengths - 1
    repeated = repeats(ids.reshape(-1, longest), words.reshape(-1)).view(sentences, hypotheses)
    return (repeated & ~source_repeats[:, None]) | (words >= limits[:, None]) | (words <= 0)
