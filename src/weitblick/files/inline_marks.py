"""What in a sentence is no language: placeholders that its text shows, and formatting that it does not, with places."""

from __future__ import annotations

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
    shown = [mask.shown[ord(letter) - FIRST] if is_word(letter) else letter for letter in mask.source]
    places = list(accumulate(map(len, shown), initial=0))
    marks = [
        InlineMark(places[at], places[at + 1], "placeholder", shown[at])
        for at, letter in enumerate(mask.source)
        if is_word(letter)
    ]
    for start, end in _formats(flow, stretch) if flow is not None and stretch is not None else ():
        marks.append(InlineMark(places[start], places[end], "format", automatic=True))
    return sorted(marks, key=lambda mark: (mark.start, -mark.end))


def _formats(flow: Flow, stretch: Stretch) -> list[tuple[int, int]]:
    """Stretches of a sentence, from its start, that have a tag of their own; a tag around all of it is none."""
    found, opened = [], []
    for code in flow.codes:
        if code.kind == "open":
            opened.append((code.at, bool(code.raw)))
        elif code.kind == "close" and opened:
            start, is_format = opened.pop()
            low, high = max(start, stretch.start), min(code.at, stretch.end)
            if is_format and low < high and (low, high) != (stretch.start, stretch.end):
                found.append((low - stretch.start, high - stretch.start))
    return found


def target_marks(marks: Sequence[InlineMark], target: str, alignment: Alignment | None) -> list[InlineMark]:
    """The marks of a translation: placeholders where they stand, formatting where its words went."""
    found: list[InlineMark] = []
    for mark in marks:
        if mark.kind == "placeholder":
            at = next((one for one in _occurrences(target, mark.text) if not _taken(found, one, mark.text)), None)
            if at is not None:
                found.append(InlineMark(at, at + len(mark.text), "placeholder", mark.text))
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
