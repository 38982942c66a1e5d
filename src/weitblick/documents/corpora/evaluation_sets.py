"""The files of shared tasks: IWSLT/WIT3 XML and `train.tags`, WMT's SGM and its newer XML. All are read only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from itertools import zip_longest
from typing import Any

from weitblick.documents.corpora.markup import MarkedDocument, Segment, Side, documents
from weitblick.documents.corpora.reading import (
    DocumentBuilder,
    Inputs,
    LineSource,
    Located,
    boundary_mismatch,
    pairs_of_lines,
)
from weitblick.documents.document import Document, Sentence
from weitblick.errors import UserError


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
DESCRIPTIONS = {"url", "keywords", "speaker", "talkid", "title", "description"}
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
    if match is None or match["tag"] not in BOUNDARIES | DESCRIPTIONS | CREDITS:
        return None, ""
    return match["tag"], _unescaped((match["text"] or "").strip())


def _unescaped(text: str) -> str:
    """Entities as XML has them; html.unescape alone would also take `&copy2` for a sign."""
    return re.sub(r"&(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);", lambda match: unescape(match[0]), text).strip()
