"""Corpora of records: JSONL, which keeps documents exactly, and tables with a sentence a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn, get_args

from weitblick.common.errors import UserError
from weitblick.common.files import check_format_version
from weitblick.documents.corpora.lines import UniqueIds
from weitblick.documents.corpora.reading import (
    DocumentBuilder,
    IdentifiedLine,
    Inputs,
    LineSource,
    LineWriter,
    Located,
    group_by_document,
)
from weitblick.documents.document import Document, Sentence, TargetStatus

FORMAT_VERSION = 1
DOCUMENT_KEYS = {"format_version", "id", "sentences", "metadata"}
SENTENCE_KEYS = {"source", "target", "status", "id", "metadata"}


def read_jsonl(inputs: Inputs) -> Iterator[Located]:
    """Documents of JSONL."""
    source = inputs.sources[0]
    for line in source:
        if line.strip():
            document = _Line(source.path, source.count).document(line)
            yield Located(document, (source.count,) * len(document.sentences))


class _Line:
    """Turns one line into a document and names that line whatever is wrong with it."""

    def __init__(self, path: str | Path, number: int) -> None:
        self.path, self.number = path, number

    def fail(self, message: str, remedy: str = "see docs/formats.md for the fields") -> NoReturn:
        raise UserError(message, where=self.path, line=self.number, remedy=remedy)

    def document(self, line: str) -> Document:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:  # also numbers without end
            self.fail(f"not JSON ({error})", "write one JSON object a line")
        if not isinstance(value, dict):
            self.fail("is not a JSON object", "write one document, a JSON object, a line")
        if "format_version" not in value:
            self.fail("has no `format_version`, and is no document of ours")
        check_format_version(value, FORMAT_VERSION, f"{self.path}:{self.number}")
        self.keys(value, DOCUMENT_KEYS, "a document")
        sentences = value.get("sentences")
        if not isinstance(sentences, list):
            self.fail("`sentences` is not a list")
        return Document(
            self.string(value, "id", "the document", required=True),
            tuple(self.sentence(sentence, number) for number, sentence in enumerate(sentences, 1)),
            self.metadata(value, "the document"),
        )

    def sentence(self, value: Any, number: int) -> Sentence:
        name = f"sentence {number}"
        if not isinstance(value, dict):
            self.fail(f"{name} is not a JSON object")
        self.keys(value, SENTENCE_KEYS, name)
        status = value.get("status")
        if status is not None and status not in get_args(TargetStatus):
            self.fail(f"status of {name} is {status!r}", "use draft, locked or null")
        target = self.string(value, "target", name)
        if status is not None and target is None:
            self.fail(f"{name} is {status} but has no target", "give its target or leave the status out")
        return Sentence(
            self.string(value, "source", name, required=True),
            target,
            status,
            self.string(value, "id", name),
            self.metadata(value, name),
        )

    def keys(self, value: Mapping[str, Any], known: set[str], name: str) -> None:
        if unknown := set(value) - known:
            self.fail(f"unknown field {min(unknown)!r} in {name}", f"use {', '.join(sorted(known))}")

    def string(self, value: Mapping[str, Any], key: str, name: str, *, required: bool = False) -> Any:
        text = value.get(key)
        if text is None and not required:
            return None
        if not isinstance(text, str):
            self.fail(f"`{key}` of {name} is {text!r}, not a string")
        if "\0" in text:
            self.fail(f"NUL character in `{key}` of {name}", "remove it")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            self.fail(f"`{key}` of {name} holds half of a surrogate pair", "mend the text: it is not Unicode")
        return text

    def metadata(self, value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        metadata = value.get("metadata", {})
        if not isinstance(metadata, dict):
            self.fail(f"`metadata` of {name} is not a JSON object")
        return metadata


def write_jsonl(documents: Iterable[Document], streams: Sequence[IO[str]], paths: Sequence[str | Path]) -> None:
    """Documents as JSONL."""
    writer = LineWriter(streams[0], paths[0], "jsonl")
    for document in documents:
        value: dict[str, Any] = {"format_version": FORMAT_VERSION, "id": document.id}
        if document.metadata:
            value["metadata"] = dict(document.metadata)
        value["sentences"] = [_sentence_value(sentence) for sentence in document.sentences]
        try:
            line = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise writer.refuse(f"metadata of document {document.id!r} ({error})", "use JSON values") from None
        if "\\u0000" in line and any("\0" in text for text in _texts(document)):  # the reader would refuse it
            raise writer.refuse(f"a NUL character in document {document.id!r}", "remove it")
        writer.write(line)


def _texts(document: Document) -> Iterator[str]:
    yield document.id
    for sentence in document.sentences:
        yield from (text for text in (sentence.source, sentence.target, sentence.id) if text is not None)


def _sentence_value(sentence: Sentence) -> dict[str, Any]:
    fields = {"source": sentence.source, "target": sentence.target, "status": sentence.status, "id": sentence.id}
    value: dict[str, Any] = {key: field for key, field in fields.items() if field is not None}
    if sentence.metadata:
        value["metadata"] = dict(sentence.metadata)
    return value


# Formats with several columns a line: TSV with a document id, the original's `id ||| source ||| target`, and
# News-Commentary's source and target columns with an empty line between documents.

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
