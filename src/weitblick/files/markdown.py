"""Markdown: paragraphs, headings, list items, table cells and HTML; code, front matter and all other lines stay."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference

from weitblick.files.blocks import Block, Code, Pieces
from weitblick.files.encoding import decode
from weitblick.files.html import html_blocks
from weitblick.files.translatable_file import Content, reference

FRONT_MATTER = re.compile(r"\A(?:---[ \t]*\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\n.*?\n\+\+\+)[ \t]*(?=\n|\Z)", re.DOTALL)
INLINE = re.compile(
    r"""
      (?P<code>(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))                      # `code`
    | (?P<math>\$\$[^$]+\$\$|(?<![\w$])\$[^\s$](?:[^$\n]*[^\s$])?\$(?!\w))        # $x$
    | (?P<image>!\[(?:[^\[\]]|\[[^\[\]]*\])*\](?:\((?:[^()\s]|\([^()]*\)|\s+"[^"]*")*\)|\[[^\[\]]*\])?)
    | (?P<note>\[\^[^\]]+\](?::\s*)?|\A\[[ xX]\]\s|\s*\{[.\#][^{}]*\})            # [^1], [ ], {#id .class}
    | (?P<auto><(?:https?://|mailto:|[\w.+-]+@)[^<>\s]+>)                      # <https://example.org>
    | (?P<tag></?[A-Za-z][^<>]*>|<!--.*?-->)
    | (?P<linkend>\](?:\((?:<[^<>]*>|(?:[^()\s]|\([^()]*\))*)(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?\s*\)|\[[^\[\]]*\])?)
    | (?P<linkstart>\[)
    | (?P<delimiter>\*{1,3}|_{1,3}|~~)
    | (?P<escape>\\[!-/:-@\[-`{-~])
    | (?P<break>(?:\ {2,}|\\)\n)
    | (?P<entity>&(?:[A-Za-z]+|\#\d+|\#x[\da-fA-F]+);)
    """,
    re.VERBOSE | re.DOTALL,
)
NO_TEXT = re.compile(
    r"""
      :{3,}.*                                                          # ::: note
    | \{%.*%\} | \{\{[<%].*[>%]\}\} | \[\[?_?TOC_?\]\]?               # {% tag %}, {{< shortcode >}}, [TOC]
    | \[![A-Za-z]+\][-+]?                                               # [!NOTE] in a quotation
    | (?:import|export)\s(?:.*\sfrom\s+)?(?:['"].*['"]|const\s.*|default\s.*|function\s.*);?   # of MDX
    | <(?:/[A-Z][\w.]*|[A-Z][\w.]*(?:\s[^<>]*)?/?)>                      # <Tabs> of MDX
    """,
    re.VERBOSE,
)
"""A line that is for a program that extends Markdown."""
QUOTED = re.compile(r"(?:[ \t]*>)*[ \t]*")
ADMONITION = re.compile(r"([ \t]*)(?:!!!|\?\?\?\+?|===)[ \t]+\S.*")  # with indented text below it
DEFINITION = re.compile(r" {0,3}\[([^\]^][^\]]*)\]:[ \t]*\S")
NOTE = re.compile(r"^( {0,3}\[\^[^\]\s]+\]):", re.MULTILINE)
BLOCK_START = re.compile(r"(?=(?:>[#>+*-]*|#+|\++|\*+|-+)(?:\s|$)|\d{1,9}[.)](?:\s|$)|[=-]+\s*$|```|~~~)")
DEFINED = re.compile(r"\n:[ \t]+|\n(?=\[\^[^\]\s]+\]:)")  # a definition below its term, a note below another
OPENED, CLOSED = "\ufdd3", "\ufdd4"  # before a mark of emphasis that opens or closes, until the text is written
MARK = re.compile(f"([{OPENED}{CLOSED}](?:\\*{{1,3}}|_{{1,3}}|~~))")
EMPHASIS = {1: ["em"], 2: ["strong"], 3: ["em", "strong"]}
"""The tags of as many asterisks or underscores."""
COLON = "\ufdd2"  # behind a note's name: with a colon CommonMark takes it for the address of a link
IMAGE = re.compile(r"!\[((?:[^\[\]]|\[[^\[\]]*\])*)\]")
TAGS = re.compile(r"<[^<>]*>")
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\](\(|\[[^\[\]]*\]|)")
TAG_NAME = re.compile(r"<(code|kbd|samp|tt|var)\b", re.IGNORECASE)
WORDS = {"code", "math", "image", "auto"}

Span = tuple[int, int, int]


def read_markdown(data: bytes, path: Path) -> Content:
    """The content of a Markdown file."""
    text, encoding = decode(data, path)
    front = FRONT_MATTER.match(text)
    skipped = front.end() if front else 0
    blank = re.sub(r"[^\n]", " ", text[:skipped])  # the same lines, without what is no Markdown
    lines = _readable((blank + text[skipped:]).split("\n"))
    starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    blocks: list[Block] = []
    position = (0, 0)
    references = {normalizeReference(one[1]) for line in text.split("\n") if (one := DEFINITION.match(line))}
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for token in parser.parse(NOTE.sub(rf"\1{COLON}", "\n".join(lines))):
        if token.type == "html_block" and token.map is not None:
            start = starts[token.map[0]]
            blocks += html_blocks(text[start : starts[token.map[1]]], start)
        elif token.type == "inline" and token.map is not None:
            for content in DEFINED.split(token.content.replace(COLON, ":")):
                spans = _spans(content, lines, range(max(token.map[0], position[0]), token.map[1]), position)
                position = (spans[-1][0], spans[-1][2]) if spans else position
                blocks += _block(content, spans, text, starts, references)
    return Content.of_text(text, encoding, blocks)


def _readable(lines: list[str]) -> list[str]:
    """The same lines, those without text for people blank."""
    lines = [QUOTED.match(line)[0] if _is_for_programs(line) else line for line in lines]  # type: ignore[index]
    addresses: list[int] = []  # of links, right below a text; CommonMark takes them for a part of it
    for number, line in enumerate(lines[:-1]):
        admonition = ADMONITION.fullmatch(line)
        if DEFINITION.match(lines[number + 1]) and line.strip() and not DEFINITION.match(line):
            addresses.append(number + 1)
        if admonition and lines[number + 1].startswith(admonition[1] + "    "):
            lines[number] = admonition[1] + "-"  # what is indented below belongs to it, as to a bullet
    return ["" if number in addresses else line for number, line in enumerate(lines)]


def _is_for_programs(line: str) -> bool:
    return NO_TEXT.fullmatch(line.strip(), len(QUOTED.match(line.strip())[0])) is not None  # type: ignore[index]


def _block(
    content: str, spans: list[Span], text: str, starts: list[int], references: Collection[str]
) -> Iterator[Block]:
    """The block of a paragraph, heading or cell whose lines are at these places, and those of its images' texts."""
    if not spans:
        return
    (first, left, _), (last, _, right) = spans[0], spans[-1]
    images = _Images(text, starts[first] + left, starts[last] + right)
    pieces = _pieces(content, references, images)
    yield from images.blocks
    if not pieces.has_text:
        return
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


class _Images:
    """The images in a stretch of the file, one after the other: their descriptions are texts of their own."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.position, self.end = text, start, end
        self.blocks: list[Block] = []

    def raw(self, image: str) -> str:
        """An image as it is written, by reference where its description is translated."""
        start = self.text.find(image, self.position, self.end)
        described = IMAGE.match(image)
        if start < 0 or not described:
            return image
        self.position = start + len(image)
        pieces = Pieces(collapse=True)
        pieces.text(described[1])
        collapsed = image.endswith(("]", "[]"))  # its description is the name of its address as well
        if collapsed or not pieces.has_text:
            return image
        first = start + described.start(1)
        self.blocks.append(Block(first, first + len(described[1]), *pieces.content(), write=_write))
        return reference(start, self.position)


def _pieces(content: str, references: Collection[str], images: _Images) -> Pieces:
    """The text and codes of a paragraph. Text is added in one go, since what must survive in it may hold signs that
    are no marks there (snake_case, 5 * 3)."""
    pieces = Pieces(collapse=True)
    position, pending = 0, ""
    opened: list[str] = []
    for found in INLINE.finditer(content):
        if found.start() < position:
            continue
        pending += content[position : found.start()]
        position = found.end()
        code = _code(found, opened, content, references)
        if isinstance(code, str):
            pending += code
            continue
        pieces.text(pending)
        if found.lastgroup == "image":
            code = replace(code, raw=images.raw(found[0]))
        elif code.kind == "open" and (element := _whole_element(content, found)):
            code, position = Code("word", element, TAGS.sub("", element)), found.start() + len(element)
        pieces.code(code)
        pending = ""
    pieces.text(pending + content[position:])
    return pieces


def _whole_element(content: str, found: re.Match[str]) -> str | None:
    """From its start tag to its end, an element whose content is no language: a key, a variable."""
    name = TAG_NAME.match(found[0])
    end = content.find(f"</{name[1]}>", found.end()) if name else -1
    return content[found.start() : end + len(name[1]) + 3] if name and end >= 0 else None


def _code(found: re.Match[str], opened: list[str], content: str, references: Collection[str]) -> Code | str:
    """What a mark is, or the text that it stands for."""
    kind, raw = found.lastgroup or "", found[0]
    kind = "code" if kind == "ticks" else kind
    if kind in WORDS:
        return Code("word", raw, " ".join(raw.strip("`$ \n").split()) or raw)
    if kind in ("note", "tag"):
        paired = kind == "tag" and not raw.endswith("/>") and not raw.startswith("<!--")
        return Code("alone" if not paired else "close" if raw.startswith("</") else "open", raw)
    if kind == "break":
        return Code("break", raw)
    if kind == "linkstart" and (link := LINK.match(content, found.start())):
        name = normalizeReference(link[1])
        if link[2] or name in references:
            opened.append("[" + ("" if link[2] not in ("", "[]") else link[1]))
            return Code("open", raw)
    if kind == "linkend" and (place := _opened_link(opened)) is not None:
        name = opened[place][1:]
        del opened[place:]
        return Code("close", f"][{name}]" if name else raw)  # what was named by its own text needs its name now
    if kind == "delimiter" and (way := _delimiter(found, opened, content)):
        return Code(way, (OPENED if way == "open" else CLOSED) + raw)
    return raw[1] if kind == "escape" else html.unescape(raw) if kind == "entity" else raw


def _opened_link(opened: list[str]) -> int | None:
    return next((place for place in range(len(opened) - 1, -1, -1) if opened[place][0] == "["), None)


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
    return re.sub(r"([\\`*\[\]<|~]|(?<!\w)_|_(?!\w)|&(?=#?\w+;))", r"\\\1", text)


def _delimited(raw: str) -> str:
    """Text with its marks of emphasis; where they would not be read as marks, they are tags, and none are around
    nothing."""
    tokens = MARK.split(raw)  # text, mark, text, mark, ..., text
    opened: list[int] = []
    for number in range(1, len(tokens), 2):
        if tokens[number][0] == OPENED:
            opened.append(number)
        elif opened and tokens[opened[-1]][1:] == tokens[number][1:]:
            first, mark = opened.pop(), tokens[number][1:]
            if not "".join(MARK.sub("", token) for token in tokens[first:number]):
                tokens[first] = tokens[number] = ""
            elif not _is_read(tokens, first, number):
                names = ["del"] if mark == "~~" else EMPHASIS[len(mark)]
                tokens[first] = "".join(f"<{name}>" for name in names)
                tokens[number] = "".join(f"</{name}>" for name in reversed(names))
    return "".join(token.lstrip(OPENED + CLOSED) for token in tokens)


def _is_read(tokens: list[str], first: int, last: int) -> bool:
    """Whether two marks are read as a pair around the text between them, by the rules of CommonMark."""
    before, inside = "".join(tokens[:first])[-1:], "".join(tokens[first + 1 : last])
    behind = "".join(tokens[last + 1 :]).lstrip(OPENED + CLOSED)[:1]
    start, end = inside.lstrip(OPENED + CLOSED)[:1], inside[-1:]
    mark = tokens[first][1]
    beside = tokens[first - 1] == "" and before == mark, tokens[last + 1] == "" and behind == mark
    if any(beside) or (mark == "_" and (before.isalnum() or behind.isalnum())):
        return False
    opens = start.strip() and not (_is_sign(start) and before.strip() and not _is_sign(before))
    closes = end.strip() and not (_is_sign(end) and behind.strip() and not _is_sign(behind))
    return bool(opens and closes)


def _is_sign(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "PS"


def _finish(line_end: str, width: int) -> Callable[[str], str]:
    def finish(raw: str) -> str:
        """Lines of the width that there was, with what stands before each; none begins a list or a heading by
        mistake."""
        raw = _delimited(raw)
        raw = re.sub(r"^[ \t]|[ \t]$", lambda space: f"&#{ord(space[0])};", raw)  # else it is layout
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
