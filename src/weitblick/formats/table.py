"""The formats of real files in one table, and which of them a file has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weitblick.errors import UserError
from weitblick.formats.ass import read_ass
from weitblick.formats.encoding import read_bytes
from weitblick.formats.file import Content, TranslatableFile
from weitblick.formats.srt import read_srt
from weitblick.formats.text import read_text_file
from weitblick.formats.webvtt import read_webvtt


@dataclass(frozen=True)
class FileFormat:
    """One row of the table: its name, what it is, the endings of its files, and its reader."""

    name: str
    what: str
    endings: tuple[str, ...]
    read: Callable[[bytes, Path], Content]


FORMATS: dict[str, FileFormat] = {
    row.name: row
    for row in (
        FileFormat("srt", "SubRip subtitles", (".srt",), read_srt),
        FileFormat("vtt", "WebVTT subtitles", (".vtt",), read_webvtt),
        FileFormat("ass", "SubStation Alpha subtitles", (".ass", ".ssa"), read_ass),
        FileFormat("txt", "plain text, a line for a line", (".txt", ".text"), read_text_file),
    )
}


def format_of(path: str | Path, data: bytes | None = None) -> str | None:
    path = Path(path)
    return next((row.name for row in FORMATS.values() if path.suffix.lower() in row.endings), None)


def read_file(path: str | Path, format: str | None = None, *, language: str = "en") -> TranslatableFile:
    """The file at `path`; its format is known by its name and content, sentences are split as `language` does."""
    path = Path(path)
    data = read_bytes(path)
    name = format or format_of(path, data)
    if name not in FORMATS:
        raise UserError(f"unknown format {name!r}", where=path, remedy=f"use one of {', '.join(FORMATS)}")
    return TranslatableFile(path, name, FORMATS[name].read(data, path), language)
