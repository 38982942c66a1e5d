"""Which first translations a second pass would change, told by one pass over all words instead of a search for each.

Of a model whose context decides between some words only (`context.decides`) most sentences come out of the second pass
as they went in. A sentence is searched again only if, at some step of the translation it has, another word is the most
probable once context is read, or its own word is less probable than it was. With greedy search that is exact; with a
beam, a rival that context lifts while it leaves every word of the first translation as it is would be missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from weitblick.batches.batch import IdLists
from weitblick.model.context import Context
from weitblick.model.document_model import DocumentModel
from weitblick.model.sources import Sources
from weitblick.model.words import WordDistribution
from weitblick.translation.options import TranslationOptions

LESS = 0.1
"""Nats that a word of the first translation must lose for its sentence to be searched again."""


def worth_verifying(model: DocumentModel, options: TranslationOptions) -> bool:
    """Where context is read everywhere nearly every sentence changes, and of several translations all may."""
    return model.decides is not None and options.passes == 2 and options.n_best == 1


@torch.no_grad()
def changed_by_context(
    model: DocumentModel,
    sources: Sources,
    memory: Tensor,
    targets: IdLists,
    before: Context | None,
    context: Context | None,
) -> Iterator[list[int]]:
    """Part by part, the sentences whose translations would change between two contexts; memory [T, d]: the states of
    all sources; targets: the translations found with `before`."""
    # What decides between words changes no state: without a bank before, one pass tells both.
    pointers = [None if offered is None else offered.pointer for offered in (before, context)]
    once = (before is None or before.bank is None) and pointers[0] is pointers[1]
    first = 0
    for source, target, rows in sources.pairs(targets):
        own = memory.index_select(0, rows)
        now = model.decode(target, own, source.layout, context, sparing=True).words
        if once:
            then = replace(now, decided=None)
        else:
            then = model.decode(target, own, source.layout, before, sparing=True).words
        changed = torch.zeros(target.layout.sentences, dtype=torch.bool, device=own.device)
        changed[target.layout.sentence[_steps_that_differ(then, now, target.next_tokens())]] = True
        yield [first + index for index in changed.nonzero()[:, 0].tolist()]
        first += target.layout.sentences


def _steps_that_differ(before: WordDistribution, after: WordDistribution, labels: Tensor) -> Tensor:
    """Steps at which another word is the most probable, or the translation's own is less so; where pointers say the
    same before and after, only those that context decides can be."""
    if before.pointed is after.pointed:
        decided = [words.decided.steps for words in (before, after) if words.decided is not None]
        steps = torch.cat([*decided, torch.arange(0, device=before.states.device)]).unique()
    else:
        steps = torch.arange(len(before.states), device=before.states.device)
    first, second = before.at(steps), after.at(steps)
    less = second.log_probabilities(labels[steps]) < first.log_probabilities(labels[steps]) - LESS
    return steps[less | (_favourites(first) != _favourites(second))]


def _favourites(words: WordDistribution) -> Tensor:
    """[T] the most probable word of each step."""
    parts = [words.table(rows).argmax(-1) for rows in words.softmax.chunks()]
    return torch.cat(parts) if parts else torch.arange(0, device=words.states.device)
