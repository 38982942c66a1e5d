"""Words as the reader knows them: the pieces that a model saw, laid over the text that they came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weitblick.explanation.schema import Word, Words
from weitblick.text.base import Side, TextPipeline
from weitblick.text.cleaning import clean
from weitblick.text.sentencepiece_pipeline import SPACE

LOOK_AHEAD = 40
"""Characters to search for a word that is not where it should be, as after text that the pipeline left out."""


def words_in(pipeline: TextPipeline, ids: Sequence[int], side: Side, text: str) -> Words:
    """The words of `ids`, spelled and spaced as in `text`, the sentence that was encoded or decoded.

    A pipeline may have changed case or quotes; what cannot be found in the text keeps the pipeline's own spelling.
    """
    words: list[Word] = []
    position = 0
    for start, end, surface in _separated(pipeline, ids, side):
        found = _find(text, surface, position)
        if found is None:
            words.append(Word(clean(surface), start, end, space=bool(words)))
            continue
        first, last = found
        words.append(Word(text[first:last], start, end, space=bool(words) and text[position:first] != ""))
        position = last
    return tuple(words)


def _separated(pipeline: TextPipeline, ids: Sequence[int], side: Side) -> Iterator[tuple[int, int, str]]:
    """The pipeline's words, punctuation apart from the word it clings to where it consists of pieces of its own."""
    for start, end, surface in pipeline.words(ids, side) if ids else ():
        pieces = [piece.replace(SPACE, "") for piece in pipeline.pieces(ids[start:end], side)]
        first, last = 0, len(pieces)
        if "".join(pieces) == surface and any(map(_has_letters, pieces)):
            while not _has_letters(pieces[first]):
                first += 1
            while not _has_letters(pieces[last - 1]):
                last -= 1
            if not "".join(pieces[:first]):  # a space that is a piece of its own is no word of its own
                first = 0
        for begin, stop in ((0, first), (first, last), (last, len(pieces))):
            text = surface if (begin, stop) == (0, len(pieces)) else "".join(pieces[begin:stop])
            if begin < stop:
                yield start + begin, start + stop, text


def _has_letters(text: str) -> bool:
    return any(letter.isalnum() for letter in text)


def _find(text: str, surface: str, position: int) -> tuple[int, int] | None:
    """Where a word stands at or behind `position`: [first, last)."""
    first = position + len(text[position:]) - len(text[position:].lstrip())
    last = first + len(surface)
    if not surface or first >= len(text):
        return None
    if text[first:last].casefold() == surface.casefold():
        return first, last
    if not _has_letters(surface + text[first]):
        return first, first + 1  # a quote or dash that the pipeline writes in its own way
    later = text.casefold().find(surface.casefold(), first, last + LOOK_AHEAD)
    if later >= 0 and len(text) == len(text.casefold()):
        return later, later + len(surface)
    return None
