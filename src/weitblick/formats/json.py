"""JSON of localisation (i18next, FormatJS, Chrome, ARB): the strings; keys, numbers and layout stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weitblick.errors import UserError
from weitblick.formats.blocks import Block, Code, Pieces
from weitblick.formats.encoding import decode
from weitblick.formats.file import Content
from weitblick.formats.icu import Message, message_blocks

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
CHROME = {"message", "description", "placeholders", "hash"}  # fields of a message of which only the first is text
ABOUT = "@"  # in ARB, how keys begin that are about messages


def read_json(data: bytes, path: Path) -> Content:
    text, encoding = decode(data, path)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"is not JSON ({error.msg})", where=path, line=error.lineno, remedy="mend the file") from None
    except (RecursionError, ValueError) as error:
        raise UserError(f"is not JSON that can be read ({error})", where=path, remedy="split the file") from None
    ascii_only = text.isascii() and "\\u" in text

    def write(content: str, style: str | None) -> str:
        return json.dumps(content, ensure_ascii=ascii_only)[1:-1]

    how = Message(_add, write)
    blocks: list[Block] = []
    for start, end, keys in _strings(text):
        if not _is_about(value, keys):
            blocks += message_blocks(text[start:end], start, ".".join(map(str, keys)), how)
    return Content({"": text}, blocks, lambda new: encoding.encode(new.get("", text)))


def _add(pieces: Pieces, raw: str) -> None:
    """Characters of a string, as written between its quotes; its line ends are breaks."""
    for number, line in enumerate(json.loads(f'"{raw}"').split("\n")):
        if number:
            pieces.code(Code("break", "\\n"))
        pieces.text(line)


@dataclass
class _Level:
    """An object or array that is open, and the key or number of the value that comes next in it."""

    is_object: bool
    key: str | int


def _strings(text: str) -> Iterator[tuple[int, int, tuple[str | int, ...]]]:
    """[start, end) between the quotes of every value that is a string, in order, and its keys."""
    levels: list[_Level] = []
    tokens = list(TOKEN.finditer(text))
    for number, found in enumerate(tokens):
        token = found[0]
        if token in "{[":
            levels.append(_Level(token == "{", 0))
        elif token in "}]":
            levels.pop()
        elif token == "," and not levels[-1].is_object:
            levels[-1].key = int(levels[-1].key) + 1
        elif token.startswith('"'):
            if levels and levels[-1].is_object and tokens[number + 1][0] == ":":
                levels[-1].key = json.loads(token)
            else:
                yield found.start() + 1, found.end() - 1, tuple(level.key for level in levels)


def _is_about(value: Any, keys: tuple[str | int, ...]) -> bool:
    """Whether a string is not shown to anybody, but says something about the message beside it."""
    for depth, key in enumerate(keys):
        if str(key).startswith(ABOUT):
            return True
        if depth and key != "message" and isinstance(value, dict) and "message" in value and set(value) <= CHROME:
            return True
        value = value[key]
    return False
