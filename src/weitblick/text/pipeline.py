"""Learning a text pipeline from the training side of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from weitblick.common.errors import UserError
from weitblick.common.recipe import TextSection
from weitblick.documents.document import Document
from weitblick.text.base import CHUNK, Side, TextPipeline, chunks, clean

TrainingText = Iterable[Document] | tuple[Iterable[str], Iterable[str]]


def learn_pipeline(corpus: TrainingText, section: TextSection, *, workers: int | None = None) -> TextPipeline:
    """Learn the pipeline of a recipe from documents, or from (sources, targets), read once and never held in memory.

    The result depends on the text alone; nothing here is random. `workers` is how many cores may be used: all if not
    given.
    """
    languages = (section.source_language, section.target_language)
    how = (languages, section.merges, section.joint_vocabulary, section.longest_sentence)
    if section.kind == "moses":
        from weitblick.text.moses_pipeline import MosesPipeline, count_tokens

        counts = count_tokens(_sides(corpus), languages, workers)
        _check_found(counts[0].first, counts[1].first, languages)
        return MosesPipeline.learn(counts, *how)
    from weitblick.text.sentencepiece_pipeline import PieceOptions, SentencePiecePipeline

    words = _count_words(_sides(corpus))
    _check_found(*words, languages)
    pieces = PieceOptions(tuple(section.symbols), tuple(section.words), section.split_digits)
    return SentencePiecePipeline.learn(words, *how, pieces)


def _count_words(text: Iterable[tuple[Side, list[str]]]) -> tuple[Counter[str], Counter[str]]:
    words: dict[Side, Counter[str]] = {"source": Counter(), "target": Counter()}
    for side, sentences in text:
        words[side].update(word for sentence in sentences for word in clean(sentence).split())
    return words["source"], words["target"]


def _check_found(source: Counter[str], target: Counter[str], languages: tuple[str, str]) -> None:
    for side, words, language in (("source", source, languages[0]), ("target", target, languages[1])):
        if not words:
            raise UserError(f"no {side} text ({language}) to learn a text pipeline from", remedy="check data.train")


def _sides(corpus: TrainingText) -> Iterator[tuple[Side, list[str]]]:
    """The corpus as chunks of sentences of either side."""
    if isinstance(corpus, tuple):
        yield from (("source", chunk) for chunk in chunks(corpus[0]))
        yield from (("target", chunk) for chunk in chunks(corpus[1]))
        return
    pairs = (sentence for document in corpus for sentence in document.sentences)
    while chunk := list(islice(pairs, CHUNK)):
        yield "source", [sentence.source for sentence in chunk]
        yield "target", [sentence.target for sentence in chunk if sentence.target is not None]
