"""Markdown: paragraphs, headings, list items and table cells; code, front matter, HTML and all other lines stay."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal

from markdown_it import MarkdownIt

from weitblick.formats.blocks import Block, Code, Pieces
from weitblick.formats.encoding import decode
from weitblick.formats.file import Content

FRONT_MATTER = re.compile(r"\A(?:---[ \t]*\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\n.*?\n\+\+\+)[ \t]*(?=\n|\Z)", re.DOTALL)
INLINE = re.compile(
    r"""
      (?P<code>(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))                      # `code`
    | (?P<math>\$\$[^$]+\$\$|(?<![\w$])\$[^\s$](?:[^$\n]*[^\s$])?\$(?!\w))        # $x$
    | (?P<image>!\[(?:[^\[\]]|\[[^\[\]]*\])*\](?:\((?:[^()\s]|\([^()]*\)|\s+"[^"]*")*\)|\[[^\[\]]*\])?)
    | (?P<note>\[\^[^\]]+\](?::\s*)?|\A\[[ xX]\]\s)                               # [^1], [ ]
    | (?P<auto><(?:https?://|mailto:|[\w.+-]+@)[^<>\s]+>)                      # <https://example.org>
    | (?P<tag></?[A-Za-z][^<>]*>|<!--.*?-->)
    | (?P<linkend>\](?:\((?:<[^<>]*>|(?:[^()\s]|\([^()]*\))*)(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?\s*\)|\[[^\[\]]*\]))
    | (?P<linkstart>\[)
    | (?P<delimiter>\*{1,3}|_{1,3}|~~)
    | (?P<escape>\\[!-/:-@\[-`{-~])
    | (?P<break>(?:\ {2,}|\\)\n)
    | (?P<entity>&(?:[A-Za-z]+|\#\d+|\#x[\da-fA-F]+);)
    """,
    re.VERBOSE | re.DOTALL,
)
BLOCK_START = re.compile(r"(?=[#>+*-]+(?:\s|$)|\d{1,9}[.)](?:\s|$)|[=-]+\s*$|```|~~~)")
WORDS = {"code", "math", "image", "auto"}


def read_markdown(data: bytes, path: Path) -> Content:
    text, encoding = decode(data, path)
    front = FRONT_MATTER.match(text)
    skipped = front.end() if front else 0
    blank = re.sub(r"[^\n]", " ", text[:skipped])  # the same lines, without what is no Markdown
    lines = (blank + text[skipped:]).split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    blocks = []
    for content, spans in _contents("\n".join(lines), lines):
        pieces = _pieces(content)
        if pieces.has_text:
            first, last = spans[0], spans[-1]
            between = [
                text[starts[a[0]] + a[2] : starts[b[0]] + b[1]] for a, b in pairwise(spans)
            ]  # line ends with quote marks and indents
            widest = max(end for _, _, end in spans)
            block = Block(
                starts[first[0]] + first[1],
                starts[last[0]] + last[2],
                *pieces.content(),
                write=_write,
                fit=_fit(widest) if between else None,
                finish=_finish(between[0] if between else ""),
            )
            blocks.append(block)
    return Content({"": text}, blocks, lambda new: encoding.encode(new.get("", text)))


def _contents(text: str, lines: list[str]) -> Iterator[tuple[str, list[tuple[int, int, int]]]]:
    """The text of each paragraph, heading and cell, and where its lines are: (line, first column, last column)."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    position = (0, 0)
    for token in parser.parse(text):
        if token.type != "inline" or token.map is None or not token.content.strip():
            continue
        spans: list[tuple[int, int, int]] = []
        number = max(token.map[0], position[0])
        for part in token.content.split("\n"):
            found = _find(lines, number, token.map[1], part.strip(), position)
            if found is None:
                break
            spans.append(found)
            number, position = found[0] + 1, (found[0], found[2])
        else:
            yield token.content, spans


def _find(lines: list[str], first: int, last: int, part: str, after: tuple[int, int]) -> tuple[int, int, int] | None:
    for number in range(first, min(last, len(lines))):
        column = lines[number].find(part, after[1] if number == after[0] else 0)
        if column >= 0:
            return number, column, column + len(part)
    return None


def _pieces(content: str) -> Pieces:
    pieces = Pieces(collapse=True)
    position = 0
    opened: list[str] = []
    for found in INLINE.finditer(content):
        pieces.text(content[position : found.start()])
        _add(pieces, found, opened, content)
        position = found.end()
    pieces.text(content[position:])
    return pieces


def _add(pieces: Pieces, found: re.Match[str], opened: list[str], content: str) -> None:
    kind, raw = found.lastgroup or "", found[0]
    kind = "code" if kind == "ticks" else kind
    if kind in WORDS:
        pieces.code(Code("word", raw, raw.strip("`$ ") or raw))
    elif kind in ("note", "tag"):
        closes = raw.startswith("</")
        paired = kind == "tag" and not raw.endswith("/>") and not raw.startswith("<!--")
        pieces.code(Code("alone" if not paired else "close" if closes else "open", raw))
    elif kind == "break":
        pieces.code(Code("break", raw))
    elif kind == "linkstart" and re.match(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\](?:\(|\[)", content[found.start() :]):
        opened.append("[")
        pieces.code(Code("open", raw))
    elif kind == "linkend" and "[" in opened:
        while opened.pop() != "[":
            pass
        pieces.code(Code("close", raw))
    elif kind == "delimiter" and (way := _delimiter(found, opened, content)):
        pieces.code(Code(way, raw))
    elif kind == "escape":
        pieces.text(raw[1])
    elif kind == "entity":
        pieces.text(html.unescape(raw))
    else:
        pieces.text(raw)


def _delimiter(found: re.Match[str], opened: list[str], content: str) -> Literal["open", "close"] | None:
    before, behind = content[: found.start()][-1:], content[found.end() :][:1]
    raw = found[0]
    if raw in opened and before.strip() and not (raw[0] == "_" and behind.isalnum()):
        while opened.pop() != raw:
            pass
        return "close"
    opens = behind.strip() and not (raw[0] == "_" and before.isalnum())
    if opens and raw in content[found.end() + 1 :]:
        opened.append(raw)
        return "open"
    return None


def _write(text: str, style: str | None) -> str:
    return re.sub(r"([\\`*\[\]<]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def _fit(width: int) -> Callable[[str], str]:
    def fit(text: str) -> str:
        """The paragraph wrapped anew, to the width that it had."""
        column, last, letters = 0, -1, list(text)
        for place, letter in enumerate(text):
            if letter == " ":
                last = place
            column = 0 if letter == "\n" else column + 1
            if column > width and last > 0:
                letters[last] = "\n"
                column, last = place - last, -1
        return "".join(letters)

    return fit


def _finish(line_end: str) -> Callable[[str], str]:
    def finish(raw: str) -> str:
        """Lines with what stands before each, none of which begins a list or a heading by mistake."""
        safe = [
            re.sub(r"^(\d{1,9})(?=[.)])", r"\1\\", line) if line[:1].isdigit() else line for line in raw.split("\n")
        ]
        safe = ["\\" + line if BLOCK_START.match(line) and line[0] not in "\\0123456789" else line for line in safe]
        return (line_end or " ").join(safe)

    return finish
