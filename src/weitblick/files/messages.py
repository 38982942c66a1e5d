"""ICU messages: `{count, plural, one {# message} other {# messages}}`. Each case is a text of its own, and the whole
argument a word of the text around it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weitblick.common.errors import UserError
from weitblick.files.blocks import Block, Code, Pieces
from weitblick.files.encoding import decode
from weitblick.files.translatable_file import Content, reference

ARGUMENT = re.compile(r"\{\s*[\w.-]+\s*,\s*(plural|selectordinal|select)\s*,")
CASE = re.compile(r"\s*(?:offset:\d+\s*)?(=?[\w-]+)\s*\{")
NUMBER = re.compile(r"(?<!&)#(?![^<>]*>)")  # not in a tag, nor in &#39;
MOST_NESTED = 20


@dataclass(frozen=True)
class Message:
    """How a format writes messages: `add` puts a stretch of the file into pieces, `write` gives text back, `bare` is a
    stretch of the same length in which what is no text holds no braces."""

    add: Callable[[Pieces, str], None]
    write: Callable[[str, str | None], str]
    bare: Callable[[str], str] = str


def message_blocks(raw: str, start: int, name: str, how: Message, part: str = "", nested: int = 0) -> Iterator[Block]:
    """The blocks of a message that stands at `start` of a part: its own text, then that of its cases."""
    pieces, cases = message_pieces(raw, start, how, part, nested)
    if pieces.has_text:
        yield Block(start, start + len(raw), *pieces.content(), id=name, write=how.write, part=part)
    for first, last in cases:
        yield from message_blocks(raw[first:last], start + first, name, how, part, nested + 1)


def message_pieces(
    raw: str, start: int, how: Message, part: str = "", nested: int = 0
) -> tuple[Pieces, list[tuple[int, int]]]:
    """A message's own text, in which arguments with cases are words, and [start, end) of what their cases say."""
    pieces, inner, position = Pieces(), [], 0
    for number, (first, last, cases) in enumerate(_arguments(how.bare(raw)) if nested < MOST_NESTED else (), 1):
        _add(pieces, raw[position:first], how, nested)
        pieces.code(Code("word", reference(start + first, start + last, part), f"⟦{number}⟧"))
        inner += cases
        position = last
    _add(pieces, raw[position:], how, nested)
    return pieces, inner


def _add(pieces: Pieces, raw: str, how: Message, nested: int) -> None:
    """In a case, # stands for the number."""
    for place, part in enumerate(NUMBER.split(raw) if nested else [raw]):
        if place:
            pieces.code(Code("word", "#", "#"))
        how.add(pieces, part)


def _arguments(raw: str) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """[start, end) of the arguments with cases that stand in a message, and of what their cases say."""
    position = 0
    while found := ARGUMENT.search(raw, position):
        cases: list[tuple[int, int]] = []
        at = found.end()
        while case := CASE.match(raw, at):
            end = _closing(raw, case.end())
            if end is None:
                break
            cases.append((case.end(), end))
            at = end + 1
        closing = re.compile(r"\s*\}").match(raw, at)
        if cases and closing:
            yield found.start(), closing.end(), cases
            position = closing.end()
        else:
            position = found.end()


def split_arguments(raw: str) -> Iterator[tuple[str, bool]]:
    """A message in parts: its own text, and the arguments with cases in it (True)."""
    position = 0
    for first, last, _ in _arguments(raw):
        yield from ((raw[position:first], False), (raw[first:last], True))
        position = last
    yield raw[position:], False


def _closing(raw: str, start: int) -> int | None:
    """Where the brace closes that was opened before `start`."""
    depth = 1
    for found in re.compile(r"[{}]").finditer(raw, start):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return found.start()
    return None


# JSON of localisation (i18next, FormatJS, Chrome, ARB): the strings; keys, numbers and layout stay as they are.

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
CHROME = {"message", "description", "placeholders", "hash"}  # fields of a message of which only the first is text
ABOUT = "@"  # in ARB, how keys begin that are about messages


def read_json(data: bytes, path: Path) -> Content:
    """The content of a JSON or ARB file of localisation."""
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

    how = Message(_add_message, write)
    blocks: list[Block] = []
    for start, end, keys in _strings(text):
        if not _is_about(value, keys):
            blocks += message_blocks(text[start:end], start, ".".join(map(str, keys)), how)
    return Content.of_text(text, encoding, blocks)


def _add_message(pieces: Pieces, raw: str) -> None:
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
