"""Formats with several columns a line: TSV with a document id, the original's `id ||| source ||| target`, and
News-Commentary's source and target columns with an empty line between documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from weitblick.documents.corpora.lines import UniqueIds
from weitblick.documents.corpora.reading import (
    DocumentBuilder,
    IdentifiedLine,
    Inputs,
    LineSource,
    Located,
    group_by_document,
)
from weitblick.documents.corpora.writing import LineWriter
from weitblick.documents.document import Document, Sentence
from weitblick.errors import UserError

HEADERS = (["id", "source"], ["id", "source", "target"])
HEADER = "header"


def read_tsv(inputs: Inputs) -> Iterator[Located]:
    """Document id, source and, if there is one, target, separated by tabs, perhaps below a header line saying so."""
    source = inputs.sources[0]
    header = source.peek()
    columns = header.split("\t")
    if columns in HEADERS:
        for line in source:
            if line.strip() == header:
                break
        yield from group_by_document(source.path, _rows(source, "\t", len(columns)), {HEADER: header})
    else:
        yield from group_by_document(source.path, _rows(source, "\t", None))


def read_ids(inputs: Inputs) -> Iterator[Located]:
    """`id ||| source ||| target` a line (the original's files)."""
    yield from group_by_document(inputs.sources[0].path, _rows(inputs.sources[0], "|||", None))


def _rows(source: LineSource, separator: str, width: int | None) -> Iterator[IdentifiedLine]:
    for line in source:
        columns = line.split(separator)
        if separator != "\t":
            columns = [column.strip() for column in columns]
        width = width or len(columns)
        if len(columns) != width or width not in (2, 3):
            expected = f"{width} columns, as before" if width in (2, 3) else "2 or 3 columns (id, source, target)"
            shown = "tab" if separator == "\t" else separator
            raise UserError(
                f"has {len(columns)} column{'s' * (len(columns) != 1)}, not {expected}",
                where=source.path,
                line=source.count,
                remedy=f"separate document id, source and target by {shown}",
            )
        target = columns[2] if width == 3 else None
        yield IdentifiedLine(source.count, columns[0], Sentence(columns[1], target))


def read_news_commentary(inputs: Inputs) -> Iterator[Located]:
    """Source and target separated by a tab, an empty line (or empty columns) between documents."""
    source = inputs.sources[0]
    builder = DocumentBuilder()
    for line in source:
        columns = line.split("\t")
        if not line.strip():
            if builder.sentences:
                yield builder.finish()
            continue
        if len(columns) != 2:
            raise UserError(
                f"has {len(columns)} columns, not 2",
                where=source.path,
                line=source.count,
                remedy="separate source and target by one tab",
            )
        builder.add(source.count, Sentence(columns[0].strip(), columns[1].strip()))
    if builder.sentences:
        yield builder.finish()


def write_tsv(documents: Iterable[Document], streams: Sequence[IO[str]], paths: Sequence[str | Path]) -> None:
    writer = LineWriter(streams[0], paths[0], "tsv")
    unique = UniqueIds()
    with_target: bool | None = None
    for number, document in enumerate(documents):
        unique.check(document, writer)
        if with_target is None:
            with_target = document.sentences[0].target is not None
        if number == 0 and HEADER in document.metadata:
            writer.write("\t".join(HEADERS[with_target]))
        for sentence in document.sentences:
            if (sentence.target is not None) != with_target:
                raise writer.refuse(f"targets for only some of the sentences (document {document.id!r})")
            columns = [document.id, sentence.source, *([sentence.target] if sentence.target is not None else [])]
            if any("\t" in column for column in columns):
                raise writer.refuse(f"a tab inside a sentence or id (document {document.id!r})")
            if number == 0 and columns in HEADERS:
                raise writer.refuse("a sentence that looks like the header")
            writer.write("\t".join(columns))
