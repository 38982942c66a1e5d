"""Documents as units of work: their sentences as ids, over-long ones in parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weitblick.documents.document import Document, Sentence
from weitblick.text.base import TextPipeline

Warn = Callable[[str], None]
LONGEST_WORD = 1000
UNBROKEN = re.compile(rf"[^\s.,;:!?…。！？；：，、]{{{LONGEST_WORD + 1}}}")
"""Data, not language (keys, encoded files): nothing to translate, and no end of work for a model that tries."""


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
        targets = _given(document, pipeline)
        position = 0
        for index, (sentence, ids) in enumerate(zip(document.sentences, sources, strict=True)):
            is_no_language = bool(UNBROKEN.search(sentence.source))
            parts = [] if is_no_language else _parts(sentence, ids, pipeline)
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
                given = targets.get(index) if len(parts) == 1 else None
                locked = is_locked(sentence)
                units.append(Unit(number, position, index, text, part, given, locked, sentence.target))
                position += 1
            position += not parts
    return units


def is_locked(sentence: Sentence) -> bool:
    """Whether a person has fixed the translation of a sentence."""
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


def _given(document: Document, pipeline: TextPipeline) -> dict[int, list[int]]:
    """The target ids that a user gave, by sentence."""
    given = {n: one for n, one in enumerate(document.sentences) if one.status is not None and one.target is not None}
    encoded = pipeline.encode_target([one.target or "" for one in given.values()]) if given else []
    return {
        index: ids[: pipeline.longest_sentence]
        for (index, sentence), ids in zip(given.items(), encoded, strict=True)
        if ids or sentence.status == "locked"
    }
