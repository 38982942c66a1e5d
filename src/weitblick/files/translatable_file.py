"""A file as a document to translate, and the same file with the translation in place of its text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weitblick.common.errors import UserError
from weitblick.common.files import atomic_path
from weitblick.documents.document import Document, Sentence
from weitblick.files.blocks import BREAK, Block, Edit, Note, Notes, Said
from weitblick.files.checks.numerals import converted
from weitblick.files.encoding import Encoding, name_of, unwritable
from weitblick.files.flows import flows_of
from weitblick.files.inline_marks import InlineMark, PlacedFormat, follow, format_spans, inner_places, source_marks
from weitblick.files.masked_document import BY_RULE, Align, MaskedDocument, align_by_places
from weitblick.files.masking import Reading
from weitblick.files.placement import Spans
from weitblick.files.rendering import FlowSentence, TranslatedFlow, sentences_of
from weitblick.text.carried import Alphabet

REFERENCE = re.compile("\ufdd0(\\d+):(\\d+):([^\ufdd1]*)\ufdd1")
NOT_IN_ROWS = re.compile("[\r\n\ufdd0-\ufdef\U000f0000-\U000f8000]")
"""Line ends, and what stands for something else in texts that code works on."""
NOT_IN = {
    "ass": re.compile(r"[{}]|\\(?=[Nnh])"),  # override tags and line ends, which it cannot escape
    "po": re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]"),  # line ends, for many programs
}
SAID = "said"
"""In the metadata of a sentence: what its file says of the translation that it has already."""
COPY = "copy"  # a part that is its file once more: what is translated there goes elsewhere, by reference


@dataclass(frozen=True)
class Content:
    """What a format's reader makes of a file.

    parts   its texts by name; a file that is no package has one, named ""
    blocks  in the order in which they are read
    save    changed parts to the bytes of the file
    notes   what a reader of the translation should know
    review  what there is to say about the blocks' new texts (reading speed, say)
    encoding  how text becomes bytes, where that may not have every character
    """

    parts: Mapping[str, str]
    blocks: Sequence[Block]
    save: Callable[[Mapping[str, str]], bytes]
    notes: Sequence[str] = ()
    review: Callable[[Sequence[tuple[Block, str]]], list[str]] | None = None
    encoding: str | None = None

    @staticmethod
    def of_text(
        text: str,
        encoding: Encoding,
        blocks: Sequence[Block],
        notes: Sequence[str] = (),
        *,
        errors: str = "strict",
        review: Callable[[Sequence[tuple[Block, str]]], list[str]] | None = None,
    ) -> Content:
        """The content of a file that is one text."""
        return Content(
            {"": text, COPY: text},
            blocks,
            lambda new: encoding.encode(new.get("", text), errors),
            notes,
            review,
            encoding.name if errors == "strict" else None,
        )


class TranslatableFile(MaskedDocument):
    """The text of a file as one `document`; `write` puts a document with targets back in its place.

    Targets may come from anywhere. Tags go where an alignment says (`Translator.align`; without one, by equal words
    and places); what must not be lost is put back. Whatever is no text stays as it is, byte for byte.
    """

    def __init__(
        self,
        path: Path,
        format: str,
        content: Content,
        language: str = "en",
        alphabet: Alphabet | None = None,
        *,
        target_language: str | None = None,
        numbers: bool = True,
    ) -> None:
        """`target_language`: by whose conventions cells that are numbers or dates are written. Without `numbers` there
        are no sentences of these."""
        self.path, self.format, self.content = path, format, content
        self._languages = (language, target_language)
        blocks = [block for block in content.blocks if numbers or not block.by_rule]
        self._flows = list(flows_of(blocks, language, alphabet))
        reading = Reading.of(language, alphabet)
        self._units = [unit for number, flow in enumerate(self._flows) for unit in sentences_of(number, flow, reading)]
        sentences = tuple(self._sentence(unit) for unit in self._units)
        super().__init__(Document(path.stem or "1", sentences, {"format": format}), [unit.mask for unit in self._units])

    def read_for(
        self, language: str, alphabet: Alphabet | None, *, target_language: str | None = None
    ) -> TranslatableFile:
        """The same file as a model of these languages should read it."""
        return TranslatableFile(
            self.path, self.format, self.content, language, alphabet, target_language=target_language
        )

    @property
    def notes(self) -> list[str]:
        """What a reader of the translation should know."""
        return list(self.content.notes)

    def _sentence(self, unit: FlowSentence) -> Sentence:
        block = self._flows[unit.flow].blocks[0]
        source = unit.mask.show(unit.source).replace(BREAK, " ")
        if block.by_rule:
            by_rule = {"block": unit.flow, BY_RULE: True}
            return Sentence(source, converted(source, *self._languages), "draft", block.id, by_rule)
        metadata: dict[str, int | str] = {"block": unit.flow}
        if block.said is not None:
            metadata[SAID] = block.said
        return Sentence(source, block.target, block.status, block.id, metadata)

    def notes_of(self) -> list[tuple[Note, ...]]:
        """What the file says about each sentence; what it says about several stands with the first."""
        found: list[tuple[Note, ...]] = []
        seen: set[Notes] = set()
        for unit in self._units:
            own = self._notes_at(unit)
            found.append(own.given if own is not None and own not in seen else ())
            seen |= {own} if own is not None else set()
        return found

    def _notes_at(self, unit: FlowSentence) -> Notes | None:
        return self._flows[unit.flow].blocks[0].notes

    def unwritable(self, text: str, source: str = "") -> list[tuple[int, str]]:
        """The characters that a translation of one sentence must not have, with their places: what the format or its
        encoding cannot hold, and line ends, since a sentence stands on one line."""
        carried = Counter(NOT_IN_ROWS.findall(source))  # which may stand in the translation, too
        found = dict(unwritable(self.format, text))
        for one in NOT_IN_ROWS.finditer(text):
            carried[one[0]] -= 1
            if carried[one[0]] < 0:
                found[one.start()] = one[0]
        if self.format in NOT_IN:
            found |= {one.start(): one[0] for one in NOT_IN[self.format].finditer(text)}
        if self.content.encoding not in (None, "utf-8"):
            found |= {at: letter for at, letter in enumerate(text) if not _can_encode(letter, self.content.encoding)}
        return sorted(found.items())

    def hidden_signs(self) -> list[tuple[str, ...]]:
        """Of each sentence, the signs of the file that it does not show (the * of `price*`): a draft has them when it
        is written, a confirmed translation only those that were typed."""
        return [tuple(code.shown for code in self._flows[one.flow].signs_in(one.stretch)) for one in self._units]

    def marks(self) -> list[list[InlineMark]]:
        """Of each sentence, placeholders and formatting, with their places in what people read."""
        return [source_marks(unit.mask, self._flows[unit.flow], unit.stretch) for unit in self._units]

    def limits(self) -> list[tuple[float, int] | None]:
        """For how many seconds each sentence of subtitles is seen, of however many cues, and on how many lines of them;
        None in files of other kinds."""
        return [self._seconds(unit) for unit in self._units]

    def _seconds(self, unit: FlowSentence) -> tuple[float, int] | None:
        flow = self._flows[unit.flow]
        seconds, cues = 0.0, 0
        for block, start in zip(flow.blocks, flow.starts, strict=True):
            overlap = min(unit.stretch.end, start + len(block.text)) - max(unit.stretch.start, start)
            if overlap > 0 and block.seconds:
                seconds += block.seconds * overlap / max(1, len(block.text.strip()))
                cues += 1
        return (seconds, cues) if seconds else None

    # What is written

    def write(self, document: Document, path: str | Path, align: Align = align_by_places) -> list[str]:
        """Write the file with these targets to `path`, complete or not at all. Returns notes for the reader."""
        data, notes = self.rendered(document, align)
        with atomic_path(path) as temporary:
            temporary.write_bytes(data)
        return notes

    def rendered(
        self,
        document: Document,
        align: Align = align_by_places,
        reviewed: Collection[int] | None = None,
        comments: Mapping[int, Sequence[Note]] | None = None,
        placed: Mapping[int, Sequence[PlacedFormat]] | None = None,
    ) -> tuple[bytes, list[str]]:
        """The bytes of the file with these targets, and notes. What is `locked` there has been confirmed by a human: it
        goes out as it stands, and the file says so if it can. `reviewed` are the numbers of sentences that somebody has
        reviewed after that; if they are given, the file also says what became of translations that it had already.
        `comments`: all that is to be said about each sentence, in place of what the file says. `placed`: where somebody
        has put the formatting of sentences; the rest of it goes where its words went."""
        if len(document.sentences) != len(self._units):
            raise ValueError(f"{len(document.sentences)} sentences for a file of {len(self._units)}")
        confirmed = {number for number, sentence in enumerate(document.sentences) if sentence.status == "locked"}
        inners = self._changed(document, confirmed, align)
        needy = [number for number in inners if self._needs_alignment(self._units[number])]
        alignments = dict(zip(needy, self.alignments(needy, inners, align), strict=True))
        replaced: dict[str, list[Edit]] = {}
        texts: list[tuple[Block, str]] = []
        of_flow: dict[int, list[int]] = {}
        for number, unit in enumerate(self._units):
            of_flow.setdefault(unit.flow, []).append(number)
        for index, flow in enumerate(self._flows):
            members = of_flow.get(index, [])
            bare = not members and flow.blocks[0].bilingual and bool(flow.text.strip() and inners)
            wanted = _wanted(members or range(len(self._units)), confirmed, reviewed or ())
            if not bare and not any(number in inners for number in members):
                texts += [(block, block.reads) for block in flow.blocks]
                for block in flow.blocks if reviewed is not None and members else ():
                    replaced.setdefault(block.part, []).extend(_restated(block, wanted))
                continue
            rows = [(self._units[n], inners.get(n), alignments.get(n)) for n in members]
            own_places = [self._placed(n, document, inners, placed or {}) for n in members]
            for block, raw, shown in TranslatedFlow(flow, rows, [n in confirmed for n in members], own_places).blocks():
                marking = {"reviewed": block.reviewed, "confirmed": block.confirmed}.get(wanted)
                raw = marking.mark(raw) if marking else raw
                own = marking.edits if marking else block.edits
                replaced.setdefault(block.part, []).extend([(block.start, block.end, raw), *own])
                texts.append((block, shown))
        edits = {
            part: sorted(dict.fromkeys(found), key=lambda edit: (edit[0], -edit[1], -len(edit[2])))
            for part, found in replaced.items()
        }
        for part, start, end, new in self._noted(comments) if comments is not None else ():
            known = edits.setdefault(part, [])
            known.insert(bisect_right(known, start, key=lambda edit: edit[0]), (start, end, new))
        changed = {part: _spliced(self.content.parts, edits, part) for part in edits if part != COPY}
        notes = self.content.review(texts) if self.content.review else []
        return self.content.save(changed), notes

    def _placed(
        self,
        number: int,
        document: Document,
        inners: Mapping[int, str],
        placed: Mapping[int, Sequence[PlacedFormat]],
    ) -> Spans:
        """Where somebody has put the formatting of a sentence, as spans of the inner texts of both sides."""
        own, target, unit = placed.get(number, ()), document.sentences[number].target, self._units[number]
        if not own or target is None or number not in inners:
            return {}
        typed = unit.mask.find(target)
        formats = format_spans(self._flows[unit.flow], unit.stretch)
        there = follow(inner_places(unit.mask, typed, own), typed, inners[number])
        return {formats[one.mark]: (one.start, one.end) for one in there if one.mark < len(formats)}

    def _noted(self, comments: Mapping[int, Sequence[Note]]) -> Iterator[tuple[str, int, int, str]]:
        """The edits, with their parts, by which the file has these comments."""
        wanted: dict[Notes, list[Note]] = {}
        parts: dict[Notes, str] = {}
        for number, unit in enumerate(self._units):
            notes = self._notes_at(unit)
            if notes is not None:
                wanted.setdefault(notes, []).extend(comments.get(number, ()))
                parts[notes] = self._flows[unit.flow].blocks[0].part
        for notes, own in wanted.items():
            if Counter(own) != Counter(notes.given):
                yield from ((parts[notes], *edit) for edit in notes.write(own))

    def _changed(self, document: Document, confirmed: set[int], align: Align) -> dict[int, str]:
        """The inner targets of the sentences that are not what they were, with nothing missing in those that nobody has
        confirmed."""
        inners: dict[int, str] = {}
        for number, (unit, own, new) in enumerate(
            zip(self._units, self.document.sentences, document.sentences, strict=True)
        ):
            bilingual = self._flows[unit.flow].blocks[0].bilingual
            if new.target is None or (new.target == own.source and not bilingual):
                continue
            if own.status == "locked" and new.target == own.target:
                continue
            target = new.target if number in confirmed else " ".join(new.target.strip().split("\n"))
            target = target if target.strip() else own.source
            unheld = self.unwritable(target, own.source) if number in confirmed else unwritable(self.format, target)
            for place, character in unheld:
                raise UserError(
                    f"sentence {number + 1}: {self.format} cannot hold {name_of(character)} (character {place + 1})",
                    where=self.path.name,
                    remedy="remove it from the translation",
                )
            inners[number] = unit.mask.find(target)
        drafts = {number: inner for number, inner in inners.items() if number not in confirmed}
        self.put_back(drafts, align)
        return inners | drafts

    def _needs_alignment(self, unit: FlowSentence) -> bool:
        """Whether a code stands inside the sentence, not at its edge, or a break that is not mere wrapping."""
        flow = self._flows[unit.flow]
        inside = range(unit.stretch.start + 1, unit.stretch.end)
        if any(code.at in inside and code.kind in ("open", "close", "alone", "break") for code in flow.codes):
            return True
        return BREAK in unit.source and not flow.blocks[0].wrapped


def _wanted(members: Collection[int], confirmed: Collection[int], reviewed: Collection[int]) -> Said:
    """What a file is to say about a block with these sentences."""
    if set(members) <= set(reviewed) and set(members) <= set(confirmed):
        return "reviewed"
    return "confirmed" if set(members) <= set(confirmed) else "draft"


def _restated(block: Block, wanted: Said) -> tuple[Edit, ...]:
    """The edits by which a file says what has become of a translation that it has already and that stays as it is."""
    marking = {"draft": block.drafted, "confirmed": block.confirmed, "reviewed": block.reviewed}[wanted]
    return marking.alone if marking is not None and block.said not in (None, wanted) else ()


def _can_encode(letter: str, encoding: str) -> bool:
    try:
        letter.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def reference(start: int, end: int, part: str = "") -> str:
    """A placeholder, in the raw text of a code, for the characters [start, end) of a part (the code's own if none is
    named), with whatever is replaced in them."""
    return f"\ufdd0{start}:{end}:{part}\ufdd1"


def _spliced(
    parts: Mapping[str, str],
    edits: Mapping[str, Sequence[tuple[int, int, str]]],
    part: str,
    low: int = 0,
    high: int | None = None,
) -> str:
    """Characters [low, high) of a part with all edits in them, which are sorted. An edit inside another one counts
    where that refers to what it replaces."""
    text = parts[part]
    high = len(text) if high is None else high
    own = edits.get(part, ())
    out, position = [], low
    for start, end, new in own[bisect_left(own, low, key=lambda edit: edit[0]) :]:
        if start >= high:
            break
        if position <= start and end <= high:
            filled = REFERENCE.sub(lambda r: _spliced(parts, edits, r[3] or part, int(r[1]), int(r[2])), new)
            out += [text[position:start], filled]
            position = end
    return "".join([*out, text[position:high]])
