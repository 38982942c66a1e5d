"""What a model does while it translates a document: predictions with and without context, gate, attention, pointer.

Given translations are read by the sentence model once for all that an explanation asks. Everything here counts in
pieces; `explain` turns pieces into words. A document is read in parts of some sentences against the context of all of
it, so that attention, which grows with the square of the document, is never held whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from weitblick.explanation.schema import ApprovedWord, Words, words_in
from weitblick.memory.approvals import Origin
from weitblick.memory.reading_pointer import Approved
from weitblick.model.batch import IdLists, Layout, runs
from weitblick.model.context import Context, Sources
from weitblick.model.context_module import AttentionWeights, ContextOptions, ContextResult
from weitblick.model.document_model import DocumentModel
from weitblick.model.output import WordDistribution
from weitblick.model.sentence_model import DecoderStates
from weitblick.text.base import TextPipeline
from weitblick.translation.kept_states import TranslationStates

LEAST_SHARE = 0.5
"""Of the probability of a word: what comes from memory to a lesser part was the model's own choice."""

Taken = tuple[float, int, int]
"""Of a piece: the share of its probability that comes from approved places; the approved sentence with the heaviest of
these, by its number, and the place in it."""


@torch.no_grad()
def taken_words(
    words: WordDistribution, labels: Tensor, rows: slice, pointer: Approved, position: int
) -> list[Taken] | None:
    """What every piece of one sentence of document 0 took from approved ones; None if there were none to look at."""
    pointed = words.pointed
    reader = pointer.readers.get((0, position))
    if reader is not None and reader.closed:
        return [(0.0, 0, 0)] * len(labels[rows])
    if pointed is None or pointed.places is None or reader is None or not reader.numbers:
        return None
    own = pointed[rows]
    same = own.weights * (own.ids == labels[rows, None])  # [W, n]
    said, place = same.max(-1)
    share = own.share * same.sum(-1) / words.log_probabilities(labels)[rows].exp().clamp_min(1e-9)
    assert own.places is not None
    places = own.places.gather(1, place[:, None])[:, 0]
    found = []
    for part, weight, index in zip(share.tolist(), said.tolist(), places.tolist(), strict=True):
        number, word = pointer.origin(0, position, index) if weight > 0 else (0, 0)
        found.append((min(1.0, part), number, word))
    return found


def approved_words(
    pipeline: TextPipeline, target: Words, pieces: Sequence[Taken] | None, origins: Sequence[Origin]
) -> tuple[ApprovedWord, ...] | None:
    """The words of a translation that come from memory for the greater part."""
    if pieces is None:
        return None
    found = []
    for index, word in enumerate(target):
        own = pieces[word.start : word.end]
        share = sum(part for part, _, _ in own) / max(1, len(own))
        if share < LEAST_SHARE or not own:
            continue
        _, number, place = max(own)
        origin = origins[number]
        approved = words_in(pipeline, pipeline.encode_target([origin.target])[0], "target", origin.target)
        at = next((n for n, one in enumerate(approved) if one.start <= place < one.end), None)
        if at is not None:
            found.append(
                ApprovedWord(
                    index,
                    share,
                    origin.source,
                    origin.target,
                    at,
                    approved[at].text,
                    origin.pair,
                    origin.sentence,
                    origin.name,
                )
            )
    return tuple(found)


class ForcedDecoding:
    """The sentence model's own states of all sources and, where no context changes them, of the chosen targets. Most
    translations stand as they were before context was read, so what they offer as context needs no other pass."""

    def __init__(self, model: DocumentModel, sources: Sources, targets: IdLists, chosen: Sequence[int]) -> None:
        self.model, self.sources, self.targets = model, sources, targets
        self._encoded = sources.encode(model.sentence)
        self._rows = {index: place for place, index in enumerate(chosen)}
        self._states: DecoderStates | None = None
        self._weights: list[Tensor] = []
        if chosen and (model.context is None or model.reads_translations):
            self._states = self._decode(chosen)

    def _decode(self, chosen: Sequence[int]) -> DecoderStates:
        sources, targets = self.sources.choose(chosen), [self.targets[index] for index in chosen]
        lengths = np.array([len(target) + 1 for target in targets])
        self._ends = np.cumsum(lengths)
        self._starts = self._ends - lengths
        encoded = self.encoded(chosen)
        parts = []
        for source, target, rows in sources.pairs(targets):
            given = target.tokens, target.layout, encoded.index_select(0, rows), source.layout
            states, weights = self.model.sentence.decode_with_weights(*given)
            parts.append(states)
            self._weights += weights
        return DecoderStates(torch.cat([s.attended for s in parts]), torch.cat([s.final for s in parts]))

    def encoded(self, part: Sequence[int]) -> Tensor:
        """Encoder states [T, d] of the sources of some sentences."""
        return self._encoded.index_select(0, self.sources.rows(part))

    def states(self, part: Sequence[int]) -> DecoderStates | None:
        """At all steps of the targets of a run of the chosen sentences; None: context may change them."""
        if self._states is None:
            return None
        rows = slice(self._starts[self._rows[part[0]]], self._ends[self._rows[part[-1]]])
        return DecoderStates(self._states.attended[rows], self._states.final[rows])

    def source_weights(self, part: Sequence[int]) -> list[Tensor] | None:
        """[Wt, Ws] of each of these chosen sentences, padded: the weights of its source words; None as of `states`."""
        return None if self._states is None else [self._weights[self._rows[index]] for index in part]

    def context(self, translations: IdLists) -> Context | None:
        """What these translations of all sentences offer, or else their sources."""
        if not self.model.reads_translations:
            return self.model.context_of(self.sources, self._encoded)
        offered = TranslationStates(self.model, self.sources, self._encoded)
        if self._states is not None and self.model.provider is self.model.sentence:
            chosen = list(self._rows)
            offered.add(chosen, [self.targets[index] for index in chosen], self._states)
        return offered.context(translations)


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
    longest = (max(len(queries[index]), len(targets[index])) + 1 for index in chosen)
    return ([chosen[place] for place in part] for part in runs(longest, allowed))


def _trace_part(forced: ForcedDecoding, part: list[int], context: Context | None) -> Iterator[SentenceTrace]:
    model, sources = forced.model, forced.sources.ids
    source, target = forced.sources.pack(part), forced.sources.pack_targets(part, forced.targets)
    labels, plain, states = target.next_tokens(), forced.encoded(part), forced.states(part)
    options = ContextOptions(need_weights=True)
    pointer = None if context is None else context.pointer
    states_read, in_encoder = model.encode(source, context, options, plain)
    output = model.decode(target, states_read, source.layout, context, options, states=states)
    if in_encoder is None and model.choice_words is not None:
        predictions = _compare_where_decided(output.words, labels)
    else:
        without = model.decode(target, plain, source.layout, states=states).words
        predictions = _compare(output.words, without, labels)
    weights = forced.source_weights(part)
    if weights is None:
        weights = list(model.sentence.source_weights(target.tokens, target.layout, states_read, source.layout))
    result, layout = (in_encoder, source.layout) if in_encoder is not None else (output.context, target.layout)
    for place in range(len(part)):
        steps = _words_of(target.layout, place)
        reading = weights[place][: steps.stop - steps.start, : len(sources[part[place]])]
        yield SentenceTrace(
            Predictions(*(figure[steps].cpu().numpy() for figure in predictions)),
            reading.float().cpu().numpy(),
            **_context(result, _words_of(layout, place)),
            taken=taken_words(output.words, labels, steps, pointer, part[place])
            if isinstance(pointer, Approved)
            else None,
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
    likely = words.look_up(labels[:, None]).log_probabilities[:, 0]
    _, favourite = words.softmax.judge(labels)
    figures = likely, likely.clone(), torch.zeros_like(likely), favourite, favourite.clone()
    if words.word_choice is not None and len(words.word_choice.steps):
        steps = words.word_choice.steps
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
