"""Markdown: paragraphs, headings, list items, table cells and HTML; code, front matter and all other lines stay."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal

from markdown_it import MarkdownIt

from weitblick.formats.blocks import Block, Code, Pieces
from weitblick.formats.encoding import decode
from weitblick.formats.file import Content
from weitblick.formats.html import html_blocks

FRONT_MATTER = re.compile(r"\A(?:---[ \t]*\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\n.*?\n\+\+\+)[ \t]*(?=\n|\Z)", re.DOTALL)
INLINE = re.compile(
    r"""
      (?P<code>(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))                      # `code`
    | (?P<math>\$\$[^$]+\$\$|(?<![\w$])\$[^\s$](?:[^$\n]*[^\s$])?\$(?!\w))        # $x$
    | (?P<image>!\[(?:[^\[\]]|\[[^\[\]]*\])*\](?:\((?:[^()\s]|\([^()]*\)|\s+"[^"]*")*\)|\[[^\[\]]*\])?)
    | (?P<note>\[\^[^\]]+\](?::\s*)?|\A\[[ xX]\]\s|\s*\{[.\#][^{}]*\})            # [^1], [ ], {#id .class}
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
DEFINED = re.compile(r"\n:[ \t]+")  # a definition below its term
WORDS = {"code", "math", "image", "auto"}

Span = tuple[int, int, int]


def read_markdown(data: bytes, path: Path) -> Content:
    text, encoding = decode(data, path)
    front = FRONT_MATTER.match(text)
    skipped = front.end() if front else 0
    blank = re.sub(r"[^\n]", " ", text[:skipped])  # the same lines, without what is no Markdown
    lines = (blank + text[skipped:]).split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    blocks: list[Block] = []
    position = (0, 0)
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse("\n".join(lines)):
        if token.type == "html_block" and token.map is not None:
            start = starts[token.map[0]]
            blocks += html_blocks(text[start : starts[token.map[1]]], start)
        elif token.type == "inline" and token.map is not None:
            for content in DEFINED.split(token.content):
                spans = _spans(content, lines, range(max(token.map[0], position[0]), token.map[1]), position)
                position = (spans[-1][0], spans[-1][2]) if spans else position
                blocks += _block(content, spans, text, starts)
    return Content({"": text}, blocks, lambda new: encoding.encode(new.get("", text)))


def _block(content: str, spans: list[Span], text: str, starts: list[int]) -> Iterator[Block]:
    """The block of a paragraph, heading or cell whose lines are at these places."""
    pieces = _pieces(content)
    if not spans or not pieces.has_text:
        return
    (first, left, _), (last, _, right) = spans[0], spans[-1]
    # Between lines stand quote marks and indents.
    between = [text[starts[a[0]] + a[2] : starts[b[0]] + b[1]] for a, b in pairwise(spans)]
    widest = max(end for _, _, end in spans)
    finish = _finish(between[0] if between else "", widest)
    yield Block(starts[first] + left, starts[last] + right, *pieces.content(), write=_write, finish=finish)


def _spans(content: str, lines: list[str], within: range, after: tuple[int, int]) -> list[Span]:
    """Where the lines of a text are: (line, first column, last column). Nothing if one is not found."""
    spans: list[Span] = []
    number = within.start
    for part in content.split("\n"):
        found = _find(lines, range(number, within.stop), part.strip(), after)
        if found is None:
            return []
        spans.append(found)
        number, after = found[0] + 1, (found[0], found[2])
    return spans


def _find(lines: list[str], within: range, part: str, after: tuple[int, int]) -> Span | None:
    for number in range(within.start, min(within.stop, len(lines))):
        for written in dict.fromkeys((part, part.replace("|", "\\|"))) if part else ():  # as cells write it
            column = lines[number].find(written, after[1] if number == after[0] else 0)
            if column >= 0:
                return number, column, column + len(written)
    return None


def _pieces(content: str) -> Pieces:
    """The text and codes of a paragraph. Text is added in one go, since what must survive in it may hold signs that
    are no marks there (snake_case, 5 * 3)."""
    pieces = Pieces(collapse=True)
    position, pending = 0, ""
    opened: list[str] = []
    for found in INLINE.finditer(content):
        pending += content[position : found.start()]
        position = found.end()
        code = _code(found, opened, content)
        if isinstance(code, str):
            pending += code
            continue
        pieces.text(pending)
        pieces.code(code)
        pending = ""
    pieces.text(pending + content[position:])
    return pieces


def _code(found: re.Match[str], opened: list[str], content: str) -> Code | str:
    """What a mark is, or the text that it stands for."""
    kind, raw = found.lastgroup or "", found[0]
    kind = "code" if kind == "ticks" else kind
    if kind in WORDS:
        return Code("word", raw, raw.strip("`$ ") or raw)
    if kind in ("note", "tag"):
        paired = kind == "tag" and not raw.endswith("/>") and not raw.startswith("<!--")
        return Code("alone" if not paired else "close" if raw.startswith("</") else "open", raw)
    if kind == "break":
        return Code("break", raw)
    if kind == "linkstart" and re.match(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\](?:\(|\[)", content[found.start() :]):
        opened.append("[")
        return Code("open", raw)
    if kind == "linkend" and "[" in opened:
        while opened.pop() != "[":
            pass
        return Code("close", raw)
    if kind == "delimiter" and (way := _delimiter(found, opened, content)):
        return Code(way, raw)
    return raw[1] if kind == "escape" else html.unescape(raw) if kind == "entity" else raw


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
    return re.sub(r"([\\`*\[\]<|]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def _finish(line_end: str, width: int) -> Callable[[str], str]:
    def finish(raw: str) -> str:
        """Lines of the width that there was, with what stands before each; none begins a list or a heading by
        mistake."""
        lines = raw.split("\n")
        if line_end:
            lines = [part for line in lines for part in _wrapped(line, width - len(line_end) + 1)]
        safe = [re.sub(r"^(\d{1,9})(?=[.)])", r"\1\\", line) if line[:1].isdigit() else line for line in lines]
        safe = ["\\" + line if BLOCK_START.match(line) and line[0] not in "\\0123456789" else line for line in safe]
        return (line_end or " ").join(safe)

    return finish


def _wrapped(line: str, width: int) -> Iterator[str]:
    """A line in parts, cut at single spaces behind which nothing looks like the start of a block."""
    start, last = 0, 0
    for found in re.finditer(r"\]\([^()]*\)|(?<=[^ ]) (?=[^ ])", line):
        numbered = re.compile(r"\d{1,9}[.)]").match(line, found.end())
        if found[0] != " " or numbered or BLOCK_START.match(line, found.end()):
            continue
        if found.start() - start > width and last > start:
            yield line[start : last - 1]
            start = last
        last = found.end()
    if len(line) - start > width and last > start:
        yield line[start : last - 1]
        start = last
    yield line[start:]
