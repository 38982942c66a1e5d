"""How far raters agree: plain agreement, Cohen's kappa for two raters, Fleiss' kappa for any number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np


@dataclass(frozen=True)
class Agreement:
    """`plain` is the share of pairs of raters who gave the same answer; a kappa is None where chance explains all."""

    raters: int
    items: int
    plain: float
    cohen: float | None
    fleiss: float | None


def agreement(answers: Sequence[Sequence[str]], categories: Sequence[str]) -> Agreement | None:
    """`answers[r][i]`: what rater r said of item i. None for fewer than two raters or no item."""
    raters = len(answers)
    items = len(answers[0]) if answers else 0
    if raters < 2 or items == 0:
        return None
    by_item = np.array([[column.count(c) for c in categories] for column in zip(*answers, strict=True)])
    same = (by_item * (by_item - 1)).sum() / (items * raters * (raters - 1))
    shares = by_item.sum(axis=0) / (items * raters)
    return Agreement(raters, items, float(same), _mean_cohen(answers), _kappa(same, float((shares**2).sum())))


def _mean_cohen(answers: Sequence[Sequence[str]]) -> float | None:
    """Cohen's kappa, its mean over the pairs of raters where there are more than two."""
    values = [_cohen(first, second) for first, second in combinations(answers, 2)]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _cohen(first: Sequence[str], second: Sequence[str]) -> float | None:
    size = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / size
    ours, theirs = Counter(first), Counter(second)
    return _kappa(observed, sum(ours[c] * theirs[c] for c in ours) / size**2)


def _kappa(observed: float, expected: float) -> float | None:
    return None if np.isclose(expected, 1.0) else float((observed - expected) / (1 - expected))
