"""Translators for tests of files: they need no model, and every word of theirs can be recognised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from weitblick.documents.document import Document
from weitblick.files.formats import read_file
from weitblick.files.masked_document import align_by_places
from weitblick.files.translation import translate_file


def each(translate: Callable[[str], str]) -> Callable[[Document], Document]:
    """A translator of documents from one of sentences; what is locked stays."""

    def of_document(document: Document) -> Document:
        return replace(
            document,
            sentences=tuple(
                s if s.status == "locked" else replace(s, target=translate(s.source)) for s in document.sentences
            ),
        )

    return of_document


def reverse(source: str) -> str:
    """The words in reverse order: everything moves, nothing is lost."""
    return " ".join(reversed(source.split()))


reversed_words = each(reverse)
upper = each(str.upper)
amnesia = each(lambda source: "Ganz vergessen")  # loses everything


def translated_bytes(path: Path, content: str | bytes | None, translate: Callable[[Document], Document]) -> bytes:
    if content is not None:
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return translate_file(read_file(path), translate, align_by_places)[0]


def translated(path: Path, content: str | bytes | None, translate: Callable[[Document], Document]) -> str:
    """The file after translation, as text with plain line ends."""
    return translated_bytes(path, content, translate).decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
