"""Sums that a stage keeps of its updates, over batches and processes, and the means that are logged of them."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from weitblick.distributed import World

if TYPE_CHECKING:
    from weitblick.context.module import ContextResult


@dataclass(frozen=True)
class ContextSums:
    """Over words that read context (`queries`): the context's share of the gate, and the sentences attended."""

    queries: float = 0.0
    share: float = 0.0
    support: float = 0.0

    @classmethod
    def of(cls, result: ContextResult) -> ContextSums:
        present = result.present
        share, support = (1 - result.gate[present]).double().sum(), result.support[present].double().sum()
        return cls(float(present.sum()), float(share), float(support))

    def __add__(self, other: ContextSums) -> ContextSums:
        return ContextSums(self.queries + other.queries, self.share + other.share, self.support + other.support)

    def sum(self, world: World) -> ContextSums:
        return ContextSums(*world.sum(torch.tensor(astuple(self), dtype=torch.float64)).tolist())

    @property
    def mean_share(self) -> float:
        return self.share / self.queries

    @property
    def mean_support(self) -> float:
        return self.support / self.queries


@dataclass(frozen=True)
class UpdateSums:
    """Of some updates: target tokens, the loss with and without label smoothing, and how context was read."""

    tokens: float = 0.0
    loss: float = 0.0
    likelihood: float = 0.0
    reading: ContextSums = field(default_factory=ContextSums)

    def __add__(self, other: UpdateSums) -> UpdateSums:
        return UpdateSums(
            self.tokens + other.tokens,
            self.loss + other.loss,
            self.likelihood + other.likelihood,
            self.reading + other.reading,
        )

    def sum(self, world: World) -> UpdateSums:
        values = torch.tensor([self.tokens, self.loss, self.likelihood, *astuple(self.reading)], dtype=torch.float64)
        tokens, loss, likelihood, *reading = world.sum(values).tolist()
        return UpdateSums(tokens, loss, likelihood, ContextSums(*reading))

    @property
    def finite(self) -> bool:
        return bool(np.isfinite([self.loss, self.likelihood]).all())

    def means(self) -> dict[str, float]:
        values = {
            "loss": self.loss / self.tokens,
            "perplexity": float(np.exp(min(self.likelihood / self.tokens, 50))),
        }
        if self.reading.queries:
            values |= {"context_share": self.reading.mean_share, "support": self.reading.mean_support}
        return values
