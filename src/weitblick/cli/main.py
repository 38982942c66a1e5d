"""The command line: one module per command group registers its commands here."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from weitblick import __version__
from weitblick.cli import (
    compare,
    complexity,
    context_use,
    contrast,
    data,
    demo,
    explain,
    export,
    hub,
    import_,
    judge,
    memory,
    postedit,
    recipe,
    reproduce,
    score,
    serve,
    train,
    translate,
)
from weitblick.cli.failures import explain_failure
from weitblick.errors import UserError

ORDER = (
    "demo",
    "data",
    "train",
    "translate",
    "memory",
    "serve",
    "recipe",
    "import",
    "export",
    "publish",
    "fetch",
    "models",
    "explain",
    "score",
    "compare",
    "postedit",
    "contrast",
    "context-use",
    "complexity",
    "judge",
    "reproduce",
)
"""Of commands in the help, whose panels stand in the order of their first command."""


class Map(TyperGroup):
    # Typer brings a click of its own or uses the installed one, by version: neither is named here.
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            sys.stderr.write(f"weitblick: {stop if str(stop) else 'interrupted'}\n")
            raise typer.Exit(130) from None

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


app = typer.Typer(
    name="weitblick",
    cls=Map,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Document-level machine translation that selects the context that matters, and shows it.\n\n"
    "Every command has -h with examples; those that measure have --json. Exit code 2: something in the input is "
    "wrong, and the one line printed says what and where.",
    epilog="Examples:\n\n"
    "weitblick demo\n\n"
    "echo 'The report is ready. It is long.' | weitblick translate - --from prose\n\n"
    "weitblick train recipes/tiny/h-attention.yaml data.dir=corpora/small output=runs/tiny\n\n"
    "weitblick explain talk.en -m runs/tiny/best -o report.html\n\n"
    "weitblick contrast -m runs/tiny/best corpora/small/contrast.jsonl --controls",
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
    memory,
    serve,
    import_,
    export,
    hub,
    explain,
    score,
    compare,
    postedit,
    contrast,
    context_use,
    complexity,
    judge,
    reproduce,
    recipe,
):
    module.register(app)


def main() -> None:
    """Runs a command. Whatever a user did wrong ends in one line and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # names of files need not be UTF-8
    try:
        code = app(standalone_mode=False, prog_name="weitblick")
    except UserError as error:
        _fail(str(error), 2)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except BrokenPipeError:
        _forget_output()
        sys.exit(1)
    except Exception as error:
        # Mistakes in the command line itself, as an unknown option. Their class is of whichever click Typer uses.
        if (known := explain_failure(error)) is not None:
            _fail(*known)
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "weitblick"
        _fail(f"{_one_line(error.format_message())}; see {command} --help", 2)
    else:
        _flush_output()
        sys.exit(code if isinstance(code, int) else 0)


def _flush_output() -> None:
    """What cannot be written any more shows here, not in the interpreter's last words."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        sys.exit(1)
    except OSError as error:
        _forget_output()
        _fail(f"standard output: cannot be written ({error.strerror})", 2)


def _forget_output() -> None:
    """The interpreter flushes once more when it exits; what could not be written must not fail a second time."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(text: str) -> str:
    return " ".join(text.replace("Value error, ", "").split()).removesuffix(".")


def _fail(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"weitblick: {message}\n")
    sys.exit(code)
