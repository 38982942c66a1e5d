"""Which source words stand behind each word of an approved translation, and who may therefore point at it.

A word was approved for something: a place counts for another sentence only if all source words that it is aligned to
are in that sentence, by their stems. *Dorschquote* stands for *cod* and *quota*, and says nothing of the quota for
herring. An article needs the source words of its noun, a negation the word that negates; a word behind which only
articles, prepositions and the like stand needs what the next word needs that says more; marks of punctuation and the
end of a sentence need what the word before them needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weitblick.memory.articles import is_article
from weitblick.memory.stems import Stems, stems_of
from weitblick.text.base import TextPipeline

LEAST_SHARE, OF_THE_BEST = 0.3, 0.6
"""Of the attention of a word: a source word with this share, and this part of the greatest, stands behind it."""
MOST_NEEDED = 6
"""Source words behind a place: four by the shares above, and those of an article's noun."""
NOT_NEEDED = -1
NOUN_WITHIN = 4
"""Words behind an article among which its noun is."""


@dataclass(frozen=True)
class SourceWords:
    """The words of a source: of each piece the number of its word, -1 for marks of punctuation; of each word its stem,
    whether it negates, and whether it says little without others."""

    owners: Sequence[int]
    stems: Sequence[str]
    negates: Sequence[bool]
    links: Sequence[bool]


@dataclass(frozen=True)
class TargetWord:
    """Pieces [start, end) of a target, and what they spell."""

    start: int
    end: int
    text: str


def source_words(pipeline: TextPipeline, ids: Sequence[int]) -> SourceWords:
    """The words of an encoded source."""
    stems = stems_of(pipeline.source_language)
    pieces, owners = pipeline.pieces(ids, "source"), [-1] * len(ids)
    found: list[str] = []
    for start, end, surface in pipeline.words(ids, "source"):
        word = _bare(surface)
        if not word:
            continue
        for place in range(start, end):
            if any(map(str.isalnum, pieces[place])) or end - start == 1:
                owners[place] = len(found)
        found.append(word)
    negates, links = ([of(word) for word in found] for of in (stems.negates, stems.links))
    return SourceWords(owners, [stems.of(word) for word in found], negates, links)


def target_words(pipeline: TextPipeline, ids: Sequence[int]) -> list[TargetWord]:
    """The words of an encoded target."""
    return [TargetWord(start, end, _bare(surface)) for start, end, surface in pipeline.words(ids, "target")]


def needed_words(weights: np.ndarray, source: SourceWords, target: Sequence[TargetWord], language: str) -> np.ndarray:
    """[W + 1, MOST_NEEDED] the numbers of the source words behind every piece of a target and its end, filled up with
    -1. weights [W, Ws]: attention of target pieces to source pieces."""
    stems = stems_of(language)
    columns = np.zeros((weights.shape[1], len(source.stems)))
    for piece, owner in enumerate(source.owners[: weights.shape[1]]):
        if owner >= 0:
            columns[piece, owner] = 1.0
    needed: list[set[int]] = []
    for word in target:
        share = weights[word.start : word.end].mean(0) @ columns  # [source words]
        needed.append(_behind(share, source, word.text, stems) if word.text and share.size else set())
    for number, word in enumerate(target):
        if is_article(word.text, language):
            needed[number] |= _of_noun(number, target, needed, language)
    telling = [any(not source.links[one] for one in own) for own in needed]
    everything = {number for number, links in enumerate(source.links) if not links}
    for number, word in enumerate(target):
        if not word.text and number:
            needed[number] = needed[number - 1]
        elif word.text and not telling[number]:
            if stems.links(word.text) or word.text[0].islower():
                needed[number] = needed[number] | _of_neighbour(number, telling, needed, everything)
            else:
                needed[number] = needed[number] | everything
    return _table(needed, target, len(weights))


def _of_neighbour(number: int, telling: Sequence[bool], needed: Sequence[set[int]], everything: set[int]) -> set[int]:
    """The source words of the next word that says something by itself; where none is near, of all of these."""
    near = (place for place in range(number + 1, min(len(telling), number + 1 + NOUN_WITHIN)) if telling[place])
    place = next(near, None)
    return everything if place is None else needed[place]


def _behind(share: np.ndarray, source: SourceWords, word: str, stems: Stems) -> set[int]:
    total = share.sum()
    share = share / total if total > 0 else share
    best = share.max()
    found = set(np.nonzero((share >= LEAST_SHARE) & (share >= OF_THE_BEST * best))[0].tolist()) or {int(share.argmax())}
    if stems.negates(word) and any(source.negates):
        found.add(int(np.where(source.negates, share, -1.0).argmax()))
    return found


def _of_noun(number: int, target: Sequence[TargetWord], needed: Sequence[set[int]], language: str) -> set[int]:
    """The source words of the noun behind an article: the next word with a capital letter in German, else the next."""
    behind = range(number + 1, min(len(target), number + 1 + NOUN_WITHIN))
    words = [place for place in behind if target[place].text and not is_article(target[place].text, language)]
    nouns = [place for place in words if target[place].text[0].isupper()] if language.startswith("de") else words
    return needed[nouns[0]] if nouns else set()


def _table(needed: Sequence[set[int]], target: Sequence[TargetWord], pieces: int) -> np.ndarray:
    table = np.full((pieces + 1, MOST_NEEDED), NOT_NEEDED, dtype=np.int16)
    for word, own in zip(target, needed, strict=True):
        row = sorted(own)[:MOST_NEEDED]
        table[word.start : word.end, : len(row)] = row
    if pieces:
        table[pieces] = table[pieces - 1]
    return table


def open_places(needed: np.ndarray, stems: Sequence[str], present: frozenset[str]) -> np.ndarray:
    """[W + 1] of each place whether all that it needs is present, for a sentence with these stems."""
    there = np.array([*(stem in present for stem in stems), True])  # the last one is of NOT_NEEDED
    return there[needed].all(1)


def _bare(surface: str) -> str:
    """A word without the marks around it; nothing of what is only marks."""
    first = next((n for n, letter in enumerate(surface) if letter.isalnum()), None)
    if first is None:
        return ""
    last = next(n for n in range(len(surface), 0, -1) if surface[n - 1].isalnum())
    return surface[first:last]
