"""`weitblick reproduce`: a whole study from one file, the paper's tables at its end."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.console import log, print_json, print_text, set_log_level, wide_console
from weitblick.cli.options import Json, Overrides, Quiet, Verbose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weitblick.evaluation.study import Row, Study
    from weitblick.evaluation.study_cost import Planned
    from weitblick.evaluation.study_plan import Plan
    from weitblick.evaluation.study_steps import Ledger


def reproduce(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Study file, for example studies/tiny.yaml")],
    overrides: Overrides = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the steps, and how long they will take on this machine.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder (runs/studies/NAME).")
    ] = None,
    only_rows: Annotated[
        list[str] | None,
        typer.Option("--rows", metavar="NAME", help="Only these rows and the baseline, by name or id. Repeatable."),
    ] = None,
    only_seeds: Annotated[
        list[int] | None, typer.Option("--seeds", metavar="S", help="Only these seeds of the study. Repeatable.")
    ] = None,
    only_finished: Annotated[
        bool,
        typer.Option("--finished", help="Only rows that are finished with these seeds: tables, no training."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Steps that are done at the same time; one for each GPU, or one, if not given."),
    ] = None,
    steps_only: Annotated[bool, typer.Option("--steps-only", help="Leave the tables to another process.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Train what is missing, translate, score, test and write the paper's tables as Markdown, LaTeX and JSON.

    Rows with the same data, text, model and seed share their stage 1. Every finished step leaves its result: started
    again, a study continues, and repeats only what has changed. Several processes may work on one folder: each step is
    done once.

    Example: weitblick reproduce studies/tiny.yaml --dry-run

    Example: weitblick reproduce studies/tiny.yaml --rows "Attention, word" --jobs 2

    Example: weitblick reproduce studies/paper-ted.yaml corpora.TED.dir=/data/ted -o runs/ted
    """
    from weitblick.evaluation.study import load_study, select_rows
    from weitblick.evaluation.study_plan import finished_rows, plan_study
    from weitblick.evaluation.study_steps import Ledger, continue_alone, devices_of, run_jobs, run_steps, threads_of
    from weitblick.evaluation.study_work import prepare_torch

    set_log_level(quiet, verbose)
    if not continue_alone():
        return
    loaded, rows = select_rows(*load_study(study, overrides or []), only_rows or [], only_seeds or [])
    folder = output or Path(loaded.output or f"runs/studies/{loaded.name}")
    prepare_torch(loaded.threads)
    plan = plan_study(loaded, rows, folder, quiet=quiet)
    ledger = Ledger(folder)
    ledger.check(loaded.name)
    if only_finished:
        loaded, rows = select_rows(loaded, rows, finished_rows(plan, loaded, rows, ledger), [])
        plan = plan_study(loaded, rows, folder, quiet=quiet)
    if dry_run:
        from weitblick.evaluation.study_cost import estimate_plan

        devices = devices_of(loaded.device, jobs)
        _print_plan(estimate_plan(plan.steps, ledger, devices[0], log.info), plan.missing_files, len(devices), as_json)
        return
    plan.check_files()
    ledger.open(loaded.name)
    devices = devices_of(loaded.device, jobs)
    if len(devices) > 1 and not steps_only:
        arguments = [str(study), *(overrides or []), "-o", str(folder), *(["--quiet"] if quiet else [])]
        arguments += [f"--rows={name}" for name in only_rows or []] + [f"--seeds={seed}" for seed in only_seeds or []]
        _stoppable(partial(run_jobs, arguments, devices, threads_of(loaded.threads, len(devices)), log.info))
    _stoppable(partial(run_steps, plan.steps, ledger, log.info))
    if not steps_only:
        _report(loaded, rows, plan, ledger, as_json)


def _stoppable(work: Callable[[], int | None]) -> None:
    """Does work that may be stopped, and ends with a line about that or, if it failed, with its exit code."""
    from weitblick.common.locks import Interrupted

    try:
        code = work()
    except Interrupted as stop:
        typer.echo(f"weitblick: {stop}", err=True)
        raise typer.Exit(130) from None
    if code:
        raise typer.Exit(code)


def _report(study: Study, rows: Sequence[Row], plan: Plan, ledger: Ledger, as_json: bool) -> None:
    """Writes the tables of a finished study, and shows them."""
    from weitblick.evaluation.study_tables import build_tables, markdown, write_tables

    tables = build_tables(study, rows, plan, ledger)
    report = write_tables(tables, study, plan.folder)
    if as_json:
        print_json(report)
    else:
        print_text(markdown(tables, study.name))
    log.info("the tables are in %s, tables.tex and tables.json", plan.folder / "tables.md")


def _print_plan(planned: list[Planned], missing: list[str], jobs: int, as_json: bool) -> None:
    left = sum(entry.seconds or 0.0 for entry in planned if not entry.done) / jobs
    unknown = sum(entry.seconds is None and entry.step.timed and not entry.done for entry in planned)
    if as_json:
        report = {
            "steps": [entry.as_row() for entry in planned],
            "missing_files": missing,
            "seconds_left": round(left, 1),
            "steps_of_unknown_time": unknown,
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
    beside = f" with {jobs} jobs" if jobs > 1 else ""
    if unknown:
        console.print(f"\n{unknown} steps read corpora that are missing: how long they take is not known.")
    if left or not unknown:
        console.print(
            f"\nAt most about {_duration(left)} left on this machine{beside} (early stopping may end training sooner).",
            highlight=False,
        )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
