"""`weitblick demo`."""

from __future__ import annotations

from pathlib import Path

import typer


def register(app: typer.Typer) -> None:
    @app.command(rich_help_panel="Start here")
    def demo(
        output: Path = typer.Option(Path("demo"), "--output", "-o", help="folder for everything the demo makes"),
    ) -> None:
        """Train two small models, compare them with and without context, and open up one translation: 5 minutes.

        Example: weitblick demo
        """
        from rich.console import Console

        from weitblick.allocator import tune_allocator
        from weitblick.demo import run_demo

        tune_allocator()
        run_demo(output, Console())
