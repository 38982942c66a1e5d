"""What every pass over the sentences of documents does: batches of like length, each searched at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from weitblick.model.context import Context
from weitblick.model.document_model import DocumentModel
from weitblick.model.sources import Sources
from weitblick.model.words import Pointer
from weitblick.translation.beam import Hypothesis, SearchOptions, beam_search
from weitblick.translation.options import TranslationOptions
from weitblick.translation.track import Track


def pointing(context: Context | None, pointer: Pointer | None) -> Context | None:
    """A context that points at what is approved, too."""
    return context if pointer is None else replace(context or Context(), pointer=pointer)


@torch.no_grad()
def search_batch(
    model: DocumentModel,
    sources: Sources,
    batch: Sequence[int],
    states: Tensor,
    context: Context | None,
    options: TranslationOptions,
    search: SearchOptions,
    track: Track | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of some of the sources, whose states without context are among those of all, `states` [T, d];
    track: is left with the decoder's states of the best ones."""
    packed = sources.pack(batch)
    memory, _ = model.encode(packed, context, states=states.index_select(0, sources.rows(batch)))
    allowed = options.allowed([sources.ids[index] for index in batch], model.sentence)
    return beam_search(model, memory, packed.layout, context, search, allowed, track)


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
