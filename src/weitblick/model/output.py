"""The distribution of the next word: the sentence model's softmax, then modifiers in a row, then the best words.

    table = log_softmax(states W' + b)            [T, V], what the sentence model says at T steps
    for modifier in modifiers:
        table = modifier.apply(table)             context decides between words, a pointer adds, a shortlist restricts
    best  = the words of each step with the greatest values

This is the one place where a model's states become probabilities. Beam search asks `WordDistribution` for the `best`
words, training for the `loss`, scoring for `log_probabilities`, explaining for the `table`; none of them knows which
modifiers there are. Everything follows from the table; `weitblick.fast` has doubles that find the same without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from weitblick.model.batch import Packed
from weitblick.model.dispatch import definition
from weitblick.model.modifiers import Allowed, Modifier, Pointed, Shortlisted, WordChoice
from weitblick.model.sentence_model import DecoderStates
from weitblick.text.base import EOS

NEVER_PRODUCED = 2  # how many ids no step may choose: PAD and BOS, which are the first ones
NOT_FIRST = (
    3  # the same of a first step, which may not be EOS either: a sentence with words has a translation with words
)
CHUNK_ELEMENTS = 8_000_000
"""Log-probabilities held at a time."""
EXPECTED = 0.1
"""Probability that words must have together to be expected at a step."""


@dataclass(frozen=True)
class Softmax:
    """What the sentence model says at T steps: states [T, d], weight [V, d] and bias [V] of the output projection.

    approximate: states -> logits in 8 bits, of a quantised model; doubles choose words by them, then score these
    exactly. kept: what doubles compute once and need again; nothing depends on what is in it but time.
    """

    states: Tensor
    weight: Tensor
    bias: Tensor
    approximate: Callable[[Tensor], Tensor] | None = None
    kept: dict[str, Any] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.states)

    @property
    def vocabulary(self) -> int:
        return self.weight.shape[0]

    @property
    def is_small(self) -> bool:
        """Whether the log-probabilities of all steps can be held at once, as those of a step of beam search mostly."""
        return 0 < len(self) * self.vocabulary <= CHUNK_ELEMENTS

    def at(self, steps: Tensor) -> Softmax:
        """At some steps [k]."""
        return Softmax(self.states[steps], self.weight, self.bias, self.approximate)

    def chunks(self) -> Iterator[slice]:
        """Steps whose log-probabilities can be held at once."""
        step = max(1, CHUNK_ELEMENTS // self.vocabulary)
        for start in range(0, len(self), step):
            yield slice(start, min(start + step, len(self)))

    def table(self, rows: slice) -> Tensor:
        """[n, V] log-probabilities of some steps, not to be changed."""
        every = self.is_small and rows == slice(0, len(self))
        return self._whole if every and not torch.is_grad_enabled() else self._compute(rows)

    @cached_property
    def _whole(self) -> Tensor:
        return self._compute(slice(0, len(self)))

    def _compute(self, rows: slice) -> Tensor:
        logits = torch.addmm(self.bias, self.states[rows], self.weight.t())
        return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)

    @torch.no_grad()
    def expect(self, ids: Tensor) -> Tensor:
        """[T] whether these words [n] together have a probability of EXPECTED or more."""
        return probability_together(self, ids) >= EXPECTED

    @torch.no_grad()
    def judge(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        """[T] log-probabilities of the targets [T], and the most probable words [T]."""
        if not len(self):
            return self.states.new_zeros(0), targets
        tables = ((self.table(rows), targets[rows, None]) for rows in self.chunks())
        parts = [(table.gather(1, own)[:, 0], table.argmax(-1)) for table, own in tables]
        likely, favourite = zip(*parts, strict=True)
        return torch.cat(likely), torch.cat(favourite)


@dataclass(frozen=True)
class Candidates:
    """log_probabilities [N, k] and ids [N, k] of the best words of N hypotheses; end [N] the log-probability of EOS."""

    log_probabilities: Tensor
    ids: Tensor
    end: Tensor


@dataclass(frozen=True)
class LookedUp:
    """Log-probabilities [T, n] of some words by the softmax, and the highest of each step [T]. best: the best words
    of all, where one pass over the vocabulary told them as well; spare: how many of these count beyond those asked for
    (see `weitblick.fast.best_words`)."""

    log_probabilities: Tensor
    highest: Tensor
    best: Candidates | None = None
    spare: int = 0


@dataclass(frozen=True)
class Wanted:
    """count: how many words of each step; the first `forbidden` ids, and `others` [n], are never among them;
    renormalize: probabilities are shares of what can be produced, else of the whole vocabulary, as in training."""

    count: int
    forbidden: int
    others: Tensor | None = None
    renormalize: bool = False


@definition
def best_words(words: WordDistribution, wanted: Wanted) -> Candidates:
    """The best words of every step; of fewer words than are wanted all are given."""
    table = words.table(slice(0, len(words.softmax)))
    if wanted.others is not None:
        table = table.index_fill(1, wanted.others, -torch.inf)
    if wanted.renormalize:
        table = table - table[:, NEVER_PRODUCED:].logsumexp(1, keepdim=True)
    allowed = table.index_fill(1, torch.arange(wanted.forbidden, device=table.device), -torch.inf)
    values, ids = allowed.topk(min(wanted.count, table.shape[1]), sorted=True)
    return Candidates(values, ids, table[:, EOS].clone())


@definition
def look_up(words: WordDistribution, ids: Tensor, and_best: bool) -> LookedUp:
    """The softmax's own log-probabilities, before any modifier, of words ids [T, n]; and_best: the best words are going
    to be wanted, and a double that goes over the vocabulary may find them as well."""
    tables = [(words.softmax.table(rows), ids[rows]) for rows in words.softmax.chunks()]
    found = [table.gather(1, own) for table, own in tables]
    none = words.states.new_zeros(0, dtype=torch.float32)
    return LookedUp(
        torch.cat([*found, none.view(0, ids.shape[1])]), torch.cat([*(table.amax(1) for table, _ in tables), none])
    )


@definition
def probability_together(softmax: Softmax, ids: Tensor) -> Tensor:
    """[T] the probability that words ids [n] have together."""
    found = [softmax.table(rows)[:, ids].exp().sum(-1) for rows in softmax.chunks()]
    return torch.cat([*found, softmax.states.new_zeros(0, dtype=torch.float32)])


@definition
def normalisers(states: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Of states [N, d] the logarithm of the sum of exponentials of their logits [N], and the highest of these less
    that [N]."""
    logits = torch.addmm(bias, states, weight.t()).float()
    normaliser = logits.logsumexp(1)
    return normaliser, logits.amax(1) - normaliser


class Pointer(Protocol):
    """Says at every step which words were said elsewhere before. `words`: the distribution so far; `target`: the input
    words of the steps; a step of beam search has one for each hypothesis, and its layout says of which document and
    sentence. None: nothing to point at, the distribution stays as it is."""

    def point(self, states: DecoderStates, words: WordDistribution, target: Packed) -> Pointed | None: ...


@dataclass(frozen=True)
class WordDistribution:
    """p(word) at T steps: what the softmax says, changed by modifiers, in their order."""

    softmax: Softmax
    modifiers: tuple[Modifier, ...] = ()

    @property
    def states(self) -> Tensor:
        """[T, d] that the output projection reads."""
        return self.softmax.states

    @property
    def word_choice(self) -> WordChoice | None:
        """What context decided between words, if it was asked."""
        return next((modifier for modifier in self.modifiers if isinstance(modifier, WordChoice)), None)

    @property
    def pointed(self) -> Pointed | None:
        """What a pointer added, if it had anything to point at."""
        return next((modifier for modifier in self.modifiers if isinstance(modifier, Pointed)), None)

    def is_only(self, *kinds: type[Modifier]) -> bool:
        """Whether modifiers of these kinds, in this order, are all that there are."""
        return tuple(map(type, self.modifiers)) == kinds

    def then(self, *modifiers: Modifier | None) -> WordDistribution:
        """Changed by further modifiers; None changes nothing."""
        return WordDistribution(self.softmax, (*self.modifiers, *(one for one in modifiers if one is not None)))

    def without(self, kind: type[Modifier]) -> WordDistribution:
        """As it would be without modifiers of a kind."""
        return WordDistribution(self.softmax, tuple(one for one in self.modifiers if not isinstance(one, kind)))

    def at(self, steps: Tensor) -> WordDistribution:
        """At some steps [k], in ascending order."""
        return WordDistribution(self.softmax.at(steps), tuple(modifier.at(steps) for modifier in self.modifiers))

    def chunks(self) -> Iterator[slice]:
        """Steps whose log-probabilities can be held at once."""
        return self.softmax.chunks()

    def table(self, rows: slice) -> Tensor:
        """[n, V] log-probabilities of some steps, not to be changed."""
        table = self.softmax.table(rows)
        for modifier in self.modifiers:
            table = modifier.apply(table, rows)
        return table

    def own_table(self, rows: slice) -> Tensor:
        """[n, V] log-probabilities of some steps without the pointer."""
        return self.without(Pointed).table(rows)

    @torch.no_grad()
    def best(
        self,
        count: int,
        forbidden: int,
        others: Tensor | None = None,
        renormalize: bool = False,
        allowed: Allowed | None = None,
    ) -> Candidates:
        """The `count` best words of each step (see `Wanted`). allowed: the words of a shortlist, which alone there are
        to choose from, beside those that a pointer points at."""
        words = self
        if allowed is not None:
            count_of_sentences = allowed.mask.shape[1]
            sentences = torch.arange(count_of_sentences, device=self.states.device)
            each = len(self.softmax) // count_of_sentences  # hypotheses of a sentence stand side by side
            words = self.then(Shortlisted(allowed, sentences.repeat_interleave(each), self.pointed))
        return best_words(words, Wanted(count, forbidden, others, renormalize))

    @torch.no_grad()
    def look_up(self, ids: Tensor, and_best: bool = False) -> LookedUp:
        """What the softmax, before any modifier, says of words ids [T, n]."""
        return look_up(self, ids, and_best)

    @torch.no_grad()
    def log_probabilities(self, targets: Tensor) -> Tensor:
        """[T] of each target word, without gradient."""
        found = self.look_up(targets[:, None]).log_probabilities[:, 0]
        before = WordDistribution(self.softmax)
        for modifier in self.modifiers:
            found, before = modifier.of_words(found, targets, before), before.then(modifier)
        return found

    def loss(self, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """Sums over steps of the smoothed loss and of the plain negative log-likelihood. Smoothing is over the model's
        own words: a pointer is not taught to say everything."""
        from weitblick.model.loss import smoothed_cross_entropy

        s = self.softmax
        if not any(modifier.changes_something for modifier in self.modifiers):
            return smoothed_cross_entropy(s.states, s.weight, s.bias, targets, smoothing)
        parts = [checkpoint(self._own, rows, targets[rows], use_reentrant=False) for rows in s.chunks()]
        own, mean = (torch.cat(column) for column in zip(*parts, strict=True))
        if self.pointed is not None:
            own = self.pointed.of_words(own, targets, self)
        likelihood = -own.sum()
        loss = (1 - smoothing) * likelihood - smoothing * mean.sum()
        return loss, likelihood.detach()

    def _own(self, rows: slice, targets: Tensor) -> tuple[Tensor, Tensor]:
        """[n] log-probability of the targets, and the mean over the vocabulary."""
        table = self.own_table(rows)
        return table.gather(1, targets[:, None])[:, 0], table.mean(-1)
