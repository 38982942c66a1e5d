"""`weitblick data stats`: documents, sentences and words of corpora."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.console import print_json, print_text
from weitblick.cli.options import InputFormat, Json, SourceLanguage, TargetLanguage, language_pair
from weitblick.errors import UserError

if TYPE_CHECKING:
    from weitblick.documents.statistics import Statistics


def register(app: typer.Typer) -> None:
    app.command("stats")(stats)


def stats(
    corpus: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE [TARGET]", help="Files of one corpus, in any format; - is standard input."),
    ] = None,
    corpora: Annotated[
        list[str] | None,
        typer.Option(
            "--corpus",
            metavar="NAME=SOURCE[,TARGET]",
            help="One of several corpora; NAME may be CORPUS/PART. Repeatable.",
        ),
    ] = None,
    from_format: InputFormat = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    as_json: Json = False,
) -> None:
    """Count documents, sentences and words: the paper's Table 1 for any corpus.

    Example: weitblick data stats dev.en dev.de --json

    Example: weitblick data stats --corpus TED/train=t.en,t.de --corpus TED/dev=d.en,d.de
    """
    from weitblick.documents import read_documents
    from weitblick.documents.statistics import measure

    if bool(corpus) == bool(corpora):
        raise UserError("stats needs either files or --corpus", remedy="see weitblick data stats --help")
    pair = language_pair(source_language, target_language)
    if corpus:
        measured = measure(read_documents(corpus, from_format, languages=pair))
        if as_json:
            print_json(asdict(measured))
        else:
            _print_statistics(measured)
        return
    named = {
        name: measure(read_documents(files, from_format, languages=pair))
        for name, files in _named_corpora(corpora or []).items()
    }
    if as_json:
        print_json({"corpora": {name: asdict(measured) for name, measured in named.items()}})
    else:
        _print_table_one(named)


def _named_corpora(texts: list[str]) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for text in texts:
        name, equals, files = text.partition("=")
        if not equals or not files or name in named:
            raise UserError(
                f"--corpus {text}: not a new NAME=SOURCE[,TARGET]", remedy="write --corpus dev=dev.en,dev.de"
            )
        named[name] = files.split(",")
    return named


def _print_statistics(measured: Statistics) -> None:
    labels = {name: name.replace("_", " ") for name in asdict(measured)}
    width = max(map(len, labels.values()))
    values = {name: f"{value:,}" for name, value in asdict(measured).items() if value is not None}
    print_text("\n".join(f"{labels[name]:{width}}  {value:>12}" for name, value in values.items()))


def _print_table_one(named: dict[str, Statistics]) -> None:
    from rich.console import Console
    from rich.table import Table

    from weitblick.documents.statistics import table_rows

    table = Table("corpus", "sentences", "average document length")
    for row in table_rows(named):
        table.add_row(*row)
    console = Console()
    with console.capture() as capture:
        console.print(table)
    print_text(capture.get().rstrip("\n"))
