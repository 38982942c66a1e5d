"""`weitblick reproduce`: a whole study from one file, the paper's tables at its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.console import log, print_json, print_text, set_log_level, wide_console
from weitblick.cli.options import Json, Overrides, Quiet, Verbose

if TYPE_CHECKING:
    from weitblick.study.cost import Planned


def register(app: typer.Typer) -> None:
    app.command("reproduce", rich_help_panel="Reproduce")(reproduce)


def reproduce(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Study file, for example studies/tiny.yaml")],
    overrides: Overrides = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the steps, and how long they will take on this machine.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder (runs/studies/NAME).")
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Train what is missing, translate, score, test and write the paper's tables as Markdown, LaTeX and JSON.

    Rows with the same data, text, model and seed share their stage 1. Every finished step leaves its result: started
    again, a study continues, and repeats only what has changed.

    Example: weitblick reproduce studies/tiny.yaml --dry-run

    Example: weitblick reproduce studies/paper-ted.yaml corpora.TED.dir=/data/ted -o runs/ted
    """
    from weitblick.allocator import tune_allocator
    from weitblick.study.plan import plan_study
    from weitblick.study.steps import Ledger, run_steps
    from weitblick.study.study import load_study
    from weitblick.study.work import set_threads

    set_log_level(quiet, verbose)
    loaded, rows = load_study(study, overrides or [])
    folder = output or Path(loaded.output or f"runs/studies/{loaded.name}")
    tune_allocator()
    set_threads(loaded.threads)
    plan = plan_study(loaded, rows, folder, quiet=quiet)
    ledger = Ledger(folder)
    if dry_run:
        from weitblick.study.cost import estimate_plan

        _print_plan(estimate_plan(plan.steps, ledger, log.info), plan.missing_files, as_json)
        return
    plan.check_files()
    from weitblick.study.tables import build_tables, markdown, write_tables
    from weitblick.training.interruption import Interrupted

    try:
        run_steps(plan.steps, ledger, log.info)
    except Interrupted as stop:
        typer.echo(f"weitblick: {stop}", err=True)
        raise typer.Exit(130) from None
    tables = build_tables(loaded, rows, plan, ledger)
    report = write_tables(tables, loaded, folder)
    if as_json:
        print_json(report)
    else:
        print_text(markdown(tables, loaded.name))
    log.info("the tables are in %s, tables.tex and tables.json", folder / "tables.md")


def _print_plan(planned: list[Planned], missing: list[str], as_json: bool) -> None:
    left = sum(entry.seconds or 0.0 for entry in planned if not entry.done)
    if as_json:
        report = {
            "steps": [entry.as_row() for entry in planned],
            "missing_files": missing,
            "seconds_left": round(left, 1),
        }
        print_json(report)
        return
    from rich.table import Table

    table = Table("step", "", box=None, pad_edge=False)
    table.add_column("time", justify="right")
    for entry in planned:
        known = "" if entry.seconds is None else ("" if entry.done else "about ") + _duration(entry.seconds)
        table.add_row(f"{entry.step.kind} {entry.step.name}", "done" if entry.done else "to do", known)
    console = wide_console()
    console.print(table)
    for path in missing:
        console.print(f"missing: {path}", highlight=False)
    console.print(
        f"\nAt most about {_duration(left)} left on this machine (early stopping may end training sooner).",
        highlight=False,
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
