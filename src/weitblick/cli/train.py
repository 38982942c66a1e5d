"""`weitblick train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weitblick.cli.console import log, set_log_level
from weitblick.cli.options import Overrides, Quiet, Verbose


def register(app: typer.Typer) -> None:
    app.command("train", rich_help_panel="Train and translate")(train)


def train(
    recipe: Annotated[
        Path, typer.Argument(metavar="RECIPE", help="A YAML recipe, for example recipes/tiny/h-attention.yaml")
    ],
    overrides: Overrides = None,
    finish: Annotated[
        bool, typer.Option("--finish", help="End a run where it stands, and leave its best model.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train both stages of a recipe, or one of them, in one command. Started again, it continues.

    Example: weitblick train recipes/tiny/h-attention.yaml data.dir=corpus output=runs/tiny
    """
    from weitblick.allocator import explain_out_of_memory, tune_allocator
    from weitblick.config import load_recipe
    from weitblick.distributed import is_first_process
    from weitblick.errors import UserError
    from weitblick.training.interruption import Interrupted
    from weitblick.training.run import train as run

    set_log_level(quiet or not is_first_process(), verbose)
    loaded = load_recipe(recipe, overrides or [])
    tune_allocator()
    try:
        best = run(loaded, quiet=quiet, finish=finish)
    except Interrupted as stop:
        if is_first_process():
            typer.echo(f"weitblick: {stop}", err=True)
        raise typer.Exit(130) from None
    except (MemoryError, RuntimeError) as error:
        if (explained := explain_out_of_memory(error)) is None:
            raise
        raise UserError(explained, where=str(recipe), remedy="lower batch_tokens, or raise accumulate") from None
    log.info("the best model is in %s", best)
