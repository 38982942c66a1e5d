"""Files that clients send and fetch: uploads, exports (the file itself, TMX, XLIFF, JSONL), memories to import.

The name that a client gives is never a path here: only its ending is looked at, and all work happens in a folder of
our own that is gone afterwards.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from weitblick.common.errors import UserError
from weitblick.documents.corpora.formats import write_documents
from weitblick.documents.document import Document, Sentence
from weitblick.files.blocks import Note
from weitblick.files.encoding import name_of, unwritable
from weitblick.files.formats import FILE_FORMATS, read_file
from weitblick.files.masked_document import Align
from weitblick.files.translatable_file import TranslatableFile
from weitblick.memory.reading import read_pairs as read_memory
from weitblick.text.carried import Alphabet
from weitblick.workbench.errors import Refused
from weitblick.workbench.parameters import Languages
from weitblick.workbench.review_files import mark_of, review_table
from weitblick.workbench.schema import Comment, Segment

ENDING = re.compile(r"\.[A-Za-z0-9]{1,10}$")
MOST_NAME = 200


def file_name(name: str | None) -> str:
    """The last part of a name, whatever system it comes from, without what cannot be shown."""
    last = PurePosixPath(PureWindowsPath(name or "").name).name
    shown = "".join(letter for letter in last if letter.isprintable()).strip()
    return shown[-MOST_NAME:] or "document.txt"


def file_endings() -> list[str]:
    """Of all files that can be read."""
    return [ending for format in FILE_FORMATS.values() for ending in format.endings]


def read_upload(
    name: str,
    content: bytes,
    language: str,
    alphabet: Alphabet | None = None,
    *,
    target_language: str | None = None,
    numbers: bool = True,
) -> TranslatableFile:
    """A file, read as its ending and its content say; `numbers`: with table cells that are numbers."""
    with own_folder(name) as folder:
        ending = ENDING.search(name)
        path = folder / f"document{ending.group().lower() if ending else '.txt'}"
        path.write_bytes(content)
        return read_file(path, language=language, alphabet=alphabet, target_language=target_language, numbers=numbers)


def read_again(
    name: str, content: bytes, sources: Sequence[str], language: str, alphabet: Alphabet | None = None
) -> TranslatableFile:
    """The file of a document whose rows have these sources; of one that was added before numbers were rows, without
    them."""
    file = read_upload(name, content, language, alphabet)
    if file.document.sources == list(sources):
        return file
    return read_upload(name, content, language, alphabet, numbers=False)


def translated_name(name: str, language: str) -> str:
    """report.docx -> report.de.docx"""
    ending = ENDING.search(name)
    return f"{name[: ending.start()]}.{language}{ending.group()}" if ending else f"{name}.{language}"


@contextmanager
def own_folder(name: str) -> Iterator[Path]:
    """A folder of our own; errors about files in it name the client's file instead."""
    with tempfile.TemporaryDirectory(prefix="weitblick-") as folder:
        try:
            yield Path(folder)
        except UserError as error:
            if error.where is None or not str(error.where).startswith(folder):
                raise
            raise UserError(error.message, where=name, line=error.line, remedy=error.remedy) from None


# Documents as they leave the workbench: the translated file itself, TMX, XLIFF or JSONL.

EXPORTS = ("file", "tmx", "xliff", "jsonl", "review")
XLIFF_STATES = {
    "empty": "new",
    "draft": "needs-review-translation",
    "edited": "needs-review-translation",
    "confirmed": "translated",
    "reviewed": "final",
}
"""What rows are called in XLIFF."""


class Exported(NamedTuple):
    """A document that is exported."""

    id: str
    name: str
    rows: Sequence[Segment]


def export(kind: str, name: str, documents: Sequence[Exported], languages: Languages) -> tuple[str, bytes]:
    """The name and the content of an export of rows. A memory holds confirmed rows only: whoever reads it takes them
    for approved."""
    if kind not in ("xliff", "tmx", "jsonl", "review"):
        raise Refused(404, f"no export {kind[:50]!r}: there are {', '.join(EXPORTS)}")
    _check_holdable(kind, documents)
    if kind == "xliff":
        return f"{name}.xlf", _xliff(documents, languages).encode()
    if kind == "review":
        if len(documents) != 1:
            raise Refused(404, "a review is of one document: export it there")
        return f"{name}.review.docx", review_table(*documents[0], languages)
    kept = [_document(title, rows, only_confirmed=kind == "tmx") for _, title, rows in documents]
    if kind == "tmx" and not any(document.sentences for document in kept):
        raise Refused(409, "no row is confirmed yet, and a memory holds confirmed rows only")
    with own_folder(f"{name}.{kind}") as folder:
        path = folder / f"export.{kind}"
        write_documents(kept, [path], kind, languages=(languages.source, languages.target))
        return f"{name}.{kind}", path.read_bytes()


def _check_holdable(kind: str, documents: Sequence[Exported]) -> None:
    """Refuses rows with characters that the export could not hold: nothing is left out in silence."""
    where = "Word" if kind == "review" else kind.upper()
    for _, title, rows in documents:
        for row in rows:
            if kind == "tmx" and not row.is_approved:
                continue
            comments = [("comment", one.text) for one in row.comments] if kind in ("xliff", "review") else []
            for side, text in (("source", row.source), ("translation", row.target), *comments):
                for place, character in unwritable("docx" if kind == "review" else kind, text):
                    raise Refused(
                        409,
                        f"{title}: the {side} of row {row.position + 1} has {name_of(character)} at character "
                        f"{place + 1}, which {where} cannot hold: remove it, or export JSONL",
                    )


def export_file(
    name: str, rows: Sequence[Segment], content: bytes, languages: Languages, align: Align
) -> tuple[str, bytes]:
    """The file that was uploaded, with what the rows say now, under its new name."""
    missing = next((row.position for row in rows if row.state == "empty"), None)
    if missing is not None:
        raise Refused(409, f"row {missing + 1} is not translated yet")
    return translated_name(name, languages.target), render_file(name, rows, content, languages, align)[1]


def render_file(
    name: str, rows: Sequence[Segment], content: bytes, languages: Languages, align: Align
) -> tuple[TranslatableFile, bytes, list[str]]:
    """The file that was uploaded, its bytes with what the rows say now, and what a reader should know of that. `align`
    places its tags."""
    file = read_again(name, content, [row.source for row in rows], languages.source)
    if file.document.sources != [row.source for row in rows]:
        raise Refused(409, "the file is read in another way than when it was uploaded: upload it again")
    sentences = tuple(
        replace(sentence, target=row.target, status="locked" if row.is_approved else "draft")
        for sentence, row in zip(file.document.sentences, rows, strict=True)
    )
    reviewed = {row.position for row in rows if row.state == "reviewed"}
    comments = {row.position: [Note(one.text, one.person) for one in row.comments] for row in rows}
    placed = {row.position: row.placed for row in rows if row.placed}
    return file, *file.rendered(replace(file.document, sentences=sentences), align, reviewed, comments, placed)


def _document(name: str, rows: Sequence[Segment], only_confirmed: bool) -> Document:
    sentences = tuple(
        Sentence(row.source)
        if row.state == "empty"
        else Sentence(row.source, row.target, "locked" if row.is_approved else "draft")
        for row in rows
        if row.is_approved or not only_confirmed
    )
    return Document(name, sentences)


def _xliff(documents: Sequence[Exported], languages: Languages) -> str:
    """XLIFF 1.2: a unit for each row, with what its state is called there."""
    pair = f"source-language={quoteattr(languages.source)} target-language={quoteattr(languages.target)}"
    files = [
        f'  <file original={quoteattr(name)} {pair} datatype="plaintext">\n    <body>\n'
        + "".join(_unit(document, row) for row in rows)
        + "    </body>\n  </file>\n"
        for document, name, rows in documents
    ]
    head = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{"".join(files)}</xliff>\n'


def _unit(document: str, row: Segment) -> str:
    state = XLIFF_STATES[row.state]
    target = f'<target state="{state}">{escape(row.target)}</target>' if row.target else ""
    inside = f"<source>{escape(row.source)}</source>{target}" + "".join(map(_note, row.comments))
    approved = ' approved="yes"' if row.state == "reviewed" else ""
    return f'      <trans-unit id="{mark_of(document, row)}"{approved} xml:space="preserve">{inside}</trans-unit>\n'


def _note(comment: Comment) -> str:
    by = f" from={quoteattr(comment.person)}" if comment.person else ""
    return f"<note{by}>{escape(comment.text)}</note>"


# Memories and glossaries that are brought along: TMX, JSONL, or tables with columns of source and target.


def read_pairs(name: str, content: bytes, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """Source and target of every pair of a file."""
    ending = ENDING.search(name.lower())
    with own_folder(name) as folder:
        path = folder / f"memory{ending.group() if ending else '.tsv'}"
        path.write_bytes(content)
        return [(source, target) for source, target, _ in read_memory(path, languages)]
