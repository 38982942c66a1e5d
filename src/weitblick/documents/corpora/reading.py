"""What all readers share: peekable lines, sentences that know their line, two sides read in step."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from weitblick.documents.document import Document, Sentence
from weitblick.errors import UserError
from weitblick.files import read_lines

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
