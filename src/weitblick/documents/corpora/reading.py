"""What all readers share: peekable lines, sentences that know their line, two sides read in step."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, NamedTuple

from weitblick.common.errors import UserError
from weitblick.common.files import read_lines
from weitblick.documents.document import Document, Sentence

MOST_LINES_PEEKED = 1000
PROLOGUE = ("<?xml", "<!DOCTYPE", "<!--")
ROOT = re.compile(r"<\w+")


class Located(NamedTuple):
    """A document and, for each of its sentences, the 1-based line of the source file it came from."""

    document: Document
    lines: tuple[int, ...]


class LineSource:
    """The lines of one file, which may be looked at before they are consumed (so that pipes work, too)."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.count = 0  # lines consumed so far
        self._lines = read_lines(path)
        self._peeked: deque[str] = deque()

    def peek(self) -> str:
        """The first line that is not blank, or an empty string; of XML all up to the tag of its root element."""
        text = "\n".join(self._peeked)
        while not text.strip() or (text.lstrip().startswith(PROLOGUE) and not ROOT.search(text)):
            line = next(self._lines, None)
            if line is None:
                break
            self._peeked.append(line)
            text += line + "\n"
            if len(self._peeked) == MOST_LINES_PEEKED:
                break
        return text.strip()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._peeked.popleft() if self._peeked else next(self._lines)
        self.count += 1
        return line


@dataclass(frozen=True)
class Inputs:
    """What a reader is given: its files and how to read them.

    `lenient` lets `check` see everything: a sentence whose other side is missing is read as an empty one instead of
    being refused.
    """

    sources: tuple[LineSource, ...]
    languages: tuple[str, str] | None = None
    lenient: bool = False


class Pair(NamedTuple):
    line: int
    source: str
    target: str | None


def pairs_of_lines(inputs: Inputs) -> Iterator[Pair]:
    """The lines of one side, or of both in step; sides of different length are an error at the first line too many."""
    source, *others = inputs.sources
    if not others:
        for line in source:
            yield Pair(source.count, line, None)
        return
    target = others[0]
    for source_line, target_line in zip_longest(source, target):
        if (source_line is None or target_line is None) and not inputs.lenient:
            longer, shorter = (source, target) if target_line is None else (target, source)
            raise UserError(
                f"has no counterpart: {shorter.path} ends after {shorter.count} lines",
                where=longer.path,
                line=longer.count,
                remedy="align the two sides line by line",
            )
        yield Pair(max(source.count, target.count), source_line or "", target_line or "")


def boundary_mismatch(inputs: Inputs, line: int, what: str, source_has_it: bool) -> UserError:
    having, lacking = inputs.sources[:2] if source_has_it else reversed(inputs.sources[:2])
    return UserError(
        f"{what} in {having.path}, but not here" if source_has_it else f"{what}, but not in {lacking.path}",
        where=lacking.path if source_has_it else having.path,
        line=line,
        remedy="both sides need the same document boundaries",
    )


class DocumentBuilder:
    """Collects the sentences of the document being read."""

    def __init__(self) -> None:
        self.finished = 0
        self.sentences: list[Sentence] = []
        self.lines: list[int] = []

    def add(self, line: int, sentence: Sentence) -> None:
        self.sentences.append(sentence)
        self.lines.append(line)

    def finish(self, id: str | None = None, metadata: Mapping[str, Any] | None = None) -> Located:
        """The document so far; without an id of its own it is called by its number. Metadata of None is left out."""
        self.finished += 1
        known = {key: value for key, value in (metadata or {}).items() if value is not None}
        located = Located(Document(id or str(self.finished), tuple(self.sentences), known), tuple(self.lines))
        self.sentences, self.lines = [], []
        return located


class IdentifiedLine(NamedTuple):
    line: int
    document: str
    sentence: Sentence


def group_by_document(
    path: str | Path, rows: Iterable[IdentifiedLine], metadata: Mapping[str, Any] | None = None
) -> Iterator[Located]:
    """Runs of equal document ids become documents; an id that returns later is an error, not a silent merge.

    `metadata` belongs to the first document, as that of the whole file.
    """
    builder = DocumentBuilder()
    current: str | None = None
    seen: set[str] = set()
    for row in rows:
        if row.document != current:
            if current is not None:
                yield builder.finish(current, metadata)
                metadata = None
            if row.document in seen:
                raise UserError(
                    f"document {row.document!r} has ended before and goes on here",
                    where=path,
                    line=row.line,
                    remedy="keep the lines of a document together, or give the second part an id of its own",
                )
            current = row.document
            seen.add(current)
        builder.add(row.line, row.sentence)
    if current is not None:
        yield builder.finish(current, metadata)


# What all writers share: lines that the reader gives back as they were, or a refusal that names the line.

BYTE_ORDER_MARK = "\ufeff"


class LineWriter:
    """Writes lines to one output and refuses what a line cannot hold, by the number the line would have."""

    def __init__(self, stream: IO[str], path: str | Path, format: str) -> None:
        self.stream, self.path, self.format, self.count = stream, path, format, 0

    def refuse(self, what: str, remedy: str = "write jsonl, which holds everything") -> UserError:
        return UserError(
            f"{what} cannot be written as {self.format}", where=self.path, line=self.count + 1, remedy=remedy
        )

    def check(self, line: str) -> None:
        if "\n" in line or line.endswith("\r"):
            raise self.refuse("a line break inside a sentence")
        if "\0" in line:
            raise self.refuse("a NUL character", "remove it")
        if self.count == 0 and line.startswith(BYTE_ORDER_MARK):
            raise self.refuse("a byte-order mark at the start of the text", "remove it")
        try:
            line.encode("utf-8")
        except UnicodeEncodeError:
            raise self.refuse("half of a surrogate pair", "mend the text: it is not Unicode") from None

    def write(self, line: str) -> None:
        self.check(line)
        self.stream.write(line)
        self.stream.write("\n")
        self.count += 1


def target_of(sentence: Sentence, writer: LineWriter, document: Document) -> str:
    if sentence.target is None:
        raise writer.refuse(
            f"a sentence without a target (in document {document.id!r})", "give one output to write the source only"
        )
    return sentence.target


def refuse_second_side(document: Document, writer: LineWriter) -> None:
    """With one output only the source is written: losing targets silently is not an option."""
    if any(sentence.target is not None for sentence in document.sentences):
        raise writer.refuse(
            f"the target side of document {document.id!r} with a single output", "name a second output for the targets"
        )


# A corpus in a folder: which files are its train, dev or test part.

COMPRESSIONS = ("", ".gz", ".xz")
WHOLE = ("jsonl", "tsv", "tmx")
"""Endings of files that hold both sides."""


def files_of_part(folder: str | Path, part: str, languages: tuple[str, str]) -> list[str]:
    """`train.en train.de`, or one file of both sides such as `train.tsv`, or what `data split` calls them without
    knowing languages. If there is none of these, the first, for the message that it is missing."""
    choices = [
        [f".{language}" for language in languages],
        *([f".{ending}"] for ending in WHOLE),
        [".source", ".target"],
    ]
    for endings in choices:
        paths = [_with_compression(f"{folder}/{part}{ending}") for ending in endings]
        if all(Path(path).is_file() for path in paths):
            return paths
    return [f"{folder}/{part}{ending}" for ending in choices[0]]


def _with_compression(path: str) -> str:
    return next((path + ending for ending in COMPRESSIONS if Path(path + ending).is_file()), path)
