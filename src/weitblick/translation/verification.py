"""Which first translations a second pass would change, told by one pass over all words instead of a search for each.

Of a model whose context decides between some words only (`context.decides`) most sentences come out of the second pass
as they went in. A sentence is searched again only if, at some step of the translation it has, another word is the most
probable once context is read, or, with a beam, its own word is less probable than it was. With greedy search that is
exact; with a beam, a rival that context lifts while it leaves every word of the first translation as it is would be
missed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from weitblick.batches.batch import IdLists, Packed
from weitblick.batches.layout import Layout
from weitblick.context.module import Bank
from weitblick.model.context import Context
from weitblick.model.document_model import DocumentModel
from weitblick.model.sources import Sources
from weitblick.model.words import EXPECTED, WordDistribution
from weitblick.sentence.sentence_model import DecoderStates
from weitblick.translation.beam import Hypothesis
from weitblick.translation.options import TranslationOptions

LESS = 0.1
"""Nats that a word of the first translation must lose for its sentence to be searched again."""


def worth_verifying(model: DocumentModel, options: TranslationOptions) -> bool:
    """Where context is read everywhere nearly every sentence changes, and of several translations all may."""
    return model.decides is not None and options.passes == 2 and options.n_best == 1


def nats_to_lose(options: TranslationOptions) -> float:
    """What a word of the first translation must lose for its sentence to be searched again. A greedy search follows the
    most probable words, whatever they lose."""
    return math.inf if options.search.beam == 1 else LESS


def told_by_search(model: DocumentModel, options: TranslationOptions) -> bool:
    """Whether a first search's log-probabilities are those of the model's own softmax, as `Verification` needs them."""
    generation = model.sentence.generation
    return model.frozen is None and options.shortlist is None and not (generation.renormalize or generation.free_end)


class Verification:
    """As `changed_by_context`, without a pass of its own: it hears the decoder's states of first translations, and
    keeps the steps that expect words between which context decides.

    No softmax is needed to find them. What a word has in logits and, as the search has told, in log-probability gives
    the normaliser of its step, and that the probability of any other word.
    """

    def __init__(
        self, model: DocumentModel, readers: Sources, found: Sequence[Sequence[Hypothesis]], less: float
    ) -> None:
        """readers: who reads where; found: the first translations, none of sentences that are searched anyway; less: as
        of `nats_to_lose`."""
        self.model, self.readers, self.found, self.less = model, readers, found, less
        self.kept: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []  # sentence, final, attended, label of each step

    def hear(self, sentences: Sequence[int], target: Packed, states: DecoderStates) -> None:
        """The states of the translations of these sentences."""
        layout, labels = target.layout, target.next_tokens()
        steps = self._expecting(states.final, labels, self._log_probabilities(sentences, layout))
        of_steps = torch.tensor(sentences, device=steps.device)[layout.sentence[steps]]
        self.kept.append((of_steps, states.final[steps], states.attended[steps], labels[steps]))

    def _log_probabilities(self, sentences: Sequence[int], layout: Layout) -> Tensor:
        """[T] of every word of some translations; -inf of those that nobody searched."""
        rows: list[float] = []
        for index, length in zip(sentences, layout.host_lengths, strict=True):
            hypotheses = self.found[index]
            rows += hypotheses[0].word_log_probabilities if hypotheses else [-torch.inf] * length
        return torch.tensor(rows, device=layout.lengths.device)

    def _expecting(self, states: Tensor, labels: Tensor, log_probabilities: Tensor) -> Tensor:
        words = self.model.decides
        assert words is not None
        weight, bias = self.model.sentence.output()
        own = (states * weight[labels]).sum(-1) + bias[labels]
        together = torch.addmm(bias[words], states, weight[words].t()).logsumexp(-1)
        expected = (together - own + log_probabilities).exp() >= EXPECTED
        # A word that is none of these keeps its probability, and none of these can come before it if all have less.
        return (expected & (torch.isin(labels, words) | (together > own))).nonzero()[:, 0]

    def changed(self, bank: Bank | None) -> set[int]:
        """The sentences whose translations would change once this context is read."""
        if not any(len(sentences) for sentences, *_ in self.kept):
            return set()
        sentences, final, attended, labels = (torch.cat(column) for column in zip(*self.kept, strict=True))
        documents, positions = (torch.as_tensor(x)[sentences] for x in (self.readers.documents, self.readers.positions))
        layout = Layout(torch.ones_like(sentences), documents.to(final.device), positions.to(final.device))
        assert self.model.context is not None
        read = self.model.context(final, attended, layout, bank).states
        decided = self.model.decided(torch.arange(len(read), device=read.device), read, final)
        then = WordDistribution(self.model.softmax(DecoderStates(attended, final)))
        return set(sentences[_steps_that_differ(then, replace(then, decided=decided), labels, self.less)].tolist())


@torch.no_grad()
def changed_by_context(
    model: DocumentModel,
    sources: Sources,
    memory: Tensor,
    targets: IdLists,
    before: Context | None,
    context: Context | None,
    less: float = LESS,
) -> Iterator[list[int]]:
    """Part by part, the sentences whose translations would change between two contexts; memory [T, d]: the states of
    all sources; targets: the translations found with `before`; less: as of `nats_to_lose`."""
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
        changed[target.layout.sentence[_steps_that_differ(then, now, target.next_tokens(), less)]] = True
        yield [first + index for index in changed.nonzero()[:, 0].tolist()]
        first += target.layout.sentences


def _steps_that_differ(before: WordDistribution, after: WordDistribution, labels: Tensor, nats: float = LESS) -> Tensor:
    """Steps at which another word is the most probable, or the translation's own is less so by some nats; where
    pointers say the same before and after, only those that context decides can be."""
    if before.pointed is after.pointed:
        decided = [words.decided.steps for words in (before, after) if words.decided is not None]
        steps = torch.cat([*decided, torch.arange(0, device=before.states.device)]).unique()
    else:
        steps = torch.arange(len(before.states), device=before.states.device)
    first, second = before.at(steps), after.at(steps)
    less = second.log_probabilities(labels[steps]) < first.log_probabilities(labels[steps]) - nats
    return steps[less | (_favourites(first) != _favourites(second))]


def _favourites(words: WordDistribution) -> Tensor:
    """[T] the most probable word of each step."""
    parts = [words.table(rows).argmax(-1) for rows in words.softmax.chunks()]
    return torch.cat(parts) if parts else torch.arange(0, device=words.states.device)
