"""`weitblick data convert`, `stats` and `split`: corpora from one format to another, counted, and in parts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weitblick.cli.console import print_json, print_text
from weitblick.cli.options import (
    Corpus,
    InputFormat,
    Json,
    OutputFormat,
    Outputs,
    Seed,
    SourceLanguage,
    TargetLanguage,
    language_pair,
    languages_of,
)
from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD, make_folder, protect_inputs

if TYPE_CHECKING:
    from weitblick.documents.checking import Statistics
    from weitblick.documents.document import Document

    Read = Callable[[], Iterator[Document]]


Side = Literal["source", "target", "both"]


def convert(
    corpus: Corpus,
    output: Outputs,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
    side: Annotated[Side, typer.Option(help="Which side to write.")] = "both",
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
) -> None:
    """Convert a corpus from one format to another.

    Example: weitblick data convert dev.en dev.de -o dev.jsonl

    Example: weitblick data convert dev.jsonl -o dev.en -o dev.de --to d-lines

    Example: weitblick data convert approved.jsonl -o approved.tmx --source-language en --target-language de
    """
    from weitblick.documents.corpora.formats import read_documents, write_documents

    protect_inputs(corpus, output)
    pair = language_pair(source_language, target_language)
    documents = _only_side(read_documents(corpus, from_format, languages=pair), side)
    write_documents(documents, output, to_format, languages=pair or languages_of(corpus))


def _only_side(documents: Iterable[Document], side: Side) -> Iterator[Document]:
    """Both sides, or one of them as the source of documents without targets."""
    if side == "both":
        return iter(documents)
    return (_one_side(document, side) for document in documents)


def _one_side(document: Document, side: Side) -> Document:
    missing = next((n for n, s in enumerate(document.sentences, 1) if side == "target" and s.target is None), None)
    if missing is not None:
        raise UserError(f"sentence {missing} of document {document.id!r} has no target", remedy="use --side source")
    sentences = (
        replace(s, source=(s.target or "") if side == "target" else s.source, target=None, status=None)
        for s in document.sentences
    )
    return replace(document, sentences=tuple(sentences))


# `weitblick data stats`: documents, sentences and words of corpora.


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
    from weitblick.documents.checking import measure
    from weitblick.documents.corpora.formats import read_documents

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

    from weitblick.documents.checking import table_rows

    table = Table("corpus", "sentences", "average document length")
    for row in table_rows(named):
        table.add_row(*row)
    console = Console()
    with console.capture() as capture:
        console.print(table)
    print_text(capture.get().rstrip("\n"))


# `weitblick data split`: train, dev and test by document.


def split(
    corpus: Corpus,
    folder: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for train, dev and test.")],
    dev: Annotated[float, typer.Option(help="Documents: a share below 1, or a count.")] = 0.1,
    test: Annotated[float, typer.Option(help="Documents: a share below 1, or a count.")] = 0.1,
    train: Annotated[float | None, typer.Option(help="Documents: a share below 1, or a count (the rest).")] = None,
    seed: Seed = 1,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    as_json: Json = False,
) -> None:
    """Split a corpus by document into train, dev and test, at random but by seed.

    Writes DIR/train.*, DIR/dev.* and DIR/test.* with the endings of the input; files of an earlier split are never
    written over.

    Example: weitblick data split all.en all.de -o corpus --dev 100 --test 0.05 --seed 7
    """
    from weitblick.documents.splits import PARTS, assign, sizes, write_split

    pair = language_pair(source_language, target_language)
    with _rereadable(corpus, from_format, pair) as (read, format):
        total = sum(1 for _ in read())
        counts = sizes(total, dev, test, train)
        written = to_format or format
        has_target = next(read()).sentences[0].target is not None
        endings = _endings(corpus, written, pair, has_target)
        outputs = [[folder / f"{part}{ending}" for ending in endings] for part in PARTS]
        _check_new(corpus, [path for paths in outputs for path in paths])
        make_folder(folder)
        write_split(read, assign(total, counts, seed), outputs, written)
    documents = dict(zip(PARTS, counts, strict=True))
    if as_json:
        files = {
            part: [str(path) for path in paths] for part, paths in zip(PARTS, outputs, strict=True) if documents[part]
        }
        print_json({"seed": seed, "documents": documents, "files": files})
    else:
        for (part, count), paths in zip(documents.items(), outputs, strict=True):
            print_text(f"{part}: {count} documents" + (f" in {', '.join(map(str, paths))}" if count else ""))


def _check_new(inputs: Sequence[str], outputs: Sequence[Path]) -> None:
    """Test documents of one split are training documents of another: two must never be mixed in one folder."""
    protect_inputs(inputs, outputs)
    for path in outputs:
        if path.exists():
            raise UserError(
                "is there from an earlier split", where=path, remedy="name a new folder, or remove the old split"
            )


@contextmanager
def _rereadable(
    paths: Sequence[str], format: str | None, languages: tuple[str, str] | None
) -> Iterator[tuple[Read, str]]:
    """A function that reads the corpus from its start each time, and its format. A pipe is copied to disk first."""
    from weitblick.documents.corpora.formats import Corpus as Documents
    from weitblick.documents.corpora.formats import read_documents, write_documents

    corpus = Documents(paths, format, languages=languages)
    if all(path != STANDARD and (Path(path).is_file() or Path(path).is_dir()) for path in paths):
        name = corpus.format.name
        yield (lambda: read_documents(paths, name, languages=languages)), name
        return
    with tempfile.TemporaryDirectory(prefix="weitblick.") as folder:
        copy = Path(folder) / "copy.jsonl"
        write_documents(corpus, [copy])
        yield (lambda: read_documents([copy])), corpus.format.name


def _endings(inputs: Sequence[str], to_format: str, languages: tuple[str, str] | None, has_target: bool) -> list[str]:
    """How the files of a part of a corpus end: like those of the input where they can, else by language or side."""
    from weitblick.documents.corpora.formats import format_named

    holds_both = format_named(to_format).write_side is None
    sides = 1 if holds_both or not has_target else 2
    ids = [".docids"] if to_format == "docids" else []
    own = [_ending(path) for path in inputs]
    if len(own) == sides + len(ids) == len(set(own)) and all(own) and (own == [f".{to_format}"] or not holds_both):
        return own
    if holds_both:
        return [f".{to_format}"]
    names = languages or ("source", "target")
    return [f".{name}" for name in names[:sides]] + ids


def _ending(path: str) -> str:
    name = Path(path).name
    compression = next((ending for ending in (".gz", ".xz") if name.endswith(ending)), "")
    return Path(name.removesuffix(compression)).suffix + compression
