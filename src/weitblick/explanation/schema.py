"""An explanation: a document, its translations with and without context, and what the context did to every word.

It is plain data: the model makes it (`explain`), the page, the figures and the tables show it, and `storage` has its
JSON form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from weitblick.explanation.attention import Attention
from weitblick.text.base import Side, TextPipeline, clean
from weitblick.text.sentencepiece_pipeline import SPACE

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Word:
    """A word as the reader sees it: the pieces `start` to `end` of its sentence; `space`: white space precedes it."""

    text: str
    start: int
    end: int
    space: bool = True


Words = tuple[Word, ...]


def words_of(texts: Sequence[str]) -> Words:
    """Words of one piece each, with white space between them."""
    return tuple(Word(text, index, index + 1) for index, text in enumerate(texts))


def text_of(words: Sequence[Word]) -> str:
    return "".join((" " if word.space and index else "") + word.text for index, word in enumerate(words))


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the reader has to know about the model; attention names as in recipes (sparse, soft, entmax15)."""

    name: str
    kind: Literal["none", "sentence", "word", "hierarchical", "zhang", "han", "concatenation"]
    integration: Literal["encoder", "decoder"] = "encoder"
    direction: Literal["offline", "online"] = "offline"
    heads: int = 0
    sentence_attention: str | None = None
    word_attention: str | None = None
    states: str | None = None
    parameters: int | None = None


@dataclass(frozen=True, slots=True)
class WordScore:
    """A target word of the context-aware translation, given the words before it, in nats.

    Its log-probability with and without context (summed over its pieces), the divergence KL(with || without) of the
    two predictions, and what the model would have chosen here without context if that is another word.
    """

    with_context: float
    without_context: float
    divergence: float
    choice_without: str | None = None

    @property
    def gain(self) -> float:
        """How much context raised the log-probability of this word."""
        return self.with_context - self.without_context

    @property
    def difference(self) -> float:
        """How much context changed the probability of this word."""
        return abs(math.exp(self.with_context) - math.exp(self.without_context))


@dataclass(frozen=True, slots=True)
class ApprovedWord:
    """A word that comes from an approved translation for the greater part.

    word            its index in the target          share   of its probability that comes from approved places
    source, target  the approved sentence            at, text  the word in it that weighed most: its index, itself
    pair            its id in the memory, or else `sentence`: its index in the document; origin: where the pair is from
    """

    word: int
    share: float
    source: str
    target: str
    at: int
    text: str
    pair: int | None = None
    sentence: int | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True)
class SentenceExplanation:
    """One sentence.

    source, target, target_without    its words, and those of its translation with and without context
    context_words                     what other sentences attend to here: its source words, or for decoder integration
                                      the words of the translation that was its target context
    scores, alignment                 per target word: its score; the source words it reads as (index, weight), heaviest
                                      first
    context_share                     per query word (a source word for encoder integration, a target word for decoder
                                      integration): the gate's share of context, 1 - g
    attention                         of the query words; None if there is nothing to attend to
    fetched                           words taken from approved translations; None if nothing approved was looked at
    """

    source: Words
    target: Words
    target_without: Words
    context_words: Words
    scores: tuple[WordScore, ...] = ()
    alignment: tuple[tuple[tuple[int, float], ...], ...] = ()
    context_share: tuple[float, ...] = ()
    attention: Attention | None = None
    fetched: tuple[ApprovedWord, ...] | None = None

    @property
    def differs(self) -> bool:
        return [word.text for word in self.target] != [word.text for word in self.target_without]


@dataclass(frozen=True, slots=True)
class Explanation:
    document: str
    source_language: str
    target_language: str
    model: ModelInfo
    sentences: tuple[SentenceExplanation, ...]
    notes: tuple[str, ...] = ()

    def query_words(self, sentence: int) -> Words:
        """The words of a sentence that look at the context."""
        chosen = self.sentences[sentence]
        return chosen.source if self.model.integration == "encoder" else chosen.target


# Words as the reader knows them: the pieces that a model saw, laid over the text that they came from.

LOOK_AHEAD = 40
"""Characters to search for a word that is not where it should be, as after text that the pipeline left out."""


@dataclass(frozen=True)
class DocumentTranslations:
    """A document's sentences and their translations, as ids without special ones; an over-long sentence counts as
    several, as it is translated.

    `contexts` are the target sentences that served as context where there are such: the translations of the pass before
    the last.
    """

    texts: Sequence[str]
    sources: Sequence[Sequence[int]]
    targets: Sequence[Sequence[int]]
    targets_without: Sequence[Sequence[int]]
    contexts: Sequence[Sequence[int]]


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
