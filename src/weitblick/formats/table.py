"""The formats of real files in one table, and which of them a file has."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weitblick.documents.corpora import ENDINGS, ROOTS
from weitblick.errors import UserError
from weitblick.files import STANDARD
from weitblick.formats.ass import read_ass
from weitblick.formats.csv import read_csv
from weitblick.formats.docx import read_docx
from weitblick.formats.encoding import MARKS, read_bytes
from weitblick.formats.file import Content, TranslatableFile
from weitblick.formats.html import read_html
from weitblick.formats.json import read_json
from weitblick.formats.markdown import read_markdown
from weitblick.formats.odt import read_odt
from weitblick.formats.packages import OLE, Package
from weitblick.formats.po import read_po
from weitblick.formats.protection import protected_spans
from weitblick.formats.srt import read_srt
from weitblick.formats.text import looks_like_sentences, read_text_file
from weitblick.formats.webvtt import read_webvtt
from weitblick.formats.xliff import read_xliff


@dataclass(frozen=True)
class FileFormat:
    """One row of the table: its name, what it is, the endings of its files, how its text begins, and its reader."""

    name: str
    what: str
    endings: tuple[str, ...]
    read: Callable[[bytes, Path], Content]
    begins: str | None = None


FORMATS: dict[str, FileFormat] = {
    row.name: row
    for row in (
        FileFormat("srt", "SubRip subtitles", (".srt",), read_srt, r"(?:\d+\s*\n)?\d+:\d+:\d+[,.]\d+ *--> *\d"),
        FileFormat("vtt", "WebVTT subtitles", (".vtt",), read_webvtt, r"WEBVTT(?:\s|\Z)"),
        FileFormat("ass", "SubStation Alpha subtitles", (".ass", ".ssa"), read_ass, r"\[Script Info\]"),
        FileFormat("docx", "Word", (".docx", ".docm", ".dotx"), read_docx),
        FileFormat("odt", "OpenDocument text", (".odt", ".ott"), read_odt),
        FileFormat(
            "xliff",
            "XLIFF 1.2 and 2.x",
            (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"),
            read_xliff,
            r"(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<xliff",
        ),
        FileFormat("po", "gettext catalogues", (".po", ".pot"), read_po, r"(?:#.*\n)*msgid\s"),
        FileFormat("markdown", "Markdown", (".md", ".markdown", ".mdx"), read_markdown),
        FileFormat(
            "html", "HTML", (".html", ".htm", ".xhtml"), read_html, r"(?i)(?:<\?xml[^>]*>\s*)?<(?:!doctype html|html)\b"
        ),
        FileFormat("json", "JSON of localisation", (".json", ".arb"), read_json),
        FileFormat("csv", "CSV of localisation", (".csv",), read_csv),
        FileFormat("txt", "plain text, a line for a line", (".txt", ".text"), read_text_file),
    )
}
UNREAD = {
    ".doc": "an old Word file",
    ".pdf": "PDF",
    ".ppt": "PowerPoint",
    ".pptx": "PowerPoint",
    ".xls": "Excel",
    ".xlsx": "Excel",
    ".rtf": "rich text",
    ".epub": "an e-book",
    ".pages": "a Pages file",
}
BEGINNINGS = ((b"%PDF", "PDF"), (OLE, "an old Office file, or one with a password"), (b"{\\rtf", "rich text"))
PEEKED = 64 * 1024


def format_of(path: str | Path, data: bytes | None = None) -> str | None:
    """The name of a file's format, by its name and content. None: a corpus, in one of the formats of
    `weitblick.documents`, as far as can be told. What cannot be read is refused, by name."""
    path = Path(path)
    if data is None and str(path) != STANDARD and path.exists() and not path.is_file():
        return None  # a pipe, which can be read only once
    start = read_bytes(path, PEEKED) if data is None else data[:PEEKED]
    ending = path.suffix.lower()
    row = next((row for row in FORMATS.values() if ending in row.endings), None)
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
    for row in FORMATS.values():
        if row.begins and re.match(
            r"\s*" + row.begins if "(?i)" not in row.begins else row.begins, text.lstrip(), re.DOTALL
        ):
            return row.name
    first = text.lstrip()[:300]
    if first.startswith(("<?xml", "<!DOCTYPE", "<d>", *ROOTS)) or '"format_version"' in first or " ||| " in first:
        return None
    named = path.suffix in FORMATS["txt"].endings
    if named and any(protected_spans(text)):
        return "txt"  # corpora go to the model as they are, and what is in this text must not
    return None if looks_like_sentences(text, named) else "txt"


def _is_text(start: bytes) -> bool:
    return start.startswith(tuple(mark for mark, _ in MARKS)) or b"\0" not in start


def _package(path: Path, data: bytes) -> str:
    package = Package(data, path)
    if "word/document.xml" in package:
        return "docx"
    if "content.xml" in package and "mimetype" in package and b"opendocument.text" in package.read("mimetype"):
        return "odt"
    raise _unread(path, UNREAD.get(path.suffix.lower(), "a zip file"))


class UnreadFileError(UserError):
    """A file of a kind that is not read at all, as against one that is damaged."""


def _unread(path: Path, kind: str) -> UserError:
    return UnreadFileError(f"is {kind}, which is not read", where=path, remedy=f"formats: {', '.join(FORMATS)}")


def read_file(path: str | Path, format: str | None = None, *, language: str = "en") -> TranslatableFile:
    """The file at `path`. Its format is known by its name and content; sentences are split as `language` does it."""
    path = Path(path)
    data = read_bytes(path)
    name = format or format_of(path, data) or "txt"
    if name not in FORMATS:
        raise UserError(f"unknown format {name!r}", where=path, remedy=f"formats: {', '.join(FORMATS)}")
    try:
        return TranslatableFile(path, name, FORMATS[name].read(data, path), language)
    except RecursionError:
        raise UserError("is nested too deeply", where=path, remedy="simplify the file") from None
