"""The bytes of a file as text and back: byte-order marks, declared encodings, and what is no text at all."""

from __future__ import annotations

import codecs
import io
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD

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
    """How a file writes text as bytes. `carriage`: its lines end in CR LF, those that readers see in LF alone."""

    name: str
    mark: bytes = b""
    carriage: bool = False

    def encode(self, text: str, errors: str = "strict") -> bytes:
        """The bytes of a text. What the encoding cannot hold is refused, never replaced."""
        text = text.replace("\n", "\r\n") if self.carriage else text
        try:
            return self.mark + text.encode(self.name, errors)
        except UnicodeEncodeError as error:
            letter = text[error.start]
            raise UserError(
                f"{name_of(letter)} cannot be written in the file's encoding, {self.name}",
                remedy="save the file as UTF-8 first, or leave the character out",
            ) from None


XML_FORMATS, JSON_FORMATS = {"docx", "pptx", "xlsx", "odt", "xliff", "tmx"}, {"json", "jsonl", "text"}
NOT_IN_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NOT_IN_TEXT = re.compile(r"[\x00\ud800-\udfff]")
NO_CHARACTER = re.compile(r"[\ud800-\udfff]")


def unwritable(format: str, text: str) -> list[tuple[int, str]]:
    """The characters of a text that a file of this format cannot hold, with their places.

    XML has no room for most control characters, text files have none for NUL, and nothing has any for halves of
    surrogate pairs. `text` is that of a request, which JSON can hold.
    """
    pattern = NOT_IN_XML if format in XML_FORMATS else NO_CHARACTER if format in JSON_FORMATS else NOT_IN_TEXT
    return [(found.start(), found[0]) for found in pattern.finditer(text)]


def name_of(character: str) -> str:
    """A character as messages name it: U+000B, or € (U+20AC)."""
    code = f"U+{ord(character):04X}"
    return f"{character} ({code})" if character.isprintable() else code


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
    """The encoding that an XML file declares; None if it declares none."""
    found = XML_DECLARED.match(data[:300].removeprefix(codecs.BOM_UTF8).lstrip())
    return found[1].decode("ascii") if found else None
