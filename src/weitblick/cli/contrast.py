"""`weitblick contrast`: does a model find the right translation more probable than wrong ones?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weitblick.cli.console import print_json, progress_bar, set_log_level
from weitblick.cli.loading import SHIPPED, check_inputs, load_translator
from weitblick.cli.options import BatchTokens, Device, Json, Limit, Model, Quiet, Seed, Threads, Verbose
from weitblick.errors import UserError

if TYPE_CHECKING:
    from weitblick.documents.contrast import ContrastItem
    from weitblick.metrics.scoring import ContextMode
    from weitblick.probing.contrast import Verdict
    from weitblick.translation.translator import Translator

GROUPS = {
    "by_direction": "direction",
    "by_phenomenon": "phenomenon",
    "by_pronoun": "pronoun",
    "by_antecedent": "antecedent",
}


def register(app: typer.Typer) -> None:
    app.command("contrast", rich_help_panel="Judge")(contrast)


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

    from weitblick.metrics.scoring import CONTEXT_MODES
    from weitblick.probing.contrast import encode_suite, judge_suite, summarise, without_context
    from weitblick.probing.paired import compare_verdicts
    from weitblick.probing.pronouns import has_pronouns, judge_by_articles
    from weitblick.probing.suites import read_suite

    items = read_suite(suite, documents=document_folder, context_sentences=context_sentences, limit=limit)
    translator = load_translator(model, device, threads)
    encoded = encode_suite(translator, items)
    modes: tuple[ContextMode, ...] = CONTEXT_MODES if controls else ("own",)
    if no_context or random_context:
        modes = ("removed",) if no_context else ("random",)
    verdicts: dict[ContextMode, list[Verdict]] = {}
    with progress_bar(len(modes) * len(encoded.candidates), "scoring") as advance:
        for mode in modes:
            verdicts[mode] = judge_suite(
                translator.model, encoded, mode, seed=seed, batch_tokens=batch_tokens, progress=advance
            )
    results = {str(mode): summarise(found).to_json() for mode, found in verdicts.items()}
    missing = without_context(translator.model, items)
    report: dict[str, Any] = {
        "model": model or SHIPPED,
        "suite": suite,
        "context": modes[0],
        "reads_context": translator.model.context is not None,
        "without_context": missing,
        **results[modes[0]],
    }
    if controls:
        report["controls"] = results
        report["paired"] = {name: pair.to_json() for name, pair in compare_verdicts(verdicts, seed).items()}
    if has_pronouns(items):
        report["rules"] = {name: summarise(found).to_json() for name, found in judge_by_articles(items).items()}
    if generate:
        report["generated"] = _generate(translator, items)
    if as_json:
        print_json(report)
    else:
        _print(results | report.get("rules", {}), missing, translator.model.context is not None)
        _print_more(report)


def _generate(translator: Translator, items: Sequence[ContrastItem]) -> dict[str, Any]:
    from weitblick.probing.contrast import summarise
    from weitblick.probing.pronouns import generate_pronouns, has_pronouns

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
    return {name: summarise(verdicts).to_json() for name, verdicts in found.items()}


PAIR_LABELS = {"own_over_removed": "own - removed", "own_over_random": "own - random"}
GENERATED_LABELS = {
    "human": "before it a human's translations",
    "own": "before it the model's own",
    "removed": "without context",
}


def _print_more(report: dict[str, Any]) -> None:
    """Paired differences, and the pronouns of translations."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if "paired" in report:
        table = Table("accuracy", box=None, pad_edge=False)
        for name in ("difference", "95% interval", "better", "worse", "p (McNemar)"):
            table.add_column(name, justify="right")
        for key, label in PAIR_LABELS.items():
            pair = report["paired"][key]
            low, high = pair["interval"]
            counts = str(pair["better"]), str(pair["worse"]), f"{pair['p']:.2g}"
            table.add_row(label, f"{pair['difference']:+.3f}", f"\\[{low:+.3f}, {high:+.3f}]", *counts)
        console.print()
        console.print(table)
    if "generated" in report:
        first = next(iter(report["generated"].values()))
        table = Table("pronoun of the translation is the reference's", box=None, pad_edge=False)
        for name in ("all", *first["by_pronoun"], "none"):
            table.add_column(name, justify="right")
        for key, found in report["generated"].items():
            by_pronoun = (f"{found['by_pronoun'][name]['accuracy']:.3f}" for name in first["by_pronoun"])
            table.add_row(GENERATED_LABELS[key], f"{found['accuracy']:.3f}", *by_pronoun, str(found["ties"]))
        console.print()
        console.print(table)


def _print(results: dict[str, dict[str, Any]], missing: int, reads_context: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    first = next(iter(results.values()))
    console = Console()
    distances = list(first["by_distance"])
    table = Table("context", title="accuracy by antecedent distance", box=None, pad_edge=False, title_justify="left")
    for name in ["all", *distances, "ties"]:
        table.add_column(name, justify="right")
    for mode, result in results.items():
        values = [result["accuracy"], *(result["by_distance"][name]["accuracy"] for name in distances)]
        table.add_row(mode, *(f"{value:.3f}" for value in values), str(result["ties"]))
    table.add_row("chance", *_across(first, distances, "chance", ".3f"), "")
    table.add_row("items", *_across(first, distances, "items", "d"), "")
    console.print(table)
    for key, title in GROUPS.items():
        if len(first[key]) > 1 or (first[key] and key == "by_direction"):
            console.print()
            console.print(_group_table(results, key, title))
    console.print()
    if not reads_context:
        console.print("The model is sentence-level: it reads no context.")
    if missing:
        console.print(f"{missing} of {first['items']} items have no context that the model could read.")
    console.print("A tie counts as wrong.")


def _across(result: dict[str, Any], distances: list[str], what: str, form: str) -> list[str]:
    return [format(result[what], form), *(format(result["by_distance"][name][what], form) for name in distances)]


def _group_table(results: dict[str, dict[str, Any]], key: str, title: str) -> Any:
    """One row a group, one column a context; a direction also by distance, past and future apart."""
    from rich.table import Table

    first = next(iter(results.values()))
    table = Table(title, box=None, pad_edge=False)
    for name in [*results, "chance", "items"]:
        table.add_column(name, justify="right")

    def add(name: str, groups: list[dict[str, Any]]) -> None:
        accuracies = (f"{group['accuracy']:.3f}" for group in groups)
        table.add_row(name, *accuracies, f"{groups[0]['chance']:.3f}", str(groups[0]["items"]))

    for name in first[key]:
        groups = [result[key][name] for result in results.values()]
        add(name, groups)
        for distance in groups[0].get("by_distance", {}):
            add(f"  {distance}", [group["by_distance"][distance] for group in groups])
    return table
