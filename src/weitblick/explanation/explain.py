"""From a model and a document to an explanation: translations with and without context, then what the model read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from weitblick.documents.document import Document
from weitblick.explanation.masked import explain_masked
from weitblick.explanation.packing import MOST_SENTENCES, AttentionPacker, means, sums
from weitblick.explanation.schema import (
    DocumentTranslations,
    Explanation,
    ModelInfo,
    SentenceExplanation,
    Words,
    WordScore,
    words_in,
)
from weitblick.explanation.trace import Predictions, SentenceTrace, approved_words, trace
from weitblick.files.masked_document import MaskedDocument
from weitblick.memory.reading_pointer import Approved
from weitblick.memory.store import Memory
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import EOS, TextPipeline
from weitblick.text.units import Unit, split_documents
from weitblick.translation.beam import Hypothesis
from weitblick.translation.driver import Passes, translate_units
from weitblick.translation.options import TranslationOptions
from weitblick.translation.searching import report
from weitblick.translation.translator import Translator, windows

Found = Sequence[Sequence[Hypothesis]]

MOST_ALIGNED = 6
LEAST_ALIGNED = 0.05


def explain(
    translator: Translator,
    document: Document | MaskedDocument,
    *,
    title: str | None = None,
    model_name: str = "model",
    most: int = MOST_SENTENCES,
    beam: int | None = None,
    memory: Memory | None = None,
) -> Explanation:
    """Translates a document with and without context, and reads off the model what the context did; context are also
    the approved translations of a memory and of the document itself. What is carried through the translation of a
    masked document is shown as people read it.

    `most` context sentences are kept for each word and head; the mass of the others is kept as a sum.
    """
    read = document.masked() if isinstance(document, MaskedDocument) else document
    units = split_documents([read], translator.pipeline, translator.warn)
    pointer = translator.pointer_for(units, TranslationOptions(memory=memory))
    given = translations_of(translator, read, beam, pointer)
    explained = partial(
        explain_translations,
        translator.model,
        translator.pipeline,
        title=title or read.id,
        model_name=model_name,
        most=most,
        pointer=pointer,
    )
    if not isinstance(document, MaskedDocument):
        return explained(given)
    return explain_masked(translator, document, units, given, beam, explained)


def explain_documents(
    translator: Translator,
    documents: Iterable[Document],
    *,
    model_name: str = "model",
    beam: int | None = None,
    memory: Memory | None = None,
) -> Iterator[Explanation]:
    """The explanations of many documents. Where nothing is approved, some are translated together."""
    for window in windows(documents):
        units = split_documents(window, translator.pipeline, translator.warn)
        if translator.pointer_for(units, TranslationOptions(memory=memory)) is not None:
            for document in window:
                yield explain(translator, document, model_name=model_name, beam=beam, memory=memory)
            continue
        for document, given in zip(window, _translate(translator, window, beam, None), strict=True):
            yield explain_translations(
                translator.model, translator.pipeline, given, title=document.id, model_name=model_name
            )


def translations_of(
    translator: Translator, document: Document, beam: int | None = None, pointer: Approved | None = None
) -> DocumentTranslations:
    """Both translations, by beam search. Locked sentences keep their target, drafts are context of the first pass."""
    return _translate(translator, [document], beam, pointer)[0]


def _translate(
    translator: Translator, documents: Sequence[Document], beam: int | None, pointer: Approved | None
) -> list[DocumentTranslations]:
    model = translator.model
    units = split_documents(documents, translator.pipeline, translator.warn)
    options = TranslationOptions(beam=beam)
    address = translator.address(options)
    if pointer is None and _begins_alone(model, units):
        passes = Passes(model, units, options, address=address)
        together, alone = passes.translate(), _listed(units, passes)
        return _by_document(documents, units, together, alone, alone)
    alone = translate_units(model, units, replace(options, context=False))
    together = first = alone
    if model.first_pass() is not model:
        first = translate_units(model, units, replace(options, passes=1))
    if model.context is not None or pointer is not None:
        # With a pointer, the model's own first pass reads it: another one than alone.
        known = pointer is None or model.first_pass() is not model
        found = dict(enumerate(first)) if known else None
        passes = Passes(model, units, options, pointer=pointer, first_found=found, address=address)
        together = passes.translate()
        first = _listed(units, passes) if model.reads_translations else first
    return _by_document(documents, units, together, alone, first)


def _listed(units: Sequence[Unit], passes: Passes) -> list[list[Hypothesis]]:
    """What the first pass has found for every unit; nothing for drafts and locked ones."""
    found = passes.first_found or {}
    return [[] if unit.given else found.get(number, []) for number, unit in enumerate(units)]


def _begins_alone(model: DocumentModel, units: Sequence[Unit]) -> bool:
    """Whether the first of two passes translates each sentence as it would be alone."""
    drafted = any(unit.given and not unit.locked for unit in units)
    return model.reads_translations and model.first_pass() is model and not drafted


def _by_document(
    documents: Sequence[Document], units: Sequence[Unit], together: Found, alone: Found, first: Found
) -> list[DocumentTranslations]:
    contexts = [unit.given or ids for unit, ids in zip(units, _best(units, first), strict=True)]
    columns = [unit.source for unit in units], _best(units, together), _best(units, alone), contexts
    parts: list[list[tuple[Unit, tuple[list[int], ...]]]] = [[] for _ in documents]
    for unit, *ids in zip(units, *columns, strict=True):
        parts[unit.document].append((unit, tuple(ids)))
    return [_by_position(document, part) for document, part in zip(documents, parts, strict=True)]


def _by_position(document: Document, part: Sequence[tuple[Unit, tuple[list[int], ...]]]) -> DocumentTranslations:
    """Of the units of one document; sentences without words have none."""
    empty = len(document.sentences) - len({unit.sentence for unit, _ in part})
    texts = [""] * (len(part) + empty)
    columns: list[list[list[int]]] = [[[] for _ in texts] for _ in range(4)]
    for unit, ids in part:
        texts[unit.position] = unit.text
        for column, value in zip(columns, ids, strict=True):
            column[unit.position] = value
    return DocumentTranslations(texts, *columns)


def passes_over(model: DocumentModel) -> int:
    """How often an explanation goes over each sentence: alone, together, for the context, and to look inside."""
    if model.context is None:
        return 2
    return 3 + (model.first_pass() is not model)


def _best(units: Sequence[Unit], found: Sequence[Sequence[Hypothesis]]) -> list[list[int]]:
    return [
        hypotheses[0].ids if hypotheses else unit.given or [] for unit, hypotheses in zip(units, found, strict=True)
    ]


def explain_translations(
    model: DocumentModel,
    pipeline: TextPipeline,
    given: DocumentTranslations,
    *,
    title: str,
    model_name: str = "model",
    most: int = MOST_SENTENCES,
    only: Sequence[int] | None = None,
    pointer: Approved | None = None,
) -> Explanation:
    """The explanation of translations that are there already. With `only`, some sentences are explained; the others
    are there as words alone."""
    sources = [words_in(pipeline, ids, "source", text) for ids, text in zip(given.sources, given.texts, strict=True)]
    targets, without, contexts = _target_words(pipeline, given.targets, given.targets_without, given.contexts)
    contexts = model.context_side(sources, contexts)
    packer = AttentionPacker(contexts, most)
    sentences = [SentenceExplanation(*words) for words in zip(sources, targets, without, contexts, strict=True)]
    chosen = range(len(sentences)) if only is None else only
    traces = trace(model, given.sources, given.targets, given.contexts, only, pointer)
    for index, traced in zip(chosen, traces, strict=True):
        queries = model.query_side(sources, targets)[index]
        choices = _Choices(pipeline, given.targets[index], given.targets_without[index], without[index])
        report(1)
        sentences[index] = replace(
            sentences[index],
            scores=tuple(_score(traced.predictions, word.start, word.end, choices) for word in targets[index]),
            alignment=_alignment(traced.source_weights, sources[index], targets[index]),
            context_share=_share(traced, queries),
            attention=packer.pack(traced, queries),
            fetched=approved_words(pipeline, targets[index], traced.taken, () if pointer is None else pointer.origins),
        )
    info = _info(model, model_name, sentences)
    languages = (pipeline.source_language, pipeline.target_language)
    return Explanation(title, *languages, info, tuple(sentences), _notes(info, sentences))


def _target_words(pipeline: TextPipeline, *sides: Sequence[Sequence[int]]) -> list[list[Words]]:
    """The words of several translations of the same sentences, most of which are alike."""
    distinct = list(dict.fromkeys(tuple(ids) for side in sides for ids in side))
    texts = zip(distinct, pipeline.decode_target(distinct), strict=True)
    known = {ids: words_in(pipeline, ids, "target", text) for ids, text in texts}
    return [[known[tuple(ids)] for ids in side] for side in sides]


def _info(model: DocumentModel, name: str, sentences: Sequence[SentenceExplanation]) -> ModelInfo:
    context = model.section
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if model.context is None:
        return ModelInfo(name, "none", parameters=parameters)
    attentions = {
        "sentence": (context.sentence_attention, None),
        "word": (None, context.word_attention),
        "hierarchical": (context.sentence_attention, context.word_attention),
    }
    return ModelInfo(
        name,
        context.kind,
        context.integration,
        context.direction,
        next((sentence.attention.heads for sentence in sentences if sentence.attention), context.heads or 0),
        *attentions.get(context.kind, (None, None)),
        context.states,
        parameters,
    )


def _notes(model: ModelInfo, sentences: Sequence[SentenceExplanation]) -> tuple[str, ...]:
    if not sentences:
        return ("The document is empty.",)
    if model.kind == "none":
        return (
            "This model has no context layer: it translates every sentence alone, so there is no attention to show. "
            "What there is: the translation and the probability of every word.",
        )
    if model.kind == "zhang":
        return (
            "This model reads its context inside every layer, so there is no one attention to show. What there is: the "
            "gate, and how the context changed the probability of every word.",
        )
    if not any(sentence.attention for sentence in sentences):
        return ("No sentence of this document had any context to attend to.",)
    return ()


@dataclass(frozen=True)
class _Choices:
    """What would have stood in place of a piece: the whole word if the translation without context has it."""

    pipeline: TextPipeline
    target: Sequence[int]
    target_without: Sequence[int]
    words_without: Words

    def text(self, start: int, place: int, best: int) -> str:
        """The word that begins with the pieces from `start` to `place` and then goes on with the piece `best`."""
        if best == EOS:
            return "(end)"
        beginning = [*self.target[start:place], best]
        for word in self.words_without:
            if list(self.target_without[word.start : word.start + len(beginning)]) == beginning:
                return word.text
        surface = self.pipeline.words(beginning, "target")
        return "".join(text for _, _, text in surface) + "…"


def _score(predictions: Predictions, start: int, end: int, choices: _Choices) -> WordScore:
    """A word's figures from those of its pieces. Its choice changed if that of any piece did: without context another
    piece is most probable than with, and not the one that was chosen. What would stand there is told by the first
    piece that would be another without context: later ones go on with a word that would not have begun."""
    pieces = slice(start, end)
    without = {place: int(predictions.best_without[place]) for place in range(start, end)}
    others = [place for place, best in without.items() if best != choices.target[place]]
    changed = any(without[place] != predictions.best_with[place] for place in others)
    return WordScore(
        float(predictions.with_context[pieces].sum()),
        float(predictions.without_context[pieces].sum()),
        float(predictions.divergence[pieces].sum()),
        choices.text(start, others[0], without[others[0]]) if changed else None,
    )


def _alignment(weights: np.ndarray, source: Words, target: Words) -> tuple[tuple[tuple[int, float], ...], ...]:
    """The source words that each target word reads, heaviest first; the share that goes to the sentence's end is left
    out."""
    if not source or not target:
        return ((),) * len(target)
    shares = sums(means(weights, target), source, 1)  # [target words, source words]
    shares = shares / np.maximum(shares.sum(1, keepdims=True), 1e-9)
    aligned = []
    for row in shares:
        order = np.argsort(-row, kind="stable")[:MOST_ALIGNED]
        aligned.append(tuple((int(i), float(row[i])) for k, i in enumerate(order) if k == 0 or row[i] >= LEAST_ALIGNED))
    return tuple(aligned)


def _share(traced: SentenceTrace, queries: Words) -> tuple[float, ...]:
    if traced.context_share is None or not queries:
        return ()
    return tuple(float(share) for share in means(traced.context_share, queries))
