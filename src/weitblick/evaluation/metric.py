"""What a metric is: sums of sufficient statistics, and a number that travels with the signature of how it was obtained.

Every metric turns a sentence (or document) pair into a row of counts; the score of a corpus is a function of the sum
of its rows. That is all that significance tests need, so 10,000 pseudo-systems are one matrix product away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

CountedBy = Literal["sentence", "document"]
Counts = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """A metric's value for one corpus, in percent."""

    metric: str
    value: float
    signature: str


class Metric(ABC):
    """`statistics` counts, `score` is a pure function of sums of counts. `unit` is the smallest thing it can count."""

    name: str
    label: str
    unit: CountedBy = "sentence"

    @property
    @abstractmethod
    def signature(self) -> str: ...

    @abstractmethod
    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Counts:
        """Counts of each sentence beside its references: [N, K]. Every reference has a translation of each sentence."""

    @abstractmethod
    def score(self, counts: Counts) -> NDArray[np.float64]:
        """Percent for each row of summed counts: [..., K] -> [...]."""

    def segment_scores(self, counts: Counts) -> NDArray[np.float64]:
        """The scores of single sentences, where they are computed differently from those of a corpus."""
        return self.score(counts)

    def corpus_score(self, counts: Counts) -> Score:
        return Score(self.name, float(self.score(counts.sum(axis=0))), self.signature)
