"""What in a sentence is no language: placeholders that its text shows, and formatting that it does not, with places."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from weitblick.files.flows import Flow, Stretch
from weitblick.files.masking import FIRST, Mask, is_word
from weitblick.translation.alignment import Alignment


@dataclass(frozen=True)
class InlineMark:
    """Characters [start, end) of a text: a placeholder, address or the like, which stands there as `text`; or what a
    tag of the file is around. `automatic`: nobody has placed it, it goes where its words go."""

    start: int
    end: int
    kind: Literal["placeholder", "format"]
    text: str = ""
    automatic: bool = False


def source_marks(mask: Mask, flow: Flow | None = None, stretch: Stretch | None = None) -> list[InlineMark]:
    """The marks of a sentence as people read it, in order; formatting only where a file is known."""
    shown = _shown(mask, mask.source)
    places = list(accumulate(map(len, shown), initial=0))
    marks = [
        InlineMark(places[at], places[at + 1], "placeholder", shown[at])
        for at, letter in enumerate(mask.source)
        if is_word(letter)
    ]
    for start, end in format_spans(flow, stretch) if flow is not None and stretch is not None else ():
        marks.append(InlineMark(places[start], places[end], "format", automatic=True))
    return sorted(marks, key=lambda mark: (mark.start, -mark.end))


def _shown(mask: Mask, inner: str) -> list[str]:
    """What people read for each character of an inner text."""
    return [mask.shown[ord(letter) - FIRST] if is_word(letter) else letter for letter in inner]


def format_spans(flow: Flow, stretch: Stretch) -> list[tuple[int, int]]:
    """Stretches of a sentence as inner text, from its start, that have a tag or a style of their own, in the order of
    their marks; a tag around all of it is none."""
    found: set[tuple[int, int]] = set()
    opened: list[tuple[int, bool]] = []
    for code in flow.codes:
        if code.kind == "open":
            opened.append((code.at, bool(code.raw) or code.style is not None))
        elif code.kind == "close" and opened:
            start, is_format = opened.pop()
            low, high = max(start, stretch.start), min(code.at, stretch.end)
            if is_format and low < high and (low, high) != (stretch.start, stretch.end):
                found.add((low - stretch.start, high - stretch.start))
    return sorted(found, key=lambda span: (span[0], -span[1]))


@dataclass(frozen=True, slots=True)
class PlacedFormat:
    """Formatting that a person has put around the characters [start, end) of a translation: that of this number among
    the formatting of its source."""

    mark: int
    start: int
    end: int


def follow(placed: Sequence[PlacedFormat], before: str, after: str) -> tuple[PlacedFormat, ...]:
    """Placed formatting when a text has become another: it goes with its characters, and is gone where all of them have
    been replaced together with what is around them."""
    if before == after:
        return tuple(placed)
    shorter = min(len(before), len(after))
    first = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    behind = next((at for at in range(shorter - first) if before[-1 - at] != after[-1 - at]), shorter - first)
    last, shift = len(before) - behind, len(after) - len(before)  # [first, last) has been replaced
    found = []
    for one in placed:
        start, end = one.start, one.end
        if start >= last:
            start, end = start + shift, end + shift
        elif end <= first:
            pass
        elif start <= first and last <= end:
            end += shift
        else:
            start, end = (start, first) if start < first else (last + shift, end + shift)
        if start < end:
            found.append(PlacedFormat(one.mark, start, end))
    return tuple(found)


def inner_places(mask: Mask, inner: str, placed: Sequence[PlacedFormat]) -> list[PlacedFormat]:
    """Formatting that is placed in a translation as people read it, counted in its inner text."""
    places = list(accumulate(map(len, _shown(mask, inner)), initial=0))
    return [PlacedFormat(one.mark, bisect_right(places, one.start) - 1, bisect_left(places, one.end)) for one in placed]


def target_marks(
    marks: Sequence[InlineMark], target: str, alignment: Alignment | None, placed: Sequence[PlacedFormat] = ()
) -> list[InlineMark]:
    """The marks of a translation: placeholders where they stand, formatting where a person has placed it, or else where
    its words went."""
    found: list[InlineMark] = []
    by_hand = {one.mark: one for one in placed}
    formats = {mark: number for number, mark in enumerate(one for one in marks if one.kind == "format")}
    for mark in marks:
        if mark.kind == "placeholder":
            at = next((one for one in _occurrences(target, mark.text) if not _taken(found, one, mark.text)), None)
            if at is not None:
                found.append(InlineMark(at, at + len(mark.text), "placeholder", mark.text))
        elif (own := by_hand.get(formats[mark])) is not None:
            found.append(InlineMark(own.start, own.end, "format"))
        elif alignment is not None and (words := alignment.target_span(mark.start, mark.end)):
            start, end = alignment.target[words[0]][0], alignment.target[words[1] - 1][1]
            found.append(InlineMark(start, end, "format", automatic=True))
    return sorted(found, key=lambda mark: (mark.start, -mark.end))


def missing_placeholders(marks: Sequence[InlineMark], target: str) -> list[str]:
    """Placeholders of a source that a translation does not have, in the order of the source."""
    there = [mark.text for mark in target_marks(marks, target, None)]
    missing = []
    for mark in marks:
        if mark.kind != "placeholder":
            continue
        if mark.text in there:
            there.remove(mark.text)
        else:
            missing.append(mark.text)
    return missing


def _occurrences(target: str, text: str) -> list[int]:
    places, at = [], target.find(text)
    while at >= 0:
        places.append(at)
        at = target.find(text, at + len(text))
    return places


def _taken(found: Sequence[InlineMark], at: int, text: str) -> bool:
    return any(mark.kind == "placeholder" and at < mark.end and mark.start < at + len(text) for mark in found)
