"""`weitblick data split`: train, dev and test by document."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.console import print_json, print_text
from weitblick.cli.options import (
    Corpus,
    InputFormat,
    Json,
    OutputFormat,
    Seed,
    SourceLanguage,
    TargetLanguage,
    language_pair,
)
from weitblick.errors import UserError
from weitblick.files import STANDARD, make_folder, protect_inputs

if TYPE_CHECKING:
    from weitblick.documents import Document

    Read = Callable[[], Iterator[Document]]


def register(app: typer.Typer) -> None:
    app.command("split")(split)


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
    from weitblick.documents.split import PARTS, assign, sizes, write_split

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
    from weitblick.documents import Corpus as Documents
    from weitblick.documents import read_documents, write_documents

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
    from weitblick.documents.corpora import format_named

    wanted = format_named(to_format)
    sides = 1 if wanted.both_sides or not has_target else 2
    ids = [".docids"] if to_format == "docids" else []
    own = [_ending(path) for path in inputs]
    if (
        len(own) == sides + len(ids) == len(set(own))
        and all(own)
        and (own == [f".{to_format}"] or not wanted.both_sides)
    ):
        return own
    if wanted.both_sides:
        return [f".{to_format}"]
    names = languages or ("source", "target")
    return [f".{name}" for name in names[:sides]] + ids


def _ending(path: str) -> str:
    name = Path(path).name
    compression = next((ending for ending in (".gz", ".xz") if name.endswith(ending)), "")
    return Path(name.removesuffix(compression)).suffix + compression
