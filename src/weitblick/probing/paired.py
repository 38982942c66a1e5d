"""Two ways of judging the same items: the difference of their accuracies, its interval, and whether it is chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weitblick.intervals import Estimate, Resampling
from weitblick.metrics.scoring import ContextMode
from weitblick.probing.contrast import Verdict

PAIRS: dict[str, tuple[ContextMode, ContextMode]] = {
    "own_over_removed": ("own", "removed"),
    "own_over_random": ("own", "random"),
}


@dataclass(frozen=True)
class PairedDifference:
    """Accuracy of the first less that of the second, with an interval over resampled documents.

    better  items that only the first has right; worse: that only the second has right
    p       exact McNemar test: how likely so uneven a split of these items is if both are equally good
    """

    difference: Estimate
    better: int
    worse: int
    p: float

    def to_json(self) -> dict[str, Any]:
        estimate = self.difference
        counts = {"better": self.better, "worse": self.worse, "p": self.p}
        return {"difference": estimate.mean, "interval": [estimate.low, estimate.high], **counts}


def compare_correct(
    first: Sequence[bool], second: Sequence[bool], documents: Sequence[str], seed: int = 1
) -> PairedDifference:
    """`documents` [N]: where each item is from; items of one document are drawn together."""
    from scipy.stats import binomtest

    gain = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    units, position = np.unique(np.asarray(documents), return_inverse=True)
    gains, sizes = np.bincount(position, weights=gain), np.bincount(position).astype(float)
    better, worse = int((gain > 0).sum()), int((gain < 0).sum())
    p = float(binomtest(better, better + worse).pvalue) if better + worse else 1.0
    return PairedDifference(Resampling(len(units), (seed, 8)).ratio(gains, sizes), better, worse, float(f"{p:.4g}"))


def compare_verdicts(verdicts: Mapping[ContextMode, Sequence[Verdict]], seed: int = 1) -> dict[str, PairedDifference]:
    """Own context against none and against a random one, on the same items."""
    return {
        name: compare_correct(
            [verdict.correct for verdict in verdicts[mode]],
            [verdict.correct for verdict in verdicts[other]],
            [document_of(verdict.item.id) for verdict in verdicts[mode]],
            seed,
        )
        for name, (mode, other) in PAIRS.items()
    }


def document_of(item: str) -> str:
    """Items of one document are called DOCUMENT.1, DOCUMENT.2, ...; any other id is a document of its own."""
    return item.rpartition(".")[0] or item
