"""`weitblick complexity`: parameters and speed of models, the paper's Table 4."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weitblick.cli.console import log, prepare_torch, print_json, set_log_level
from weitblick.cli.options import Json, Quiet, Threads, Verbose

if TYPE_CHECKING:
    from weitblick.evaluation.complexity import ModelPlan

PAPER_SHARES = {
    "Transformer": (1.0, 1.0),
    "Attention, sentence": (0.74, 0.97),
    "Attention, word": (0.61, 0.94),
    "H-Attention, sparse-soft": (0.51, 0.86),
    "Zhang:18": (0.65, 0.98),
    "HAN (Miculicich:18)": (0.32, 0.89),
}
"""Training and decoding speed in the paper, as shares of its Transformer's."""


def complexity(
    recipes: Annotated[
        list[str] | None,
        typer.Argument(metavar="RECIPE|KEY=VALUE", help="Recipes, and changes to all of them."),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="FOLDER",
            help="A model folder. Repeatable; the model that comes with weitblick if nothing is named.",
        ),
    ] = None,
    paper: Annotated[bool, typer.Option("--paper", help="The models of the paper, at its sizes.")] = False,
    source_vocabulary: Annotated[int | None, typer.Option(min=5, help="Source types. Paper: 19270.")] = None,
    target_vocabulary: Annotated[int | None, typer.Option(min=5, help="Target types. Paper: 21000.")] = None,
    speed: Annotated[bool, typer.Option("--speed", help="Measure words per second, too.")] = False,
    documents: Annotated[int, typer.Option(min=1, help="--speed: documents of an update and a translation.")] = 2,
    sentences: Annotated[int, typer.Option(min=1, help="--speed: sentences of a document.")] = 20,
    words: Annotated[int, typer.Option(min=1, help="--speed: words of a sentence, on average.")] = 20,
    beam: Annotated[int, typer.Option(min=1, help="--speed: hypotheses in search; the paper's is greedy.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="--speed: rounds of which the median is taken.")] = 5,
    threads: Threads = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Count the parameters of models, and measure how fast they train and translate.

    Example: weitblick complexity recipes/small/transformer.yaml recipes/small/h-attention.yaml --speed
    """
    from weitblick.evaluation.complexity import measure_size

    set_log_level(quiet, verbose)
    candidates = _candidates(recipes or [], models or [], paper, source_vocabulary, target_vocabulary)
    rows = [measure_size(candidate).as_row() for candidate in candidates]
    if speed:
        from weitblick.evaluation.speed import Workload, measure_speed

        prepare_torch(threads)
        workload = Workload(documents, sentences, words, beam)
        for row, result in zip(rows, measure_speed(candidates, workload, rounds, log.info), strict=True):
            row |= result.as_row()
    if as_json:
        print_json({"models": rows})
    else:
        _print(rows, paper)


def _candidates(
    names: list[str], folders: list[str], paper: bool, source: int | None, target: int | None
) -> list[ModelPlan]:
    from weitblick.checkpoints.installed import default_model
    from weitblick.common.errors import UserError
    from weitblick.evaluation.complexity import paper_candidates, read_candidate

    overrides = [name for name in names if "=" in name and not Path(name).exists()]
    recipes = [name for name in names if name not in overrides]
    if overrides and not recipes:
        raise UserError(f"{overrides[0]!r} has no recipe to change", remedy="name a recipe before it")
    if folder := next((name for name in recipes if Path(name).is_dir()), None):
        raise UserError("is a folder, not a recipe", where=folder, remedy=f"name a model with -m {folder}")
    if not paper and not recipes and not folders:
        folders = [str(default_model())]
    chosen = paper_candidates(source, target) if paper else []
    chosen += [read_candidate(path, overrides, source, target) for path in recipes]
    return chosen + [read_candidate(folder) for folder in folders]


def _print(rows: list[dict[str, Any]], paper: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    timed = "training_share" in rows[0]
    table = Table(box=None, pad_edge=False)
    table.add_column("model", overflow="fold")
    headings = ["parameters", "embeddings", "encoder", "decoder", "context"]
    if timed:
        headings = ["parameters", "training words/s", "share", "decoding words/s", "share"]
        headings += ["in the paper"] if paper else []
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=heading == "parameters")
    for row in rows:
        cells = [f"{row['parameters']:,}"]
        if timed:
            for name in ("training", "decoding"):
                cells += [f"{row[f'{name}_words_per_second']:.0f}", f"{row[f'{name}_share']:.2f}"]
            if paper:
                shares = PAPER_SHARES.get(row["model"])
                cells.append(" / ".join(f"{share:.2f}" for share in shares) if shares else "")
        else:
            inner = [row["parts"].get(part, 0) for part in ("encoder", "decoder", "context")]
            cells += [f"{part / 1e6:.2f}M" if part else "" for part in (row["parameters"] - sum(inner), *inner)]
        table.add_row(row["model"], *cells)
    Console().print(table)
