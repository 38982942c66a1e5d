"""ICU messages: `{count, plural, one {# message} other {# messages}}`. Each case is a text of its own, and the whole
argument a word of the text around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from weitblick.formats.blocks import Block, Code, Pieces
from weitblick.formats.file import reference

ARGUMENT = re.compile(r"\{\s*[\w.-]+\s*,\s*(plural|selectordinal|select)\s*,")
CASE = re.compile(r"\s*(?:offset:\d+\s*)?(=?[\w-]+)\s*\{")
MOST_NESTED = 20


@dataclass(frozen=True)
class Message:
    """How a format writes messages: `add` puts a stretch of the file into pieces, `write` gives text back."""

    add: Callable[[Pieces, str], None]
    write: Callable[[str, str | None], str]


def message_blocks(raw: str, start: int, name: str, how: Message, nested: int = 0) -> Iterator[Block]:
    """The blocks of a message that stands at `start` of its file: its own text, then that of its cases."""
    pieces, inner, position = Pieces(), [], 0
    for number, (first, last, cases) in enumerate(_arguments(raw) if nested < MOST_NESTED else (), 1):
        _add(pieces, raw[position:first], how, nested)
        pieces.code(Code("word", reference(start + first, start + last), f"⟦{number}⟧"))
        inner += cases
        position = last
    _add(pieces, raw[position:], how, nested)
    if pieces.has_text:
        yield Block(start, start + len(raw), *pieces.content(), id=name, write=how.write)
    for first, last in inner:
        yield from message_blocks(raw[first:last], start + first, name, how, nested + 1)


def _add(pieces: Pieces, raw: str, how: Message, nested: int) -> None:
    """In a case, # stands for the number."""
    for place, part in enumerate(raw.split("#") if nested else [raw]):
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


def arguments_apart(raw: str) -> Iterator[tuple[str, bool]]:
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
