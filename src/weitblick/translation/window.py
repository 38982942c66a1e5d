"""Some documents translated together: passes over all of their sentences, in batches of sentences of like length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from weitblick.model.context import Context
from weitblick.model.document_model import DocumentModel
from weitblick.model.sources import Sources
from weitblick.model.words import Pointer
from weitblick.translation.beam import Hypothesis, SearchOptions, beam_search
from weitblick.translation.options import TranslationOptions
from weitblick.translation.progress import report
from weitblick.translation.track import Track
from weitblick.translation.translation_states import TranslationStates
from weitblick.translation.units import Unit
from weitblick.translation.verification import (
    Verification,
    changed_by_context,
    is_greedy,
    worth_verifying,
)

Found = list[list[Hypothesis]]


@torch.no_grad()
def translate_units(
    model: DocumentModel,
    units: Sequence[Unit],
    options: TranslationOptions,
    reads: Sequence[int] | None = None,
    pointer: Pointer | None = None,
    known: Found | None = None,
    first_found: Found | None = None,
) -> Found:
    """The hypotheses of every unit, best first; none for locked ones. `reads`, a control: for each document the one
    whose context its sentences read, if that is not their own; `pointer`: to what is approved; `known`: what the first
    of several passes finds, if it was made before; `first_found`: is filled with what it found, if it is made here."""
    device = next(model.parameters()).device
    sources = Sources([u.source for u in units], [u.document for u in units], [u.position for u in units], device)
    readers = sources if reads is None else sources.reading([reads[unit.document] for unit in units])
    free = [index for index, unit in enumerate(units) if not unit.locked]
    found: Found = [[] for _ in units]
    if first_found is not None:
        first_found[:] = found
    if not free:
        return found
    memory = sources.encode(model.sentence)
    approved = torch.tensor([unit.locked for unit in units], device=device)
    options = options.of(model.sentence.generation)
    if not options.context or not model.reads_translations:
        context = model.context_of(sources, memory, approved=approved) if options.context else None
        _translate(model, readers, free, memory, _pointing(context, pointer), options, options.search, found)
        return found

    targets = [unit.given or [] for unit in units]
    undrafted = [index for index in free if not targets[index]]
    first = model.first_pass()
    pointing = _pointing(None, pointer) if first is model else None
    verifying = worth_verifying(model, options)
    greedy = is_greedy(options)
    hears = verifying and first is model
    verification = Verification(model, readers, found, greedy, pointer) if hears else None
    states = TranslationStates(model, sources, memory, verification)
    if known is None:
        first_memory = memory if first is model else sources.encode(first.sentence)
        search, listener = (options.first_search, states) if options.passes > 1 else (options.search, None)
        _translate(first, sources, undrafted, first_memory, pointing, options, search, found, listener)
    else:
        for index in undrafted:
            found[index] = known[index]
    if first_found is not None:
        first_found[:] = found
    for number in range(2, options.passes + 1):
        for index in free:
            targets[index] = found[index][0].ids if found[index] else targets[index]
        offered = states.context(targets, approved)
        context = _pointing(offered, pointer)
        search = options.search if number == options.passes else options.first_search
        again = free
        if verifying:
            if verification is not None:
                changed = verification.changed(offered.bank)
            else:
                parts = changed_by_context(model, readers, memory, targets, pointing, context, greedy)
                changed = {index for part in parts for index in part}
            again = [index for index in free if index in changed or not found[index]]
        _translate(model, readers, again, memory, context, options, search, found)
    return found


def _pointing(context: Context | None, pointer: Pointer | None) -> Context | None:
    return context if pointer is None else replace(context or Context(), pointer=pointer)


def _translate(
    model: DocumentModel,
    sources: Sources,
    chosen: Sequence[int],
    memory: torch.Tensor,
    context: Context | None,
    options: TranslationOptions,
    search: SearchOptions,
    found: Found,
    translations: TranslationStates | None = None,
) -> None:
    """One pass over the chosen sentences; what is found takes the place of what was. translations: to be told their
    states."""
    for batch in batches_by_length(sources, chosen, max(1, options.batch_tokens // search.beam)):
        packed = sources.pack(batch)
        states, _ = model.encode(packed, context, states=memory.index_select(0, sources.rows(batch)))
        allowed = options.allowed([sources.ids[index] for index in batch], model.sentence)
        track = None if translations is None else Track()
        results = beam_search(model, states, packed.layout, context, search, allowed, track)
        for index, hypotheses in zip(batch, results, strict=True):
            found[index] = hypotheses
        if translations is not None and track is not None and track.states is not None:
            translations.hear(batch, [hypotheses[0].ids for hypotheses in results], track.states)
        report(len(batch))


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
