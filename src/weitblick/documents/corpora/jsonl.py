"""JSONL: one document a line, exactly: ids, metadata, status and empty sentences come back as they were."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn, get_args

from weitblick.documents.corpora.reading import Inputs, Located
from weitblick.documents.corpora.writing import LineWriter
from weitblick.documents.document import Document, Sentence, TargetStatus
from weitblick.errors import UserError
from weitblick.files import check_format_version

FORMAT_VERSION = 1
DOCUMENT_KEYS = {"format_version", "id", "sentences", "metadata"}
SENTENCE_KEYS = {"source", "target", "status", "id", "metadata"}


def read_jsonl(inputs: Inputs) -> Iterator[Located]:
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
        except (json.JSONDecodeError, RecursionError) as error:
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
