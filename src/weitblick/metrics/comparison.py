"""Several systems against the first one, for every metric: the report behind `weitblick compare`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weitblick.errors import UserError
from weitblick.metrics.metric import CountedBy, Counts, Metric
from weitblick.metrics.metrics import sum_documents
from weitblick.metrics.significance import Comparison, Interval, SystemScore, compare, estimate

BETTER, CLEARLY_BETTER, WORSE = "†", "‡", "▽"
LEVEL, STRICT_LEVEL = 0.05, 0.01


def parse_systems(arguments: Sequence[str]) -> dict[str, list[Path]]:
    """`FILE` or `NAME=RUN1,RUN2,...` -> the runs of each system by its name, the baseline first."""
    systems: dict[str, list[Path]] = {}
    for argument in arguments:
        name, separator, runs = argument.partition("=")
        plain = not separator or Path(argument).exists()
        paths = [Path(argument)] if plain else [Path(run) for run in runs.split(",") if run]
        name = argument if plain else name
        if not name or not paths:
            raise UserError(f"not a system: {argument!r}", remedy="write FILE or NAME=RUN1,RUN2,...")
        if name in systems:
            raise UserError(f"system {name!r} is given twice", remedy="give each system its own name")
        systems[name] = paths
    if len(systems) < 2:
        raise UserError("only one system to compare", remedy="name the baseline and at least one other system")
    return systems


@dataclass(frozen=True)
class ComparedSystem:
    """A system's score, and how it differs from the baseline; None for the baseline itself."""

    score: SystemScore
    against: Comparison | None

    @property
    def mark(self) -> str:
        return "" if self.against is None else mark(self.against.difference, self.against.p_randomisation)

    def to_json(self) -> dict[str, Any]:
        own, against = self.score, self.against
        row: dict[str, Any] = {
            "score": own.score,
            "interval": _pair(own.interval),
            "runs": own.run_scores,
            "deviation": own.deviation,
        }
        if against is not None:
            row |= {
                "difference": against.difference,
                "difference_interval": _pair(against.interval),
                "p_randomisation": against.p_randomisation,
                "p_bootstrap": against.p_bootstrap,
                "mark": self.mark,
            }
        return row


@dataclass(frozen=True)
class MetricComparison:
    """All systems by one metric; `unit`: what was drawn in the tests."""

    label: str
    signature: str
    unit: CountedBy
    systems: Mapping[str, ComparedSystem]

    def to_json(self) -> dict[str, Any]:
        systems = {name: system.to_json() for name, system in self.systems.items()}
        return {"label": self.label, "signature": self.signature, "unit": self.unit, "systems": systems}


@dataclass(frozen=True)
class SystemsComparison:
    """Several systems against the first, by every metric."""

    baseline: str
    trials: int
    seed: int
    sentences: int
    documents: int
    metrics: Mapping[str, MetricComparison]

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "metrics": {name: metric.to_json() for name, metric in self.metrics.items()}}


def compare_systems(
    metrics: Sequence[Metric],
    systems: dict[str, list[Path]],
    count: Callable[[Metric, Path], Counts],
    lengths: Sequence[int],
    *,
    unit: CountedBy = "sentence",
    trials: int,
    seed: int,
) -> SystemsComparison:
    """`count` gives a run's statistics in the metric's own unit."""
    names = list(systems)
    found = {}
    for metric in metrics:
        by_document = unit == "document" and metric.unit == "sentence"
        runs = {
            name: [sum_documents(c, lengths) if by_document else c for c in (count(metric, path) for path in paths)]
            for name, paths in systems.items()
        }
        compared = {}
        for name in names:
            against = None if name == names[0] else compare(metric, runs[names[0]], runs[name], trials, seed)
            compared[name] = ComparedSystem(estimate(metric, runs[name], trials, seed), against)
        tested: CountedBy = "document" if by_document else metric.unit  # document BLEU knows no sentences
        found[metric.name] = MetricComparison(metric.label, metric.signature, tested, compared)
    return SystemsComparison(names[0], trials, seed, sum(lengths), len(lengths), found)


def _pair(interval: Interval) -> list[float]:
    return [interval.low, interval.high]


def mark(difference: float, p: float) -> str:
    """The sign of a significant difference from the baseline, by approximate randomisation."""
    if p >= LEVEL:
        return ""
    if difference < 0:
        return WORSE
    return CLEARLY_BETTER if p < STRICT_LEVEL else BETTER
