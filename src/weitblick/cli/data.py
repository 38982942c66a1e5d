"""`weitblick data`: corpora of documents, commands that read, check and make them."""

from __future__ import annotations

import typer

from weitblick.cli import check, corpora, mining, mixing

data = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Corpora of documents: convert, measure, split, check, mix, select, generate.",
)
for command in (
    *(corpora.convert, corpora.stats, corpora.split, check.check, mixing.holdout, mixing.sample, mixing.mix),
    *(mining.select, mining.antecedents, mining.pronouns, mining.decisions, mining.discourse, mining.shortlist),
):
    data.command(command.__name__)(command)
