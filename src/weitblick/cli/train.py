"""`weitblick recipe`, `train` and `demo`: look at recipes and their keys, train a model by one, try it all out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weitblick.cli.console import log, set_log_level
from weitblick.cli.options import Overrides, Quiet, Verbose

recipe_app = typer.Typer(help="Look at recipes: what one amounts to, and every key there is.", no_args_is_help=True)


@recipe_app.command()
def show(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A YAML recipe.")],
    overrides: Overrides = None,
) -> None:
    """Print a recipe with its bases, overrides and defaults filled in.

    Example: weitblick recipe show recipes/tiny/h-attention.yaml context.kind=word
    """
    import yaml

    from weitblick.common.recipe_files import load_recipe

    typer.echo(yaml.safe_dump(load_recipe(recipe, overrides or []).model_dump(mode="json"), sort_keys=False), nl=False)


@recipe_app.command()
def keys(search: Annotated[str, typer.Argument(metavar="[PART]", help="Only keys that contain this.")] = "") -> None:
    """List every key with its default and meaning.

    Example: weitblick recipe keys dropout
    """
    from weitblick.common.recipe_files import rows

    for key, _, default, meaning in rows():
        if search in key:
            typer.echo(f"{key} = {default}  # {meaning}")


@recipe_app.command()
def reference() -> None:
    """Print the recipe reference of the docs, made from the types.

    Example: weitblick recipe reference > docs/recipe-reference.md
    """
    from weitblick.common.recipe_files import as_markdown

    typer.echo(as_markdown(), nl=False)


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
    from weitblick.common.errors import UserError
    from weitblick.common.locks import Interrupted
    from weitblick.common.process import explain_out_of_memory, is_first_process, tune_allocator
    from weitblick.common.recipe_files import load_recipe
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


# `weitblick demo`: a newcomer's first ten minutes.


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for everything the demo makes.")
    ] = Path("demo"),
) -> None:
    """Train two small models, compare them with and without context, and open up one translation: 5 to 10 minutes.

    Example: weitblick demo
    """
    from rich.console import Console

    from weitblick.common.process import tune_allocator
    from weitblick.demo import run_demo

    tune_allocator()
    run_demo(output, Console())
