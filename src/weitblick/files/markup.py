"""XML and HTML as a row of tokens with their places, so that text can be replaced and all else stays as it is.

lxml decides whether a file is XML at all, and without anything dangerous in it; what is well-formed is then split by
rules as simple as these.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from lxml import etree

from weitblick.common.errors import UserError
from weitblick.files.blocks import Code, Pieces

TOKEN = re.compile(
    r"(?P<other><!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<![A-Za-z](?:[^<>\[]|\[.*?\]\s*(?=>))*>)"
    r"|<(?P<close>/?)(?P<name>[A-Za-z_][^\s/>]*)(?P<attributes>(?:[^<>\"'/]|\"[^\"]*\"|'[^']*'|/(?!>))*)(?P<empty>/?)>"
    r"|(?P<text>[^<]+|<)",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r"([^\s=/\"'<>]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>]+))")

Kind = Literal["text", "open", "close", "empty", "other"]


TAG_END = re.compile(r"\s*/?>$")


@dataclass(frozen=True, slots=True)
class Token:
    """A tag, a comment or a stretch of text of an XML or HTML file, at [start, end) of it."""

    kind: Kind
    start: int
    end: int
    raw: str
    name: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of a tag, their entities resolved."""
        found = ATTRIBUTE.findall(self.raw)
        return {name: html.unescape(a or b or c) for name, a, b, c in found}


def tokens_of(text: str) -> list[Token]:
    """The tokens of an XML or HTML text, which together are all of it."""
    tokens = []
    for found in TOKEN.finditer(text):
        if found["name"] is not None:
            kind: Kind = "close" if found["close"] else "empty" if found["empty"] else "open"
            tokens.append(Token(kind, found.start(), found.end(), found[0], found["name"]))
        else:
            tokens.append(Token("text" if found["text"] else "other", found.start(), found.end(), found[0]))
    return tokens


def check_xml(data: bytes, where: Path | str) -> None:
    """Refuses what is not XML, and entities, which could fetch files or grow without end."""
    if re.search(rb"<!ENTITY|<\x00?!\x00E\x00N\x00T", data):
        raise UserError("declares entities, which are not read", where=where, remedy="remove its <!ENTITY ...>")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    try:
        etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        line = error.lineno or None
        message = (error.msg or "nothing in it").split(", line")[0]
        raise UserError(
            f"is not well-formed XML ({message})", where=where, line=line, remedy="mend or export it again"
        ) from None
    except (ValueError, LookupError) as error:
        raise UserError(f"is not well-formed XML ({error})", where=where, remedy="mend or export it again") from None


def ends_of(tokens: Sequence[Token], implied: Collection[str] = ()) -> dict[int, int]:
    """For each token that opens an element, the number of its last token (itself where it is empty).

    In HTML, elements of the names in `implied` end where the next of them begins, or the element around them ends.
    """
    ends: dict[int, int] = {}
    opened: list[int] = []
    for number, token in enumerate(tokens):
        if token.kind == "empty":
            ends[number] = number
        elif token.kind == "open":
            if token.name in implied and opened and tokens[opened[-1]].name == token.name:
                ends[opened.pop()] = number - 1
            opened.append(number)
        elif token.kind == "close":
            depth = next((d for d in range(len(opened) - 1, -1, -1) if tokens[opened[d]].name == token.name), None)
            if depth is not None:  # in HTML some elements are never closed
                ends[opened[depth]] = number
                ends.update({o: number - 1 for o in opened[depth + 1 :] if tokens[o].name in implied})
                del opened[depth:]
    return ends


def escape(text: str, style: str | None = None) -> str:
    """Text as XML writes it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def text_of(token: Token) -> str:
    """The characters that a text token or a CDATA section stands for."""
    if token.raw.startswith("<![CDATA["):
        return token.raw[9:-3]
    return html.unescape(token.raw) if token.kind == "text" else ""


def with_attribute(tag: str, name: str, value: str) -> str:
    """A start tag with one attribute set; the others stay as they are written."""
    quoted = f'"{html.escape(value, quote=True)}"'
    known = _attribute(name).search(tag)
    if known is not None:
        return tag[: known.start(1)] + quoted + tag[known.end() :]
    end = TAG_END.search(tag)
    return tag if end is None else f"{tag[: end.start()]} {name}={quoted}{tag[end.start() :]}"


@cache
def _attribute(name: str) -> re.Pattern[str]:
    """An attribute of this name in a start tag; its group is the value with its quotes."""
    return re.compile(rf"\s{re.escape(name)}\s*=\s*(\"[^\"]*\"|'[^']*')")


Role = Literal["pair", "alone", "word", "break", "through", "drop", "open", "close"]
"""What an element inside a text is: a pair around text; a mark, a word or a break with all that it holds; nothing but
its content; nothing at all; one half of a pair that is written as two elements."""


def inline(
    tokens: Sequence[Token],
    ends: dict[int, int],
    span: range,
    role: Callable[[Token], Role],
    pieces: Pieces,
    keep: Callable[[int, int], str],
    names: Iterator[int],
) -> None:
    """Adds the tokens of a span to `pieces`. `keep` gives the raw text of tags and whole elements [start, end) of the
    file; `names` numbers the words that have no text of their own to show."""
    number = span.start
    while number < span.stop:
        token = tokens[number]
        if token.kind in ("text", "other") and (token.kind == "text" or token.raw.startswith("<![CDATA[")):
            pieces.text(text_of(token))
        elif token.kind == "other":
            pieces.code(Code("alone", token.raw))
        elif token.kind == "close":
            pieces.code(Code("close", token.raw))
        else:
            what, end = role(token), ends.get(number, number)
            if what == "pair" and end > number:
                pieces.code(Code("open", keep(token.start, token.end)))
                inline(tokens, ends, range(number + 1, end), role, pieces, keep, names)
                pieces.code(Code("close", tokens[end].raw))
            elif what == "through":
                inline(tokens, ends, range(number + 1, end), role, pieces, keep, names)
            elif what != "drop":
                raw = keep(token.start, tokens[end].end)
                inside = "".join(map(text_of, tokens[number:end])).strip() if end > number else ""
                shown = (inside or f"⟦{next(names)}⟧") if what == "word" else ""
                pieces.code(Code("alone" if what == "pair" else what, raw, " ".join(shown.split())))
            number = end
        number += 1
