"""A tolerant reader of XML and SGML as corpora have it: bare ampersands, undeclared entities, several roots.

It is the HTML parser of the standard library, which knows no entities but the fixed ones of HTML and loads nothing:
a document that declares entities of its own is refused, so that none can grow or read another file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Literal, NamedTuple

from weitblick.documents.corpora.reading import LineSource
from weitblick.errors import UserError

LINES_AT_ONCE = 500
LONGEST_TAG = 10_000
LONGEST_COMMENT = 1_000_000
TAG_OPENING = re.compile(r"<(?!!--)[a-zA-Z/!?]")
LONG_REFERENCE = re.compile(r"&#(?:[0-9]{9,}|[xX][0-9a-fA-F]{8,});?")  # no character has such a number


class Event(NamedTuple):
    kind: Literal["start", "end", "text"]
    name: str  # the tag in lower case, or the text
    line: int
    attributes: dict[str, str]


class _Parser(HTMLParser):
    def __init__(self, source: LineSource) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.events: list[Event] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.events.append(Event("start", tag, self.getpos()[0], attributes))

    def handle_endtag(self, tag: str) -> None:
        self.events.append(Event("end", tag, self.getpos()[0], {}))

    def handle_data(self, data: str) -> None:
        self.events.append(Event("text", data, self.getpos()[0], {}))

    def handle_decl(self, decl: str) -> None:
        if "[" in decl or "ENTITY" in decl.upper():
            raise UserError(
                "declares entities, which could grow without bound or read other files",
                where=self.source.path,
                line=self.getpos()[0],
                remedy="remove the declarations",
            )

    def unknown_decl(self, data: str) -> None:
        self.handle_decl(data if not data.startswith("CDATA[") else "")


def events(source: LineSource) -> Iterator[Event]:
    """Start tags, end tags and text of a file, streamed."""
    parser = _Parser(source)
    lines: list[str] = []
    for line in source:
        lines.append(line)
        if len(lines) == LINES_AT_ONCE:
            parser.feed(_checked("\n".join(lines) + "\n", source))
            lines = []
            if len(parser.rawdata) > LONGEST_COMMENT:
                raise _endless(source)
            yield from parser.events
            parser.events.clear()
    parser.feed(_checked("\n".join(lines), source))
    parser.close()
    yield from parser.events


def _checked(text: str, source: LineSource) -> str:
    """The text without what would take the parser time or space without end: a tag that is never closed is searched for
    its end again and again, a character's number may have millions of digits."""
    for piece in text.split(">"):
        opening = TAG_OPENING.search(piece)
        if opening and len(piece) - opening.start() > LONGEST_TAG:
            raise _endless(source)
    return LONG_REFERENCE.sub("&#xFFFD;", text)


def _endless(source: LineSource) -> UserError:
    return UserError(
        f"a tag or comment of more than {LONGEST_TAG} characters",
        where=source.path,
        line=source.count,
        remedy="close it with >, or write < as &lt;",
    )


@dataclass
class Segment:
    id: str
    text: str
    line: int
    paragraph: int


@dataclass
class Side:
    """The segments of one `<src>`, `<ref>` or `<hyp>`, or of a whole `<doc>` where there is only one side."""

    kind: str
    attributes: dict[str, str]
    segments: list[Segment] = field(default_factory=list)


@dataclass
class MarkedDocument:
    line: int
    attributes: dict[str, str]
    sides: list[Side]

    @property
    def id(self) -> str:
        return self.attributes.get("docid") or self.attributes.get("id") or ""


DESCRIPTIONS = ("title", "speaker", "talkid", "url", "keywords")


def documents(source: LineSource) -> Iterator[MarkedDocument]:
    """The `<doc>` elements of an evaluation set, whose sentences are `<seg>` elements."""
    document: MarkedDocument | None = None
    text: list[str] | None = None  # of the element being read
    paragraph = 0
    for kind, name, line, attributes in events(source):
        if kind == "text":
            if text is not None:
                text.append(name)
        elif name == "doc":
            if kind == "end" and document is not None:
                yield document
            document = MarkedDocument(line, attributes, [Side("", {})]) if kind == "start" else None
            paragraph = 0
        elif document is None:
            continue
        elif name in ("src", "ref", "hyp") and kind == "start":
            document.sides.append(Side(name, attributes))
            paragraph = 0
        elif name == "p" and kind == "start":
            paragraph += 1
        elif name == "seg" and kind == "start":
            segments = document.sides[-1].segments
            segments.append(Segment(attributes.get("id", str(len(segments) + 1)), "", line, paragraph))
            text = []
        elif name in DESCRIPTIONS and kind == "start":
            text = []
        elif kind == "end" and text is not None and (name == "seg" or name in DESCRIPTIONS):
            joined = " ".join("".join(text).split())
            if name == "seg" and document.sides[-1].segments:
                document.sides[-1].segments[-1].text = joined
            elif name != "seg":
                document.attributes[name] = joined
            text = None
    if document is not None:
        raise UserError(
            f"ends inside the <doc> that opens on line {document.line}",
            where=source.path,
            remedy="fetch the file again",
        )
