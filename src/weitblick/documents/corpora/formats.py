"""The file formats of documents, in one table, and the functions that read and write them."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD, text_writers
from weitblick.common.imports import lazy
from weitblick.documents.corpora.lines import (
    read_d_lines,
    read_docids,
    read_starts,
    read_text,
    write_d_lines,
    write_docids,
    write_plain_lines,
    write_text,
)
from weitblick.documents.corpora.reading import Inputs, LineSource, Located
from weitblick.documents.document import Document

Reader = Callable[[Inputs], Iterator[Located]]
Writer = Callable[[Iterable[Document], Sequence[IO[str]], Sequence[str | Path]], None]


@dataclass(frozen=True)
class Format:
    """One row of the table.

    `files` says what the paths are. `write` is None where we only read. `write_side` writes one side of a corpus in
    this layout; None: the format holds source and target in one file.
    """

    name: str
    what: str
    files: str
    read: Reader
    write: Writer | None = None
    write_side: Writer | None = write_text

    @property
    def most(self) -> int:
        """How many paths there can be."""
        return len(self.files.split())


def _lazy(name: str) -> Any:
    return lazy(f"documents.corpora.{name}")


LINES, WITH_IDS, WITH_STARTS = "SOURCE [TARGET]", "SOURCE [TARGET] IDS", "SOURCE [TARGET] STARTS"
IDS, STARTS = "and a file with the document id of each line", "and a file of the 0-based lines on which documents start"
_jsonl, _tsv, _tmx, _prose = (
    (_lazy(f"{module}.read_{name}"), _lazy(f"{module}.write_{name}"))
    for module, name in (("records", "jsonl"), ("records", "tsv"), ("tmx", "tmx"), ("prose", "prose"))
)
_sets = _lazy("evaluation_sets.read_sets")
_ROWS = (
    Format("text", "a sentence a line, blank lines between documents", LINES, read_text, write_text),
    Format("d-lines", "a sentence a line, a line <d> opens each document", LINES, read_d_lines, *[write_d_lines] * 2),
    Format("jsonl", "a document a line, exact", "FILE", *_jsonl, None),
    Format("tsv", "columns: document id, source, target", "FILE", *_tsv, None),
    Format("tmx", "a translation memory", "FILE", *_tmx, None),
    Format("docids", f"a sentence a line, {IDS}", WITH_IDS, read_docids, write_docids, write_plain_lines),
    Format("prose", "plain text, one document a file", LINES, *_prose, _prose[1]),
    Format("starts", f"a sentence a line, {STARTS} (HAN_NMT)", WITH_STARTS, read_starts, None, write_plain_lines),
    Format("ids", "id ||| source ||| target (the original code's)", "FILE", _lazy("records.read_ids")),
    Format(
        *("news-commentary", "columns: source, target; empty lines between documents", "FILE"),
        _lazy("records.read_news_commentary"),
    ),
    Format("ted-xml", "IWSLT/WIT3 development and test sets", LINES, _sets),
    Format("ted-tags", "IWSLT/WIT3 train.tags files", LINES, _lazy("evaluation_sets.read_ted_tags")),
    Format("wmt-sgm", "WMT sets up to 2020", LINES, _sets),
    Format("wmt-xml", "WMT sets since 2021", "FILE", _lazy("evaluation_sets.read_wmt_xml")),
    Format("opus", "Europarl in OPUS: xces links and XML files", "LINKS [FOLDER]", _lazy("opus.read_opus")),
)
CORPUS_FORMATS: dict[str, Format] = {row.name: row for row in _ROWS}


def format_named(name: str) -> Format:
    """The format of a name; an unknown one is refused."""
    if name not in CORPUS_FORMATS:
        from difflib import get_close_matches

        close = get_close_matches(name, CORPUS_FORMATS, 1, 0.4)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UserError(f"unknown format {name!r}", remedy=f"{hint}formats: {', '.join(CORPUS_FORMATS)}")
    return CORPUS_FORMATS[name]


class Corpus:
    """A corpus about to be read, once: its format is known, its documents are streamed."""

    def __init__(
        self,
        paths: Sequence[str | Path],
        format: str | None = None,
        *,
        languages: tuple[str, str] | None = None,
        lenient: bool = False,
    ) -> None:
        if not paths:
            raise UserError("no input is named", remedy="name a file, or - for standard input")
        if [str(path) for path in paths].count(STANDARD) > 1:
            raise UserError("standard input (-) is named twice", remedy="put the other side in a file")
        self.paths = list(paths)
        sources = tuple(LineSource(path) for path in paths)
        self.format = format_named(format or _guess(paths, sources[0].peek))
        if len(paths) > self.format.most:
            raise UserError(
                f"{len(paths)} inputs, but format {self.format.name} reads {self.format.files}",
                where=paths[-1],
                remedy="name fewer files or another format",
            )
        self._inputs = Inputs(sources, languages, lenient)

    def located(self) -> Iterator[Located]:
        """The documents and the lines of their sentences. A corpus without a single document is an error."""
        empty = True
        for located in self.format.read(self._inputs):
            empty = False
            yield located
        if empty:
            raise UserError("holds no document", where=self.paths[0], remedy="name a file with at least one sentence")

    def lines_read(self) -> list[int]:
        """How many lines of each file have been read so far."""
        return [source.count for source in self._inputs.sources]

    def __iter__(self) -> Iterator[Document]:
        return (located.document for located in self.located())


def read_documents(
    paths: Sequence[str | Path], format: str | None = None, *, languages: tuple[str, str] | None = None
) -> Iterator[Document]:
    """Stream the documents of a corpus: one path (source only, or a format that holds both sides), two (source and
    target), or as the format says; `-` is standard input. Without a format it is guessed. `languages` (source,
    target) matter to prose and to files that hold several languages."""
    return iter(Corpus(paths, format, languages=languages))


def write_documents(
    documents: Iterable[Document],
    paths: Sequence[str | Path],
    format: str | None = None,
    *,
    languages: tuple[str, str] | None = None,
) -> None:
    """Write a corpus; all outputs appear together when complete, or none does. Without a format, by the names.
    `languages` (source, target) matter to formats that name them."""
    chosen = format_named(format or _guess(paths, lambda: ""))
    if chosen.write is None:
        writable = ", ".join(name for name, row in CORPUS_FORMATS.items() if row.write)
        raise UserError(f"format {chosen.name} is read only", remedy=f"write one of {writable}")
    if not 1 <= len(paths) <= chosen.most:
        raise UserError(
            f"{len(paths)} outputs, but format {chosen.name} writes {chosen.files}", remedy="name the outputs it needs"
        )
    if languages and chosen.name == "tmx":
        from weitblick.documents.corpora.tmx import with_languages

        documents = (with_languages(document, languages) for document in documents)
    with text_writers(paths) as streams:
        chosen.write(documents, streams, paths)


def write_translations(documents: Iterable[Document], path: str | Path, format: str) -> None:
    """Write the targets of translated documents in the layout they were read in.

    Formats that hold both sides are written whole, with the targets filled in. Of the others the target side is
    written: a line for every line of the source file (text, d-lines, docids, starts) or the same paragraphs (prose).
    From read-only formats comes blank-line text.
    """
    chosen = format_named(format)
    if chosen.write_side is None:
        write_documents(documents, [path], format)
        return
    with text_writers([path]) as streams:
        chosen.write_side((_target_as_source(document) for document in documents), streams, [path])


def _target_as_source(document: Document) -> Document:
    missing = next((number for number, s in enumerate(document.sentences, 1) if s.target is None), None)
    if missing is not None:
        raise ValueError(f"sentence {missing} of document {document.id!r} has not been translated")
    return replace(
        document,
        sentences=tuple(replace(s, source=s.target or "", target=None, status=None) for s in document.sentences),
    )


def guess_format(paths: Sequence[str | Path]) -> str:
    """The format of existing inputs by their names and first line; nothing is consumed, not even of standard input."""
    return _guess(paths, lambda: _first_line(paths[0]))


def _first_line(path: str | Path) -> str:
    if str(path) == STANDARD:
        import sys

        stream = sys.stdin.buffer
        start = stream.peek() if hasattr(stream, "peek") else b""
        text = start.decode("utf-8", "replace").removeprefix("\ufeff")
        return next((line for line in text.splitlines() if line.strip()), "")
    if Path(path).exists() and not stat.S_ISREG(Path(path).stat().st_mode) and not Path(path).is_dir():
        return ""  # a pipe can be read only once
    return LineSource(path).peek()


ENDINGS = {
    ".jsonl": "jsonl",
    ".tsv": "tsv",
    ".tmx": "tmx",
    ".docids": "docids",
    ".starts": "starts",
    ".doc": "starts",
    ".sgm": "wmt-sgm",
    ".sgml": "wmt-sgm",
}
ROOTS = {
    "<tmx": "tmx",
    "<mteval": "ted-xml",
    "<dataset": "wmt-xml",
    "<cesAlign": "opus",
    "<srcset": "wmt-sgm",
    "<refset": "wmt-sgm",
}


def _guess(paths: Sequence[str | Path], first_line: Callable[[], str]) -> str:
    first_name = Path(paths[0]).name
    name = Path(paths[-1]).name.removesuffix(".gz").removesuffix(".xz")
    if first_name.startswith("train.tags."):
        return "ted-tags"
    ending = Path(name).suffix
    if ending == ".doc" and len(paths) == 1:  # HAN's lists of starts come with a text
        raise UserError("is a file of an old Word", where=paths[0], remedy="save it as .docx, or as text")
    if ending in ENDINGS:
        return ENDINGS[ending]
    first = first_line().strip()
    if first == "<d>":
        return "d-lines"
    if first.startswith("{") and '"format_version"' in first:
        return "jsonl"
    if first.startswith(("<?xml", "<!DOCTYPE", *ROOTS)):
        return next((format for root, format in ROOTS.items() if root in first), "ted-xml")
    if len(paths) == 1 and first.count(" ||| ") in (1, 2) and first.split(" ||| ")[0].isdecimal():
        return "ids"
    return "text"
