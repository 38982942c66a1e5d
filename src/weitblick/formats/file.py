"""A file as a document to translate, and the same file with the translation in place of its text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from weitblick.documents.document import Document, Sentence
from weitblick.files import atomic_path
from weitblick.formats.blocks import BREAK, Block
from weitblick.formats.flows import flows_of
from weitblick.formats.placeholders import calm, conjunction, insert_words, is_shouted
from weitblick.formats.protection import lost_numbers
from weitblick.formats.rendering import FlowSentence, TranslatedFlow, units_of
from weitblick.translation.alignment import Alignment, align_by_place

OPEN_END = re.compile(r"\.{3}$|…$")
REFERENCE = re.compile("\ufdd0(\\d+):(\\d+):([^\ufdd1]*)\ufdd1")
COPY = "copy"  # a part that is its file once more: what is translated there goes elsewhere, by reference

Align = Callable[[Sequence[tuple[str, str]]], list[Alignment]]
"""(source, target) texts to alignments: `Translator.align`."""


def align_by_places(pairs: Sequence[tuple[str, str]]) -> list[Alignment]:
    return [align_by_place(*pair) for pair in pairs]


@dataclass(frozen=True)
class Content:
    """What a format's reader makes of a file.

    parts   its texts by name; a file that is no package has one, named ""
    blocks  in the order in which they are read
    save    changed parts to the bytes of the file
    notes   what a reader of the translation should know
    review  what there is to say about the blocks' new texts (reading speed, say)
    """

    parts: Mapping[str, str]
    blocks: Sequence[Block]
    save: Callable[[Mapping[str, str]], bytes]
    notes: Sequence[str] = ()
    review: Callable[[Sequence[tuple[Block, str]]], list[str]] | None = None


@dataclass
class TranslatableFile:
    """The text of a file as one `document`; `write` puts a document with targets back in its place.

    Targets may come from anywhere. Tags go where an alignment says (`Translator.align`; without one, by equal words
    and places); what must not be lost is put back. Whatever is no text stays as it is, byte for byte.
    """

    path: Path
    format: str
    content: Content
    language: str = "en"
    document: Document = field(init=False)

    def __post_init__(self) -> None:
        self._flows = list(flows_of(self.content.blocks, self.language))
        joining = conjunction(self.language)
        self._units = [unit for number, flow in enumerate(self._flows) for unit in units_of(number, flow, joining)]
        sentences = tuple(self._sentence(unit) for unit in self._units)
        self.document = Document(self.path.stem or "1", sentences, {"format": self.format})

    @property
    def notes(self) -> list[str]:
        return list(self.content.notes)

    def _sentence(self, unit: FlowSentence) -> Sentence:
        block = self._flows[unit.flow].blocks[0]
        source = unit.words.show(unit.source).replace(BREAK, " ")
        return Sentence(source, block.target, block.status, block.id, {"block": unit.flow})

    # What a model reads

    def veiled(self) -> Document:
        """The document as a model should read it, with K1, K2, ... for what it must not touch; see `unveiled`."""
        sentences = tuple(
            replace(sentence, source=calm(unit.words.veil(unit.source)))
            for unit, sentence in zip(self._units, self.document.sentences, strict=True)
        )
        return replace(self.document, sentences=sentences)

    def veil(self, number: int, target: str) -> str:
        """A translation of one sentence, as a model should read it."""
        words = self._units[number].words
        return calm(words.veil(words.find(" ".join(target.split("\n")))))

    def names(self, number: int) -> dict[str, str]:
        """What the names in a veiled sentence stand for, as people read it."""
        return self._units[number].words.named

    def translated_again(self, translated: Document, translate: Callable[[Document], Document]) -> Document:
        """A translation of `veiled()` in which sentences that have lost words have had a second chance, with other
        names for them."""
        targets = {number: sentence.target or "" for number, sentence in enumerate(translated.sentences)}
        found = self.tried_again(targets, translate)
        sentences = [
            replace(sentence, target=found[number]) if found[number] != (sentence.target or "") else sentence
            for number, sentence in enumerate(translated.sentences)
        ]
        return replace(translated, sentences=tuple(sentences))

    def tried_again(self, targets: Mapping[int, str], translate: Callable[[Document], Document]) -> dict[int, str]:
        """As `translated_again`, for some sentences by their number."""
        broken = {number: lost for number, target in targets.items() if (lost := self._lost(number, target))}
        if not broken:
            return dict(targets)
        words = [self._units[n].words.again() for n in broken]
        sources = [calm(other.veil(self._units[n].source)) for n, other in zip(broken, words, strict=True)]
        tries = tuple(replace(self.document.sentences[n], source=s) for n, s in zip(broken, sources, strict=True))
        answers = translate(replace(self.document, sentences=tries)).sentences
        found = dict(targets)
        for number, other, answer in zip(broken, words, answers, strict=True):
            inside = other.unveil(answer.target or "")
            if len(other.missing(inside)) < broken[number]:
                found[number] = self._units[number].words.veil(inside)
        return found

    def _lost(self, number: int, target: str) -> int:
        words = self._units[number].words
        return 0 if self.document.sentences[number].status == "locked" else len(words.missing(words.unveil(target)))

    def unveiled(self, translated: Document, align: Align = align_by_places) -> tuple[Document, list[str]]:
        """A translation of `veiled()` as one of `document`, and notes about what had to be mended or was lost."""
        free = [n for n, sentence in enumerate(self.document.sentences) if sentence.status != "locked"]
        shown, notes = self.unveil({n: translated.sentences[n].target or "" for n in free}, align)
        sentences = [
            replace(sentence, metadata={**sentence.metadata, **given.metadata})
            for sentence, given in zip(self.document.sentences, translated.sentences, strict=True)
        ]
        for number, target in shown.items():
            sentences[number] = replace(sentences[number], target=target)
        return replace(self.document, sentences=tuple(sentences)), notes

    def unveil(self, targets: Mapping[int, str], align: Align = align_by_places) -> tuple[dict[int, str], list[str]]:
        """As `unveiled`, for some sentences by their number."""
        insides = {
            number: _like(self._units[number].source, self._units[number].words.unveil(target))
            for number, target in targets.items()
        }
        broken = [number for number in insides if self._units[number].words.missing(insides[number])]
        notes = []
        for number, alignment in zip(broken, self._alignments(broken, insides, align), strict=True):
            unit = self._units[number]
            missing = unit.words.missing(insides[number])
            insides[number] = insert_words(unit.source, insides[number], missing, alignment)
            lost = ", ".join(unit.words.shown[word] for word in missing)
            notes.append(f"sentence {number + 1}: {lost} was lost and put back: check its place")
        for number, inside in insides.items():
            numbers = lost_numbers(self._units[number].source, inside)
            notes += [f"sentence {number + 1}: the number {value} is not in the translation" for value in numbers]
        return {number: self._units[number].words.show(inside) for number, inside in insides.items()}, notes

    def _alignments(self, chosen: Sequence[int], insides: Mapping[int, str], align: Align) -> list[Alignment]:
        units = [self._units[number] for number in chosen]
        pairs = [(u.words.veil(u.source), u.words.veil(insides[n])) for n, u in zip(chosen, units, strict=True)]
        return [
            unit.words.inside_alignment(unit.source, insides[number], found)
            for number, unit, found in zip(chosen, units, align(pairs) if pairs else [], strict=True)
        ]

    # What is written

    def write(self, document: Document, path: str | Path, align: Align = align_by_places) -> list[str]:
        """Write the file with these targets to `path`, complete or not at all. Returns notes for the reader."""
        data, notes = self.rendered(document, align)
        with atomic_path(path) as temporary:
            temporary.write_bytes(data)
        return notes

    def rendered(self, document: Document, align: Align = align_by_places) -> tuple[bytes, list[str]]:
        """The bytes of the file with these targets, and notes."""
        if len(document.sentences) != len(self._units):
            raise ValueError(f"{len(document.sentences)} sentences for a file of {len(self._units)}")
        insides = self._changed(document, align)
        needy = [number for number in insides if self._needs_alignment(self._units[number])]
        alignments = dict(zip(needy, self._alignments(needy, insides, align), strict=True))
        replaced: dict[str, list[tuple[int, int, str]]] = {}
        texts: list[tuple[Block, str]] = []
        of_flow: dict[int, list[int]] = {}
        for number, unit in enumerate(self._units):
            of_flow.setdefault(unit.flow, []).append(number)
        for index, flow in enumerate(self._flows):
            members = of_flow.get(index, [])
            bare = not members and flow.blocks[0].bilingual and bool(flow.text.strip() and insides)
            if not bare and not any(number in insides for number in members):
                texts += [(block, block.reads) for block in flow.blocks]
                continue
            rows = [(self._units[n], insides.get(n), alignments.get(n)) for n in members]
            for block, raw, shown in TranslatedFlow(flow, rows).blocks():
                replaced.setdefault(block.part, []).extend([(block.start, block.end, raw), *block.edits])
                texts.append((block, shown))
        edits = {
            part: sorted(dict.fromkeys(found), key=lambda edit: (edit[0], -edit[1])) for part, found in replaced.items()
        }
        changed = {part: _spliced(self.content.parts, edits, part) for part in edits if part != COPY}
        notes = self.content.review(texts) if self.content.review else []
        return self.content.save(changed), notes

    def _changed(self, document: Document, align: Align) -> dict[int, str]:
        """The inside targets of the sentences that are not what they were, nothing missing in them."""
        insides: dict[int, str] = {}
        for number, (unit, own, new) in enumerate(
            zip(self._units, self.document.sentences, document.sentences, strict=True)
        ):
            bilingual = self._flows[unit.flow].blocks[0].bilingual
            if own.status == "locked" or new.target is None or (new.target == own.source and not bilingual):
                continue
            target = new.target.strip() or own.source
            insides[number] = unit.words.find(" ".join(target.split("\n")))
        broken = [number for number in insides if self._units[number].words.missing(insides[number])]
        for number, alignment in zip(broken, self._alignments(broken, insides, align), strict=True):
            unit = self._units[number]
            missing = unit.words.missing(insides[number])
            insides[number] = insert_words(unit.source, insides[number], missing, alignment)
        return insides

    def _needs_alignment(self, unit: FlowSentence) -> bool:
        """Whether a code stands inside the sentence, not at its edge, or a break that is not mere wrapping."""
        flow = self._flows[unit.flow]
        inside = range(unit.stretch.start + 1, unit.stretch.end)
        if any(code.at in inside and code.kind in ("open", "close", "alone", "break") for code in flow.codes):
            return True
        return BREAK in unit.source and not flow.blocks[0].wrapped


def _like(source: str, target: str) -> str:
    """A translation with the signs of its source: capital letters, square brackets, no full stop where none was."""
    if "[" in source and "(" not in source and target.count("(") == source.count("["):
        target = target.replace("(", "[").replace(")", "]")
    target = _ended(source, target)
    return target.upper() if is_shouted(source) else target


def _ended(source: str, target: str) -> str:
    """A heading or a cell has no full stop because a model that has only seen sentences puts one there."""
    if not target.endswith(".") or target.endswith(".."):
        return target
    if dots := OPEN_END.search(source):
        return target[:-1] + dots[0]
    if source.endswith(tuple(".!?…。！？;,-–—")):
        return target
    return target[:-1] + ":" if source.endswith(":") else target[:-1] or target


def reference(start: int, end: int, part: str = "") -> str:
    """Stands for the characters [start, end) of a part (of the code's own, if none is named), whatever is replaced in
    them, in the raw text of a code."""
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
