"""Documents as units of work: sentences as ids, over-long ones in parts, and their translations put together again."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from weitblick.documents.document import Document, Sentence
from weitblick.text.base import TextPipeline
from weitblick.translation.beam import Hypothesis

Warn = Callable[[str], None]
LONGEST_WORD = 1000
UNBROKEN = re.compile(rf"[^\s.,;:!?…。！？；：，、]{{{LONGEST_WORD + 1}}}")
"""Data, not language (keys, encoded files): nothing to translate, and no end of work for a model that tries."""


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence. `length` counts the words (pieces) and ends of sentence that were scored."""

    text: str
    log_probability: float
    length: int

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


@dataclass(frozen=True)
class Unit:
    """A sentence, or a part of an over-long one.

    document, position: where it stands; every part has a position of its own
    sentence: index in its document
    given: target ids that a user gave, and `target` their text; `locked` ones stay, others are a first draft
    """

    document: int
    position: int
    sentence: int
    text: str
    source: list[int]
    given: list[int] | None = None
    locked: bool = False
    target: str | None = None


def split_documents(documents: Sequence[Document], pipeline: TextPipeline, warn: Warn) -> list[Unit]:
    """The units of some documents, in order. Sentences without words are left out."""
    units: list[Unit] = []
    for number, document in enumerate(documents):
        sources = pipeline.encode_source(document.sources)
        position = 0
        for index, (sentence, ids) in enumerate(zip(document.sentences, sources, strict=True)):
            parts = (
                [] if (is_no_language := bool(UNBROKEN.search(sentence.source))) else _parts(sentence, ids, pipeline)
            )
            if is_no_language:
                warn(
                    f"sentence {index + 1} of document {document.id} holds more than {LONGEST_WORD} characters without "
                    "a space or punctuation mark: it is copied, not translated"
                )
            if len(parts) > 1:
                warn(
                    f"sentence {index + 1} of document {document.id} has {len(ids)} pieces, more than the "
                    f"{pipeline.longest_sentence} of training: translated in {len(parts)} parts"
                )
            for text, part in parts:
                given = _given(sentence, pipeline) if len(parts) == 1 else None
                locked = is_locked(sentence)
                units.append(Unit(number, position, index, text, part, given, locked, sentence.target))
                position += 1
            position += not parts
    return units


def is_locked(sentence: Sentence) -> bool:
    return sentence.status == "locked" and sentence.target is not None


def _parts(sentence: Sentence, ids: list[int], pipeline: TextPipeline) -> list[tuple[str, list[int]]]:
    if not ids:
        return []
    if len(ids) <= pipeline.longest_sentence:
        return [(sentence.source, ids)]
    if is_locked(sentence):  # it is context only, and of that the beginning will do
        return [(sentence.source, ids[: pipeline.longest_sentence])]
    texts = pipeline.split_long(sentence.source)
    pairs = zip(texts, pipeline.encode_source(texts), strict=True)
    return [(text, part[: pipeline.longest_sentence]) for text, part in pairs if part]


def _given(sentence: Sentence, pipeline: TextPipeline) -> list[int] | None:
    if sentence.status is None or sentence.target is None:
        return None
    ids = pipeline.encode_target([sentence.target])[0][: pipeline.longest_sentence]
    return ids if ids or sentence.status == "locked" else None


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
        sentences = tuple(map(_with_target, document.sentences, translations))
        results.append(TranslatedDocument(replace(document, sentences=sentences), tuple(translations)))
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
    every = [Translation(next(decoded), h.log_probability, len(h.word_log_probabilities)) for h in hypotheses]
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
        joined.append(Translation(text, total, sum(translation.length for translation in chosen)))
    return tuple(joined)
