"""`weitblick compare`: whether systems differ by more than chance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weitblick.cli.console import print_json, wide_console
from weitblick.cli.options import Json, Seed
from weitblick.cli.score import (
    FunctionWords,
    Language,
    Metrics,
    Paraphrases,
    Tokenised,
    choose_metrics,
    count_statistics,
    language_of,
    warnings_as_lines,
)

if TYPE_CHECKING:
    from rich.table import Table

    from weitblick.metrics.comparison import MetricComparison, SystemsComparison
    from weitblick.metrics.metric import Counts, Metric
    from weitblick.metrics.significance import Interval


def register(app: typer.Typer) -> None:
    app.command("compare", rich_help_panel="Judge")(compare)


def compare(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="Reference translations, in any format.")],
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="A B",
            help="Systems, the baseline first: a file, or NAME=RUN1,RUN2,... with several optimiser runs.",
        ),
    ],
    unit: Annotated[
        Literal["sentence", "document"], typer.Option(help="What is exchanged and resampled.")
    ] = "sentence",
    trials: Annotated[int, typer.Option(min=1, help="Random trials of each test.")] = 10_000,
    seed: Seed = 1,
    language: Language = None,
    metrics: Metrics = None,
    tokenised: Tokenised = False,
    paraphrases: Paraphrases = None,
    function_words: FunctionWords = None,
    as_json: Json = False,
) -> None:
    """Tell whether systems differ from the first one by more than chance, for every metric.

    Example: weitblick compare test.de baseline.de ours.de

    Example: weitblick compare test.de sentence=s1.de,s2.de,s3.de ours=o1.de,o2.de,o3.de
    """
    from weitblick.metrics.comparison import compare_systems, parse_systems
    from weitblick.metrics.translations import read_translations

    language = language or language_of(reference)
    chosen = choose_metrics(metrics, language, tokenised, paraphrases, function_words)
    named = parse_systems(systems)
    with warnings_as_lines():
        texts = read_translations([reference], list(dict.fromkeys(path for runs in named.values() for path in runs)))

    def count(metric: Metric, path: Path) -> Counts:
        return count_statistics(metric, language, tokenised, texts.hypotheses[path], texts)

    found = compare_systems(chosen, named, count, texts.lengths, unit=unit, trials=trials, seed=seed)
    if as_json:
        print_json({"reference": reference, "language": language} | found.to_json())
    else:
        _print_comparison(found)


def _print_comparison(found: SystemsComparison) -> None:
    """One table for each metric; the best score is bold."""
    from weitblick.metrics.comparison import BETTER, CLEARLY_BETTER, LEVEL, STRICT_LEVEL, WORSE

    console = wide_console()
    for metric in found.metrics.values():
        console.print(_table(metric))
        console.print(f"{metric.signature}  (tested by {metric.unit})\n", highlight=False, style="dim")
    console.print(
        f"Against {found.baseline}, two-sided, {found.trials} trials, by approximate randomisation: "
        f"{BETTER} better at p < {LEVEL}, {CLEARLY_BETTER} at p < {STRICT_LEVEL}, {WORSE} worse at p < {LEVEL}.",
        highlight=False,
    )


def _table(metric: MetricComparison) -> Table:
    from rich.table import Table
    from rich.text import Text

    best = max(system.score.score for system in metric.systems.values())
    table = Table(box=None, pad_edge=False)
    table.add_column("system")
    for heading in (
        metric.label,
        "95% interval",
        "runs ±",
        "difference",
        "95% interval",
        "p (random.)",
        "p (bootstrap)",
    ):
        table.add_column(heading, justify="right")
    for name, system in metric.systems.items():
        own, against = system.score, system.against
        score = Text(f"{own.score:.2f}{system.mark}", style="bold" if own.score == best else "")
        cells = ["", "", "", ""]
        if against is not None:
            cells = [
                f"{against.difference:+.2f}",
                _range(against.interval, "+"),
                f"{against.p_randomisation:.4f}",
                f"{against.p_bootstrap:.4f}",
            ]
        spread = "" if own.deviation is None else f"{own.deviation:.2f}"
        table.add_row(Text(name), score, _range(own.interval), spread, *cells)
    return table


def _range(interval: Interval, sign: str = "") -> str:
    return f"{interval.low:{sign}.2f} to {interval.high:{sign}.2f}"
