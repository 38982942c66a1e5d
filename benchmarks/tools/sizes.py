"""The sizes that every benchmark measures, as plain numbers that peers can read too; `tiny` is to try a script out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Size:
    dimension: int
    feed_forward: int
    layers: int
    heads: int
    vocabulary: int
    batch_tokens: int
    """target tokens of a sentence-level batch, as in the recipes"""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


SIZES = {
    "tiny": Size(dimension=64, feed_forward=128, layers=2, heads=4, vocabulary=500, batch_tokens=300),
    "small": Size(dimension=256, feed_forward=1024, layers=3, heads=4, vocabulary=8000, batch_tokens=1300),
    "paper": Size(dimension=512, feed_forward=2048, layers=4, heads=8, vocabulary=30000, batch_tokens=1000),
}
