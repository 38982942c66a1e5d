"""Bytes and text: the lines of a stream, in UTF-8 or in UTF-16 where a byte-order mark says so.

Older translation memories and the "Unicode text" of spreadsheets are UTF-16.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

from weitblick.common.errors import UserError

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


# Text of users inside LaTeX and web pages: it is shown, and never obeyed.

LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "-": r"{-}",  # keeps -- and --- from becoming dashes
}


def base_language(code: str) -> str:
    """The language of a code without its region: de of de-AT and DE_at."""
    return re.split("[-_]", code.lower())[0]


def latex_text(text: str) -> str:
    """Text that LaTeX prints as it is. Control characters, which it would refuse, are left out."""
    return "".join(LATEX.get(letter, letter) for letter in text if letter.isprintable())


def json_for_script(value: Any) -> str:
    """JSON that cannot end the script element it stands in: without `<` there is neither a tag nor a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def page_policy(script: str, style: str) -> str:
    """A content security policy that allows this script and this style, by their hashes, and nothing else."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
