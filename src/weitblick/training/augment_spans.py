"""Masked spans and numbers: symbols for what both sides of a pair share, and numbers in the conventions of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from weitblick.text.base import NUMBERS, SPANS
from weitblick.training.augment_looks import WORDS

MOST_MASKED = 4  # spans of one sentence
STRAY_START = 0.3  # share of sentences whose numbering does not begin with 1, so that all symbols are learned
WRAPPED = 0.25  # share of masked spans around which symbols are put, as around words in bold, instead of in their place

TOKEN = re.compile(r"\S+")
NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w])")
CODE = re.compile(
    r".*(?:\d.*[A-Za-z]|[A-Za-z].*\d|[a-z][A-Z]|[A-Za-z0-9][_/\\@=#$:{}<>.+][A-Za-z0-9]|[({]|^[A-Z]{2,}$)"
)
NAME = re.compile(r"[A-ZÄÖÜ][\w’'-]{2,}$")
AROUND = "\"'„“”‚‘’«»()[]<>.,;:!?…"
SWAPPED = str.maketrans(",.", ".,")


class Span(NamedTuple):
    """A span and where it stands in the source and in the target."""

    source: tuple[int, int]
    target: tuple[int, int]
    number: bool


def common_spans(source: str, target: str) -> list[Span]:
    """Spans that source and target have both, once each: numbers in either convention, codes, addresses, names."""
    found = [*_numbers(source, target), *_words(source, target)]
    found.sort(key=lambda span: (span.source[0], -span.source[1]))
    kept: list[Span] = []
    for span in found:
        apart = all(
            span.source[0] >= other.source[1]
            and (span.target[0] >= other.target[1] or span.target[1] <= other.target[0])
            for other in kept
        )
        if apart:
            kept.append(span)
    return kept


def _numbers(source: str, target: str) -> list[Span]:
    ours, theirs = list(NUMBER.finditer(source)), list(NUMBER.finditer(target))
    spans = []
    for one in ours:
        alike = [other for other in theirs if other[0] in (one[0], one[0].translate(SWAPPED))]
        if len(alike) == 1 and sum(other[0] == one[0] for other in ours) == 1:
            spans.append(Span(one.span(), alike[0].span(), number=True))
    return spans


def _words(source: str, target: str) -> list[Span]:
    spans: list[Span] = []
    for position, token in enumerate(TOKEN.finditer(source)):
        core = token[0].strip(AROUND)
        if len(core) < 2 or NUMBER.fullmatch(core):
            continue
        is_name = position > 0 and NAME.match(core) is not None
        if not is_name and not CODE.match(core):
            continue
        pattern = rf"(?<![\w]){re.escape(core)}(?![\w])"
        here, there = list(re.finditer(pattern, source)), list(re.finditer(pattern, target))
        if len(here) == len(there) == 1:
            spans.append(Span(here[0].span(), there[0].span(), number=False))
    return _joined(spans, source, target)


def _joined(spans: list[Span], source: str, target: str) -> list[Span]:
    """Spans that follow each other on both sides are one: Visual Studio Code."""
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if (
            last is not None
            and source[last.source[1] : span.source[0]] == " "
            and last.target[1] <= span.target[0]
            and target[last.target[1] : span.target[0]] == " "
        ):
            joined[-1] = Span((last.source[0], span.source[1]), (last.target[0], span.target[1]), number=False)
        else:
            joined.append(span)
    return joined


def mask_spans(source: str, target: str, random: Random) -> tuple[str, str] | None:
    """The pair with some of the spans that both sides share as symbols; None if there are none.

    Now and then a span stays and is wrapped in two symbols, as a word between two tags.
    """
    spans = common_spans(source, target)
    if not spans:
        return None
    chosen = sorted(random.sample(spans, min(len(spans), random.choice((1, 1, 2, 3, MOST_MASKED)))))
    wrapped = [not span.number and random.random() < WRAPPED for span in chosen]
    names = _names(random, 12, SPANS), _names(random, 6, NUMBERS)
    if sum(2 if wrap else 1 for span, wrap in zip(chosen, wrapped, strict=True) if not span.number) > len(names[0]):
        return None
    if sum(span.number for span in chosen) > len(names[1]):
        return None
    ours: list[tuple[tuple[int, int], str]] = []
    theirs: list[tuple[tuple[int, int], str]] = []
    for span, wrap in zip(chosen, wrapped, strict=True):
        if wrap:
            first, last = names[0].pop(0), names[0].pop(0)
            ours.append((span.source, f"{first}{source[slice(*span.source)]}{last}"))
            theirs.append((span.target, f"{first}{target[slice(*span.target)]}{last}"))
        else:
            name = names[1 if span.number else 0].pop(0)
            ours.append((span.source, name))
            theirs.append((span.target, name))
    return _replaced(source, ours), _replaced(target, theirs)


def _names(random: Random, count: int, symbols: tuple[str, ...]) -> list[str]:
    start = random.randrange(count // 2 + 1) if random.random() < STRAY_START else 0
    return list(symbols[start:])


def _replaced(text: str, spans: list[tuple[tuple[int, int], str]]) -> str:
    for (start, end), new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def add_spans(source: str, target: str, random: Random) -> tuple[str, str]:
    """The pair with symbols at its ends: an icon before it, a link behind it, tags around all of it."""
    first, last = SPANS[0], SPANS[1]
    kind = random.randrange(5)
    if kind == 0:
        return f"{first} {source}", f"{first} {target}"
    if kind == 1:
        return f"{source} {first}", f"{target} {first}"
    if kind == 2:
        return f"{first}{source}{last}", f"{first}{target}{last}"
    if kind == 3:
        return f"{first}: {source}", f"{first}: {target}"
    return f"({first}) {source}", f"({first}) {target}"


# Numbers, dates, times, amounts and units in the conventions of English and German.

MONTHS, WEEKDAYS, CURRENCIES = WORDS["months"], WORDS["weekdays"], WORDS["currencies"]
LENGTHS, WEIGHTS, PERIODS = WORDS["lengths"], WORDS["weights"], WORDS["periods"]
UNITS = (*LENGTHS, *WEIGHTS, *PERIODS, *((unit, unit) for unit in WORDS["other_units"]))

Both = tuple[str, str]


def integer(random: Random) -> Both:
    value = random.randrange(2, 10 ** random.choice((2, 3, 3, 4, 4, 5, 6, 7)))
    return (
        (f"{value:,}", f"{value:,}".replace(",", ".")) if value > 9999 or random.random() < 0.5 else (str(value),) * 2
    )


def decimal(random: Random) -> Both:
    value = random.random() * 10 ** random.choice((0, 1, 1, 2, 3, 5))
    english = f"{value:,.{random.choice((1, 1, 2, 2, 3))}f}"
    return english, english.translate(str.maketrans(",.", ".,"))


def number(random: Random) -> Both:
    return random.choice((integer, decimal))(random)


def year(random: Random) -> Both:
    return (str(random.randrange(1780, 2060)),) * 2


def percentage(random: Random) -> Both:
    english, german = decimal(random) if random.random() < 0.6 else (str(random.randrange(1, 101)),) * 2
    return (f"{english}%", f"{german} %") if random.random() < 0.6 else (f"{english} percent", f"{german} Prozent")


def amount(random: Random) -> Both:
    english, german = random.choice((integer, decimal))(random)
    ours, theirs = random.choice(CURRENCIES)
    scale = random.choice(((" million", " Millionen"), (" billion", " Milliarden"), ("", ""), ("", ""), ("", "")))
    before = f"{ours}{english}{scale[0]}" if len(ours) == 1 else f"{ours} {english}{scale[0]}"
    behind = f"{english}{scale[0]} {ours}"
    return (before if ours != "euros" and random.random() < 0.8 else behind), f"{german}{scale[1]} {theirs}"


def measure(random: Random, units: Sequence[Both] = UNITS) -> Both:
    english, german = number(random)
    ours, theirs = random.choice(units)
    clings = len(ours) < 3 and random.random() < 0.3
    return f"{english}{ours}" if clings else f"{english} {ours}", f"{german} {theirs}"


def date(random: Random) -> Both:
    day, month = random.randrange(1, 29), random.randrange(12)
    when = random.randrange(1900, 2050)
    english, german = MONTHS[month]
    ours = random.choice((
        f"{english} {day}, {when}", f"{day} {english} {when}", f"{english} {day}", f"{day} {english}",
        f"{english} {day}{_ordinal(day)}", f"{when}-{month + 1:02}-{day:02}",
    ))  # fmt: skip
    if ours[:4].isdigit() and "-" in ours:
        return ours, f"{day:02}.{month + 1:02}.{when}" if random.random() < 0.5 else ours
    return ours, f"{day}. {german}" + (f" {when}" if str(when) in ours else "")


def _ordinal(day: int) -> str:
    return "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def clock(random: Random) -> Both:
    hour, minute = random.randrange(1, 13), random.randrange(60)
    late = random.random() < 0.5
    shown = f"{hour % 12 + 12 if late else hour % 12}:{minute:02} Uhr"
    return f"{hour}:{minute:02} {random.choice(('p.m.', 'pm', 'PM') if late else ('a.m.', 'am', 'AM'))}", shown


SLOTS: dict[str, Callable[[Random], Both]] = {
    "number": number,
    "integer": integer,
    "year": year,
    "percentage": percentage,
    "amount": amount,
    "measure": measure,
    "length": lambda random: measure(random, LENGTHS),
    "weight": lambda random: measure(random, WEIGHTS),
    "period": lambda random: measure(random, PERIODS),
    "date": date,
    "clock": clock,
    "weekday": lambda random: random.choice(WEEKDAYS),
}
SLOT = re.compile(r"\{(\w+)\}")
SMALL_NUMBER = re.compile(r"(?<![\w.,§/:-])(?!(?:19|20)\d\d\b)([1-9]\d{1,6})(?![\w.,/:%-])")


def written(random: Random) -> Both:
    """A pair that is mostly numbers: a sentence of a few simple kinds, or a cell of a table."""
    english, german = (
        random.choice(WORDS["templates"]) if random.random() < 0.7 else (random.choice(WORDS["cells"]),) * 2
    )
    values = [SLOTS[slot](random) for slot in SLOT.findall(english)]
    names = SLOT.findall(english)
    ours = iter(value[0] for value in values)
    waiting = [(name, value[1]) for name, value in zip(names, values, strict=True)]

    def take(found: re.Match[str]) -> str:
        place = next(index for index, (name, _) in enumerate(waiting) if name == found[1])
        return waiting.pop(place)[1]

    return SLOT.sub(lambda _: next(ours), english), SLOT.sub(take, german)


def renumber(source: str, target: str, random: Random) -> Both | None:
    """The pair with another number where both have the same one (from 10 on, no year); None where they have none."""
    found = {one[0] for one in SMALL_NUMBER.finditer(source)} & {one[0] for one in SMALL_NUMBER.finditer(target)}
    usable = sorted(one for one in found if source.count(one) == target.count(one) == 1)
    if not usable:
        return None
    old = random.choice(usable)
    ours, theirs = number(random)
    return source.replace(old, ours), target.replace(old, theirs)
