"""`weitblick train`."""

from __future__ import annotations

from pathlib import Path

import typer


def register(app: typer.Typer) -> None:
    @app.command(rich_help_panel="Train and translate")
    def train(
        recipe: Path = typer.Argument(..., help="YAML recipe, for example recipes/tiny/h-attention.yaml"),
        overrides: list[str] = typer.Argument(None, metavar="[KEY=VALUE]...", help="changes to the recipe"),
        quiet: bool = typer.Option(False, "--quiet", help="say nothing but errors"),
        finish: bool = typer.Option(False, "--finish", help="end a run where it stands and leave its best model"),
    ) -> None:
        """Train both stages of a recipe (or one of them), in one command. Started again, it goes on where it was.

        Example: weitblick train recipes/tiny/h-attention.yaml data.dir=corpus output=runs/tiny
        """
        from weitblick.allocator import explain_out_of_memory, tune_allocator
        from weitblick.config import load_recipe
        from weitblick.errors import UserError
        from weitblick.training.run import train as run
        from weitblick.training.stage import Interrupted

        loaded = load_recipe(recipe, overrides or [])
        tune_allocator()
        try:
            best = run(loaded, quiet=quiet, finish=finish)
        except Interrupted as stop:
            typer.echo(f"weitblick: {stop}", err=True)
            raise typer.Exit(130) from None
        except (MemoryError, RuntimeError) as error:
            if (explained := explain_out_of_memory(error)) is None:
                raise
            raise UserError(explained, where=str(recipe), remedy="lower batch_tokens, or raise accumulate") from None
        if not quiet:
            typer.echo(f"the best model is in {best}", err=True)
