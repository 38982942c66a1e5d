"""Post-editing simulated and judged: scores, differences by documents, positions, recall, and what sticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypedDict

import numpy as np

from weitblick.evaluation.metric import Counts, Metric
from weitblick.evaluation.metrics import build_metric, sum_documents
from weitblick.evaluation.postedit_measures import (
    ContentWords,
    StickingFigures,
    as_numbers,
    link_words,
    recall,
    repetitions,
    sticking,
)
from weitblick.evaluation.postedit_systems import KeptTranslations, Simulation
from weitblick.evaluation.postedit_terms import FollowingFigures, following, words_behind
from weitblick.evaluation.significance import compare

METRICS = ("sacrebleu", "chrf", "ter")
POSITIONS = {"1-3": (0, 3), "4-8": (3, 8), "9-15": (8, 15), "16 on": (15, None)}
TRIALS = 2000


class DifferenceFigures(TypedDict):
    """Of a metric of two systems, with its 95% interval and the p-value of approximate randomisation."""

    value: float
    interval: tuple[float, float]
    p: float


Differences = dict[str, dict[str, DifferenceFigures]]
"""By system and metric."""


class Figures(TypedDict):
    """What `--json` prints. Everything but the first five is by system; scores are by metric, `positions` by place in
    the document."""

    documents: int
    sentences: int
    before: int
    memory: int | None
    signatures: dict[str, str]
    systems: dict[str, dict[str, float]]
    difference: Differences
    over_random: Differences
    positions: dict[str, dict[str, dict[str, float | None]]]
    recall: dict[str, dict[str, float]]
    sticks: dict[str, StickingFigures]
    follows: dict[str, FollowingFigures]


@dataclass(frozen=True)
class PostEditReport:
    """The figures, and the translations of every system, by document."""

    figures: Figures
    translations: dict[str, list[list[str]]]


def postedit(
    simulation: Simulation,
    systems: Sequence[str],
    *,
    trials: int = TRIALS,
    seed: int = 1,
    kept: KeptTranslations | None = None,
) -> PostEditReport:
    """Translates under every system and compares each with `none` and with `random`. What was `kept` of an earlier run
    is not translated again."""
    translated: dict[str, list[list[str]]] = {}
    for name in systems:
        known = None if kept is None else kept.get(name)
        if known is not None:
            simulation.progress(name, simulation.work(name))
        translated[name] = known or simulation.translate(name, translated)
        if kept is not None and known is None:
            kept.put(name, translated[name])
    return PostEditReport(_figures(simulation, translated, trials, seed), translated)


def _figures(simulation: Simulation, translated: Mapping[str, list[list[str]]], trials: int, seed: int) -> Figures:
    pipeline = simulation.translator.pipeline
    references = [[target for _, target in document] for document in simulation.references]
    lengths = [len(document) for document in references]
    metrics = [build_metric(name, pipeline.target_language) for name in METRICS]
    counts = {name: _counts(metrics, references, texts) for name, texts in translated.items()}
    content = ContentWords(pipeline.target_language)
    links = link_words(simulation.translator, simulation.references)
    cases = list(repetitions(links))
    corrected = simulation.corrections(translated["none"])
    behind = words_behind(simulation.translator, simulation.references)
    languages = (pipeline.source_language, pipeline.target_language)
    return {
        "documents": len(lengths),
        "sentences": sum(lengths),
        "before": simulation.before,
        "memory": None if simulation.memory is None else len(simulation.memory),
        "signatures": {metric.name: metric.signature for metric in metrics},
        "systems": {
            name: {metric.name: _score(metric, own[metric.name]) for metric in metrics} for name, own in counts.items()
        },
        "difference": _differences(metrics, counts, "none", lengths, trials, seed),
        "over_random": _differences(metrics, counts, "random", lengths, trials, seed),
        "positions": {name: _by_position(metrics, own, lengths) for name, own in counts.items()},
        "recall": {name: asdict(recall(references, texts, content)) for name, texts in translated.items()},
        "sticks": {name: as_numbers(sticking(cases, translated["none"], texts)) for name, texts in translated.items()},
        "follows": {
            name: following(corrected, simulation.references, behind, translated["none"], texts, languages)
            for name, texts in translated.items()
        },
    }


def _counts(
    metrics: Sequence[Metric], references: Sequence[Sequence[str]], texts: Sequence[Sequence[str]]
) -> dict[str, Counts]:
    ours = [sentence for document in texts for sentence in document]
    theirs = [sentence for document in references for sentence in document]
    return {metric.name: metric.statistics(ours, theirs) for metric in metrics}


def _score(metric: Metric, counts: Counts) -> float:
    return float(metric.score(counts.sum(axis=0)))


def _differences(
    metrics: Sequence[Metric],
    counts: Mapping[str, Mapping[str, Counts]],
    baseline: str,
    lengths: Sequence[int],
    trials: int,
    seed: int,
) -> Differences:
    """Of every other system: the difference, its interval and p-value, documents exchanged and resampled whole."""
    if baseline not in counts:
        return {}
    return {
        name: {metric.name: _difference(metric, counts[baseline], own, lengths, trials, seed) for metric in metrics}
        for name, own in counts.items()
        if name not in (baseline, "none")
    }


def _difference(
    metric: Metric,
    baseline: Mapping[str, Counts],
    system: Mapping[str, Counts],
    lengths: Sequence[int],
    trials: int,
    seed: int,
) -> DifferenceFigures:
    ours, theirs = (sum_documents(counts[metric.name], lengths) for counts in (baseline, system))
    found = compare(metric, [ours], [theirs], trials, seed)
    interval = (found.interval.low, found.interval.high)
    return {"value": found.difference, "interval": interval, "p": found.p_randomisation}


def _by_position(
    metrics: Sequence[Metric], counts: Mapping[str, Counts], lengths: Sequence[int]
) -> dict[str, dict[str, float | None]]:
    """Scores by place in the document: what comes later has more approved before it."""
    places = np.concatenate([np.arange(length) for length in lengths])
    table: dict[str, dict[str, float | None]] = {}
    for name, (first, last) in POSITIONS.items():
        chosen = (places >= first) & (places < (last or len(places) + 1))
        scores = {m.name: _score(m, counts[m.name][chosen]) if chosen.any() else None for m in metrics}
        table[name] = {"sentences": int(chosen.sum()), **scores}
    return table
