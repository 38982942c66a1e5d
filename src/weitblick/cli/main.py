"""The command line: one module per command group registers its commands here."""

from __future__ import annotations

import sys

import typer

from weitblick import __version__
from weitblick.cli import (
    complexity,
    contrast,
    data,
    demo,
    explain,
    judge,
    recipe,
    reproduce,
    score,
    train,
    translate,
    usage,
)
from weitblick.errors import UserError

app = typer.Typer(
    name="weitblick",
    help="Document-level machine translation that selects the context that matters, and shows it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"weitblick {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


for module in (demo, data, train, translate, explain, score, contrast, usage, complexity, judge, reproduce, recipe):
    module.register(app)


def main() -> None:
    try:
        app()
    except UserError as error:
        sys.stderr.write(f"weitblick: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("weitblick: interrupted\n")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
