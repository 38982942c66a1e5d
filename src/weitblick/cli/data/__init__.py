"""`weitblick data`: corpora of documents, one module for each command."""

from __future__ import annotations

import typer

from weitblick.cli.data import antecedents, check, convert, discourse, pronouns, select, shortlist, split, stats


def register(app: typer.Typer) -> None:
    data = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
    for module in (convert, stats, split, check, select, antecedents, pronouns, discourse, shortlist):
        module.register(data)
    app.add_typer(
        data,
        name="data",
        help="Corpora of documents: convert, measure, split, check, select, generate.",
        rich_help_panel="Data",
    )
