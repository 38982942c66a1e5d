"""TMX, the exchange format of translation memories: every `<tu>` holds a sentence in two or more languages.

TMX knows no documents. Ours are kept in a property of each unit; without one, all units are one document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from html.entities import html5
from itertools import islice
from pathlib import Path
from typing import IO, get_args
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from weitblick.common.errors import UserError
from weitblick.documents.corpora.reading import DocumentBuilder, IdentifiedLine, Inputs, LineSource, LineWriter, Located
from weitblick.documents.document import Document, Sentence, TargetStatus

DOCUMENT, STATUS = "x-document", "x-status"
LANGUAGES, SOURCE_LANGUAGE = "languages", "srclang"
"""Metadata of a document: what it was read as (en-GB de), and what the file says its source language is."""
ANY_LANGUAGE = "*all*"
CODES = {"bpt", "ept", "ph", "it", "ut", "sub"}  # what stands inside them is markup, not text
PLACEHOLDER, CODE = "\ufdd0", "\ufdd1"
"""Where a `<ph>`, perhaps a line break, or another code stood, until the space around it is known."""
BETWEEN_WORDS = re.compile(rf"(?<=[\w.,;:!?…])[{PLACEHOLDER}{CODE}]*{PLACEHOLDER}[{PLACEHOLDER}{CODE}]*(?=\w)")
BETWEEN_SPACES = re.compile(rf"(?:(?<= )|^)[{PLACEHOLDER}{CODE}]+ | [{PLACEHOLDER}{CODE}]+$")
LAYOUT = re.compile(r"[ \t]*\n[ \t\n]*")  # white space counts in TMX, but lines are broken for the eye
NO_XML = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\ufffe\uffff]")
LINES_TOGETHER = 200
"""Lines that are given to the parser at once."""
LEVEL = "x-ConfirmationLevel"
UNCONFIRMED = ("Draft", "RejectedTranslation", "RejectedSignOff")
"""How Trados marks what no human stands for."""


@cache
def same_language(one: str, other: str) -> bool:
    """en is en-GB, whatever the case; en-US is not en-GB."""
    a, b = (name.lower().replace("_", "-").split("-") for name in (one, other))
    shorter = min(len(a), len(b))
    return a[:shorter] == b[:shorter]


class _Unit:
    """One `<tu>`: texts by language, in order, and its properties."""

    def __init__(self, line: int, id: str | None) -> None:
        self.line, self.id = line, id
        self.texts: list[tuple[str, str]] = []
        self.properties: dict[str, str] = {}

    def text(self, language: str) -> str | None:
        """The first in a language that is not empty, if there is one."""
        found = [text for name, text in self.texts if same_language(name, language)]
        return next((text for text in found if text.strip()), found[0] if found else None)

    def status(self) -> TargetStatus | None:
        if self.properties.get(LEVEL) in UNCONFIRMED:
            return "draft"
        return next((status for status in get_args(TargetStatus) if status == self.properties.get(STATUS)), None)


class _Parser:
    """Expat's events as units. Nothing outside the file is read, and declared entities are refused."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.source_language = ANY_LANGUAGE
        self.units: list[_Unit] = []
        self._unit: _Unit | None = None
        self._language = self._property = ""
        self._text: list[str] | None = None
        self._codes = 0
        self._root: str | None = None
        self._expat = expat.ParserCreate("utf-8")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._characters
        self._expat.EntityDeclHandler = self._refuse_entity
        self._expat.SkippedEntityHandler = self._name

    def feed(self, text: str, last: bool = False) -> list[_Unit]:
        try:
            self._expat.Parse(text, last)
        except expat.ExpatError as error:
            raise UserError(
                f"is no well-formed TMX ({expat.errors.messages[error.code]})",
                where=self.path,
                line=error.lineno,
                remedy="mend the line, or export the memory again",
            ) from None
        units, self.units = self.units, []
        return units

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._root is None:
            self._check_root(tag)
        if tag == "header":
            self.source_language = attributes.get("srclang") or ANY_LANGUAGE
        elif tag == "tu":
            self._unit = _Unit(self._expat.CurrentLineNumber, attributes.get("tuid"))
        elif tag == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif tag == "seg":
            self._text, self._codes = [], 0
        elif tag == "prop":
            self._property, self._text = attributes.get("type", ""), []
        elif tag in CODES:
            self._characters(PLACEHOLDER if tag == "ph" else CODE)
            self._codes += 1

    def _end(self, tag: str) -> None:
        if tag == "tu" and self._unit is not None:
            self.units.append(self._unit)
            self._unit = None
        elif tag in ("seg", "prop"):
            text = _spaced("".join(self._text or []))
            if self._unit is not None and tag == "seg":
                self._unit.texts.append((self._language, text))
            elif self._unit is not None:
                self._unit.properties[self._property] = text
            self._text = None
        elif tag in CODES:
            self._codes -= 1

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._codes:
            self._text.append(text)

    def _check_root(self, tag: str) -> None:
        self._root = tag
        if tag != "tmx":
            raise UserError(
                f"is no TMX: it begins with <{tag}>, not <tmx>",
                where=self.path,
                line=self._expat.CurrentLineNumber,
                remedy="export the memory as TMX",
            )

    def _name(self, name: str, *_: object) -> None:
        """A character by its name (&nbsp;), which expat leaves to the DTD outside of the file."""
        if (character := html5.get(f"{name};")) is None:
            raise UserError(
                f"uses the entity {name!r}, which is not declared",
                where=self.path,
                line=self._expat.CurrentLineNumber,
                remedy="write the character itself",
            )
        self._characters(character)

    def _refuse_entity(self, name: str, *_: object) -> None:
        raise UserError(
            f"declares the entity {name!r}, which could grow without bound or read other files",
            where=self.path,
            line=self._expat.CurrentLineNumber,
            remedy="remove the declaration",
        )


def _spaced(text: str) -> str:
    """The text of an element, without codes and without the line breaks and indents of the file."""
    if text.isprintable():  # neither a line break nor a code, as nearly all texts
        return text
    text = LAYOUT.sub("\n", text).removeprefix("\n").removesuffix("\n").replace("\n", " ")
    text = BETWEEN_WORDS.sub(" ", BETWEEN_SPACES.sub("", text))
    return text.replace(PLACEHOLDER, "").replace(CODE, "")


def read_tmx(inputs: Inputs) -> Iterator[Located]:
    """The sentences of a translation memory, as documents by the property that names them."""
    source = inputs.sources[0]
    builder = DocumentBuilder()
    current: str | None = None
    metadata: dict[str, str] = {}
    for row, metadata in tmx_rows(source, inputs.languages):
        if builder.sentences and row.document != current:
            yield builder.finish(current or None, metadata)
        current = row.document
        builder.add(row.line, row.sentence)
    if builder.sentences:
        yield builder.finish(current or None, metadata)


def tmx_rows(source: LineSource, wanted: tuple[str, str] | None) -> Iterator[tuple[IdentifiedLine, dict[str, str]]]:
    """The sentences in the wanted languages, or else in the source language of the file and the first other one, each
    with the metadata of its document; they are read as they are asked for."""
    parser, languages, seen = _Parser(source.path), wanted, set[str]()
    usable, metadata = False, dict[str, str]()
    for unit in _units(parser, source):
        languages = languages or _languages(parser.source_language, unit)
        seen.update(name for name, _ in unit.texts)
        text = None if languages is None else unit.text(languages[0])
        if text is None or languages is None:
            continue
        usable = True
        target = unit.text(languages[1])
        sentence = Sentence(text, target, None if target is None else unit.status(), unit.id)
        metadata = metadata or {LANGUAGES: " ".join(languages), SOURCE_LANGUAGE: parser.source_language}
        yield IdentifiedLine(unit.line, unit.properties.get(DOCUMENT, ""), sentence), metadata
    if seen and not usable:
        raise UserError(
            f"holds {', '.join(sorted(seen))}, not {languages[0] if languages else 'two languages'}",
            where=source.path,
            remedy="name languages of the file (--source-language, --target-language), or another file",
        )


def _languages(source: str, unit: _Unit) -> tuple[str, str] | None:
    names = [name for name, _ in unit.texts]
    if len(names) < 2:
        return None
    first = next((name for name in names if same_language(name, source)), names[0])
    return first, next(name for name in names if name != first) if len(set(names)) > 1 else first


def _units(parser: _Parser, source: LineSource) -> Iterator[_Unit]:
    while lines := list(islice(source, LINES_TOGETHER)):
        yield from parser.feed("\n".join(lines) + "\n")
    yield from parser.feed("", last=True)


def with_languages(document: Document, languages: tuple[str, str]) -> Document:
    return replace(document, metadata={**document.metadata, LANGUAGES: " ".join(languages)})


def write_tmx(documents: Iterable[Document], streams: Sequence[IO[str]], paths: Sequence[str | Path]) -> None:
    """The languages are those of the first document's metadata, which the options of `data convert` set."""
    from weitblick import __version__

    writer = LineWriter(streams[0], paths[0], "tmx")
    languages: list[str] = []
    for document in documents:
        if not languages:
            languages = str(document.metadata.get(LANGUAGES, "")).split()
            if len(languages) != 2:
                raise writer.refuse(
                    "a corpus of unknown languages", "name them: --source-language en --target-language de"
                )
            writer.write('<?xml version="1.0" encoding="UTF-8"?>')
            writer.write('<tmx version="1.4">')
            writer.write(
                f'<header creationtool="weitblick" creationtoolversion="{__version__}" segtype="sentence" '
                f'o-tmf="weitblick" adminlang="en" srclang={quoteattr(languages[0])} datatype="plaintext"/>'
            )
            writer.write("<body>")
        for sentence in document.sentences:
            _write_unit(sentence, document.id, languages, writer)
    if languages:
        writer.write("</body>")
        writer.write("</tmx>")


def _write_unit(sentence: Sentence, document: str, languages: Sequence[str], writer: LineWriter) -> None:
    id = "" if sentence.id is None else f" tuid={quoteattr(_checked(sentence.id, writer))}"
    parts = [f'<tu{id}><prop type="{DOCUMENT}">{_escaped(document, writer)}</prop>']
    if sentence.status is not None:
        parts.append(f'<prop type="{STATUS}">{sentence.status}</prop>')
    for language, text in zip(languages, (sentence.source, sentence.target), strict=True):
        if text is not None:
            parts.append(f"<tuv xml:lang={quoteattr(language)}><seg>{_escaped(text, writer)}</seg></tuv>")
    writer.write("".join([*parts, "</tu>"]))


def _escaped(text: str, writer: LineWriter) -> str:
    return escape(_checked(text, writer), {"\r": "&#13;"})  # a bare one is read as a line end


def _checked(text: str, writer: LineWriter) -> str:
    if NO_XML.search(text):
        raise writer.refuse("a control character", "remove it: XML cannot hold it")
    return text
