"""Translations of sentences, and documents put together from the hypotheses of their units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weitblick.documents.document import Document, Sentence
from weitblick.text.base import TextPipeline
from weitblick.text.units import Unit, is_locked
from weitblick.translation.beam import Hypothesis

if TYPE_CHECKING:
    from weitblick.memory.terms import TermUse


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence. `length` counts the words (pieces) and ends of sentence that were scored; `terms`
    are those of its source, each with what became of it."""

    text: str
    log_probability: float
    length: int
    terms: tuple[TermUse, ...] = ()

    @property
    def confidence(self) -> float:
        """The geometric mean of the probabilities of its words, between 0 and 1."""
        return math.exp(self.log_probability / self.length) if self.length else 1.0


@dataclass(frozen=True)
class TranslatedDocument:
    """A document with targets and, for each sentence, its translations, best first; none where nothing was translated
    (empty and locked sentences)."""

    document: Document
    translations: tuple[tuple[Translation, ...], ...]

    @classmethod
    def of(cls, document: Document, translations: Sequence[tuple[Translation, ...]]) -> TranslatedDocument:
        """A document whose sentences take the best of these translations."""
        sentences = tuple(map(_with_target, document.sentences, translations))
        return cls(replace(document, sentences=sentences), tuple(translations))


def join_documents(
    documents: Sequence[Document],
    units: Sequence[Unit],
    found: Sequence[Sequence[Hypothesis]],
    pipeline: TextPipeline,
) -> list[TranslatedDocument]:
    """Documents with the targets found for their units; `found` is empty for units that were not translated."""
    texts = _texts(units, found, pipeline)
    of_sentence: dict[tuple[int, int], list[int]] = {}
    for number, unit in enumerate(units):
        of_sentence.setdefault((unit.document, unit.sentence), []).append(number)
    results = []
    for number, document in enumerate(documents):
        translations = []
        for index, sentence in enumerate(document.sentences):
            members = [] if is_locked(sentence) else of_sentence.get((number, index), [])
            translations.append(_join([texts[member] for member in members]))
        results.append(TranslatedDocument.of(document, translations))
    return results


def _with_target(sentence: Sentence, translations: Sequence[Translation]) -> Sentence:
    if is_locked(sentence):
        return sentence
    if translations:
        return replace(sentence, target=translations[0].text)
    if sentence.source.strip() and sentence.status == "draft" and (sentence.target or "").strip():
        return sentence  # a single pass, which the draft replaces
    # No words: blank, or nothing that a vocabulary could hold, which is copied.
    return replace(sentence, target=sentence.source if sentence.source.strip() else "")


def _texts(
    units: Sequence[Unit], found: Sequence[Sequence[Hypothesis]], pipeline: TextPipeline
) -> list[list[Translation]]:
    ids = [hypothesis.ids for hypotheses in found for hypothesis in hypotheses]
    sources = [unit.text for unit, hypotheses in zip(units, found, strict=True) for _ in hypotheses]
    decoded = iter(pipeline.decode_target(ids, sources))
    return [_readable(unit, hypotheses, decoded) for unit, hypotheses in zip(units, found, strict=True)]


def _readable(unit: Unit, hypotheses: Sequence[Hypothesis], decoded: Iterator[str]) -> list[Translation]:
    """Translations that are not blank; failing all, the source itself, since an empty line would be a boundary."""
    every = [Translation(next(decoded), h.log_probability, len(h.word_log_probabilities), h.terms) for h in hypotheses]
    readable = [translation for translation in every if translation.text.strip()]
    return readable or [replace(translation, text=unit.text.strip()) for translation in every[:1]]


def _join(parts: list[list[Translation]]) -> tuple[Translation, ...]:
    """The n-th best of a sentence is made of the n-th best of its parts, or of the last where there are fewer."""
    if len(parts) <= 1:
        return tuple(parts[0]) if parts else ()
    joined = []
    for rank in range(max(map(len, parts))):
        chosen = [part[min(rank, len(part) - 1)] for part in parts]
        text = " ".join(translation.text for translation in chosen)
        total = math.fsum(translation.log_probability for translation in chosen)
        terms = tuple(term for translation in chosen for term in translation.terms)
        joined.append(Translation(text, total, sum(translation.length for translation in chosen), terms))
    return tuple(joined)
