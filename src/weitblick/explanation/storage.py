"""The JSON form of an explanation, as `weitblick explain --format json` writes it: compact, and checked on reading."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from weitblick.common.errors import UserError, parse_value
from weitblick.common.files import check_format_version, read_json, text_writer
from weitblick.explanation.attention import Attention
from weitblick.explanation.influence import influence
from weitblick.explanation.schema import (
    ApprovedWord,
    Explanation,
    ModelInfo,
    SentenceExplanation,
    Word,
    Words,
    WordScore,
)

FORMAT_VERSION = 1
REMEDY = "make it again"


def save_explanation(path: str | Path, explanation: Explanation) -> None:
    with text_writer(path) as stream:
        json.dump(to_json(explanation), stream, ensure_ascii=False, separators=(",", ":"))
        stream.write("\n")


def load_explanation(path: str | Path) -> Explanation:
    return from_json(read_json(path), path)


def to_json(explanation: Explanation) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "document": explanation.document,
        "source_language": explanation.source_language,
        "target_language": explanation.target_language,
        "model": asdict(explanation.model),
        "notes": list(explanation.notes),
        "sentences": [_sentence_to_json(sentence) for sentence in explanation.sentences],
        "influence": [entry.to_json() for entry in influence(explanation)],
    }


def _words_to_json(words: Words) -> dict[str, Any]:
    """Three short lists rather than an object per word: a report holds tens of thousands of words."""
    return {
        "text": [word.text for word in words],
        "ends": [word.end for word in words],
        "glued": [index for index, word in enumerate(words) if not word.space],
    }


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


# Reading


class _Section(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)


class _Words(_Section):
    text: list[str]
    ends: list[NonNegativeInt]
    glued: list[NonNegativeInt]

    def words(self) -> Words:
        starts, glued = [0, *self.ends], set(self.glued)
        return tuple(
            Word(text, starts[index], end, index not in glued)
            for index, (text, end) in enumerate(zip(self.text, self.ends, strict=True))
        )


class _Sentence(_Section):
    source: _Words
    target: _Words
    target_without: _Words | None = None
    context_words: _Words | None = None
    scores: list[tuple[float, float, float] | tuple[float, float, float, str]]
    alignment: list[list[tuple[NonNegativeInt, float]]]
    context_share: list[float]
    attention: str | None
    fetched: list[ApprovedWord] | None = None

    def sentence(self, model: ModelInfo) -> SentenceExplanation:
        source, target = self.source.words(), self.target.words()
        queries = len(source if model.integration == "encoder" else target)
        return SentenceExplanation(
            source,
            target,
            self.target_without.words() if self.target_without else target,
            self.context_words.words() if self.context_words else source,
            tuple(WordScore(*score) for score in self.scores),
            tuple(tuple(word) for word in self.alignment),
            tuple(self.context_share),
            Attention.from_text(queries, model.heads, self.attention) if self.attention else None,
            None if self.fetched is None else tuple(self.fetched),
        )


class _File(_Section):
    """The influence is not read: it follows from the rest."""

    format_version: int
    document: str
    source_language: str
    target_language: str
    model: ModelInfo
    notes: list[str]
    sentences: list[_Sentence]


def from_json(value: Any, where: str | Path = "explanation") -> Explanation:
    """The inverse of `to_json`."""
    check_format_version(value, FORMAT_VERSION, where)
    file = parse_value(_File, value, where, remedy=REMEDY)
    try:
        sentences = tuple(sentence.sentence(file.model) for sentence in file.sentences)
    except ValueError as error:
        raise UserError(f"not an explanation ({error})", where=where, remedy=REMEDY) from None
    return Explanation(
        file.document, file.source_language, file.target_language, file.model, sentences, tuple(file.notes)
    )
