"""What a model does while it translates a document: its predictions with and without context, gate and attention.

Everything here counts in pieces; `explain` turns pieces into words. A document is read in parts of some sentences
against the context of all of it, so that attention, which grows with the square of the document, is never held whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from weitblick.batches.layout import Layout
from weitblick.context.module import ContextResult
from weitblick.context.weights import AttentionWeights
from weitblick.explanation.fetching import Taken, taken
from weitblick.explanation.forced import ForcedDecoding
from weitblick.model.approved import Approved
from weitblick.model.context import Context, ContextOptions
from weitblick.model.document_model import DocumentModel
from weitblick.model.sources import Sources
from weitblick.model.words import WordDistribution

WEIGHT_ELEMENTS = 4_000_000
"""Attention weights of pieces that are held at a time: so few that they stay in a processor's cache."""
LOGIT_ELEMENTS = 4_000_000
USUAL_HEADS = 8

Ids = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Predictions:
    """Of the pieces of one translation [W] (its end excluded): log-probabilities, KL(with || without) in nats, and the
    pieces that the model finds most probable with and without context."""

    with_context: np.ndarray
    without_context: np.ndarray
    divergence: np.ndarray
    best_with: np.ndarray
    best_without: np.ndarray


@dataclass(frozen=True)
class SentenceTrace:
    """Of one sentence: predictions, source_weights [target pieces, source pieces], the gate's share of context [query
    pieces], and attention. Without a context layer there is neither gate nor attention.

    sentence_weights [query pieces, H, J]   word_weights [query pieces, H, N], rescaled, or None: sentence attention
    sentences [J] position of each column   word_columns [N] column of each context piece
    """

    predictions: Predictions
    source_weights: np.ndarray
    context_share: np.ndarray | None = None
    sentence_weights: np.ndarray | None = None
    word_weights: np.ndarray | None = None
    sentences: np.ndarray | None = None
    word_columns: np.ndarray | None = None
    taken: list[Taken] | None = None


@torch.inference_mode()
def trace(
    model: DocumentModel,
    sources: Ids,
    targets: Ids,
    contexts: Ids,
    only: Sequence[int] | None = None,
    pointer: Approved | None = None,
) -> Iterator[SentenceTrace]:
    """Forced decoding of `targets`, sentence by sentence, of all or of `only` some. `contexts` are the target sentences
    that served as context (decoder integration); source context is `sources` itself; `pointer`: to what is approved."""
    if not sources:
        return
    document = Sources(sources, [0] * len(sources), range(len(sources)), next(model.parameters()).device)
    chosen = range(len(sources)) if only is None else only
    forced = ForcedDecoding(model, document, targets, chosen)
    context = forced.context(contexts)
    if pointer is not None:
        context = replace(context or Context(), pointer=pointer)
    for part in _parts(model, sources, targets, contexts, chosen):
        yield from _trace_part(forced, part, context)


def _parts(
    model: DocumentModel, sources: Ids, targets: Ids, contexts: Ids, chosen: Sequence[int]
) -> Iterator[list[int]]:
    """Runs of the chosen sentences whose attention weights are not too large."""
    queries = model.query_side(sources, targets)
    columns = sum(len(ids) for ids in model.context_side(sources, contexts))
    heads = model.section.heads or USUAL_HEADS
    allowed = max(1, WEIGHT_ELEMENTS // max(1, columns * heads))
    part: list[int] = []
    size = 0
    for index in chosen:
        longest = max(len(queries[index]), len(targets[index])) + 1
        if part and size + longest > allowed:
            yield part
            part, size = [], 0
        part.append(index)
        size += longest
    if part:
        yield part


def _trace_part(forced: ForcedDecoding, part: list[int], context: Context | None) -> Iterator[SentenceTrace]:
    model, sources = forced.model, forced.sources.ids
    source, target = forced.sources.pack(part), forced.sources.pack_targets(part, forced.targets)
    labels, plain, states = target.next_tokens(), forced.memory(part), forced.states(part)
    options = ContextOptions(need_weights=True)
    pointer = None if context is None else context.pointer
    memory, encoded = model.encode(source, context, options, plain)
    output = model.decode(target, memory, source.layout, context, options, states=states)
    if encoded is None and model.decides is not None:
        predictions = _compare_where_decided(output.words, labels)
    else:
        without = model.decode(target, plain, source.layout, states=states).words
        predictions = _compare(output.words, without, labels)
    weights = forced.source_weights(part)
    if weights is None:
        weights = list(model.sentence.source_weights(target.tokens, target.layout, memory, source.layout))
    result, layout = (encoded, source.layout) if encoded is not None else (output.context, target.layout)
    for place in range(len(part)):
        steps = _words_of(target.layout, place)
        reading = weights[place][: steps.stop - steps.start, : len(sources[part[place]])]
        yield SentenceTrace(
            Predictions(*(figure[steps].cpu().numpy() for figure in predictions)),
            reading.float().cpu().numpy(),
            **_context(result, _words_of(layout, place)),
            taken=taken(output.words, labels, steps, pointer, part[place]) if isinstance(pointer, Approved) else None,
        )


def _words_of(layout: Layout, place: int) -> slice:
    """The words of a sentence in the packed row: all its tokens but the last."""
    start, length = int(layout.starts[place]), int(layout.lengths[place])
    return slice(start, start + length - 1)


def _compare(words: WordDistribution, plain: WordDistribution, labels: Tensor) -> tuple[Tensor, ...]:
    """[T] each: the figures of `Predictions`, some rows of logits at a time."""
    step = max(1, LOGIT_ELEMENTS // words.softmax.vocabulary)
    parts = []
    for start in range(0, len(labels), step):
        rows = slice(start, min(start + step, len(labels)))
        with_context = words.table(rows)
        without = plain.table(rows)
        chosen = labels[rows, None]
        divergence = (with_context.exp() * (with_context - without)).sum(-1).clamp_min(0)
        parts.append(
            (
                with_context.gather(1, chosen)[:, 0],
                without.gather(1, chosen)[:, 0],
                divergence,
                with_context.argmax(-1),
                without.argmax(-1),
            )
        )
    return tuple(torch.cat(figures) for figures in zip(*parts, strict=True))


def _compare_where_decided(words: WordDistribution, labels: Tensor) -> tuple[Tensor, ...]:
    """The same of words between some of which context decides: elsewhere it changes nothing, and without it they are
    those of the same softmax."""
    if words.pointed is not None:
        return _compare(words, WordDistribution(words.softmax), labels)
    likely, favourite = words.softmax.judge(labels)
    figures = likely, likely.clone(), torch.zeros_like(likely), favourite, favourite.clone()
    if words.decided is not None:
        steps = words.decided.steps
        few = words.at(steps)
        for figure, decided in zip(figures, _compare(few, WordDistribution(few.softmax), labels[steps]), strict=True):
            figure[steps] = decided.to(figure.dtype)
    return figures


def _context(context: ContextResult | None, queries: slice) -> dict[str, np.ndarray | None]:
    """The gate and attention of some queries; nothing if they could attend to nothing."""
    if context is None or queries.stop <= queries.start:
        return {}
    share = {"context_share": 1.0 - context.gate[queries].float().cpu().numpy()}
    weights = context.weights
    table = -1 if weights is None else int(weights.documents[queries.start])
    if weights is None or table < 0 or not bool(weights.visible[queries.start].any()):
        return dict(share)
    return {**share, **_columns(weights, queries, table)}


def _columns(weights: AttentionWeights, queries: slice, table: int) -> dict[str, np.ndarray | None]:
    """Up to the last one that the queries of a sentence see: padding, and with online attention the future, are at the
    end."""
    sentences = weights.sentence_positions[table].cpu().numpy()
    words = weights.word_columns[table].cpu().numpy()
    rescaled = weights.rescaled
    count = int(weights.visible[queries.start].nonzero().max()) + 1
    pieces = int(((words >= 0) & (words < count)).sum())
    return {
        "sentence_weights": weights.sentence_weights[queries, :, :count].float().cpu().numpy(),
        "word_weights": None if rescaled is None else rescaled[queries, :, :pieces].float().cpu().numpy(),
        "sentences": sentences[:count],
        "word_columns": words[:pieces],
    }
