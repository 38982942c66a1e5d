"""Two ways of judging the same items: the difference of their accuracies, its interval, and whether it is chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class PairedDifference:
    """Accuracy of the first less that of the second.

    interval  the middle 95% over resampled documents
    better    items that only the first has right; worse: that only the second has right
    p         exact McNemar test: how likely so uneven a split of these items is if both are equally good
    """

    difference: float
    interval: tuple[float, float]
    better: int
    worse: int
    p: float


def compare_correct(
    first: Sequence[bool], second: Sequence[bool], documents: Sequence[str], seed: int = 1
) -> PairedDifference:
    """`documents` [N]: where each item is from; items of one document are drawn together."""
    from scipy.stats import binomtest

    gain = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    units, position = np.unique(np.asarray(documents), return_inverse=True)
    gains, sizes = np.bincount(position, weights=gain), np.bincount(position)
    samples = np.empty(RESAMPLES)
    random = np.random.default_rng([seed, 8])
    for number in range(RESAMPLES):
        drawn = random.integers(0, len(units), len(units))
        samples[number] = gains[drawn].sum() / sizes[drawn].sum()
    low, high = np.quantile(samples, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    better, worse = int((gain > 0).sum()), int((gain < 0).sum())
    p = float(binomtest(better, better + worse).pvalue) if better + worse else 1.0
    return PairedDifference(
        round(float(gain.mean()), 6), (round(float(low), 6), round(float(high), 6)), better, worse, round(p, 6)
    )
