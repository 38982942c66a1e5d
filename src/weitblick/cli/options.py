"""The options that commands share: one name, one meaning and one help text, wherever an option appears."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from weitblick.errors import UserError

FormatName = Literal[
    "text",
    "d-lines",
    "jsonl",
    "tsv",
    "tmx",
    "docids",
    "prose",
    "starts",
    "ids",
    "news-commentary",
    "ted-xml",
    "ted-tags",
    "wmt-sgm",
    "wmt-xml",
    "opus",
]
"""The keys of `documents.corpora.FORMATS`, which help and completion can list without importing the readers."""

WritableFormat = Literal["text", "d-lines", "jsonl", "tsv", "tmx", "docids", "prose"]

Model = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", metavar="FOLDER", help="A model folder; the model that comes with weitblick if absent."
    ),
]
Approved = Annotated[
    list[str] | None,
    typer.Option(
        "--memory",
        metavar="FILE",
        help="Approved translations that decide how the rest is translated: TMX, JSONL, TSV, ...; may be repeated.",
    ),
]
Corpus = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE [TARGET]",
        help="A corpus in any format: one file, or one for each side; plain, .gz or .xz; - is standard input.",
    ),
]
Outputs = Annotated[
    list[str],
    typer.Option(
        "--output", "-o", metavar="FILE", help="File to write; once for each side: -o a.en -o a.de; - is stdout."
    ),
]
InputFormat = Annotated[FormatName | None, typer.Option("--from", help="Format of the input; guessed if absent.")]
OutputFormat = Annotated[
    WritableFormat | None, typer.Option("--to", help="Format of the output; by its name if absent.")
]
SourceLanguage = Annotated[
    str | None,
    typer.Option("--source-language", metavar="CODE", help="Such as en; for prose and files with several languages."),
]
TargetLanguage = Annotated[str | None, typer.Option("--target-language", metavar="CODE", help="Such as de.")]
ModelOutput = Annotated[
    str, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write; one that is there is replaced.")
]
Overrides = Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Changes to it.")]

Beam = Annotated[
    int | None,
    typer.Option(min=1, help="Hypotheses per sentence; 1 is greedy search; the model's own, usually 4, if absent."),
]
BatchTokens = Annotated[int, typer.Option(min=1, help="Tokens computed at a time.")]
Seed = Annotated[int, typer.Option(metavar="S", help="The same seed gives the same result.")]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="Read only the first N.")]
Threads = Annotated[int | None, typer.Option(min=1, metavar="N", help="Threads on the CPU; all cores if absent.")]
Device = Annotated[str, typer.Option(metavar="DEVICE", help="auto, cpu, cuda, cuda:1, ...")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on standard error but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more on standard error: formats, model, times.")]


def languages_of(paths: Sequence[str]) -> tuple[str, str] | None:
    """What the names of two files say: dev.en and dev.de."""
    names = [Path(path.removesuffix(".gz").removesuffix(".xz")).suffix.removeprefix(".") for path in paths]
    if len(names) != 2 or not all(name.isalpha() and 2 <= len(name) <= 3 for name in names):
        return None
    return names[0], names[1]


def language_pair(source: str | None, target: str | None) -> tuple[str, str] | None:
    """Both languages or neither."""
    if source is None and target is None:
        return None
    if not source or not target:
        missing = "--target-language" if source else "--source-language"
        raise UserError("only one of the two languages is named", remedy=f"give {missing}, too")
    return source, target
