"""The rules about numbers, dates, times and units: the translation says the same as the source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from weitblick.common.characters import base_language
from weitblick.files.checks.findings import CheckOptions, Row
from weitblick.files.checks.numerals import Numeral, converted_number, misread, numerals, parts, unit_of

Words = Iterator[tuple[str, str]]

NUMBER_WORDS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve",
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
}
IN_A_WORD = {"en": {2: "both twice second half", 1: "once first a an", 3: "third"}, "de": {2: "beide zweit", 1: "erst"}}
MOST_IN_WORDS = 12


def numbers(row: Row, how: CheckOptions) -> Words:
    """Numbers that are missing, new, or written by the other language's conventions."""
    if not row.target.strip():
        return
    _, _, sources, targets = _left(row.source, row.target, how.source_language, how.target_language)
    for source in list(sources):
        if other := next((one for one in targets if misread(one, source.value)), None):
            sources.remove(source)
            targets.remove(other)
            yield other.words, _misread(source, how)
    sources = [one for one in sources if not _in_words(one, row.target, how.target_language)]
    targets = [one for one in targets if not _in_words(one, row.source, how.source_language)]
    if len(sources) == len(targets) == 1:
        yield targets[0].words, f"the source has {sources[0].words}"
        return
    yield from ((one.words, "is not in the translation") for one in sources)
    yield from ((one.words, "is not in the source") for one in targets)


def _misread(source: Numeral, how: CheckOptions) -> str:
    said = f"has the source's signs for thousands and decimals, and is another number in {how.target_language}"
    if how.source_language and how.target_language:
        said += f", which writes {converted_number(source.words, how.source_language, how.target_language)}"
    return said


def dates(row: Row, how: CheckOptions) -> Words:
    """Dates and times that are others than in the source, each in its own notation."""
    if not row.target.strip():
        return
    sources, targets, _, _ = _left(row.source, row.target, how.source_language, how.target_language)
    for source, target in zip(sources, targets, strict=False):
        yield target.words, f"the source has {source.words}"


def units(row: Row, how: CheckOptions) -> Words:
    """The unit of a number, where both sides have one that is known."""
    ours = [one for one in numerals(row.source, how.source_language) if one.kind == "number"]
    theirs = [one for one in numerals(row.target, how.target_language) if one.kind == "number"]
    for source in ours:
        unit = unit_of(row.source, source)
        same = [one for one in theirs if one.agrees(source)]
        found = [other for one in same if (other := unit_of(row.target, one))]
        if unit and found and unit[0] not in {name for name, _ in found}:
            yield found[0][1], f"the source has {unit[1]}"


@lru_cache(256)
def _matched(
    source: str, target: str, languages: tuple[str | None, str | None]
) -> tuple[tuple[Numeral, ...], tuple[Numeral, ...]]:
    """The numerals of both sides that have no equal on the other."""
    ours, theirs = numerals(source, languages[0]), numerals(target, languages[1])
    _strike(ours, theirs)
    return tuple(ours), tuple(theirs)


def _left(
    source: str, target: str, source_language: str | None, target_language: str | None
) -> tuple[list[Numeral], list[Numeral], list[Numeral], list[Numeral]]:
    """Dates and times that differ, pairwise, and the numbers of both sides that have no equal on the other.

    A date that has no other date beside it may be written in a way that is not known here: its digits are numbers then.
    """
    ours, theirs = _matched(source, target, (source_language, target_language))
    dated: tuple[list[Numeral], list[Numeral]] = ([], [])
    for kind in ("date", "time"):
        pairs = list(zip((n for n in ours if n.kind == kind), (n for n in theirs if n.kind == kind), strict=False))
        for side, of_pair in zip(dated, zip(*pairs, strict=True), strict=False):
            side.extend(of_pair)
    plain = [
        [
            number
            for one in side
            if one not in taken
            for number in ([one] if one.kind == "number" else parts(one, language))
        ]
        for side, taken, language in ((ours, dated[0], source_language), (theirs, dated[1], target_language))
    ]
    _strike(plain[0], plain[1])
    return *dated, plain[0], plain[1]


def _strike(ours: list[Numeral], theirs: list[Numeral]) -> None:
    """Takes out of both lists what they have in common."""
    for one in list(ours):
        if other := next((two for two in theirs if one.agrees(two)), None):
            ours.remove(one)
            theirs.remove(other)


def _in_words(numeral: Numeral, text: str, language: str | None) -> bool:
    """Whether the other side may say a small number in words."""
    value = int(numeral.value) if numeral.value.isdigit() and len(numeral.value) < 3 else MOST_IN_WORDS + 1
    if value > MOST_IN_WORDS:
        return False
    code = base_language(language) if language else ""
    if code not in NUMBER_WORDS:
        return True
    said = [NUMBER_WORDS[code].split()[value], *IN_A_WORD[code].get(value, "").split()]
    inside = code == "de"  # zweimal, dreifach, Vierjahresplan
    return any(re.search(rf"(?i){word}" if inside and len(word) > 3 else rf"(?i)\b{word}", text) for word in said)
