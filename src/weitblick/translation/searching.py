"""Searching the translations of many sentences: batches of like length, each searched at once, with progress told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from torch import Tensor

from weitblick.model.concatenation import TARGET_SEPARATOR, Concatenation
from weitblick.model.context import Context, Sources
from weitblick.model.document_model import DocumentModel
from weitblick.text.units import Unit
from weitblick.translation.beam import Hypothesis, SearchOptions, beam_search
from weitblick.translation.degenerate import repeats
from weitblick.translation.forced import Forced
from weitblick.translation.kept_states import BestStates
from weitblick.translation.options import TranslationOptions

Advance = Callable[[int], None]

_advance: ContextVar[Advance | None] = ContextVar("advance", default=None)


@contextmanager
def reporting(advance: Advance | None) -> Iterator[None]:
    """In the block, `advance` is called with the number of sentences done, once for each pass over them; None: nothing
    is."""
    token = _advance.set(advance)
    try:
        yield
    finally:
        _advance.reset(token)


def report(sentences: int) -> None:
    """Tells whoever shows progress that so many sentences are done."""
    advance = _advance.get()
    if advance is not None:
        advance(sentences)


def search_batch(
    model: DocumentModel,
    sources: Sources,
    batch: Sequence[int],
    encoder_states: Tensor,
    context: Context | None,
    options: TranslationOptions,
    search: SearchOptions,
    best_states: BestStates | None = None,
    forced: Forced | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of some of the sources. encoder_states [T, d]: of all sources, without context; best_states: is
    left with the decoder's states of the best hypotheses; forced: how those of each source begin, in a second search
    that is no progress."""
    packed = sources.pack(batch)
    states, _ = model.encode(packed, context, states=encoder_states.index_select(0, sources.rows(batch)))
    allowed = options.allowed([sources.ids[index] for index in batch], model.sentence)
    repeated = None
    if search.beam > 1:
        repeated = repeats(packed.layout.pad(packed.tokens), packed.layout.lengths)
    found = beam_search(model, states, packed.layout, context, search, allowed, best_states, forced, repeated)
    if forced is None:
        report(len(batch))
    return found


def batches_by_length(sources: Sources, chosen: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Batches of at most `tokens`, and twice that when padded; at least one sentence each, the longest first. So a few
    sentences of any length, as a second pass has them, are one batch."""
    order = sorted(chosen, key=lambda index: (-int(sources.lengths[index]), index))
    batch: list[int] = []
    total = 0
    for index in order:
        length = int(sources.lengths[index])
        padded = (len(batch) + 1) * int(sources.lengths[batch[0] if batch else index])
        if batch and (total + length > tokens or padded > 2 * tokens):
            yield batch
            batch, total = [], 0
        batch.append(index)
        total += length
    if batch:
        yield batch


# A model that reads the sentences before as part of the current one (see `model.concatenation`).


def concatenated_units(
    concatenation: Concatenation, units: Sequence[Unit], reads: Sequence[int] | None = None
) -> list[Unit]:
    """The units with their sources behind those before them: of their own document or, as a control, of that which
    `reads` names for it."""
    of_document: dict[int, list[Unit]] = {}
    for unit in units:
        of_document.setdefault(unit.document, []).append(unit)
    joined = []
    for unit in units:
        read = unit.document if reads is None else reads[unit.document]
        before = [other.source for other in of_document.get(read, []) if other.position < unit.position]
        joined.append(replace(unit, source=concatenation.source(before, unit.source)))
    return joined


def current_only(hypotheses: Sequence[Hypothesis], separators: int) -> list[Hypothesis]:
    """The hypotheses cut to the current sentence. Those that lack separators, or say nothing behind the last one, are
    left out: nobody knows which of their words translate it."""
    kept = []
    for hypothesis in hypotheses:
        ids = Concatenation.cut(hypothesis.ids)
        if ids and hypothesis.ids.count(TARGET_SEPARATOR) >= separators:
            words = hypothesis.word_log_probabilities[-(len(ids) + 1) :]
            kept.append(Hypothesis(ids, hypothesis.score, sum(words), words))
    return kept


def without_separators(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The hypotheses without separators; one of nothing else stays as it is: a sentence is never left untranslated."""
    return [replace(h, ids=[word for word in h.ids if word != TARGET_SEPARATOR] or h.ids) for h in hypotheses]
