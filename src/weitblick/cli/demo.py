"""`weitblick demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("demo", rich_help_panel="Start here")(demo)


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for everything the demo makes.")
    ] = Path("demo"),
) -> None:
    """Train two small models, compare them with and without context, and open up one translation: 5 to 10 minutes.

    Example: weitblick demo
    """
    from rich.console import Console

    from weitblick.allocator import tune_allocator
    from weitblick.demo import run_demo

    tune_allocator()
    run_demo(output, Console())
