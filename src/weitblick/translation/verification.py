"""Which first translations a second pass would change, told by one pass over all words instead of a search for each.

Of a model whose context decides between some words only (`context.decides`) most sentences come out of the second pass
as they went in. A sentence is searched again only if, at some step of the translation it has, another word is the most
probable once context is read. With greedy search that is exact.

With a beam, what is behind at one step may be before at the end, and what is before may lose: there a sentence is
searched again if context brings another word near to its own at some step (`brought_near`). A rival on another path
than that of the first translation is missed, and so is what a beam changes elsewhere because all sums have changed a
little (benchmarks/README.md has how often).
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
from weitblick.sentence.candidates import normalisers
from weitblick.sentence.sentence_model import DecoderStates
from weitblick.translation.beam import Hypothesis
from weitblick.translation.options import TranslationOptions

ROUNDING = 1e-3
"""Nats by which logits may differ from one way to compute them to another."""
GAINED, CLOSE = 0.1, 1.5
"""Nats that another word must gain on that of the first translation, and by which it may then still be behind, for a
beam to search the sentence again."""


def worth_verifying(model: DocumentModel, options: TranslationOptions) -> bool:
    """Where context is read everywhere nearly every sentence changes, and of several translations all may."""
    return model.decides is not None and options.passes == 2 and options.n_best == 1


def is_greedy(options: TranslationOptions) -> bool:
    """Whether a search follows the most probable words, whatever else comes near to them."""
    return options.search.beam == 1


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
        self, model: DocumentModel, readers: Sources, found: Sequence[Sequence[Hypothesis]], greedy: bool
    ) -> None:
        """readers: who reads where; found: the first translations, none of sentences that are searched anyway; greedy:
        as of `is_greedy`."""
        self.model, self.readers, self.found, self.greedy = model, readers, found, greedy
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
        own, together = _own_and_decided(self.model, states, labels)
        words = self.model.decides
        assert words is not None
        expected = (together - own + log_probabilities).exp() >= EXPECTED
        # A word that is none of these keeps its probability, and none of these can have more than all of them.
        near = together > (own if self.greedy else own - CLOSE)
        return (expected & (torch.isin(labels, words) | near)).nonzero()[:, 0]

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
        return set(sentences[_steps_that_differ(then, replace(then, decided=decided), labels, self.greedy)].tolist())


class Expecting:
    """Which translations context can change at all, where a search's log-probabilities are not the model's own, since
    approved translations are mixed into them: those with a step that expects words between which context decides."""

    def __init__(self, model: DocumentModel) -> None:
        self.model = model
        self.sentences: set[int] = set()

    def hear(self, sentences: Sequence[int], target: Packed, states: DecoderStates) -> None:
        """The states of the translations of these sentences."""
        own, together = _own_and_decided(self.model, states.final, target.next_tokens())
        least = math.log(EXPECTED) - ROUNDING
        steps = (together - own >= least).nonzero()[:, 0]  # of all words they can only have less than of one
        normaliser, _ = normalisers(states.final[steps], *self.model.sentence.output())
        steps = steps[together[steps] - normaliser >= least]
        self.sentences |= {sentences[row] for row in target.layout.sentence[steps].unique().tolist()}


def _own_and_decided(model: DocumentModel, states: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """[T] logits of the words that are said, and of all that context decides between together."""
    words = model.decides
    assert words is not None
    weight, bias = model.sentence.output()
    own = (states * weight[labels]).sum(-1) + bias[labels]
    return own, torch.addmm(bias[words], states, weight[words].t()).logsumexp(-1)


@torch.no_grad()
def changed_by_context(
    model: DocumentModel,
    sources: Sources,
    memory: Tensor,
    targets: IdLists,
    before: Context | None,
    context: Context | None,
    greedy: bool = False,
) -> Iterator[list[int]]:
    """Part by part, the sentences whose translations would change between two contexts; memory [T, d]: the states of
    all sources; targets: the translations found with `before`; greedy: as of `is_greedy`."""
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
        changed[target.layout.sentence[_steps_that_differ(then, now, target.next_tokens(), greedy)]] = True
        yield [first + index for index in changed.nonzero()[:, 0].tolist()]
        first += target.layout.sentences


def _steps_that_differ(before: WordDistribution, after: WordDistribution, labels: Tensor, greedy: bool) -> Tensor:
    """Steps at which another word is the most probable or, if not greedy, is brought near to that of the translation;
    where pointers say the same before and after, only those that context decides can be."""
    if before.pointed is after.pointed:
        decided = [words.decided.steps for words in (before, after) if words.decided is not None]
        steps = torch.cat([*decided, torch.arange(0, device=before.states.device)]).unique()
    else:
        steps = torch.arange(len(before.states), device=before.states.device)
    first, second, own = before.at(steps), after.at(steps), labels[steps]
    differs = torch.zeros_like(steps, dtype=torch.bool)
    for rows in first.softmax.chunks():
        then, now = first.table(rows), second.table(rows)
        differs[rows] = then.argmax(-1) != now.argmax(-1) if greedy else brought_near(then, now, own[rows])
    return steps[differs]


def brought_near(before: Tensor, after: Tensor, labels: Tensor) -> Tensor:
    """[n] where a word has gained on the label [n] between log-probabilities [n, V]: more than GAINED and half of what
    it is then behind, which is less than CLOSE."""
    behind_before, behind = (table.gather(1, labels[:, None]) - table for table in (before, after))
    gained = behind_before - behind
    return ((behind < CLOSE) & (gained > GAINED + behind.clamp(min=0) / 2)).any(-1)
