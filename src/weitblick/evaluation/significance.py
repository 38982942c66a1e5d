"""Whether a difference between systems is real: approximate randomisation and paired bootstrap.

Both work on sums of sufficient statistics (see `metrics`), so a trial is one row of a matrix product. A system may
have several optimiser runs (Clark et al. 2011); its score is their mean. Runs of two systems are paired in order: the
outputs for a unit (sentence or document) are exchanged between the runs of a pair, for each pair anew. The bootstrap
resamples units and, of each system, runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weitblick.common.errors import UserError
from weitblick.evaluation.metric import CountedBy, Counts, Metric
from weitblick.evaluation.metrics import sum_documents

TRIALS = 10_000
# rows of a random matrix that are in memory at once
CHUNK = 500
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True)
class SystemScore:
    """A system's mean score over its runs, its interval over resampled units and runs, and the runs' spread."""

    score: float
    interval: Interval
    run_scores: list[float]

    @property
    def deviation(self) -> float | None:
        """Standard deviation over optimiser runs; a single run has none."""
        return float(np.std(self.run_scores, ddof=1)) if len(self.run_scores) > 1 else None


@dataclass(frozen=True)
class Comparison:
    """System against baseline: the difference, its bootstrap interval, and two-sided p-values of both tests."""

    difference: float
    interval: Interval
    p_randomisation: float
    p_bootstrap: float


def estimate(metric: Metric, runs: Sequence[Counts], trials: int = TRIALS, seed: int = 1) -> SystemScore:
    """`runs`: one matrix of counts [N, K] for each optimiser run."""
    samples = np.concatenate(list(_bootstrap_scores(metric, [runs], trials, seed)))[:, 0]
    scores = [float(metric.score(run.sum(axis=0))) for run in runs]
    return SystemScore(float(np.mean(scores)), _interval(samples), scores)


def compare(
    metric: Metric, baseline: Sequence[Counts], system: Sequence[Counts], trials: int = TRIALS, seed: int = 1
) -> Comparison:
    """Both tests of one system against the baseline; the matrices hold the same units in the same order."""
    _check(baseline, system, trials)
    difference = mean_score(metric, system) - mean_score(metric, baseline)
    shuffled = np.concatenate(list(_randomised_differences(metric, baseline, system, trials, seed)))
    samples = np.concatenate(list(_bootstrap_scores(metric, [baseline, system], trials, seed)))
    differences = samples[:, 1] - samples[:, 0]
    return Comparison(
        difference,
        _interval(differences),
        _p_value(np.abs(shuffled), abs(difference)),
        # the bootstrap's differences centred on none are those of the null hypothesis
        _p_value(np.abs(differences - differences.mean()), abs(difference)),
    )


def mean_score(metric: Metric, runs: Sequence[Counts]) -> float:
    return float(np.mean([metric.score(run.sum(axis=0)) for run in runs]))


def _check(baseline: Sequence[Counts], system: Sequence[Counts], trials: int) -> None:
    if trials < 1:
        raise UserError(f"{trials} trials", where="--trials", remedy="ask for at least 1, better 10000")
    few, many = sorted((len(baseline), len(system)))
    if many % few:
        raise UserError(
            f"{len(baseline)} runs of the baseline cannot be paired with {len(system)} of the system",
            remedy="give both the same number of runs, or one of them a single run",
        )
    units = {len(run) for run in (*baseline, *system)}
    if len(units) != 1:
        raise ValueError(f"runs of different lengths: {sorted(units)}")


def _randomised_differences(
    metric: Metric, baseline: Sequence[Counts], system: Sequence[Counts], trials: int, seed: int
) -> Iterator[NDArray[np.float64]]:
    """Differences [T] of pseudo-systems made by exchanging outputs at random. Fewer runs are paired over again."""
    generator = np.random.default_rng(seed)
    pairs = max(len(baseline), len(system))
    units = len(baseline[0])
    for size in _chunks(trials):
        difference = np.zeros(size)
        for pair in range(pairs):
            ours, theirs = baseline[pair % len(baseline)], system[pair % len(system)]
            coins = generator.integers(256, size=(size, -(-units // 8)), dtype=np.uint8)
            exchanged = np.unpackbits(coins, axis=1, count=units).astype(np.float64)  # [T, N]
            moved = exchanged @ (theirs - ours)  # [T, K]
            difference += metric.score(theirs.sum(axis=0) - moved) - metric.score(ours.sum(axis=0) + moved)
        yield difference / pairs


def _bootstrap_scores(
    metric: Metric, systems: Sequence[Sequence[Counts]], trials: int, seed: int
) -> Iterator[NDArray[np.float64]]:
    """Mean scores [T, systems] of resampled runs on resampled units, the same units for all systems."""
    generator = np.random.default_rng((seed, 1))
    units = len(systems[0][0])
    for size in _chunks(trials):
        draws = generator.integers(units, size=(size, units), dtype=np.int32)
        times = np.stack([np.bincount(row, minlength=units) for row in draws]).astype(np.float64)  # [T, N]
        columns = []
        for runs in systems:
            scores = np.stack([metric.score(times @ run) for run in runs], axis=1)  # [T, R]
            drawn = generator.integers(len(runs), size=scores.shape)
            columns.append(np.take_along_axis(scores, drawn, axis=1).mean(axis=1))
        yield np.stack(columns, axis=1)


def _chunks(trials: int) -> Iterator[int]:
    for start in range(0, trials, CHUNK):
        yield min(CHUNK, trials - start)


def _interval(samples: NDArray[np.float64]) -> Interval:
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(samples, [tail, 100 - tail])
    return Interval(float(low), float(high))


def _p_value(null: NDArray[np.float64], observed: float) -> float:
    """The share of null differences at least as large, counting the observed one; identical systems have p = 1."""
    # sums in another order differ in the last bits, which must not make an equal difference a smaller one
    return float((np.count_nonzero(null >= observed - 1e-9) + 1) / (len(null) + 1))


# Several systems against the first one, for every metric: the report behind `weitblick compare`.

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
    """A system's score, and how it differs from the baseline (None for the baseline itself) and from others by name."""

    score: SystemScore
    against: Comparison | None
    others: Mapping[str, Comparison] = field(default_factory=dict)

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
            row |= {**_differences(against), "mark": self.mark}
        if self.others:
            row["against"] = {name: _differences(found) for name, found in self.others.items()}
        return row


def _differences(found: Comparison) -> dict[str, Any]:
    return {
        "difference": found.difference,
        "difference_interval": _pair(found.interval),
        "p_randomisation": found.p_randomisation,
        "p_bootstrap": found.p_bootstrap,
    }


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
    others: Mapping[str, Mapping[str, str]] | None = None,
) -> SystemsComparison:
    """`count` gives a run's statistics in the metric's own unit. `others`: for a system, further systems that it is
    compared with, by the names that they have as baselines."""
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
            more = {
                label: compare(metric, runs[other], runs[name], trials, seed)
                for label, other in (others or {}).get(name, {}).items()
            }
            compared[name] = ComparedSystem(estimate(metric, runs[name], trials, seed), against, more)
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
