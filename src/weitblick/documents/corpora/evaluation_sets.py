"""The XML and SGML files of shared tasks (IWSLT/WIT3, WMT): bare ampersands, undeclared entities, several roots.

The parser is the standard library's for HTML, which knows no entities but the fixed ones of HTML and loads nothing: a
document that declares entities of its own is refused, so that none can grow or read another file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from weitblick.common.errors import UserError
from weitblick.documents.corpora.reading import (
    DocumentBuilder,
    Inputs,
    LineSource,
    Located,
    boundary_mismatch,
    pairs_of_lines,
)
from weitblick.documents.document import Document, Sentence

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


# The files of shared tasks: IWSLT/WIT3 XML and `train.tags`, WMT's SGM and its newer XML. All are read only.


def read_sets(inputs: Inputs) -> Iterator[Located]:
    """`<doc>` elements of `<seg>` elements, each side in its own file (TED XML and WMT SGM alike)."""
    source, *others = inputs.sources
    if not others:
        for document in documents(source):
            yield _joined(document, document.sides[0].segments, None, source)
        return
    target = others[0]
    for document, translated in zip_longest(documents(source), documents(target)):
        if document is None or translated is None:
            extra, file, other = (document, source, target) if translated is None else (translated, target, source)
            raise UserError(
                f"document {extra.id!r} is missing in {other.path}",
                where=file.path,
                line=extra.line,
                remedy="align the sides",
            )
        if document.id != translated.id:
            raise UserError(
                f"document {translated.id!r} where {source.path} has {document.id!r} (line {document.line})",
                where=target.path,
                line=translated.line,
                remedy="both sides need the same documents in the same order",
            )
        yield _joined(document, document.sides[0].segments, translated.sides[0].segments, target)


def read_wmt_xml(inputs: Inputs) -> Iterator[Located]:
    """`<dataset>` of `<doc>` elements that hold `<src>` and any number of `<ref>`; the first in the language wins."""
    source = inputs.sources[0]
    source_language, target_language = inputs.languages or (None, None)
    for document in documents(source):
        sources = _side(document, "src", source_language)
        if sources is None:
            wanted = f" in {source_language}" if source_language else ""
            raise UserError(f"document {document.id!r} has no <src>{wanted}", where=source.path, line=document.line)
        target = _side(document, "ref", target_language)
        yield _joined(document, sources.segments, target.segments if target else None, source)


def _side(document: MarkedDocument, kind: str, language: str | None) -> Side | None:
    return next(
        (
            side
            for side in document.sides
            if side.kind == kind and (language is None or side.attributes.get("lang") == language)
        ),
        None,
    )


def _joined(
    document: MarkedDocument, sources: list[Segment], targets: list[Segment] | None, target_file: LineSource
) -> Located:
    """A document of segments paired by position, which must agree in their ids."""
    sentences: list[Sentence] = []
    for source, target in zip_longest(sources, targets if targets is not None else sources):
        if source is None or target is None or source.id != target.id:
            present = target or source
            raise UserError(
                f"segments of document {document.id!r} differ: source has {source.id if source else 'none'}, "
                f"target has {target.id if target else 'none'}",
                where=target_file.path,
                line=present.line,
                remedy="both sides need the same segments",
            )
        metadata: dict[str, Any] = {"paragraph": source.paragraph} if source.paragraph else {}
        text = None if targets is None else target.text
        sentences.append(Sentence(source.text, text, id=source.id, metadata=metadata))
    described = {key: value for key, value in document.attributes.items() if key not in ("docid", "id") and value}
    return Located(Document(document.id, tuple(sentences), described), tuple(segment.line for segment in sources))


TAGGED = re.compile(r"\s*<(?P<tag>/?[a-z]+)(?P<attributes>[^>]*)>(?:(?P<text>.*)</(?P=tag)>)?\s*$")
BOUNDARIES = {"doc", "/doc", "transcript", "/transcript"}
SET_DESCRIPTIONS = {"url", "keywords", "speaker", "talkid", "title", "description"}
CREDITS = {"reviewer", "translator"}  # these follow the talk they belong to


def read_ted_tags(inputs: Inputs) -> Iterator[Located]:
    """WIT3's `train.tags` files: a talk's descriptions in tags, then its sentences, one a line."""
    builder = DocumentBuilder()
    described: dict[str, str] = {}
    for line, source, target in pairs_of_lines(inputs):
        tag, text = _tag(source)
        if target is not None and (tag is None) != (_tag(target)[0] is None):
            raise boundary_mismatch(inputs, line, "a tag", tag is not None)
        if tag is None:
            builder.add(line, Sentence(_unescaped(source), None if target is None else _unescaped(target)))
        elif tag not in CREDITS:
            if builder.sentences:
                yield builder.finish(described.get("talkid"), described)
                described = {}
            if text:
                described[tag] = text
    if builder.sentences:
        yield builder.finish(described.get("talkid"), described)


def _tag(line: str) -> tuple[str | None, str]:
    match = TAGGED.match(line)
    if match is None or match["tag"] not in BOUNDARIES | SET_DESCRIPTIONS | CREDITS:
        return None, ""
    return match["tag"], _unescaped((match["text"] or "").strip())


def _unescaped(text: str) -> str:
    """Entities as XML has them; html.unescape alone would also take `&copy2` for a sign."""
    return re.sub(r"&(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);", lambda match: unescape(match[0]), text).strip()
