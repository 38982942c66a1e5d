"""From a model and a document to an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weitblick.explanation.attention import Attention
from weitblick.explanation.schema import Explanation, ModelInfo, Score, SentenceExplanation, Words
from weitblick.explanation.trace import Predictions, SentenceTrace, trace
from weitblick.explanation.wording import words_in
from weitblick.model.folder import LoadedModel
from weitblick.text.special import EOS

MOST_SENTENCES = 24
LEAST_MASS = 0.002
MOST_ALIGNED = 6
LEAST_ALIGNED = 0.05


@dataclass(frozen=True)
class Translations:
    """A document's sentences and its translations as text and as ids (without special ids).

    `contexts` are the target sentences that served as context: with decoder integration, the translations of the pass
    before the last.
    """

    document: str
    sources: Sequence[str]
    targets: Sequence[str]
    targets_without: Sequence[str]
    contexts: Sequence[str]
    source_ids: Sequence[Sequence[int]]
    target_ids: Sequence[Sequence[int]]
    target_without_ids: Sequence[Sequence[int]]
    context_ids: Sequence[Sequence[int]]


def explain_translations(
    loaded: LoadedModel, name: str, given: Translations, most: int = MOST_SENTENCES
) -> Explanation:
    """The explanation of translations that are there already; `most` sentences are kept for each word and head."""
    pipeline = loaded.pipeline
    count = range(len(given.sources))
    sources = [words_in(pipeline, given.source_ids[i], "source", given.sources[i]) for i in count]
    targets = [words_in(pipeline, given.target_ids[i], "target", given.targets[i]) for i in count]
    without = [words_in(pipeline, given.target_without_ids[i], "target", given.targets_without[i]) for i in count]
    decoder = loaded.model.in_decoder
    contexts = (
        [words_in(pipeline, given.context_ids[i], "target", given.contexts[i]) for i in count] if decoder else sources
    )
    traces = trace(loaded.model, given.source_ids, given.target_ids, given.context_ids)
    sentences = []
    for index, traced in enumerate(traces):
        queries = targets[index] if decoder else sources[index]
        choices = _Choices(loaded, given.target_ids[index], given.target_without_ids[index], without[index])
        sentences.append(
            SentenceExplanation(
                sources[index],
                targets[index],
                without[index],
                contexts[index],
                tuple(_score(traced.predictions, word.start, word.end, choices) for word in targets[index]),
                _alignment(traced.source_weights, sources[index], targets[index]),
                _share(traced, queries),
                _attention(traced, queries, contexts, most),
            )
        )
    model = _info(loaded, name)
    languages = (pipeline.source_language, pipeline.target_language)
    return Explanation(given.document, *languages, model, tuple(sentences), _notes(model, sentences))


def _info(loaded: LoadedModel, name: str) -> ModelInfo:
    context = loaded.context_section
    flat = {"sentence": (context.sentence_attention, None), "word": (None, context.word_attention)}
    attentions = flat.get(context.kind, (context.sentence_attention, context.word_attention))
    heads = 0 if context.kind == "none" else context.heads or loaded.model_section.heads
    return ModelInfo(
        name,
        context.kind,
        context.integration,
        context.direction,
        heads,
        *((None, None) if context.kind == "none" else attentions),
        None if context.kind == "none" else context.states,
        sum(parameter.numel() for parameter in loaded.model.parameters()),
    )


def _notes(model: ModelInfo, sentences: Sequence[SentenceExplanation]) -> tuple[str, ...]:
    if not sentences:
        return ("The document is empty.",)
    if model.kind == "none":
        return (
            "This model has no context layer: it translates every sentence alone, so there is no attention to show. "
            "What there is: the translation and the probability of every word.",
        )
    if not any(sentence.attention for sentence in sentences):
        return ("No sentence of this document had any context to attend to.",)
    return ()


@dataclass(frozen=True)
class _Choices:
    """What would have stood in place of a piece: the whole word if the translation without context has it."""

    loaded: LoadedModel
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
        surface = self.loaded.pipeline.words(beginning, "target")
        return "".join(text for _, _, text in surface) + "…"


def _score(predictions: Predictions, start: int, end: int, choices: _Choices) -> Score:
    """A word's figures from those of its pieces. Its choice changed if that of any piece did: without context another
    piece is most probable than with, and not the one that was chosen."""
    pieces = slice(start, end)
    instead = None
    for place in range(start, end):
        best = int(predictions.best_without[place])
        if best not in (predictions.best_with[place], choices.target[place]):
            instead = choices.text(start, place, best)
            break
    return Score(
        float(predictions.with_context[pieces].sum()),
        float(predictions.without_context[pieces].sum()),
        float(predictions.divergence[pieces].sum()),
        instead,
    )


def _sums(values: np.ndarray, words: Words, axis: int) -> np.ndarray:
    """Values of pieces added up to values of words."""
    if not words:
        return np.zeros([0 if a == axis else size for a, size in enumerate(values.shape)])
    return np.add.reduceat(values, [word.start for word in words], axis=axis)


def _means(values: np.ndarray, words: Words) -> np.ndarray:
    sizes = np.array([word.end - word.start for word in words], dtype=float)
    return _sums(values, words, 0) / sizes.reshape(-1, *[1] * (values.ndim - 1))


def _alignment(weights: np.ndarray, source: Words, target: Words) -> tuple[tuple[tuple[int, float], ...], ...]:
    """The source words that each target word reads, heaviest first; the share that goes to the sentence's end is left
    out."""
    if not source or not target:
        return ((),) * len(target)
    shares = _sums(_means(weights, target), source, 1)  # [target words, source words]
    shares = shares / np.maximum(shares.sum(1, keepdims=True), 1e-9)
    aligned = []
    for row in shares:
        order = np.argsort(-row, kind="stable")[:MOST_ALIGNED]
        aligned.append(tuple((int(i), float(row[i])) for k, i in enumerate(order) if k == 0 or row[i] >= LEAST_ALIGNED))
    return tuple(aligned)


def _share(traced: SentenceTrace, queries: Words) -> tuple[float, ...]:
    if traced.context_share is None or not queries:
        return ()
    return tuple(float(share) for share in _means(traced.context_share, queries))


def _attention(traced: SentenceTrace, queries: Words, contexts: Sequence[Words], most: int) -> Attention | None:
    """Pieces to words: a query word attends as its pieces do on average, a context word gets what its pieces get."""
    if traced.sentence_weights is None or traced.sentences is None or not queries:
        return None
    masses = _means(traced.sentence_weights, queries)  # [Q, H, J]
    words, first = _context_words(traced, queries, contexts)
    order = np.argsort(-masses, axis=-1, kind="stable")[..., :most]
    heaviest = np.take_along_axis(masses, order, -1)
    kept = (heaviest >= LEAST_MASS) | ((heaviest > 0) & (np.arange(order.shape[-1]) == 0))
    query, head, rank = np.nonzero(kept)
    columns = order[query, head, rank]
    listed = heaviest[query, head, rank]
    weights = [
        np.zeros(0) if words is None else words[q, h, first[c] : first[c + 1]] / mass
        for q, h, c, mass in zip(query, head, columns, listed, strict=True)
    ]
    return Attention.pack(
        masses.shape[:2],
        counts=kept.sum(-1).ravel(),
        attended=(masses > 0).sum(-1).ravel(),
        rest=np.maximum(0.0, masses.sum(-1) - np.where(kept, heaviest, 0.0).sum(-1)).ravel(),
        sentences=traced.sentences[columns],
        masses=listed,
        words=weights,
    )


def _context_words(
    traced: SentenceTrace, queries: Words, contexts: Sequence[Words]
) -> tuple[np.ndarray | None, np.ndarray]:
    """Rescaled weights of context words [Q, H, words], and where the words of each column begin [J + 1]."""
    assert traced.sentences is not None
    counts = [len(contexts[sentence]) for sentence in traced.sentences]
    first = np.concatenate([[0], np.cumsum(counts)]).astype(int)
    if traced.word_weights is None:
        return None, first
    lengths = [contexts[sentence][-1].end for sentence in traced.sentences]
    before = np.concatenate([[0], np.cumsum(lengths)])
    starts = [before[j] + word.start for j, s in enumerate(traced.sentences) for word in contexts[s]]
    return np.add.reduceat(_means(traced.word_weights, queries), starts, axis=-1), first
