"""Which first translations a second pass would change, told by one pass over all words instead of a search for each.

Of a model whose context decides between some words only (`context.decides`) most sentences come out of the second pass
as they went in. A sentence is searched again only if, at some step of the translation it has, another word is the most
probable once context is read. With greedy search that is exact.

With a beam, what is behind at one step may be before at the end, and what is before may lose: there a sentence is
searched again if context brings another word near to its own at some step (`caught_up`). A rival on another path
than that of the first translation is missed, and so is what a beam changes elsewhere because all sums have changed a
little (benchmarks/README.md has how often).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weitblick.model.batch import IdLists, Layout, Packed
from weitblick.model.context import Context, Sources
from weitblick.model.context_module import Bank
from weitblick.model.document_model import DocumentModel
from weitblick.model.modifiers import WordChoice
from weitblick.model.output import EXPECTED, Pointer, WordDistribution, normalisers
from weitblick.model.sentence_model import DecoderStates
from weitblick.translation.beam import Hypothesis
from weitblick.translation.options import TranslationOptions

ROUNDING = 1e-3
"""Nats by which logits may differ from one way to compute them to another."""
GAINED, NEAR = 0.1, 1.5
"""Nats that another word must gain on that of the first translation, and by which it may then still be behind, for a
beam to search the sentence again."""
STEPS_AT_A_TIME = 4096
"""Steps of first translations that read the context at a time."""


def worth_verifying(model: DocumentModel, options: TranslationOptions) -> bool:
    """Where context is read everywhere nearly every sentence changes, and of several translations all may."""
    return model.choice_words is not None and options.passes == 2 and options.n_best == 1


def is_greedy(options: TranslationOptions) -> bool:
    """Whether a search follows the most probable words, whatever else comes near to them."""
    return options.search.beam == 1


@torch.no_grad()
def changed_by_context(
    model: DocumentModel,
    sources: Sources,
    encoder_states: Tensor,
    targets: IdLists,
    before: Context | None,
    context: Context | None,
    greedy: bool = False,
) -> Iterator[list[int]]:
    """Part by part, the sentences whose translations would change between two contexts. encoder_states [T, d]: of all
    sources; targets: the translations found with `before`; greedy: as of `is_greedy`."""
    # What decides between words changes no state: without a bank before, one pass tells both.
    pointers = [None if offered is None else offered.pointer for offered in (before, context)]
    once = (before is None or before.bank is None) and pointers[0] is pointers[1]
    first = 0
    for source, target, rows in sources.pairs(targets):
        own = encoder_states.index_select(0, rows)
        now = model.decode(target, own, source.layout, context, only_where_decided=True).words
        if once:
            then = now.without(WordChoice)
        else:
            then = model.decode(target, own, source.layout, before, only_where_decided=True).words
        changed = torch.zeros(target.layout.sentences, dtype=torch.bool, device=own.device)
        changed[target.layout.sentence[_steps_that_differ(then, now, target.next_tokens(), greedy)]] = True
        yield [first + index for index in changed.nonzero()[:, 0].tolist()]
        first += target.layout.sentences


def _steps_that_differ(before: WordDistribution, after: WordDistribution, labels: Tensor, greedy: bool) -> Tensor:
    """Steps at which another word is the most probable or, if not greedy, is brought near to that of the translation;
    where pointers say the same before and after, only those that context decides can be."""
    if before.pointed is after.pointed:
        decided = [words.word_choice.steps for words in (before, after) if words.word_choice is not None]
        steps = torch.cat([*decided, torch.arange(0, device=before.states.device)]).unique()
    else:
        steps = torch.arange(len(before.states), device=before.states.device)
    first, second, own = before.at(steps), after.at(steps), labels[steps]
    differs = torch.zeros_like(steps, dtype=torch.bool)
    for rows in first.softmax.chunks():
        then, now = first.table(rows), second.table(rows)
        differs[rows] = then.argmax(-1) != now.argmax(-1) if greedy else caught_up(then, now, own[rows])
    return steps[differs]


def caught_up(before: Tensor, after: Tensor, labels: Tensor) -> Tensor:
    """[n] where a word has gained on the label [n] between log-probabilities [n, V]: more than GAINED and half of what
    it is then behind, which is less than NEAR."""
    behind_before, behind = (table.gather(1, labels[:, None]) - table for table in (before, after))
    gained = behind_before - behind
    return ((behind < NEAR) & (gained > GAINED + behind.clamp(min=0) / 2)).any(-1)


@dataclass(frozen=True)
class _Steps:
    """Steps of first translations [n]: of which sentence, the decoder's states there, the word before and the word."""

    sentences: Tensor
    states: DecoderStates
    previous: Tensor
    labels: Tensor


class Verification:
    """The fast double of `changed_by_context`, for models that find first translations themselves.

    It makes no pass of its own: the search that finds first translations hands it the decoder's states (`add`), of
    which it keeps the steps that expect words between which context decides.
    """

    def __init__(
        self,
        model: DocumentModel,
        readers: Sources,
        found: Mapping[int, list[Hypothesis]],
        greedy: bool,
        pointer: Pointer | None = None,
    ) -> None:
        """readers: who reads where; found: the first translations, none of sentences that are searched anyway; greedy:
        as of `is_greedy`; pointer: by which they were found, if there was one."""
        self.model, self.readers, self.found, self.greedy, self.pointer = model, readers, found, greedy, pointer
        self.kept: list[_Steps] = []

    def add(self, sentences: Sequence[int], target: Packed, states: DecoderStates) -> None:
        """Takes the decoder's states at all steps of the translations of these sentences."""
        labels = target.next_tokens()
        searched = torch.tensor([index in self.found for index in sentences], device=labels.device)
        steps = self._expecting(states.final, labels, searched[target.layout.sentence])
        if not len(steps):
            return
        of_steps = torch.tensor(sentences, device=steps.device)[target.layout.sentence[steps]]
        own = DecoderStates(states.attended[steps], states.final[steps])
        self.kept.append(_Steps(of_steps, own, target.tokens[steps], labels[steps]))

    def _expecting(self, states: Tensor, labels: Tensor, among: Tensor) -> Tensor:
        """Of steps, some of which are `among` those that count, the ones that expect words of `decides`. Few need a
        softmax to be told: of all words these can only have less than of the one that is said."""
        words = self.model.choice_words
        assert words is not None
        weight, bias = self.model.sentence.output()
        own = (states * weight[labels]).sum(-1) + bias[labels]
        together = torch.addmm(bias[words], states, weight[words].t()).logsumexp(-1)
        least = math.log(EXPECTED) - ROUNDING
        possible = among & (together - own >= least)
        if self.pointer is None:
            # A word that is none of these keeps its probability, and none of these can have more than all of them.
            possible &= torch.isin(labels, words) | (together > own - (0 if self.greedy else NEAR) - ROUNDING)
        steps = possible.nonzero()[:, 0]
        normaliser, _ = normalisers(states[steps], weight, bias)
        return steps[together[steps] - normaliser >= least]

    def changed(self, bank: Bank | None) -> Iterator[list[int]]:
        """Part by part, the sentences whose translations would change once this context is read."""
        part: list[_Steps] = []
        for number, steps in enumerate(self.kept, 1):
            part.append(steps)
            if number == len(self.kept) or sum(len(one.labels) for one in part) >= STEPS_AT_A_TIME:
                yield self._changed(part, bank)
                part = []

    def _changed(self, part: Sequence[_Steps], bank: Bank | None) -> list[int]:
        columns = ((steps.states.final, steps.states.attended, steps.sentences) for steps in part)
        final, attended, sentences = (torch.cat(column) for column in zip(*columns, strict=True))
        assert self.model.context is not None
        each = self._layout(sentences, torch.ones_like(sentences))  # as a step of a search: kernels read it so
        read = self.model.context(final, attended, each, bank).states.split([len(steps.labels) for steps in part])
        return [number for steps, own in zip(part, read, strict=True) for number in self._changed_by(steps, own)]

    def _layout(self, sentences: Tensor, lengths: Tensor) -> Layout:
        """Of steps, so many of each of these sentences behind each other."""
        places = self.readers.documents, self.readers.positions
        documents, positions = (torch.as_tensor(x)[sentences.cpu()].to(lengths.device) for x in places)
        return Layout(lengths, documents, positions)

    def _changed_by(self, steps: _Steps, read: Tensor) -> list[int]:
        """The sentences of some steps whose states are `read` [n, d] with context."""
        softmax = self.model.softmax(steps.states)
        before = WordDistribution(softmax)
        if self.pointer is not None:
            together = self._layout(*steps.sentences.unique_consecutive(return_counts=True))
            packed = Packed(steps.previous, together)
            before = before.then(self.pointer.point(steps.states, before, packed))
        decided = self.model.word_choice(torch.arange(len(read), device=read.device), read, steps.states.final)
        after = WordDistribution(softmax, (decided, *before.modifiers))
        differ = _steps_that_differ(before, after, steps.labels, self.greedy)
        return steps.sentences[differ].tolist()
