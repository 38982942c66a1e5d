"""The command line: one module per command group registers its commands here."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from weitblick import __version__
from weitblick.cli import (
    complexity,
    context_use,
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
)
from weitblick.errors import UserError

ORDER = (
    "demo",
    "data",
    "train",
    "translate",
    "recipe",
    "explain",
    "score",
    "compare",
    "contrast",
    "context-use",
    "complexity",
    "judge",
    "reproduce",
)
"""Of commands in the help, whose panels stand in the order of their first command."""


class Map(TyperGroup):
    # Typer brings a click of its own or uses the installed one, by version: neither is named here.
    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


app = typer.Typer(
    name="weitblick",
    cls=Map,
    help="Document-level machine translation that selects the context that matters, and shows it.\n\n"
    "Every command has --help with examples; those that measure have --json. Exit code 2: something in the input is "
    "wrong, and the one line printed says what and where.",
    epilog="Examples:\n\n"
    "weitblick demo\n\n"
    "echo 'The report is ready. It is long.' | weitblick translate - --from prose\n\n"
    "weitblick train recipes/tiny/h-attention.yaml data.dir=corpora/small output=runs/tiny\n\n"
    "weitblick explain runs/tiny/best talk.en -o report.html\n\n"
    "weitblick contrast runs/tiny/best corpora/small/contrast.jsonl --controls",
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


for module in (
    demo,
    data,
    train,
    translate,
    explain,
    score,
    contrast,
    context_use,
    complexity,
    judge,
    reproduce,
    recipe,
):
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
