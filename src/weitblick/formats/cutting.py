"""Where a translated sentence is cut when its source runs over several lines, cues or blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from weitblick.translation.alignment import Alignment

PAUSE = re.compile(r"[,;:.!?…–—)\]»”\"]")
PAUSE_WORTH = 0.7  # words that may stand on the wrong side for a cut at a pause
SHORT = 3  # letters of words that belong to the next: articles, prepositions, pronouns, in most languages with spaces
LENGTH_COST = 0.25  # words that may stand on the wrong side for every character of difference, in tenths of a line


def cut(text: str, alignment: Alignment | None, source_cuts: Sequence[int], shares: Sequence[float]) -> list[int]:
    """The places of `text` that match `source_cuts`, in order: each is a space that becomes a line end.

    `shares` says how much of the text each segment should get. Words go where their source words are (unless there is
    no alignment: a paragraph that is merely wrapped), cuts are drawn to pauses, lengths to their shares. No segment is
    empty while there are spaces enough; where there are not, the last places are the end of the text.
    """
    spaces = [place for place, letter in enumerate(text) if letter == " " and 0 < place < len(text) - 1]
    wanted = len(source_cuts)
    if len(spaces) <= wanted:
        return (spaces + [len(text)] * wanted)[:wanted]
    gain = _gains(text, spaces, alignment, source_cuts)  # [segments, stretches between spaces]
    summed = np.concatenate([np.zeros((wanted + 1, 1)), gain.cumsum(1)], 1)
    edges = np.array([0, *spaces, len(text)])
    worth = np.array([_worth(text, place) for place in spaces])
    scale = LENGTH_COST * 10 / max(10.0, len(text) / (wanted + 1))

    def segment(number: int, first: int, last: np.ndarray) -> np.ndarray:
        length = edges[last] - edges[first]
        gained: np.ndarray = summed[number, last] - summed[number, first]
        gained -= scale * np.abs(length - shares[number] * len(text))
        return gained

    places = len(edges) - 1
    best = np.full((wanted + 1, places + 1), -np.inf)
    back = np.zeros((wanted + 1, places + 1), dtype=int)
    best[0, 1:] = segment(0, 0, np.arange(1, places + 1))
    for number in range(1, wanted + 1):
        for first in range(number, places):
            last = np.arange(first + 1, places + 1)
            value = best[number - 1, first] + worth[first - 1] + segment(number, first, last)
            better = value > best[number, last]
            best[number, last[better]] = value[better]
            back[number, last[better]] = first
    cuts, place = [], places
    for number in range(wanted, 0, -1):
        place = int(back[number, place])
        cuts.append(int(edges[place]))
    return cuts[::-1]


def _gains(text: str, spaces: list[int], alignment: Alignment | None, source_cuts: Sequence[int]) -> np.ndarray:
    """[segments, stretches] of the words of each stretch between spaces, how many come from each segment."""
    gain = np.zeros((len(source_cuts) + 1, len(spaces) + 1))
    if alignment is None or not alignment.source:
        return gain
    segment_of = np.searchsorted(source_cuts, [start for start, _ in alignment.source], side="right")
    stretch_of = np.searchsorted(spaces, [start for start, _ in alignment.target], side="right")
    for row, stretch in zip(alignment.weights, stretch_of, strict=True):
        np.add.at(gain[:, stretch], segment_of, row)
    return gain


def _worth(text: str, space: int) -> float:
    if PAUSE.match(text[space - 1]):
        return PAUSE_WORTH
    return -PAUSE_WORTH if clings(text, space) else 0.0


def clings(text: str, space: int) -> bool:
    """Whether the word before a space belongs to the one behind it. That short ones do holds for scripts with capital
    letters; of others only pauses and lengths are known."""
    word = text[:space].rpartition(" ")[2]
    return len(word) <= SHORT and word.isalpha() and word.lower() != word.upper()
