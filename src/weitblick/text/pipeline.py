"""Learning a text pipeline from the training side of a corpus, and loading a saved one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from weitblick.config.recipe import TextSection
from weitblick.documents.document import Document
from weitblick.errors import UserError
from weitblick.text.base import CHUNK, Side, TextPipeline, chunks, load
from weitblick.text.cleaning import clean
from weitblick.text.sentencepiece_pipeline import SentencePiecePipeline

__all__ = ["Side", "TextPipeline", "learn_pipeline", "load_pipeline"]

KINDS: dict[str, type[TextPipeline]] = {SentencePiecePipeline.kind: SentencePiecePipeline}

Corpus = Iterable[Document] | tuple[Iterable[str], Iterable[str]]


def load_pipeline(folder: str | Path) -> TextPipeline:
    return load(folder, KINDS)


def learn_pipeline(corpus: Corpus, section: TextSection, *, seed: int = 1, workers: int | None = None) -> TextPipeline:
    """Learn the pipeline of a recipe from documents, or from (sources, targets), read once and never held in memory.

    The result depends on the counts of words only: not on their order, on `seed` or on `workers`.
    """
    languages = (section.source_language, section.target_language)
    sides = _sides(corpus)
    words: dict[Side, Counter[str]] = {"source": Counter(), "target": Counter()}
    for side, sentences in sides:
        for sentence in sentences:
            words[side].update(clean(sentence).split())
    for (side, counted), language in zip(words.items(), languages, strict=True):
        if not counted:
            raise UserError(f"no {side} text ({language}) to learn a text pipeline from", remedy="check data.train")
    counts = (words["source"], words["target"])
    return SentencePiecePipeline.learn(
        counts, languages, section.merges, section.joint_vocabulary, section.longest_sentence
    )


def _sides(corpus: Corpus) -> Iterator[tuple[Side, list[str]]]:
    """The corpus as chunks of sentences of either side."""
    if isinstance(corpus, tuple):
        yield from (("source", chunk) for chunk in chunks(corpus[0]))
        yield from (("target", chunk) for chunk in chunks(corpus[1]))
        return
    pairs = (sentence for document in corpus for sentence in document.sentences)
    while chunk := list(islice(pairs, CHUNK)):
        yield "source", [sentence.source for sentence in chunk]
        yield "target", [sentence.target for sentence in chunk if sentence.target is not None]
