"""Where a sentence and a word stand, as part of the scores of context attention.

The signed distance Delta of two sentences enters as waves: with coefficients a and b that are linear in a state,

    score += sum over waves of  a cos(w Delta) + b sin(w Delta)         Delta = position of the key - of the query

is a dot product of features of the query and of the key alone, since cos(w (k - q)) = cos wk cos wq + sin wk sin wq. So
queries and keys only get wider, and every path (dense, routed, streamed) computes it without knowing. A word's place in
its sentence is a vector added to its key. All of it starts at zero: a trained layer starts unchanged.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PERIODS = (4, 8, 16, 32, 64, 256)
"""Sentences of a whole wave: the short ones tell neighbours apart, the long ones near from far."""
PLACES = 48
"""Places in a sentence that are told apart; all behind them count as the last."""


class Distance(nn.Module):
    """The score of a signed distance between sentences, for each head, with coefficients from one of the two states.

    `of_states` widens the side that the coefficients come from, `of_positions` the other side.
    """

    def __init__(self, dimension: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        features = heads * 2 * len(PERIODS)
        self.weight, self.bias = nn.Parameter(torch.zeros(features, dimension)), nn.Parameter(torch.zeros(features))

    def of_states(self, rows: Tensor, states: Tensor, positions: Tensor) -> Tensor:
        """rows [n, d] and the states [n, d] they come from -> [n, H * (d_k + 2 P)]"""
        cosine, sine = _waves(positions, rows)  # [n, 1, P]
        coefficients = F.linear(states, self.weight, self.bias)
        a, b = coefficients.unflatten(-1, (2, self.heads, -1)).unbind(1)  # [n, H, P]
        return self._widen(rows, torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1))

    def of_positions(self, rows: Tensor, positions: Tensor) -> Tensor:
        """rows [n, d] -> [n, H * (d_k + 2 P)]"""
        return self._widen(rows, torch.cat(_waves(positions, rows), -1).expand(-1, self.heads, -1))

    def _widen(self, rows: Tensor, features: Tensor) -> Tensor:
        # Scores are divided by the root of d_k; features should not be.
        scaled = features * math.sqrt(math.sqrt(rows.shape[-1] / self.heads))
        return torch.cat([rows.unflatten(-1, (self.heads, -1)), scaled.to(rows.dtype)], -1).flatten(1)


class Place(nn.Module):
    """What is added to the key of a word for its place in its sentence."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(PLACES, dimension))

    def forward(self, keys: Tensor, places: Tensor) -> Tensor:
        """keys [n, d], places [n] -> [n, d]"""
        return keys + self.table[places.clamp(max=PLACES - 1)].to(keys.dtype)


def _waves(positions: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine [n, 1, P] of positions [n], exact however long the document: waves repeat."""
    periods = torch.tensor(PERIODS, device=positions.device)
    angles = (positions[:, None] % periods).double() * (2 * math.pi / periods.double())
    return angles.cos().to(like.dtype).unsqueeze(1), angles.sin().to(like.dtype).unsqueeze(1)
