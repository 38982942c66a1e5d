"""`weitblick data convert`: a corpus from one format to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weitblick.cli.options import (
    Corpus,
    InputFormat,
    OutputFormat,
    Outputs,
    SourceLanguage,
    TargetLanguage,
    language_pair,
    languages_of,
)
from weitblick.errors import UserError
from weitblick.files import protect_inputs

if TYPE_CHECKING:
    from weitblick.documents import Document

Side = Literal["source", "target", "both"]


def register(app: typer.Typer) -> None:
    app.command("convert")(convert)


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
    from weitblick.documents import read_documents, write_documents

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
