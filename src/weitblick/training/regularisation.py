"""Regularisation that makes a model need its context: context dropout, word dropout, a floor under the gate."""

from __future__ import annotations

import torch
from torch import Tensor

from weitblick.batches.batch import Batch, Packed
from weitblick.config.recipe import ContextStageSection, StageSection
from weitblick.model.context import PLAIN, ContextOptions
from weitblick.model.document_model import DocumentModel
from weitblick.text.special import EOS, UNK

OFTEN = 0.4
"""A word in more than so many of a document's sentences is no clue to what a hidden one is."""


def regularise(
    model: DocumentModel, batch: Batch, section: StageSection, update: int
) -> tuple[ContextOptions, Tensor | None]:
    """How this batch reads its context, and its source with words hidden, where any are."""
    if not isinstance(section, ContextStageSection):
        return PLAIN, None
    hidden = _hide_words(batch, section)  # also without a context layer, so that baselines differ in context alone
    if model.context is None:
        return PLAIN, hidden
    use = torch.rand(batch.current.sentences, device=batch.current.labels.device) >= section.context_dropout
    floor = 0.0
    if section.context_floor_updates:
        floor = section.context_floor * max(0.0, 1 - update / section.context_floor_updates)
    return ContextOptions(use=use, floor=floor), hidden


def _hide_words(batch: Batch, section: ContextStageSection) -> Tensor | None:
    source = batch.current.source
    if not section.source_word_dropout and not section.repeated_word_dropout:
        return None
    chance = torch.full(source.tokens.shape, section.source_word_dropout, device=source.tokens.device)
    if section.repeated_word_dropout:
        chance[repeated(source, batch.all_sentences.source)] = section.repeated_word_dropout
    drop = torch.rand(len(source.tokens), device=source.tokens.device) < chance
    return torch.where(drop & (source.tokens != EOS), UNK, source.tokens)


def repeated(current: Packed, everything: Packed) -> Tensor:
    """[T] which words of the current sentences another sentence of their document has too, but not most of them."""
    documents, sentences = everything.layout.documents, everything.layout.sentences
    size = torch.bincount(documents)  # [B] sentences
    kinds = int(everything.tokens.max()) + 1
    words = documents[everything.layout.sentence] * kinds + everything.tokens  # a word of a document
    once = torch.unique(words * sentences + everything.layout.sentence).div(sentences, rounding_mode="floor")
    found, counts = torch.unique(once, return_counts=True)  # of each word the sentences that have it
    own = current.layout.documents[current.layout.sentence]
    count = counts[torch.searchsorted(found, own * kinds + current.tokens)]
    return (count > 1) & (count <= (OFTEN * size[own]).clamp_min(2))
