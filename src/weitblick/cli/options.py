"""The options that commands share: one name, one meaning and one help text, wherever an option appears."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from weitblick.common.errors import UserError
from weitblick.translation.options import OPTIONS, Formality

WritableFormat = Literal["text", "d-lines", "jsonl", "tsv", "tmx", "docids", "prose"]
FormatName = Literal[
    WritableFormat, "starts", "ids", "news-commentary", "ted-xml", "ted-tags", "wmt-sgm", "wmt-xml", "opus"
]
"""The keys of `CORPUS_FORMATS` (`documents.corpora.formats`), which help and completion can list without importing the
readers."""

Model = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", metavar="FOLDER", help="A model folder; the model that comes with weitblick if absent."
    ),
]
MemoryFiles = Annotated[list[str] | None, typer.Option("--memory", metavar="FILE", help=OPTIONS["memory"].help)]
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


def translation_option(name: str, metavar: str | None = None) -> Any:
    """The option of this name with the help and the limits that all ways to translate have."""
    option = OPTIONS[name]
    return typer.Option(min=option.least, max=option.most, metavar=metavar, help=option.help)


Beam = Annotated[int | None, translation_option("beam")]
LengthPenalty = Annotated[float | None, translation_option("length_penalty")]
NBest = Annotated[int, translation_option("n_best", "N")]
Passes = Annotated[int, translation_option("passes")]
AskedFormality = Annotated[Formality, translation_option("formality")]
BatchTokens = Annotated[int, translation_option("batch_tokens")]
Seed = Annotated[int, typer.Option(metavar="S", help="The same seed gives the same result.")]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="Read only the first N.")]
Threads = Annotated[int | None, typer.Option(min=1, metavar="N", help="Threads on the CPU; all cores if absent.")]
Device = Annotated[str, typer.Option(metavar="DEVICE", help="auto, cpu, cuda, cuda:1, ...")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on standard error but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more on standard error: formats, model, times.")]


def languages_of(paths: Sequence[str]) -> tuple[str, str] | None:
    """What the names of two files say: dev.en and dev.de; nothing if they say a format, as in a.txt and b.txt."""
    from weitblick.files.formats import FILE_FORMATS

    formats = {ending.removeprefix(".") for one in FILE_FORMATS.values() for ending in one.endings}
    names = [Path(path.removesuffix(".gz").removesuffix(".xz")).suffix.removeprefix(".") for path in paths]
    if len(names) != 2 or not all(name.isalpha() and 2 <= len(name) <= 3 for name in names) or {*names} & formats:
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
