"""Excel files: a workbook is read, its texts are translated, and what refers to them follows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from weitblick.files.office import Package
from weitblick.files.ooxml import Parts, Texts
from weitblick.files.sheet_changes import Changes
from weitblick.files.translatable_file import Content
from weitblick.files.workbook import Workbook


def read_xlsx(data: bytes, path: Path) -> Content:
    """The content of an Excel file."""
    book = Workbook(Parts(Package(data, path)))
    blocks = list(book.blocks())

    def complete(new: Texts) -> tuple[Texts, Mapping[str, bytes]]:
        return Changes(book, new).complete(), {}

    return book.parts.content(blocks, complete, book.notes(), book.review)


def with_cells(data: bytes, path: Path, words: Mapping[str, str]) -> bytes:
    """A workbook whose cells say something else where `words` know it: that of a chart in another file."""
    book = Workbook(Parts(Package(data, path)))
    return book.parts.replaced(Changes(book, {}, words).complete(), {})
