"""Files that clients send: read by what they hold, written again with translations.

The name that a client gives is never a path here: only its ending is looked at, and all work happens in a folder of
our own that is gone afterwards.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath

from weitblick.documents.document import Document
from weitblick.errors import UserError
from weitblick.formats import FORMATS, TranslatableFile, read_file
from weitblick.formats.file import Align

ENDING = re.compile(r"\.[A-Za-z0-9]{1,10}$")
MOST_NAME = 200


def file_name(name: str | None) -> str:
    """The last part of a name, whatever system it comes from, without what cannot be shown."""
    last = PurePosixPath(PureWindowsPath(name or "").name).name
    shown = "".join(letter for letter in last if letter.isprintable()).strip()
    return shown[-MOST_NAME:] or "document.txt"


def file_endings() -> list[str]:
    """Of all files that can be read."""
    return [ending for format in FORMATS.values() for ending in format.endings]


def read_upload(name: str, content: bytes, language: str) -> TranslatableFile:
    """A file, read as its ending and its content say."""
    with own_folder(name) as folder:
        ending = ENDING.search(name)
        path = folder / f"document{ending.group().lower() if ending else '.txt'}"
        path.write_bytes(content)
        return read_file(path, language=language)


def write_translation(file: TranslatableFile, document: Document, align: Align) -> bytes:
    """The file again, with the targets of the document in the places of its sentences."""
    return file.rendered(document, align)[0]


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
