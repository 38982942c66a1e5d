"""`weitblick contrast`: does a model find the right translation more probable than wrong ones?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.console import (
    SHIPPED,
    check_inputs,
    figure_table,
    load_translator,
    print_json,
    progress_bar,
    set_log_level,
)
from weitblick.cli.options import BatchTokens, Device, Json, Limit, Model, Quiet, Seed, Threads, Verbose
from weitblick.common.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from weitblick.documents.contrast import ContrastItem
    from weitblick.evaluation.contrast import Accuracy, PairedDifference, Summary, Verdict
    from weitblick.evaluation.scoring import ContextMode
    from weitblick.translation.translator import Translator

GROUPS = {
    "by_direction": "direction",
    "by_phenomenon": "phenomenon",
    "by_pronoun": "pronoun",
    "by_antecedent": "antecedent",
}


def contrast(
    suite: Annotated[
        str,
        typer.Argument(
            metavar="SUITE",
            help="JSON lines with source, sentence, reference and contrastive (and target for models that read target "
            "context), or ContraPro's JSON; - is standard input.",
        ),
    ],
    model: Model = None,
    no_context: Annotated[bool, typer.Option("--no-context", help="Score every sentence on its own.")] = False,
    random_context: Annotated[
        bool, typer.Option("--random-context", help="Let every sentence read a random other document.")
    ] = False,
    controls: Annotated[
        bool, typer.Option("--controls", help="Own, removed and random context, one beside the other.")
    ] = False,
    generate: Annotated[
        bool,
        typer.Option(
            "--generate",
            help="Translate the tested sentences, too: is the pronoun there that of the reference? With the sentences "
            "before translated by a human, by the model itself, and without context.",
        ),
    ] = False,
    document_folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="ContraPro: its document files; documents/ beside SUITE if absent."),
    ] = None,
    context_sentences: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Keep N sentences before and after the tested one.")
    ] = None,
    limit: Limit = None,
    seed: Seed = 1,
    batch_tokens: BatchTokens = 8192,
    threads: Threads = None,
    device: Device = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Contrastive accuracy: how often a reference is more probable than every wrong variant of it.

    The summed log-probability of each translation counts, given its document (and the suite's target sentences, where
    the model reads target context). A tie is no correct decision, and is counted. --controls tells the use of context
    from the mere presence of it.

    Example: weitblick contrast -m runs/tiny/best corpora/small/contrast.jsonl --controls
    """
    set_log_level(quiet, verbose)
    if no_context + random_context + controls > 1:
        raise UserError("--no-context, --random-context and --controls exclude each other", remedy="name one of them")
    check_inputs([suite])

    from weitblick.evaluation.scoring import CONTEXT_MODES
    from weitblick.evaluation.suites import read_suite

    items = read_suite(suite, documents=document_folder, context_sentences=context_sentences, limit=limit)
    translator = load_translator(model, device, threads)
    modes: tuple[ContextMode, ...] = CONTEXT_MODES if controls else ("own",)
    if no_context or random_context:
        modes = ("removed",) if no_context else ("random",)
    report = _measure(translator, items, modes, seed, batch_tokens)
    if generate:
        report.generated = _generate(translator, items)
    if as_json:
        print_json({"model": model or SHIPPED, "suite": suite, **report.to_json()})
    else:
        _print(report)


@dataclass
class ContrastReport:
    """By context: how many items are right. With all three contexts also how they differ, item by item; with pronouns
    also what simple rules get right, and the pronouns that the model's own translations have."""

    results: dict[str, Summary]
    reads_context: bool
    without_context: int  # items that have none that the model could read
    paired: Mapping[str, PairedDifference] = field(default_factory=dict)
    rules: Mapping[str, Summary] = field(default_factory=dict)
    generated: Mapping[str, Summary] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        first = next(iter(self.results))
        facts = {"context": first, "reads_context": self.reads_context, "without_context": self.without_context}
        more: dict[str, Mapping[str, Summary | PairedDifference]] = {
            "controls": self.results if len(self.results) > 1 else {},
            "paired": self.paired,
            "rules": self.rules,
            "generated": self.generated,
        }
        filled = {name: {key: one.to_json() for key, one in found.items()} for name, found in more.items() if found}
        return {**facts, **self.results[first].to_json(), **filled}


def _measure(
    translator: Translator, items: Sequence[ContrastItem], modes: Sequence[ContextMode], seed: int, batch_tokens: int
) -> ContrastReport:
    from weitblick.evaluation.contrast import compare_verdicts, encode_suite, judge_suite, summarise, without_context
    from weitblick.evaluation.pronouns import has_pronouns, judge_by_articles

    encoded = encode_suite(translator, items)
    verdicts: dict[ContextMode, list[Verdict]] = {}
    with progress_bar(len(modes) * len(encoded.candidates), "scoring") as advance:
        for mode in modes:
            verdicts[mode] = judge_suite(
                translator.model, encoded, mode, seed=seed, batch_tokens=batch_tokens, progress=advance
            )
    report = ContrastReport(
        {str(mode): summarise(found) for mode, found in verdicts.items()},
        translator.model.context is not None,
        without_context(translator.model, items),
    )
    if len(modes) > 1:
        report.paired = compare_verdicts(verdicts, seed)
    if has_pronouns(items):
        report.rules = {str(name): summarise(found) for name, found in judge_by_articles(items).items()}
    return report


def _generate(translator: Translator, items: Sequence[ContrastItem]) -> dict[str, Summary]:
    from weitblick.evaluation.contrast import summarise
    from weitblick.evaluation.pronouns import generate_pronouns, has_pronouns

    if not has_pronouns(items):
        raise UserError(
            "--generate looks for er, sie and es, and items have no such pronoun or no target",
            remedy="name a suite of weitblick data pronouns, or ContraPro",
        )
    with progress_bar(3 * len(items), "translating") as advance:
        found = {
            "human": generate_pronouns(translator, items, past="human", progress=advance),
            "own": generate_pronouns(translator, items, past="own", progress=advance),
            "removed": generate_pronouns(translator, items, past="own", context=False, progress=advance),
        }
    return {name: summarise(verdicts) for name, verdicts in found.items()}


PAIR_LABELS = {"own_over_removed": "own - removed", "own_over_random": "own - random"}
GENERATED_LABELS = {
    "human": "before it a human's translations",
    "own": "before it the model's own",
    "removed": "without context",
}


def _paired_table(pairs: Mapping[str, PairedDifference]) -> Table:

    table = figure_table("accuracy", ("difference", "95% interval", "better", "worse", "p (McNemar)"))
    for key, label in PAIR_LABELS.items():
        pair, found = pairs[key], pairs[key].difference
        interval = f"\\[{found.low:+.3f}, {found.high:+.3f}]"
        table.add_row(label, f"{found.mean:+.3f}", interval, str(pair.better), str(pair.worse), f"{pair.p:.2g}")
    return table


def _generated_table(generated: Mapping[str, Summary]) -> Table:
    """The pronouns of translations."""

    pronouns = list(next(iter(generated.values())).by_pronoun)
    table = figure_table("pronoun of the translation is the reference's", ("all", *pronouns, "none"))
    for key, found in generated.items():
        accuracies = [found.overall.accuracy, *(found.by_pronoun[name].accuracy for name in pronouns)]
        table.add_row(GENERATED_LABELS[key], *(f"{value:.3f}" for value in accuracies), str(found.overall.ties))
    return table


def _print(report: ContrastReport) -> None:
    from rich.console import Console

    console = Console()
    results = {**report.results, **report.rules}
    first = next(iter(results.values()))
    console.print(_distance_table(results))
    for key, title in GROUPS.items():
        names = getattr(first, key)
        if len(names) > 1 or (names and key == "by_direction"):
            console.print()
            console.print(_group_table({mode: getattr(result, key) for mode, result in results.items()}, title))
    console.print()
    if not report.reads_context:
        console.print("The model is sentence-level: it reads no context.")
    if report.without_context:
        console.print(
            f"{report.without_context} of {first.overall.items} items have no context that the model could read."
        )
    console.print("A tie counts as wrong.")
    if report.paired:
        console.print()
        console.print(_paired_table(report.paired))
    if report.generated:
        console.print()
        console.print(_generated_table(report.generated))


def _distance_table(results: Mapping[str, Summary]) -> Table:

    first = next(iter(results.values()))
    table = figure_table(
        "context", ["all", *first.by_distance, "ties"], title="accuracy by antecedent distance", title_justify="left"
    )
    for mode, result in results.items():
        groups = [result.overall, *(result.by_distance[name] for name in first.by_distance)]
        table.add_row(mode, *(f"{group.accuracy:.3f}" for group in groups), str(result.overall.ties))
    groups = [first.overall, *first.by_distance.values()]
    table.add_row("chance", *(f"{group.chance:.3f}" for group in groups), "")
    table.add_row("items", *(str(group.items) for group in groups), "")
    return table


def _group_table(results: Mapping[str, Mapping[str, Accuracy]], title: str) -> Table:
    """One row a group, one column a context; a direction also by distance, past and future apart."""

    table = figure_table(title, [*results, "chance", "items"])

    def add(name: str, groups: Sequence[Accuracy]) -> None:
        accuracies = (f"{group.accuracy:.3f}" for group in groups)
        table.add_row(name, *accuracies, f"{groups[0].chance:.3f}", str(groups[0].items))

    for name in next(iter(results.values())):
        groups = [found[name] for found in results.values()]
        add(name, groups)
        nested = [group.by_distance or {} for group in groups]
        for distance in nested[0]:
            add(f"  {distance}", [found[distance] for found in nested])
    return table
