"""`weitblick memory`: approved translations in a folder, and what they offer for a document."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weitblick.cli.console import check_inputs, files_read, print_json, print_text
from weitblick.cli.options import InputFormat, Json, SourceLanguage, TargetLanguage, language_pair
from weitblick.common.errors import UserError
from weitblick.common.files import protect_inputs

if TYPE_CHECKING:
    from weitblick.documents.document import Document
    from weitblick.memory.matches import Change, Match, Pair
    from weitblick.memory.store import Memory

Folder = Annotated[str, typer.Argument(metavar="FOLDER", help="A memory's folder.")]
Id = Annotated[int, typer.Argument(metavar="ID", help="The number of a pair, as `list` shows it.")]
USUAL = ("en", "de")
"""The languages of the model that comes with weitblick."""


memory_app = typer.Typer(
    help="Approved translations: keep them in a folder, change them, see what they offer.", no_args_is_help=True
)


@memory_app.command("add")
def add(
    folder: Folder,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="TMX, JSONL, TSV, ..., or a.en a.de, one for each side.")
    ],
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
) -> None:
    """Add the pairs of files to a memory, which is made if it is not there. It opens at once, however large.

    Example: weitblick memory add project approved.tmx more.tsv
    """
    from weitblick.memory.database import is_memory
    from weitblick.memory.reading import together
    from weitblick.memory.store import Memory

    languages = language_pair(source_language, target_language) or USUAL
    check_inputs(files, folders=True)
    if Path(folder).is_dir() and any(Path(folder).iterdir()) and not is_memory(folder):
        raise UserError("holds other things than a memory", where=folder, remedy="name another folder")
    fresh = not is_memory(folder)
    # In one transaction, file by file: a mistake in the last one leaves the memory as it was.
    pairs = (pair for group in together(files, languages) for pair in Memory.pairs_in(group, languages))
    try:
        with Memory.open(folder) as memory:
            before = len(memory)
            read = len(memory.extend(pairs))
            typer.echo(f"{folder}: {len(memory)} pairs, {len(memory) - before} of {read} new")
    except BaseException:
        if fresh and is_memory(folder):
            shutil.rmtree(folder)
        raise


@memory_app.command("matches")
def matches(
    path: Annotated[str, typer.Argument(metavar="DOCUMENT", help="A document, as `translate` takes it; - is stdin.")],
    files: Annotated[
        list[str], typer.Option("--memory", metavar="FILE", help="A memory's folder, or TMX, JSONL, TSV, ...")
    ],
    at_least: Annotated[float, typer.Option(min=0.01, max=1, help="Least similarity; 1 is the same sentence.")] = 0.75,
    most: Annotated[int, typer.Option(min=1, help="Matches to show of each sentence.")] = 3,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    from_format: InputFormat = None,
    as_json: Json = False,
) -> None:
    """Exact and near matches of a document's sentences, as drafts, with what is different.

    Example: weitblick memory matches report.en --memory project
    """
    from weitblick.documents.corpora.formats import read_documents
    from weitblick.files.formats import format_of, read_file
    from weitblick.memory.store import Memory

    languages = language_pair(source_language, target_language) or USUAL
    check_inputs([path])
    memory = Memory.read(files, languages)
    documents: Iterable[Document]
    if from_format is None and (kind := format_of(path)) is not None:
        documents = [read_file(path, kind, language=languages[0]).document]
    else:
        documents = read_documents([path], from_format, languages=languages)
    rows = list(_matches(documents, memory, at_least, most))
    found = [row for row in rows if row.matches]
    if as_json:
        print_json({"sentences": [row.to_json() for row in found], "of": len(rows)})
        return
    for row in found:
        print_text(f"{row.document}:{row.sentence}  {row.source}")
        for match in row.matches:
            print_text(f"  {match.similarity:4.0%}  {match.pair.target}  ({_origin(match.pair)})")
            if match.similarity < 1:
                print_text(f"        {shown(match.difference())}")
    print_text(f"{len(found)} of {len(rows)} sentences have a match")


@dataclass(frozen=True)
class SentenceMatches:
    """What a memory has for a sentence of a document, by its number from 1."""

    document: str
    sentence: int
    source: str
    matches: Sequence[Match]

    def to_json(self) -> dict[str, object]:
        return {**vars(self), "matches": [_as_data(match) for match in self.matches]}


def _matches(documents: Iterable[Document], memory: Memory, at_least: float, most: int) -> Iterator[SentenceMatches]:
    for document in documents:
        for number, source in enumerate(document.sources, 1):
            if source.strip():
                yield SentenceMatches(document.id, number, source, memory.matches(source, most, at_least))


def _as_data(match: Match) -> dict[str, object]:
    return {
        "similarity": round(match.similarity, 4),
        "source": match.pair.source,
        "target": match.pair.target,
        "origin": _origin(match.pair),
        "difference": [asdict(change) for change in match.difference()],
    }


def _origin(pair: Pair) -> str:
    return pair.origin or f"pair {pair.id}"


def shown(difference: Sequence[Change]) -> str:
    """The source as it is here, and in brackets what it was there: The quota [is -> was] low."""
    parts = (c.here if c.kind == "equal" else f"[{c.there or '-'} -> {c.here or '-'}]" for c in difference)
    return " ".join(parts)


@memory_app.command("list")
def list_pairs(
    folder: Folder,
    find: Annotated[str | None, typer.Option(metavar="TEXT", help="Only pairs that say this, on either side.")] = None,
) -> None:
    """The pairs of a memory, oldest first: id, source, target, origin.

    Example: weitblick memory list project --find quota
    """
    with _opened(folder) as memory:
        for pair in memory:
            if find is None or find.lower() in f"{pair.source}\n{pair.target}".lower():
                columns = (str(pair.id), pair.source, pair.target, pair.origin)
                print_text("\t".join(" ".join(column.split()) for column in columns))  # a line for each


@memory_app.command("replace")
def replace(
    folder: Folder, id: Id, target: Annotated[str, typer.Argument(metavar="TEXT", help="The translation.")]
) -> None:
    """Give a pair another translation, which is then the latest approval.

    Example: weitblick memory replace project 12 "Die Dorschquote ist zu niedrig."
    """
    with _opened(folder) as memory:
        _check(memory, folder, id)
        if not target.strip():
            raise UserError(
                "the translation is empty", remedy=f"to take the pair out: weitblick memory remove {folder} {id}"
            )
        memory.replace(id, target)


@memory_app.command("remove")
def remove(folder: Folder, id: Id) -> None:
    """Take a pair out.

    Example: weitblick memory remove project 12
    """
    with _opened(folder) as memory:
        _check(memory, folder, id)
        memory.remove(id)


@memory_app.command("export")
def export(
    folder: Folder,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")],
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
) -> None:
    """Write a memory as TMX, or in another format by the name of the file.

    Example: weitblick memory export project -o project.tmx
    """
    from weitblick.documents.corpora.formats import write_documents
    from weitblick.documents.document import Document, Sentence

    languages = language_pair(source_language, target_language) or USUAL
    protect_inputs(files_read(folder), [output])
    with _opened(folder) as memory:
        sentences = tuple(Sentence(pair.source, pair.target) for pair in memory)
        if not sentences:
            raise UserError("holds no pair", where=folder, remedy="add some: weitblick memory add")
        write_documents([Document(Path(folder).name, sentences)], [output], languages=languages)


def _opened(folder: str) -> Memory:
    from weitblick.memory.database import is_memory
    from weitblick.memory.store import Memory

    if not is_memory(folder):
        name = folder if not Path(folder).exists() else "FOLDER"
        raise UserError("is no memory", where=folder, remedy=f"make one: weitblick memory add {name} FILE")
    return Memory.open(folder)


def _check(memory: Memory, folder: str, id: int) -> None:
    if id not in memory:
        raise UserError(f"has no pair {id}", where=folder, remedy=f"see weitblick memory list {folder}")
