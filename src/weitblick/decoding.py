"""The lines of a stream of bytes as text: UTF-8, or UTF-16 where a byte-order mark says so.

Older translation memories and the "Unicode text" of spreadsheets are UTF-16.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO

from weitblick.errors import UserError

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decoded_lines(stream: IO[bytes], path: str | Path) -> Iterator[str]:
    """Lines with their line ends; what is no text is named by its line."""
    first = stream.readline()
    raw_lines = chain([first.removeprefix(codecs.BOM_UTF8)] if first else [], stream)
    if first.startswith(UTF_16):
        yield from _utf_16(raw_lines, path)
        return
    for number, raw in enumerate(raw_lines, 1):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            value = raw[error.start : error.start + 1].hex()
            raise UserError(
                f"byte {error.start + 1} (0x{value}) is not UTF-8",
                where=path,
                line=number,
                remedy="convert the file to UTF-8 (iconv -f latin1 -t utf-8)",
            ) from None
        if "\0" in line:
            raise _nul(line.index("\0") + 1, number, path)
        yield line


def _utf_16(pieces: Iterator[bytes], path: str | Path) -> Iterator[str]:
    """The bytes of a line end can stand inside of characters, so lines are cut after decoding."""
    decoder = codecs.getincrementaldecoder("utf-16")()
    rest, number = "", 1
    for piece, last in chain(((piece, False) for piece in pieces), [(b"", True)]):
        try:
            rest += decoder.decode(piece, last)
        except UnicodeDecodeError as error:
            raise UserError(
                f"is not UTF-16 as its byte-order mark says ({error.reason})",
                where=path,
                line=number,
                remedy="fetch or export the file again",
            ) from None
        *lines, rest = rest.split("\n")
        for line in lines:
            if "\0" in line:
                raise _nul(line.index("\0") + 1, number, path)
            yield line + "\n"
            number += 1
    if rest:
        yield rest


def _nul(column: int, line: int, path: str | Path) -> UserError:
    if line == 1 and column <= 2:
        remedy = "if it is UTF-16, which lacks its byte-order mark, convert it (iconv -f utf-16le -t utf-8)"
    else:
        remedy = "remove it (tr -d '\\000')"
    return UserError(f"NUL character at column {column}", where=path, line=line, remedy=remedy)
