"""What commands say: results on standard output; messages, by log level, and progress on standard error."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weitblick.files import STANDARD, text_writer

if TYPE_CHECKING:
    from rich.console import Console

Advance = Callable[[int], None]

log = logging.getLogger("weitblick")


class _StandardError(logging.Handler):
    """Messages in the form of our errors. The stream is looked up each time: tests and pipes exchange it."""

    def emit(self, record: logging.LogRecord) -> None:
        level = "warning: " if record.levelno >= logging.WARNING else ""
        sys.stderr.write(f"weitblick: {level}{record.getMessage()}\n")


def set_log_level(quiet: bool = False, verbose: bool = False) -> None:
    """`--quiet` shows errors only, `--verbose` details as well; otherwise what a user should know."""
    log.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO)
    if not log.handlers:
        log.addHandler(_StandardError())
        log.propagate = False


def warn(message: str) -> None:
    log.warning("%s", message)


def print_text(text: str) -> None:
    with text_writer(STANDARD) as stream:
        stream.write(text + "\n")


def print_json(value: Mapping[str, Any]) -> None:
    """The one object that a command prints with --json."""
    print_text(json.dumps(value, ensure_ascii=False))


def wide_console() -> Console:
    """For tables: as wide as the terminal; a file or a pipe has no width to fit into."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=160)


def shows_progress() -> bool:
    return sys.stderr.isatty() and log.isEnabledFor(logging.INFO)


@contextmanager
def progress_bar(total: int | None, what: str, *, hidden: bool = False) -> Iterator[Advance]:
    """How much is done and how long the rest will take, on standard error if that is a terminal."""
    if hidden or not shows_progress():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    left = (TextColumn("left"), TimeRemainingColumn()) if total is not None else (TimeElapsedColumn(),)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *left)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda count: bars.advance(task, count)
