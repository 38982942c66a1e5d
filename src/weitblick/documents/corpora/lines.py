"""One sentence a line: with blank lines, `<d>` lines, or a second file that tells where documents start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from weitblick.common.errors import UserError
from weitblick.documents.corpora.reading import (
    DocumentBuilder,
    IdentifiedLine,
    Inputs,
    LineWriter,
    Located,
    boundary_mismatch,
    group_by_document,
    pairs_of_lines,
    refuse_second_side,
    target_of,
)
from weitblick.documents.document import Document, Sentence

MOST_DIGITS = 18  # of a line number
OPENING = "<d>"

# Layout of a document's file, kept so that a translation has a line for every line of its input. Each is stored only
# where it differs from the plain layout: one boundary line between documents and none around them.
BLANK_BEFORE, BLANK_AFTER = "blank_lines_before", "blank_lines_after"
OPENINGS, OPENINGS_AFTER = "opening_lines", "opening_lines_after"


def read_text(inputs: Inputs) -> Iterator[Located]:
    """Sentence per line, blank lines between documents."""
    builder = DocumentBuilder()
    blank = 0
    before: int | None = None  # of the first document only
    for line, source, target in pairs_of_lines(inputs):
        source_is_blank = not source.strip()
        target_is_blank = source_is_blank if target is None else not target.strip()
        if source_is_blank != target_is_blank and not inputs.lenient:
            raise boundary_mismatch(inputs, line, "a blank line (a document boundary)", source_is_blank)
        if source_is_blank and target_is_blank:
            blank += 1
            continue
        if blank and builder.sentences:
            after = None if blank == 1 else blank
            yield builder.finish(metadata={BLANK_BEFORE: before, BLANK_AFTER: after})
            before = None
        elif blank:
            before = blank
        blank = 0
        builder.add(line, Sentence(source, target))
    if builder.sentences:
        yield builder.finish(metadata={BLANK_BEFORE: before, BLANK_AFTER: blank or None})


def read_d_lines(inputs: Inputs) -> Iterator[Located]:
    """Sentence per line, a line `<d>` opens each document (the paper's files). Empty lines are empty sentences."""
    builder = DocumentBuilder()
    openings, next_openings = 0, 0
    for line, source, target in pairs_of_lines(inputs):
        opens = source.strip() == OPENING
        torn = target is not None and opens != (target.strip() == OPENING)
        if torn and not inputs.lenient:
            raise boundary_mismatch(inputs, line, f"{OPENING} (a document boundary)", opens)
        if opens or torn:
            next_openings += 1
        if opens and not torn:
            continue
        if torn:
            source, target = ("", target) if opens else (source, "")
        if next_openings and builder.sentences:
            yield builder.finish(metadata={OPENINGS: None if openings == 1 else openings})
        if next_openings:
            openings, next_openings = next_openings, 0
        builder.add(line, Sentence(source, target))
    if builder.sentences:
        yield builder.finish(
            metadata={OPENINGS: None if openings == 1 else openings, OPENINGS_AFTER: next_openings or None}
        )


def _sides_and_side_file(inputs: Inputs, what: str) -> tuple[Inputs, Path | str, Iterator[str]]:
    if len(inputs.sources) < 2:
        raise UserError(f"{what} is missing", remedy=f"name the source, the target if there is one, and {what}")
    *sides, extra = inputs.sources
    return Inputs(tuple(sides), inputs.languages, inputs.lenient), extra.path, extra


def read_docids(inputs: Inputs) -> Iterator[Located]:
    """Sentence-per-line files and, last, a file with the document id of each line."""
    sides, path, ids = _sides_and_side_file(inputs, "the file of document ids")

    def rows() -> Iterator[IdentifiedLine]:
        for pair in pairs_of_lines(sides):
            document = next(ids, None)
            if document is None:
                raise UserError(
                    "has no document id", where=sides.sources[0].path, line=pair.line, remedy=f"complete {path}"
                )
            yield IdentifiedLine(pair.line, document, Sentence(pair.source, pair.target))
        if next(ids, None) is not None:
            count = sides.sources[0].count
            raise UserError(
                f"has no sentence: {sides.sources[0].path} ends after {count} lines",
                where=path,
                line=count + 1,
                remedy="one id for each sentence line",
            )

    yield from group_by_document(path, rows())


def read_starts(inputs: Inputs) -> Iterator[Located]:
    """Sentence-per-line files and, last, a file of the 0-based lines on which documents start (HAN_NMT)."""
    sides, path, numbers = _sides_and_side_file(inputs, "the file of document starts")
    starts = _start_lines(path, numbers)
    builder = DocumentBuilder()
    following = next(starts, None)
    if following != 0:
        raise UserError(f"the first start is {following}, not 0", where=path, line=1, remedy="count lines from 0")
    following = next(starts, None)
    for pair in pairs_of_lines(sides):
        if following is not None and pair.line - 1 == following:
            yield builder.finish()
            following = next(starts, None)
        builder.add(pair.line, Sentence(pair.source, pair.target))
    if following is not None:
        raise UserError(
            f"start {following} lies behind the last line of {sides.sources[0].path} ({sides.sources[0].count} lines)",
            where=path,
            remedy="use the starts that belong to this file",
        )
    if builder.sentences:
        yield builder.finish()


def _start_lines(path: str | Path, lines: Iterator[str]) -> Iterator[int]:
    previous = -1
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        digits = text.strip()
        if not digits.isdecimal() or len(digits) > MOST_DIGITS or int(digits) <= previous:
            raise UserError(f"{text!r} is not a line number above {previous}", where=path, line=number)
        previous = int(digits)
        yield previous


SideOf = Callable[[Sentence, LineWriter, Document], str]


def _source_of(sentence: Sentence, writer: LineWriter, document: Document) -> str:
    return sentence.source


def sides_of(streams: Sequence[IO[str]], paths: Sequence[str | Path], format: str) -> list[tuple[LineWriter, SideOf]]:
    """The writers of one or two sides and which side of a sentence each takes."""
    writers = [LineWriter(stream, path, format) for stream, path in zip(streams, paths, strict=True)]
    return list(zip(writers, (_source_of, target_of), strict=False))


def write_text(documents: Iterable[Document], streams: Sequence[IO[str]], paths: Sequence[str | Path]) -> None:
    """A sentence a line, blank lines between documents."""
    sides = sides_of(streams, paths, "text")
    after: int | None = None
    for number, document in enumerate(documents):
        if len(sides) == 1:
            refuse_second_side(document, sides[0][0])
        before = document.metadata.get(BLANK_BEFORE, 0) if number == 0 else max(1, after or 1)
        for writer, side in sides:
            _write_text_side(document, writer, side, before)
        after = document.metadata.get(BLANK_AFTER)
    _close_text(sides, after)


def _write_text_side(document: Document, writer: LineWriter, side: SideOf, blank_before: int) -> None:
    if not document.sentences:
        raise writer.refuse(f"document {document.id!r}, which has no sentence,")
    for _ in range(blank_before):
        writer.write("")
    for sentence in document.sentences:
        text = side(sentence, writer, document)
        if not text.strip():
            raise writer.refuse(
                f"an empty sentence (in document {document.id!r}), which would be a document boundary,",
                "write jsonl or d-lines",
            )
        if text.strip() == OPENING:
            raise writer.refuse(f"a sentence {OPENING}, which would be a document boundary,", "write jsonl")
        writer.write(text)


def _close_text(sides: list[tuple[LineWriter, SideOf]], blank_after: int | None) -> None:
    for writer, _ in sides:
        for _ in range(blank_after or 0):
            writer.write("")


def write_d_lines(documents: Iterable[Document], streams: Sequence[IO[str]], paths: Sequence[str | Path]) -> None:
    """A sentence a line, a line `<d>` before each document."""
    sides = sides_of(streams, paths, "d-lines")
    after = 0
    for number, document in enumerate(documents):
        openings = document.metadata.get(OPENINGS, 1)
        openings = openings if number == 0 else max(1, openings)  # only the first document can go unopened
        if len(sides) == 1:
            refuse_second_side(document, sides[0][0])
        for writer, side in sides:
            if not document.sentences:
                raise writer.refuse(f"document {document.id!r}, which has no sentence,")
            for _ in range(openings):
                writer.write(OPENING)
            for sentence in document.sentences:
                text = side(sentence, writer, document)
                if text.strip() == OPENING:
                    raise writer.refuse(f"a sentence {OPENING}, which would be a document boundary,")
                writer.write(text)
        after = document.metadata.get(OPENINGS_AFTER, 0)
    for writer, _ in sides:
        for _ in range(after):
            writer.write(OPENING)


def write_docids(documents: Iterable[Document], streams: Sequence[IO[str]], paths: Sequence[str | Path]) -> None:
    """A sentence a line, and a file with the document id of each."""
    if len(streams) < 2:
        raise UserError("the file of document ids is missing", where=paths[0], remedy="name it last among the outputs")
    sides = sides_of(streams[:-1], paths[:-1], "docids")
    ids = LineWriter(streams[-1], paths[-1], "docids")
    unique = UniqueIds()
    for document in documents:
        if len(sides) == 1:
            refuse_second_side(document, sides[0][0])
        unique.check(document, ids)
        for sentence in document.sentences:
            for writer, side in sides:
                writer.write(side(sentence, writer, document))
            ids.write(document.id)


class UniqueIds:
    """Formats that tell documents apart by their ids alone need each id once."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def check(self, document: Document, writer: LineWriter) -> None:
        if not document.sentences:
            raise writer.refuse(f"document {document.id!r}, which has no sentence,")
        if document.id in self._seen:
            raise writer.refuse(f"a second document with the id {document.id!r}", "make the ids unique")
        self._seen.add(document.id)


def write_plain_lines(documents: Iterable[Document], streams: Sequence[IO[str]], paths: Sequence[str | Path]) -> None:
    """One sentence a line and no boundaries: for formats that keep those in another file."""
    writer = LineWriter(streams[0], paths[0], "text")
    for document in documents:
        for sentence in document.sentences:
            writer.write(sentence.source)
