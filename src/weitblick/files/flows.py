"""Blocks to sentences: blocks that read on in each other are one flow of text, and that is split into sentences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from weitblick.common.characters import base_language
from weitblick.documents.corpora.prose import sentence_splitter, split_exactly
from weitblick.files.blocks import BREAK, WORD, Block, Code, carry
from weitblick.text.carried import SIGNS, Alphabet, is_latin, unreadable_spans

SEVERAL = re.compile(r"[.!?…。！？][\"'”’»)\]]*\s+\S|[。！？]")  # where a second sentence may begin
END = re.compile(r"([.!?])\s+(?=\S)")
NOT_PLAIN = re.compile(r"[\"“”„«»()\[\]…。！？:]|[.!?]{2}|(?:^|\W)'|'(?:\W|$)|[.!?](?=[^\s\d])|(?:^|\s)\d+[.)]")
SHORTENED = {"approx", "govt", "vols", "figs", "secs", "paras", "arts"}  # beside those that pysbd knows
UNSPACED = re.compile(r"[。！？][”’」』）]*(?=[^\s。！？”’」』）])")  # behind these no space is written
WORD_END = re.compile(rf"({WORD}[.!?][\"'”’»)\]]*)\s+[\"'“‘«(]?(\S)")
SEPARATOR = re.compile(r"\s[|•·]\s")
SOUND = re.compile(r"\s*(?:\[[^\[\]]*\]|\([^\W\d_][^()]{2,}\))(?=\s+\S)")  # [MUSIC] (SIGHS)
DOTS = re.compile(r"(?:(?:\.{3}|…)\s*)?")  # what was left open goes on
ENDED = re.compile(r"[.!?…:;。！？♪][\"'”’»)\]]*\s*$")
FIRST = re.compile(r"\s*[\"'“‘«(]?(\w)")
LEFT_OPEN = re.compile(r"[,–-]\s*$")


@dataclass(frozen=True)
class Stretch:
    """A sentence, as the characters [start, end) of its flow."""

    start: int
    end: int


@dataclass(frozen=True)
class Flow:
    """Blocks joined by breaks, their codes counted from the start of the flow, and the sentences in it."""

    blocks: tuple[Block, ...]
    text: str
    codes: tuple[Code, ...]
    starts: tuple[int, ...]  # of each block
    stretches: tuple[Stretch, ...]

    def words_in(self, stretch: Stretch) -> list[Code]:
        """The carried spans of a sentence."""
        return [code for code in self.codes if code.kind == "word" and stretch.start <= code.at < stretch.end]

    def signs_in(self, stretch: Stretch) -> list[Code]:
        """The signs inside a sentence, not at its edge, that it does not show."""
        return [code for code in self.codes if code.is_sign and stretch.start < code.at < stretch.end]


@dataclass(frozen=True)
class _Language:
    """How a language ends its sentences: pysbd's rules, and the words that it knows to be shortened."""

    split: Callable[[str], list[str]]
    shortened: frozenset[str]

    @staticmethod
    @cache
    def of(language: str) -> _Language:
        from pysbd.languages import LANGUAGE_CODES

        rules = LANGUAGE_CODES.get(base_language(language), LANGUAGE_CODES["en"])
        known = {str(word).rstrip(".") for word in rules.Abbreviation.ABBREVIATIONS}
        return _Language(sentence_splitter(language), frozenset(known | SHORTENED))


def flows_of(blocks: Sequence[Block], language: str, alphabet: Alphabet | None = None) -> Iterator[Flow]:
    """The flows of a file's blocks. Blocks of another script than the file's are left as they are: no model of its
    language can read them."""
    split = _Language.of(language)
    if is_latin("".join(block.text for block in blocks)):
        blocks = [block for block in blocks if block.status or is_latin(block.text)]
    run: list[Block] = []
    for block in blocks:
        if run and not (block.follows and block.status is None and run[-1].status is None):
            yield _flow(run, split, alphabet)
            run = []
        run.append(block)
    if run:
        yield _flow(run, split, alphabet)


def _flow(blocks: Sequence[Block], split: _Language, alphabet: Alphabet | None) -> Flow:
    text = ""
    codes: list[Code] = []
    starts: list[int] = []
    for block in blocks:
        if starts:
            text += BREAK
        starts.append(len(text))
        codes += [replace(code, at=code.at + len(text)) for code in block.codes]
        text += block.text
    if blocks[0].by_rule:
        edges = len(text) - len(text.lstrip()), len(text.rstrip())
        return Flow(tuple(blocks), text, (), tuple(starts), (Stretch(*edges),))
    if blocks[0].status is not None:
        stretches = [Stretch(0, len(text))]
    else:
        inside = {code.at for code in codes if code.kind == "break"}
        signs = {code.at for code in codes if _is_sign(code)}
        stretches = list(_stretches(text, inside, signs, blocks[0].wrapped, split))
    return _with_carried(Flow(tuple(blocks), text, tuple(codes), tuple(starts), tuple(stretches)), alphabet)


def _with_carried(flow: Flow, alphabet: Alphabet | None) -> Flow:
    """The flow with what no model can read carried. That is looked for in finished sentences: where they begin and end
    must not depend on the model."""
    spans = [
        (stretch.start + start, stretch.start + end)
        for stretch in flow.stretches
        for start, end in unreadable_spans(flow.text[stretch.start : stretch.end], alphabet)
    ]
    spans = [(start, end) for start, end in spans if not any(start < code.at < end for code in flow.codes)]
    if not spans:
        return flow

    def moved(place: int) -> int:
        return place - sum(end - start - 1 for start, end in spans if end <= place)

    blocks = []
    for block, begin in zip(flow.blocks, flow.starts, strict=True):
        own = [(s - begin, e - begin) for s, e in spans if begin <= s and e <= begin + len(block.text)]
        text, codes = carry(block.text, block.codes, own)
        blocks.append(replace(block, text=text, codes=codes))
    text, codes = carry(flow.text, flow.codes, spans)
    starts = tuple(map(moved, flow.starts))
    return Flow(
        tuple(blocks), text, codes, starts, tuple(Stretch(moved(s.start), moved(s.end)) for s in flow.stretches)
    )


def _stretches(text: str, inside: set[int], signs: set[int], wrapped: bool, split: _Language) -> Iterator[Stretch]:
    """The sentences of a text. A break that a block holds ends a sentence unless that clearly goes on behind it; of a
    border between blocks the format has already said that sentences cross it."""
    start = 0
    separated = [found.end() for found in (SOUND.match(text),) if found and (found[0].isupper() or "[" in found[0])]
    separated += [found.start() for found in SEPARATOR.finditer(text)]
    for place in [*sorted({*_line_ends(text, inside, wrapped), *separated}), len(text)]:
        for first, last in _sentences(text[start:place].replace(BREAK, " "), split):
            if found := _trimmed(text, signs, start + first, start + last):
                yield found
        start = place


def _line_ends(text: str, inside: set[int], wrapped: bool) -> Iterator[int]:
    for place, letter in enumerate(text):
        if letter != BREAK or place not in inside or wrapped:
            continue
        before, behind = text[:place].rpartition(BREAK)[2], text[place + 1 :]
        first = FIRST.match(behind)
        goes_on = first and first[1].islower() and not ENDED.search(before) and before.strip()
        if not (goes_on or LEFT_OPEN.search(before)):
            yield place


def _sentences(text: str, language: _Language) -> Iterator[tuple[int, int]]:
    if not SEVERAL.search(text):
        yield 0, len(text)
        return
    plain = _plain_sentences(text, language)
    if plain is not None:
        yield from plain
        return
    position = 0
    for sentence, trailing in split_exactly(text.replace(WORD, "X"), language.split):
        for first, last in _cut_behind_words(text, position, position + len(sentence)):
            for found in UNSPACED.finditer(text, first, last):
                yield first, found.end()
                first = found.end()
            yield first, last
        position += len(sentence) + len(trailing)


def _cut_behind_words(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A splitter takes a word that it cannot see for an initial, behind which a sentence goes on."""
    for found in WORD_END.finditer(text, start, end):
        if found[2] == WORD or found[2].isupper():
            yield start, found.end(1)
            start = found.end(1) + len(text[found.end(1) :]) - len(text[found.end(1) :].lstrip())
    yield start, end


def _plain_sentences(text: str, language: _Language) -> list[tuple[int, int]] | None:
    """The sentences of a text in which no end can be mistaken; None if one can, which is for the splitter to say. It
    takes 10 microseconds a character, most of the time that reading a long file takes."""
    if NOT_PLAIN.search(text):
        return None
    ends = list(END.finditer(text))
    if not all(_is_plain(text, end, language.shortened) for end in ends):
        return None
    starts = [0, *(end.end() for end in ends)]
    stops = [*(end.end(1) for end in ends), len(text)]
    return list(zip(starts, stops, strict=True))


def _is_plain(text: str, end: re.Match[str], shortened: frozenset[str]) -> bool:
    """A long word in small letters before the mark, a capital letter behind it."""
    word = text[: end.start()].rpartition(" ")[2]
    following = text[end.end() : end.end() + 1]
    return following.isupper() and (end[1] != "." or (len(word) > 3 and word.islower() and word not in shortened))


def _trimmed(text: str, signs: set[int], start: int, end: int) -> Stretch | None:
    """Without white space and ornaments (bullets, notes, dashes) around it; nothing if no letter is left."""
    while start < end and (start in signs or _ornament(text, start, end, 1)):
        start += 1
    start += len(DOTS.match(text, start, end)[0])  # type: ignore[index]  # it matches the empty string
    while end > start and (end - 1 in signs or _ornament(text, end - 1, start - 1, -1)):
        end -= 1
    if text[start:end][:1] == "[" and text.find("]", start, end) == end - 1:  # a sound, a remark
        start, end = start + 1, end - 1
    return Stretch(start, end) if any(map(str.isalpha, text[start:end])) else None


def _ornament(text: str, place: int, limit: int, step: int) -> bool:
    letter = text[place]
    if letter.isspace() or letter in "•*·‣◦●■▪→♪♫#|>_~":
        return True
    following = text[place + step] if place + step != limit else " "
    if letter in "-–—" and (following.isspace() or following in "-–—"):
        return True
    return unicodedata.category(letter) == "So"


def _is_sign(code: Code) -> bool:
    return code.kind == "word" and code.raw is None and SIGNS.fullmatch(code.shown) is not None
