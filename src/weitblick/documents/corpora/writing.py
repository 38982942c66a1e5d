"""What all writers share: lines that the reader gives back as they were, or a refusal that names the line."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from weitblick.documents.document import Document, Sentence
from weitblick.errors import UserError

BYTE_ORDER_MARK = "\ufeff"


class LineWriter:
    """Writes lines to one output and refuses what a line cannot hold, by the number the line would have."""

    def __init__(self, stream: IO[str], path: str | Path, format: str) -> None:
        self.stream, self.path, self.format, self.count = stream, path, format, 0

    def refuse(self, what: str, remedy: str = "write jsonl, which holds everything") -> UserError:
        return UserError(
            f"{what} cannot be written as {self.format}", where=self.path, line=self.count + 1, remedy=remedy
        )

    def check(self, line: str) -> None:
        if "\n" in line or line.endswith("\r"):
            raise self.refuse("a line break inside a sentence")
        if "\0" in line:
            raise self.refuse("a NUL character", "remove it")
        if self.count == 0 and line.startswith(BYTE_ORDER_MARK):
            raise self.refuse("a byte-order mark at the start of the text", "remove it")
        try:
            line.encode("utf-8")
        except UnicodeEncodeError:
            raise self.refuse("half of a surrogate pair", "mend the text: it is not Unicode") from None

    def write(self, line: str) -> None:
        self.check(line)
        self.stream.write(line)
        self.stream.write("\n")
        self.count += 1


def target_of(sentence: Sentence, writer: LineWriter, document: Document) -> str:
    if sentence.target is None:
        raise writer.refuse(
            f"a sentence without a target (in document {document.id!r})", "give one output to write the source only"
        )
    return sentence.target


def refuse_second_side(document: Document, writer: LineWriter) -> None:
    """With one output only the source is written: losing targets silently is not an option."""
    if any(sentence.target is not None for sentence in document.sentences):
        raise writer.refuse(
            f"the target side of document {document.id!r} with a single output", "name a second output for the targets"
        )
