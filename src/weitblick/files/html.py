"""HTML: the text between block elements and attributes that people read; all else stays as it is."""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from lxml import etree
from lxml import html as lxml_html

from weitblick.common.errors import UserError
from weitblick.files.blocks import Block, Pieces
from weitblick.files.encoding import decode, xml_declared
from weitblick.files.markup import ATTRIBUTE, Role, Token, ends_of, inline, tokens_of
from weitblick.files.translatable_file import Content, reference

CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]+)", re.IGNORECASE)
RAW = re.compile(
    r"<!--.*?-->|<!\[(?:if|endif)[^>]*>|<(script|style|textarea|xmp|template)\b[^>]*>.*?</\1\s*>",
    re.DOTALL | re.IGNORECASE,
)
INLINE = {
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "del", "dfn", "em", "font", "i", "ins", "label"),
    *("mark", "q", "s", "small", "span", "strike", "strong", "sub", "sup", "u"),
}
WORDS = {"code", "kbd", "samp", "tt", "var", "math"}
MARKS = {"img", "wbr", "input", "svg", "iframe", "map", "embed", "picture"}
UNREAD = {"pre"}
READ_ATTRIBUTES = {"alt", "title", "placeholder", "aria-label", "aria-description", "summary"}
READ_META = {
    "description",
    "title",
    "og:title",
    "og:description",
    "og:image:alt",
    "twitter:title",
    "twitter:description",
}
IMPLIED = {"li", "p", "td", "th", "tr", "dt", "dd", "option"}
EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}


def read_html(data: bytes, path: Path) -> Content:
    """The content of an HTML file."""
    found = CHARSET.search(data[:4096])
    text, encoding = decode(data, path, found[1].decode("ascii") if found else xml_declared(data))
    try:
        lxml_html.fromstring(data or b"<p/>")
    except (etree.ParserError, etree.XMLSyntaxError, ValueError, UnicodeDecodeError) as error:
        if text.strip():
            raise UserError(f"is not HTML ({error})", where=path, remedy="mend the file") from None
    return Content.of_text(text, encoding, html_blocks(text), errors="xmlcharrefreplace")


def html_blocks(text: str, offset: int = 0) -> list[Block]:
    """Text between block elements, then attributes that people read; places are counted from `offset` on."""
    tokens = _tokens(text)
    ends = ends_of(tokens, IMPLIED)
    attributes = list(_attributes(tokens, ends))
    starts = [block.start for block in attributes]

    def keep(start: int, end: int) -> str:
        held = bisect_left(starts, start) < bisect_left(starts, end)
        return reference(start + offset, end + offset) if held else text[start:end]

    found = [*_texts(tokens, ends, keep), *attributes]
    return [replace(block, start=block.start + offset, end=block.end + offset) for block in found]


def _texts(tokens: list[Token], ends: dict[int, int], keep: Callable[[int, int], str]) -> Iterator[Block]:
    run_start, number = 0, 0
    while number <= len(tokens):
        token = tokens[number] if number < len(tokens) else None
        if token is None or not _is_inline(token):
            yield from _run(tokens, ends, range(run_start, number), keep)
            if token is not None and token.kind == "open" and _is_unread(token):
                number = max(number, ends.get(number, number))
            run_start = number + 1
        elif token.kind == "open" and _role(token) in ("word", "alone"):
            number = max(number, ends.get(number, number))
        number += 1


def _attributes(tokens: list[Token], ends: dict[int, int]) -> Iterator[Block]:
    unread_until = -1
    for number, token in enumerate(tokens):
        if token.kind not in ("open", "empty") or number <= unread_until:
            continue
        if _is_unread(token):
            unread_until = ends.get(number, number)
            continue
        given = {name.lower(): value.lower() for name, value in token.attributes.items()}
        for found in ATTRIBUTE.finditer(token.raw):
            group = next((n for n in (2, 3) if found[n]), None)
            if group and _is_read(token.name, found[1].lower(), given):
                pieces = Pieces(collapse=True)
                pieces.text(html.unescape(found[group]))
                if pieces.has_text:
                    start = token.start + found.start(group)
                    quote = found[0][found.start(group) - found.start() - 1]
                    yield Block(start, start + len(found[group]), *pieces.content(), write=_attribute_escape(quote))


def _is_read(tag: str, name: str, given: dict[str, str]) -> bool:
    """Whether people read an attribute."""
    if name == "content":
        return tag == "meta" and given.get("name", given.get("property")) in READ_META
    if name == "value":
        return tag == "input" and given.get("type") in ("submit", "button", "reset")
    return name in READ_ATTRIBUTES or (name == "label" and tag in ("option", "optgroup", "track"))


def _attribute_escape(quote: str) -> Callable[[str, str | None], str]:
    named = "&quot;" if quote == '"' else "&#39;"
    return lambda text, style: _escape(text, style).replace(quote, named)


def _tokens(text: str) -> list[Token]:
    """As of XML, but scripts and the like are one token each, names are in lower case, and some elements are empty."""
    tokens: list[Token] = []
    position = 0
    for found in RAW.finditer(text):
        tokens += _shifted(text[position : found.start()], position)
        tokens.append(Token("other", found.start(), found.end(), found[0]))
        position = found.end()
    return tokens + _shifted(text[position:], position)


def _shifted(text: str, by: int) -> list[Token]:
    shifted = []
    for token in tokens_of(text):
        name = token.name.lower()
        kind = "empty" if token.kind == "open" and name in EMPTY else token.kind
        shifted.append(Token(kind, token.start + by, token.end + by, token.raw, name))
    return shifted


def _is_inline(token: Token) -> bool:
    if token.kind == "text":
        return True
    if token.kind == "other":
        return token.raw.startswith("<!--")
    return token.name in INLINE | WORDS | MARKS or token.name == "br"


def _is_unread(token: Token) -> bool:
    return token.name in UNREAD or _is_locked(token)


def _is_locked(token: Token) -> bool:
    attributes = {name.lower(): value for name, value in token.attributes.items()}
    return attributes.get("translate") == "no" or "notranslate" in attributes.get("class", "").split()


def _role(token: Token) -> Role:
    if token.name == "br":
        return "break"
    if token.name in WORDS or (token.name in INLINE and _is_locked(token)):
        return "word"
    return "pair" if token.name in INLINE else "alone"


def _run(tokens: list[Token], ends: dict[int, int], span: range, keep: Callable[[int, int], str]) -> Iterator[Block]:
    """Inline content between two block elements."""
    own = [_marked(tokens, ends, number) for number in span]
    while own and own[0].kind == "text" and not own[0].raw.strip():
        own, span = own[1:], range(span.start + 1, span.stop)
    while own and own[-1].kind == "text" and not own[-1].raw.strip():
        own.pop()
    if not any(token.kind == "text" for token in own):
        return
    for place, strip in ((0, str.lstrip), (-1, str.rstrip)):
        if own[place].kind == "text":
            own[place] = _stripped(own[place], strip)
    within = {n - span.start: ends[n] - span.start for n in span if n in ends and ends[n] - span.start < len(own)}
    pieces = Pieces(collapse=True)
    inline(own, within, range(len(own)), _role, pieces, keep, count(1))
    if pieces.has_text:
        yield Block(own[0].start, own[-1].end, *pieces.content(), write=_escape)


def _marked(tokens: list[Token], ends: dict[int, int], number: int) -> Token:
    """A raised number is a mark that clings to a word: it has no role among the inline elements."""
    token = tokens[number]
    if token.kind == "open" and token.name in ("sup", "sub"):
        inside = "".join(one.raw for one in tokens[number : ends.get(number, number)] if one.kind == "text")
        behind = tokens[ends[number] + 1 :][:1] if number in ends else []
        if inside and not any(map(str.isalpha, inside)) and not (behind and behind[0].raw[0].isalnum()):
            return Token(token.kind, token.start, token.end, token.raw, "raised")
    return token


def _stripped(token: Token, strip: Callable[[str], str]) -> Token:
    raw = strip(token.raw)
    start = token.start + token.raw.index(raw)
    return Token("text", start, start + len(raw), raw)


def _escape(text: str, style: str | None) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\u00a0", "&nbsp;")
