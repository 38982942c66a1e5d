"""The table of file formats, and how to tell which of them a file has."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD
from weitblick.common.imports import lazy
from weitblick.documents.corpora.formats import ENDINGS, ROOTS
from weitblick.files.encoding import MARKS, read_bytes
from weitblick.text.carried import Alphabet, carried_spans

if TYPE_CHECKING:
    from weitblick.files.translatable_file import Content, TranslatableFile


@dataclass(frozen=True)
class FileFormat:
    """One row of the table: its name, what it is, the endings of its files, its reader, and how its text begins."""

    name: str
    what: str
    endings: tuple[str, ...]
    read: Callable[[bytes, Path], Content]
    begins: str | None = None


FILE_FORMATS: dict[str, FileFormat] = {
    row.name: row
    for row in (
        FileFormat(
            "srt",
            "SubRip subtitles",
            (".srt",),
            lazy("files.subtitles.read_srt"),
            r"(?:\d+\s*\n)?\d+:\d+:\d+[,.]\d+ *--> *\d",
        ),
        FileFormat("vtt", "WebVTT subtitles", (".vtt",), lazy("files.subtitles.read_webvtt"), r"WEBVTT(?:\s|\Z)"),
        FileFormat(
            "ass",
            "SubStation Alpha subtitles",
            (".ass", ".ssa"),
            lazy("files.subtitles.read_ass"),
            r"\[Script Info\]",
        ),
        FileFormat("docx", "Word", (".docx", ".docm", ".dotx"), lazy("files.office.read_docx")),
        FileFormat(
            "pptx",
            "PowerPoint",
            (".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"),
            lazy("files.slides.read_pptx"),
        ),
        FileFormat("xlsx", "Excel", (".xlsx", ".xlsm", ".xltx", ".xltm"), lazy("files.sheets.read_xlsx")),
        FileFormat("odt", "OpenDocument text", (".odt", ".ott"), lazy("files.office.read_odt")),
        FileFormat(
            "xliff",
            "XLIFF 1.2 and 2.x",
            (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"),
            lazy("files.xliff.read_xliff"),
            r"(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<xliff",
        ),
        FileFormat("po", "gettext catalogues", (".po", ".pot"), lazy("files.po.read_po"), r"(?:#.*\n)*msgid\s"),
        FileFormat("markdown", "Markdown", (".md", ".markdown", ".mdx"), lazy("files.markdown.read_markdown")),
        FileFormat(
            "html",
            "HTML",
            (".html", ".htm", ".xhtml"),
            lazy("files.html.read_html"),
            r"(?i)(?:<\?xml[^>]*>\s*)?<(?:!doctype html|html)\b",
        ),
        FileFormat("json", "JSON of localisation", (".json", ".arb"), lazy("files.messages.read_json")),
        FileFormat("csv", "CSV of localisation", (".csv",), lazy("files.csv.read_csv")),
        FileFormat("txt", "plain text, a line for a line", (".txt", ".text"), lazy("files.text.read_text_file")),
    )
}
UNREAD = {
    ".doc": "an old Word file",
    ".pdf": "PDF",
    ".ppt": "an old PowerPoint file",
    ".xls": "an old Excel file",
    ".xlsb": "a binary Excel file",
    ".rtf": "rich text",
    ".epub": "an e-book",
    ".pages": "a Pages file",
}
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How files of old Office programs begin, and new ones with a password."""
BEGINNINGS = ((b"%PDF", "PDF"), (OLE, "an old Office file, or one with a password"), (b"{\\rtf", "rich text"))
PEEKED = 64 * 1024
LINE_END = re.compile(r"\r\n|\n|\r")
ENDED = re.compile(r"[.!?:;…][\"'”’»)\]]*\s*$")
SEVERAL = re.compile(r"[.!?…][\"'”’»)\]]*\s+[\"'“‘«(]?[A-ZÄÖÜ]")  # where a second sentence begins
MOST_SEVERAL, LEAST_ENDED = 0.2, 0.85  # shares of lines; of five corpora the worst have 0.15 and 0.94


def format_of(path: str | Path, data: bytes | None = None) -> str | None:
    """The name of a file's format, by its name and content. None: a corpus, in one of the formats of
    `weitblick.documents`, as far as can be told. What cannot be read is refused, by name."""
    path = Path(path)
    if data is None and str(path) != STANDARD and path.exists() and not path.is_file():
        return None  # a pipe, which can be read only once
    start = read_bytes(path, PEEKED) if data is None else data[:PEEKED]
    ending = path.suffix.lower()
    row = next((row for row in FILE_FORMATS.values() if ending in row.endings), None)
    if row is not None and row.name != "txt":
        return row.name
    kind = next((kind for beginning, kind in BEGINNINGS if start.startswith(beginning)), None)
    if kind or (ending in UNREAD and not _is_text(start)):
        raise _unread(path, kind or UNREAD[ending])
    if start.startswith(b"PK\x03\x04"):
        return _package(path, read_bytes(path) if data is None else data)
    if ending in (".gz", ".xz", *ENDINGS) and ending != ".doc":
        return None
    if not _is_text(start):
        raise _unread(path, "a binary file")
    text = start.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    for row in FILE_FORMATS.values():
        if row.begins and re.match(
            r"\s*" + row.begins if "(?i)" not in row.begins else row.begins, text.lstrip(), re.DOTALL
        ):
            return row.name
    first = text.lstrip()[:300]
    if first.startswith(("<?xml", "<!DOCTYPE", "<d>", *ROOTS)) or '"format_version"' in first or " ||| " in first:
        return None
    named = path.suffix in FILE_FORMATS["txt"].endings
    if named and any(carried_spans(text)):
        return "txt"  # corpora go to the model as they are, and what is in this text must not
    return None if looks_like_sentences(text, named) else "txt"


def looks_like_sentences(text: str, strict: bool = False) -> bool:
    """Whether a text has a sentence on each line, as corpora do: nearly all lines end as sentences end, and few hold
    a second one. `strict` also wants lines to stand together: paragraphs of one sentence each are a letter."""
    lines = [line for line in LINE_END.split(text) if line.strip()]
    if len(lines) < 2:
        return not any(SEVERAL.search(line) for line in lines)
    several = sum(bool(SEVERAL.search(line)) for line in lines)
    ended = sum(bool(ENDED.search(line)) for line in lines)
    if several > MOST_SEVERAL * len(lines) or ended < LEAST_ENDED * len(lines):
        return False
    blocks = [block for block in re.split(r"\n\s*\n", text.strip()) if block]
    return not strict or len(blocks) == 1 or len(lines) >= 2 * len(blocks)


def _is_text(start: bytes) -> bool:
    return start.startswith(tuple(mark for mark, _ in MARKS)) or b"\0" not in start


def _package(path: Path, data: bytes) -> str:
    from weitblick.files.office import Package

    package = Package(data, path)
    if "word/document.xml" in package:
        return "docx"
    if "ppt/presentation.xml" in package:
        return "pptx"
    if "xl/workbook.xml" in package:
        return "xlsx"
    if "content.xml" in package and "mimetype" in package and b"opendocument.text" in package.read("mimetype"):
        return "odt"
    raise _unread(path, UNREAD.get(path.suffix.lower(), "a zip file"))


class UnreadFileError(UserError):
    """A file of a kind that is not read at all, as against one that is damaged."""


def _unread(path: Path, kind: str) -> UserError:
    return UnreadFileError(f"is {kind}, which is not read", where=path, remedy=f"formats: {', '.join(FILE_FORMATS)}")


def read_file(
    path: str | Path,
    format: str | None = None,
    *,
    language: str = "en",
    alphabet: Alphabet | None = None,
    target_language: str | None = None,
    numbers: bool = True,
) -> TranslatableFile:
    """The file at `path`. Its format is known by its name and content; sentences are split as `language` does it.

    Table cells that are a number or a date are sentences, too (unless `numbers` is False), with a translation by the
    conventions of `target_language`.

    Words that a model's `alphabet` cannot spell are carried through its translation.
    """
    from weitblick.files.translatable_file import TranslatableFile

    path = Path(path)
    data = read_bytes(path)
    name = format or format_of(path, data) or "txt"
    if name not in FILE_FORMATS:
        raise UserError(f"unknown format {name!r}", where=path, remedy=f"formats: {', '.join(FILE_FORMATS)}")
    try:
        content = FILE_FORMATS[name].read(data, path)
        return TranslatableFile(
            path, name, content, language, alphabet, target_language=target_language, numbers=numbers
        )
    except RecursionError:
        raise UserError("is nested too deeply", where=path, remedy="simplify the file") from None
