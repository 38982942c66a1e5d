"""Words as the reader knows them: the pieces that a model saw, laid over the text that they came from."""

from __future__ import annotations

from collections.abc import Sequence

from weitblick.explanation.schema import Word, Words
from weitblick.text.base import Side, TextPipeline

LOOK_AHEAD = 40
"""Characters to search for a word that is not where it should be, as after text that the pipeline left out."""


def words_in(pipeline: TextPipeline, ids: Sequence[int], side: Side, text: str) -> Words:
    """The words of `ids`, spelled and spaced as in `text`, the sentence that was encoded or decoded.

    A pipeline may have changed case or quotes; what cannot be found in the text keeps the pipeline's own spelling.
    """
    words: list[Word] = []
    position = 0
    for start, end, surface in pipeline.words(ids, side) if ids else ():
        found = _find(text, surface, position)
        if found is None:
            words.append(Word(surface, start, end, space=bool(words)))
            continue
        first, last = found
        words.append(Word(text[first:last], start, end, space=bool(words) and text[position:first] != ""))
        position = last
    return tuple(words)


def _find(text: str, surface: str, position: int) -> tuple[int, int] | None:
    """Where a word stands at or behind `position`: [first, last)."""
    first = position + len(text[position:]) - len(text[position:].lstrip())
    last = first + len(surface)
    if not surface or first >= len(text):
        return None
    if text[first:last].casefold() == surface.casefold():
        return first, last
    if not any(letter.isalnum() for letter in surface + text[first]):
        return first, first + 1  # a quote or dash that the pipeline writes in its own way
    later = text.casefold().find(surface.casefold(), first, last + LOOK_AHEAD)
    if later >= 0 and len(text) == len(text.casefold()):
        return later, later + len(surface)
    return None
