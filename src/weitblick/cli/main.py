"""The command line: which module has which command, and failures of the machine explained in one line."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from weitblick import __version__
from weitblick.common.errors import UserError
from weitblick.common.system import SYSTEM
from weitblick.common.threads import set_environment

REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EACCES: "change its permissions, or choose another place",
    errno.EMFILE: "allow more open files (ulimit -n 1024)",
    errno.ENFILE: "close some programs",
    errno.ENAMETOOLONG: "choose a shorter name",
}
FEW_HANDLES = "Too many open files"


def explain_failure(error: BaseException) -> tuple[str, int] | None:
    """A line and an exit code; None for what is a mistake in this program."""
    if type(error).__name__ == "Abort":  # click's word for an input that ended, or Ctrl-C in a question
        return "interrupted", 130
    if isinstance(error, OSError) and error.errno is not None:
        name = error.filename if isinstance(error.filename, str) and len(error.filename) < 200 else ""
        remedy = REMEDIES.get(error.errno)
        text = f"{name}: {error.strerror}" if name else str(error.strerror)
        return (f"{text}; {remedy}" if remedy else text), 2
    if isinstance(error, sqlite3.Error):
        return f"a memory cannot be read or written ({error}); look whether another program uses it, and for space", 2
    if isinstance(error, UnicodeEncodeError):
        found = ascii(error.object[error.start : error.start + 1])
        return f"a name or a text holds {found}, which is no character of Unicode; rename the file, or mend the text", 2
    text = str(error)
    if FEW_HANDLES in text:
        return f"{FEW_HANDLES}; {REMEDIES[errno.EMFILE]}", 2
    if isinstance(error, MemoryError) or "can't allocate memory" in text or "out of memory" in text:
        first = text.splitlines()[0] if text else "MemoryError"
        return f"out of memory ({first[:200]}); lower --batch-tokens, --beam or batch_tokens", 2
    if isinstance(error, RecursionError):
        return "the input is nested too deeply", 2
    return None


# One table of the commands, in the order of the help: module, function or group in it, and the panel of the help.

TRAINING, OTHER_MODELS = "Train and translate", "Models from and for elsewhere"
COMMANDS = {
    "demo": ("train", "demo", "Start here"),
    "data": ("data", "data", "Data"),
    "train": ("train", "train", TRAINING),
    "translate": ("translate", "translate", TRAINING),
    "check": ("check_translations", "check", TRAINING),
    "memory": ("memory", "memory_app", TRAINING),
    "serve": ("serve", "serve", TRAINING),
    "recipe": ("train", "recipe_app", TRAINING),
    "import": ("models", "import_model", OTHER_MODELS),
    "export": ("models", "export", OTHER_MODELS),
    "publish": ("models", "publish_model", OTHER_MODELS),
    "fetch": ("models", "fetch_model", OTHER_MODELS),
    "models": ("models", "list_models", OTHER_MODELS),
    "explain": ("explain", "explain", "See the context"),
    "score": ("score", "score", "Judge"),
    "compare": ("score", "compare", "Judge"),
    "postedit": ("postedit", "postedit", "Judge"),
    "contrast": ("contrast", "contrast", "Judge"),
    "context-use": ("context_use", "context_use", "Judge"),
    "complexity": ("complexity", "complexity", "Judge"),
    "judge": ("judge", "judge_app", "Judge"),
    "reproduce": ("reproduce", "reproduce", "Reproduce"),
}


class Commands(TyperGroup):
    """The commands, each imported when it is asked for: a command does not wait for the modules of the others."""

    # Typer brings a click of its own or uses the installed one, by version: neither is named here.
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            sys.stderr.write(f"weitblick: {stop if str(stop) else 'interrupted'}\n")
            raise typer.Exit(130) from None

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module, name, panel = COMMANDS[cmd_name]
            found = getattr(import_module(f"weitblick.cli.{module}"), name)
            group = typer.Typer(rich_markup_mode="rich")
            group.callback()(lambda: None)  # with a callback one command is a group, too
            if isinstance(found, typer.Typer):
                group.add_typer(found, name=cmd_name, rich_help_panel=panel)
            else:
                group.command(cmd_name, rich_help_panel=panel)(found)
            self.commands.update(typer.main.get_group(group).commands)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    name="weitblick",
    cls=Commands,
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


def main() -> None:
    """Runs a command. Whatever a user did wrong ends in one line and exit code 2."""
    set_environment()  # before a command loads PyTorch
    SYSTEM.prepare_streams()
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
