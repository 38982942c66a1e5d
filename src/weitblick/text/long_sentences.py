"""Over-long sentences cut into parts: at punctuation if possible, else at a space, else anywhere."""

from __future__ import annotations

import re
from collections.abc import Callable

# Ends of sentences and clauses, of smaller phrases, of words; each with the share of the text, on either side of its
# middle, in which such a cut is taken. Chinese and Japanese punctuation has no space after it.
_CUTS = (
    (re.compile(r"(?<=[.!?;:…])[\"'”“»)\]]*\s|(?<=[。！？；：])"), 0.30),
    (re.compile(r"(?<=[,)\]–—])\s|(?<=[，、])"), 0.30),
    (re.compile(r"\s"), 0.50),
)


def split_until(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Parts of `text`, in order and together all of its words, each of which `fits` (or is a single character)."""
    if len(text) < 2 or fits(text):
        return [text]
    cut = _best_cut(text)
    return [part for half in (text[:cut], text[cut:]) if half.strip() for part in split_until(half.strip(), fits)]


def _best_cut(text: str) -> int:
    """The position nearest to the middle of the best kind there is: balanced parts translate best."""
    middle = len(text) / 2
    for pattern, reach in _CUTS:
        cuts = [match.end() for match in pattern.finditer(text) if 0 < match.end() < len(text)]
        cuts = [cut for cut in cuts if abs(cut - middle) <= reach * len(text)]
        if cuts:
            return min(cuts, key=lambda cut: abs(cut - middle))
    return len(text) // 2
