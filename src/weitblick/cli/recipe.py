"""`weitblick recipe`: look at recipes and their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weitblick.cli.options import Overrides

recipe_app = typer.Typer(help="Look at recipes: what one amounts to, and every key there is.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(recipe_app, name="recipe", rich_help_panel="Train and translate")


@recipe_app.command()
def show(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A YAML recipe.")],
    overrides: Overrides = None,
) -> None:
    """Print a recipe with its bases, overrides and defaults filled in.

    Example: weitblick recipe show recipes/tiny/h-attention.yaml context.kind=word
    """
    import yaml

    from weitblick.config import load_recipe

    typer.echo(yaml.safe_dump(load_recipe(recipe, overrides or []).model_dump(mode="json"), sort_keys=False), nl=False)


@recipe_app.command()
def keys(search: Annotated[str, typer.Argument(metavar="[PART]", help="Only keys that contain this.")] = "") -> None:
    """List every key with its default and meaning.

    Example: weitblick recipe keys dropout
    """
    from weitblick.config.reference import rows

    for key, _, default, meaning in rows():
        if search in key:
            typer.echo(f"{key} = {default}  # {meaning}")


@recipe_app.command()
def reference() -> None:
    """Print the recipe reference of the docs, made from the types.

    Example: weitblick recipe reference > docs/recipe-reference.md
    """
    from weitblick.config.reference import as_markdown

    typer.echo(as_markdown(), nl=False)
