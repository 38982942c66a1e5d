"""An explanation: a document, its translations with and without context, and what the context did to every word.

It is plain data: the model makes it (`explain`), the page, the figures and the tables show it, and its JSON form is
what `weitblick explain --format json` writes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from weitblick.errors import UserError
from weitblick.explanation.attention import Attention
from weitblick.files import check_format_version, read_json, text_writer

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
    kind: Literal["none", "sentence", "word", "hierarchical", "zhang", "han"]
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
class Fetched:
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
    fetched: tuple[Fetched, ...] | None = None

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

    def to_json(self) -> dict[str, Any]:
        from weitblick.explanation.influence import influence

        return {
            "format_version": FORMAT_VERSION,
            "document": self.document,
            "source_language": self.source_language,
            "target_language": self.target_language,
            "model": asdict(self.model),
            "notes": list(self.notes),
            "sentences": [_sentence_to_json(sentence) for sentence in self.sentences],
            "influence": [entry.to_json() for entry in influence(self)],
        }

    @classmethod
    def from_json(cls, value: Any, where: str | Path = "explanation") -> Explanation:
        """The inverse of `to_json`. The influence is not read: it follows from the rest."""
        check_format_version(value, FORMAT_VERSION, where)
        try:
            model = ModelInfo(**value["model"])
            return cls(
                value["document"],
                value["source_language"],
                value["target_language"],
                model,
                tuple(_sentence_from_json(sentence, model) for sentence in value["sentences"]),
                tuple(value["notes"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise UserError(f"not an explanation ({reason})", where=where, remedy="make it again") from None

    def save(self, path: str | Path) -> None:
        with text_writer(path) as stream:
            json.dump(self.to_json(), stream, ensure_ascii=False, separators=(",", ":"))
            stream.write("\n")

    @classmethod
    def load(cls, path: str | Path) -> Explanation:
        return cls.from_json(read_json(path), path)


def _words_to_json(words: Words) -> dict[str, Any]:
    """Three short lists rather than an object per word: a report holds tens of thousands of words."""
    return {
        "text": [word.text for word in words],
        "ends": [word.end for word in words],
        "glued": [index for index, word in enumerate(words) if not word.space],
    }


def _words_from_json(value: Mapping[str, Any]) -> Words:
    starts = [0, *value["ends"]]
    glued = set(value["glued"])
    return tuple(
        Word(text, starts[index], end, index not in glued)
        for index, (text, end) in enumerate(zip(value["text"], value["ends"], strict=True))
    )


def _sentence_to_json(sentence: SentenceExplanation) -> dict[str, Any]:
    value: dict[str, Any] = {"source": _words_to_json(sentence.source), "target": _words_to_json(sentence.target)}
    # Sides that repeat another are left out: most translations do not change, and source context is the source.
    if sentence.target_without != sentence.target:
        value["target_without"] = _words_to_json(sentence.target_without)
    if sentence.context_words != sentence.source:
        value["context_words"] = _words_to_json(sentence.context_words)
    value["scores"] = [
        [round(score.with_context, 4), round(score.without_context, 4), round(score.divergence, 4)]
        + ([score.choice_without] if score.choice_without is not None else [])
        for score in sentence.scores
    ]
    value["alignment"] = [[[index, round(weight, 3)] for index, weight in word] for word in sentence.alignment]
    value["context_share"] = [round(share, 3) for share in sentence.context_share]
    value["attention"] = sentence.attention.to_text() if sentence.attention else None
    if sentence.fetched is not None:
        value["fetched"] = [{**asdict(word), "share": round(word.share, 3)} for word in sentence.fetched]
    return value


def _sentence_from_json(value: Mapping[str, Any], model: ModelInfo) -> SentenceExplanation:
    source, target = _words_from_json(value["source"]), _words_from_json(value["target"])
    queries = len(source if model.integration == "encoder" else target)
    return SentenceExplanation(
        source,
        target,
        _words_from_json(value["target_without"]) if "target_without" in value else target,
        _words_from_json(value["context_words"]) if "context_words" in value else source,
        tuple(WordScore(*score) for score in value["scores"]),
        tuple(tuple((int(index), float(weight)) for index, weight in word) for word in value["alignment"]),
        tuple(value["context_share"]),
        Attention.from_text(queries, model.heads, value["attention"]) if value["attention"] else None,
        tuple(Fetched(**word) for word in value["fetched"]) if "fetched" in value else None,
    )
