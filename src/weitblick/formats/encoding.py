"""Bytes of a file to text and back: byte-order marks, declared encodings, and what is no text at all."""

from __future__ import annotations

import codecs
import io
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from weitblick.errors import UserError
from weitblick.files import STANDARD

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
XML_DECLARED = re.compile(rb"^<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._:-]+)[\"']")
MOST_BYTES = 512 * 2**20


@dataclass(frozen=True)
class Encoding:
    """`carriage`: every line ends in CR LF; in the text that readers see, in LF alone."""

    name: str
    mark: bytes = b""
    carriage: bool = False

    def encode(self, text: str, errors: str = "strict") -> bytes:
        text = text.replace("\n", "\r\n") if self.carriage else text
        return self.mark + text.encode(self.name, errors)


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """A file, or the start of it; `-` is standard input, of which the start is not consumed."""
    if str(path) == STANDARD:
        stream = sys.stdin.buffer
        return stream.read() if most is None else stream.peek(most) if isinstance(stream, io.BufferedReader) else b""
    try:
        if path.is_dir():
            raise UserError("is a directory, not a file", where=path, remedy="name a file")
        if most is not None:
            with open(path, "rb") as stream:
                return stream.read(most)
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"is larger than {MOST_BYTES >> 20} MiB", where=path, remedy="split the file")
        return path.read_bytes()
    except FileNotFoundError:
        raise UserError("no such file", where=path, remedy="check the path") from None
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror or error})", where=path) from None


def decode(data: bytes, path: Path, declared: str | None = None) -> tuple[str, Encoding]:
    """The text of a file: by its byte-order mark, else as it declares itself, else UTF-8."""
    mark, name = next(((mark, name) for mark, name in MARKS if data.startswith(mark)), (b"", ""))
    encoding = Encoding(name or _known(declared or "utf-8", path), mark)
    try:
        text = data[len(mark) :].decode(encoding.name)
    except (UnicodeDecodeError, UnicodeError) as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        line = data.count(b"\n", 0, start) + 1
        says = f"declares {declared}, but" if declared and not mark else "is not UTF-8:"
        value = data[len(mark) + start : len(mark) + start + 1].hex()
        raise UserError(
            f"{says} byte {start + 1} (0x{value}) is no text",
            where=path,
            line=line,
            remedy="convert it to UTF-8 (iconv -f latin1 -t utf-8), or mend what it declares",
        ) from None
    if "\0" in text:
        raise UserError("holds NUL characters: it is not text", where=path, remedy="name a text file")
    if "\r" in text and text.count("\r\n") == text.count("\n") == text.count("\r"):
        return text.replace("\r\n", "\n"), replace(encoding, carriage=True)
    return text, encoding


def _known(name: str, path: Path) -> str:
    try:
        info = codecs.lookup(name)
    except LookupError:
        raise UserError(f"declares the encoding {name!r}, which is unknown", where=path, remedy="mend it") from None
    return "utf-8" if info.name in ("ascii", "utf-8") else info.name


def xml_declared(data: bytes) -> str | None:
    found = XML_DECLARED.match(data[:300].removeprefix(codecs.BOM_UTF8).lstrip())
    return found[1].decode("ascii") if found else None
