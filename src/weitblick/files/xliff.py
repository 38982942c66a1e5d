"""XLIFF 1.2 and 2.x: targets are filled in beside their sources; what is approved or translated is locked."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from weitblick.common.errors import UserError
from weitblick.files.blocks import Block, Code, Edit, Marking, Note, Notes, Pieces, Said
from weitblick.files.encoding import decode, xml_declared
from weitblick.files.markup import Role, Token, check_xml, ends_of, escape, inline, text_of, tokens_of, with_attribute
from weitblick.files.messages import Message, message_blocks, message_pieces
from weitblick.files.translatable_file import COPY, Content

ROLES: dict[str, Role] = {
    **dict.fromkeys(("g", "pc", "mrk", "sub"), "pair"),
    **dict.fromkeys(("x", "ph", "cp"), "word"),
    **dict.fromkeys(("bx", "bpt", "sc", "sm"), "open"),
    **dict.fromkeys(("ex", "ept", "ec", "em"), "close"),
    "it": "alone",
}
HALF = re.compile(r"(START|CLOSE)_")  # how Angular names the two halves of a tag
DRAFT = "needs-review-translation"
UNFINISHED = {"new", "needs-translation", "initial"}  # a target in this state is no translation


def read_xliff(data: bytes, path: Path) -> Content:
    """The content of an XLIFF file."""
    check_xml(data, path)
    text, encoding = decode(data, path, xml_declared(data))
    tokens = tokens_of(text)
    root = next((token for token in tokens if token.kind in ("open", "empty")), None)
    if root is None or _local(root) != "xliff":
        raise UserError("is XML, but no XLIFF", where=path, remedy="name an XLIFF file")
    version = root.attributes.get("version", "")
    if not version.startswith(("1.", "2.")):
        raise UserError(f"is XLIFF {version or 'without a version'}", where=path, remedy="use XLIFF 1.2, 2.0 or 2.1")
    blocks = list(_Reader(text, tokens, version[0] == "2").blocks())
    return Content.of_text(text, encoding, blocks, _notes(blocks), errors="xmlcharrefreplace")


def _notes(blocks: list[Block]) -> list[str]:
    blocks = [block for block in blocks if block.part != COPY]
    locked = sum(block.status == "locked" for block in blocks)
    return [f"{locked} of {len(blocks)} units are translated already and stay as they are"] if locked else []


def _local(token: Token) -> str:
    return token.name.rpartition(":")[2]


class _Reader:
    def __init__(self, text: str, tokens: list[Token], second: bool) -> None:
        self.text, self.tokens, self.second = text, tokens, second
        self.ends = ends_of(tokens)
        self.unit = "segment" if second else "trans-unit"

    def blocks(self) -> Iterator[Block]:
        inherited: list[tuple[int, bool, str]] = []  # end of the element, whether it is translated, its id
        notes: Notes | None = None
        for number, token in enumerate(self.tokens):
            while inherited and number > inherited[-1][0]:
                inherited.pop()
            if token.kind != "open" or number not in self.ends:
                continue
            name, attributes = _local(token), token.attributes
            if name in ("file", "group", "unit", "trans-unit"):
                wanted = attributes.get("translate", "yes" if not inherited or inherited[-1][1] else "no") != "no"
                inherited.append((self.ends[number], wanted, attributes.get("id", "")))
            if name == ("unit" if self.second else "trans-unit"):
                notes = self._notes(number)
            if name == self.unit and (not inherited or inherited[-1][1]):
                for block in self._unit(number, inherited[-1][2] if inherited else ""):
                    yield replace(block, notes=notes) if block.part != COPY else block

    def _child(self, number: int, name: str) -> int | None:
        return next(self._children(number, name), None)

    def _children(self, number: int, name: str) -> Iterator[int]:
        place = number + 1
        while place < self.ends[number]:
            if self.tokens[place].kind in ("open", "empty") and _local(self.tokens[place]) == name:
                yield place
            place = self.ends.get(place, place) + 1

    def _notes(self, unit: int) -> Notes:
        """What is said about a unit. In 2.x its notes come first, in 1.2 they stand behind the target."""
        around = self._child(unit, "notes") if self.second else unit
        numbers = [] if around is None else list(self._children(around, "note"))
        found = {n: Note(self._text_of(n).strip(), self.tokens[n].attributes.get("from") or None) for n in numbers}
        given = {n: note for n, note in found.items() if note.text}
        prefix = self.tokens[unit].name.removesuffix(_local(self.tokens[unit]))
        children = [self._child(unit, name) for name in ("target", "seg-source", "source")]
        last = next((n for n in children if n is not None), unit)

        def write(wanted: Sequence[Note]) -> list[Edit]:
            kept = [n for n, note in given.items() if note in wanted]
            new = [note for note in wanted if note not in given.values()]
            if self.second:
                return self._with_notes(unit, around, kept, [_note(note, prefix, None) for note in new])
            gone = [self._span(n) for n in given if n not in kept]
            end = self.tokens[self.ends.get(last, last)].end
            said = "".join(_note(note, prefix, note.author) for note in new)
            return [*((start, stop, "") for start, stop in gone), *([(end, end, said)] if said else [])]

        return Notes(tuple(given.values()), write)

    def _with_notes(self, unit: int, around: int | None, kept: Sequence[int], new: Sequence[str]) -> list[Edit]:
        """The edit that gives a unit of 2.x these notes, and no empty list of them."""
        tag = self.tokens[unit]
        name = f"{tag.name.removesuffix('unit')}notes"
        inside = "".join([*(self.text[slice(*self._span(n))] for n in kept), *new])
        whole = f"<{name}>{inside}</{name}>" if inside else ""
        if around is not None:
            return [(*self._span(around), whole)]
        return [(tag.start, tag.end, tag.raw + whole)] if whole else []

    def _span(self, number: int) -> tuple[int, int]:
        return self.tokens[number].start, self.tokens[self.ends.get(number, number)].end

    def _unit(self, number: int, id: str) -> Iterator[Block]:
        source, target = self._child(number, "source"), self._child(number, "target")
        if source is None or self.tokens[source].kind == "empty":
            return
        segmented = self._child(number, "seg-source")
        place = source if segmented is None else segmented
        first = self.tokens[place].end
        raw = self.text[first : self.tokens[self.ends[place]].start]
        pieces, cases = message_pieces(raw, first, UNIT, COPY)
        if not pieces.has_text and not cases:
            return
        if segmented is not None and target is not None and (parts := self._parted(segmented, target)):
            yield from (self._part(*part, target, id) for part in parts)
            return
        own = self.tokens[number].attributes
        told = None if target is None else self._text_of(target)
        state = own.get("state") if self.second else (self.tokens[target].attributes.get("state") if target else None)
        approved = own.get("approved") == "yes" or state in ("final", "signed-off", "reviewed")
        finished = state not in UNFINISHED and told != self._text_of(source)
        locked = bool(told and told.strip()) and (approved or finished)
        said_before: Said = "reviewed" if approved else "draft" if (state or "").startswith("needs-") else "confirmed"
        span, finish = self._place(place, target)
        tag = self.tokens[number]

        def marked(name: str, value: str) -> tuple[tuple[int, int, str], ...]:
            return ((tag.start, tag.end, with_attribute(tag.raw, name, value)),)

        def said(state: str, approved: str | None) -> Marking:
            """How a unit says its state: 2.x on the segment, 1.2 on the target, and who approves on the unit."""
            if self.second:
                return Marking(marked("state", state), alone=marked("state", state))
            edits = marked("approved", approved) if approved is not None else ()
            alone = edits if target is None else (*edits, self._stated(target, state))
            return Marking(edits, lambda target: target.replace(f'state="{DRAFT}"', f'state="{state}"', 1), alone)

        withdrawn = "no" if own.get("approved") == "yes" else None

        content = pieces.content()
        yield Block(
            *span,
            *content,
            target=self._reads(target, content[1]) if target is not None and locked else None,
            status="locked" if locked else None,
            id=id or None,
            write=escape,
            finish=finish,
            bilingual=True,
            edits=marked("state", "initial") if self.second else (),
            confirmed=said("translated", withdrawn),
            reviewed=said("final", "yes"),
            drafted=said("initial" if self.second else DRAFT, withdrawn),
            said=said_before if locked else None,
            given=None if target is None else self._content(target),
        )
        for begin, stop in cases if not locked else ():
            yield from message_blocks(raw[begin:stop], first + begin, id, UNIT, COPY, 1)

    def _stated(self, target: int, state: str) -> Edit:
        tag = self.tokens[target]
        return tag.start, tag.end, with_attribute(tag.raw, "state", state)

    def _content(self, number: int) -> tuple[str, tuple[Code, ...]]:
        """The text and codes of a target as it stands."""
        pieces = Pieces()
        if self.ends[number] > number:
            _add(pieces, self.text[self.tokens[number].end : self.tokens[self.ends[number]].start])
        return pieces.content()

    def _text_of(self, number: int) -> str:
        return "".join(map(text_of, self.tokens[number : self.ends[number] + 1]))

    def _reads(self, number: int, codes: Sequence[Code]) -> str:
        """A target as people read it: elements that are words in its source are shown as there."""
        shown = {code.raw: code.shown for code in codes if code.kind == "word" and code.raw}
        out, place = [], number + 1
        while place < self.ends[number]:
            token, end = self.tokens[place], self.ends.get(place, place)
            raw = self.text[token.start : self.tokens[end].end]
            if token.kind in ("open", "empty") and raw in shown:
                out.append(shown[raw])
                place = end
            else:
                out.append(text_of(token))
            place += 1
        return "".join(out)

    def _parted(self, source: int, target: int) -> list[tuple[int, int]]:
        """The segments of a unit and their targets, if some of these are there and others are still empty."""
        sides = [self._segments(side) for side in (source, target)]
        told = [bool(self._text_of(number).strip()) for number in sides[1].values()]
        if sides[0].keys() != sides[1].keys() or all(told) or not any(told):
            return []
        return [(number, sides[1][name]) for name, number in sides[0].items()]

    def _segments(self, number: int) -> dict[str, int]:
        inside = range(number + 1, self.ends[number])
        marks = {n: self.tokens[n].attributes for n in inside if n in self.ends and _local(self.tokens[n]) == "mrk"}
        return {own.get("mid", ""): n for n, own in marks.items() if own.get("mtype") == "seg"}

    def _part(self, source: int, target: int, around: int, id: str) -> Block:
        """A segment of a unit of which others are translated already."""
        pieces = Pieces()
        _add(pieces, self.text[self.tokens[source].end : self.tokens[self.ends[source]].start])
        content = pieces.content()
        told = self._reads(target, content[1]).strip()
        tag = self.tokens[target]
        opening = re.sub(r"\s*/?>$", ">", tag.raw)
        return Block(
            tag.start,
            self.tokens[self.ends[target]].end,
            *content,
            target=told or None,
            status="locked" if told else None,
            id=id or None,
            write=escape,
            finish=lambda content: f"{opening}{content}</{tag.name}>",
            bilingual=True,
            edits=(self._stated(around, DRAFT),),
            confirmed=Marking((self._stated(around, "translated"),)),
            reviewed=Marking((self._stated(around, "final"),)),
            given=self._content(target),
        )

    def _place(self, source: int, target: int | None) -> tuple[tuple[int, int], Callable[[str], str]]:
        """Where the target goes, in place of the one that is there or behind the source, and what is around it."""
        opening = self.tokens[source]
        prefix = opening.name.removesuffix(_local(opening))
        tag = f"<{prefix}target>" if target is None else re.sub(r"\s*/?>$", ">", self.tokens[target].raw)
        tag = tag if self.second else with_attribute(tag, "state", DRAFT)
        name = f"{prefix}target" if target is None else self.tokens[target].name
        if target is not None:
            span = self.tokens[target].start, self.tokens[self.ends[target]].end
            return span, lambda content: f"{tag}{content}</{name}>"
        before = self.tokens[source - 1]
        indent = before.raw if before.kind == "text" and not before.raw.strip() else ""
        end = self.tokens[self.ends[source]].end
        return (end, end), lambda content: f"{indent}{tag}{content}</{name}>"


def _note(note: Note, prefix: str, author: str | None) -> str:
    by = f' from="{html.escape(author)}"' if author else ""
    return f"<{prefix}note{by}>{escape(note.text)}</{prefix}note>"


def _add(pieces: Pieces, raw: str) -> None:
    """A stretch of a source, with its elements."""
    tokens = tokens_of(raw)
    inline(tokens, ends_of(tokens), range(len(tokens)), _role, pieces, lambda a, b: raw[a:b], count(1))


def _bare(raw: str) -> str:
    return "".join(token.raw if token.kind == "text" else "_" * len(token.raw) for token in tokens_of(raw))


UNIT = Message(_add, escape, _bare)


def _role(token: Token) -> Role:
    name = _local(token)
    attributes = token.attributes
    if name == "x" and (half := HALF.match(attributes.get("id", ""))):
        return "open" if half[1] == "START" else "close"
    if name == "mrk" and (attributes.get("mtype") == "protected" or attributes.get("translate") == "no"):
        return "word"
    return ROLES.get(name, "alone")
