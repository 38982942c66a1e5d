"""Plain text: a line in, a line out. Indents, bullets and numbering stay; one text is one document."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from weitblick.files.blocks import Block, Pieces
from weitblick.files.encoding import Encoding, decode
from weitblick.files.formats import ENDED, LINE_END
from weitblick.files.translatable_file import Content

LEAD = re.compile(r"\s*(?:(?:[-*+•‣◦●▪–—]|>+|#{1,6}|\(?\d{1,3}(?:\.\d+)*[.)]|\(?[a-zA-Z]\)|\[[ xX]\])\s+)*")
NARROWEST, WIDEST = 40, 120  # characters of lines that are wrapped; narrower ones are lists and verse, wider are not


def read_text_file(data: bytes, path: Path) -> Content:
    """The content of a plain text, whose wrapped paragraphs are read as one."""
    text, encoding = decode(data, path)
    blocks: list[Block] = []
    lines = _lines(text)
    for paragraph in _paragraphs(lines):
        wrapped = is_wrapped([line for _, line in paragraph])
        for number, (start, line) in enumerate(paragraph):
            lead = len(LEAD.match(line)[0])  # type: ignore[index]  # it matches the empty string
            end = len(line.rstrip())
            pieces = Pieces()
            pieces.text(line[lead:end])
            content, codes = pieces.content()
            follows = wrapped and number > 0
            blocks.append(Block(start + lead, start + max(lead, end), content, codes, follows=follows, wrapped=wrapped))
    return Content.of_text(text, encoding, blocks)


def lines_content(text: str) -> Content:
    """A text in which every line stands for itself, of a request and not of a file."""
    blocks, position = [], 0
    for line in text.splitlines(keepends=True):
        start = len(line) - len(line.lstrip())
        end = max(start, len(line.rstrip()))
        pieces = Pieces()
        pieces.text(line[start:end])
        blocks.append(Block(position + start, position + end, *pieces.content()))
        position += len(line)
    return Content.of_text(text, Encoding("utf-8"), blocks)


def _lines(text: str) -> list[tuple[int, str]]:
    """Where each line starts, and the line without its end."""
    found, start = [], 0
    for line in LINE_END.split(text):
        found.append((start, line))
        start += len(line) + (2 if text.startswith("\r\n", start + len(line)) else 1)
    return found


def _paragraphs(lines: list[tuple[int, str]]) -> list[list[tuple[int, str]]]:
    """Runs of lines that are not blank, a bullet or number opening a new one."""
    paragraphs: list[list[tuple[int, str]]] = []
    fresh = True
    for start, line in lines:
        if not line.strip():
            fresh = True
            continue
        if fresh or LEAD.match(line)[0].strip():  # type: ignore[index]
            paragraphs.append([])
            fresh = False
        paragraphs[-1].append((start, line))
    return paragraphs


def is_wrapped(lines: list[str]) -> bool:
    """Lines are wrapped if none but the last could have taken the next line's first word as well, and a sentence runs
    over a line end at least once."""
    width = max(len(line.rstrip()) for line in lines)
    if len(lines) < 2 or not NARROWEST <= width <= WIDEST or all(ENDED.search(line) for line in lines[:-1]):
        return False
    return all(len(line.rstrip()) + 1 + len(following.split()[0]) > width for line, following in pairwise(lines))
