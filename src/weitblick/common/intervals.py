"""Means over a corpus with confidence intervals from resampled documents; its sentences depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 1000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean, and the middle 95% of it when documents are drawn anew."""

    mean: float
    low: float
    high: float

    def to_json(self) -> dict[str, float | list[float]]:
        return {"mean": self.mean, "interval": [self.low, self.high]}

    def __str__(self) -> str:
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"


class Resampling:
    """`documents` [D] drawn with replacement, RESAMPLES times; the same draws for everything that is compared."""

    def __init__(self, documents: int, seed: Sequence[int]) -> None:
        shares = np.full(documents, 1 / documents)
        self._drawn = np.random.default_rng(list(seed)).multinomial(documents, shares, RESAMPLES)  # [R, D]

    def ratio(self, sums: np.ndarray, sizes: np.ndarray) -> Estimate:
        """The sum over all documents [D] over their size [D]."""
        samples = (self._drawn @ sums) / (self._drawn @ sizes)
        low, high = np.quantile(samples, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        return Estimate(*(round(float(x), 6) for x in (sums.sum() / sizes.sum(), low, high)))
