"""The distribution of the next word: the output projection's softmax, and what a pointer adds to it.

    p(word) = (1 - share) softmax(word) + share * sum of the weights of the places where the word stands

This is the one place where a model's states become probabilities: beam search, training, scoring and explaining ask
`WordDistribution`, and none of them knows whether there is a pointer. Without one nothing here costs anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from weitblick.batches.batch import Packed
from weitblick.sentence.candidates import (
    Allowed,
    Asked,
    Candidates,
    StepLogits,
    ask,
    best_words,
    best_words_allowed,
    best_words_of,
    best_words_rescored,
    logits_of,
    normalisers,
)
from weitblick.sentence.loss import smoothed_cross_entropy, token_log_probabilities
from weitblick.sentence.sentence_model import DecoderStates
from weitblick.text.special import PAD

CHUNK_ELEMENTS = 8_000_000
"""Log-probabilities held at a time."""
EXPECTED = 0.1
"""What words must have together to be expected somewhere."""
TINY = 1e-30


@dataclass(frozen=True)
class Softmax:
    """The output projection at T steps: states [T, d], weight [V, d], bias [V]; quick: approximate logits of states,
    from which beam search chooses the words that it scores exactly."""

    states: Tensor
    weight: Tensor
    bias: Tensor
    quick: Callable[[Tensor], Tensor] | None = None

    def __len__(self) -> int:
        return len(self.states)

    @property
    def vocabulary(self) -> int:
        return self.weight.shape[0]

    def chunks(self) -> Iterator[slice]:
        step = max(1, CHUNK_ELEMENTS // self.vocabulary)
        for start in range(0, len(self), step):
            yield slice(start, min(start + step, len(self)))

    def table(self, rows: slice) -> Tensor:
        """[n, V] log-probabilities of some steps, not to be changed."""
        all_of_few = rows == slice(0, len(self)) and len(self) * self.vocabulary <= CHUNK_ELEMENTS
        return self._whole if all_of_few and not torch.is_grad_enabled() else self._compute(rows)

    @cached_property
    def _whole(self) -> Tensor:
        """[T, V] of a step of decoding, which a pointer looks words up in before it is mixed with what they say."""
        return self._compute(slice(0, len(self)))

    def _compute(self, rows: slice) -> Tensor:
        logits = torch.addmm(self.bias, self.states[rows], self.weight.t())
        return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)

    @cached_property
    def step(self) -> StepLogits:
        """Of a step of decoding, which is asked for some words before it is asked for the best."""
        return StepLogits(self.states, self.weight, self.bias)

    @property
    def was_asked(self) -> bool:
        return "step" in self.__dict__

    @property
    def is_step(self) -> bool:
        """Few enough steps that their logits can be kept."""
        return 0 < len(self) * self.vocabulary <= CHUNK_ELEMENTS and not torch.is_grad_enabled()

    @torch.no_grad()
    def expect(self, ids: Tensor) -> Tensor:
        """[T] whether these words [n] together have a probability of EXPECTED or more."""
        if self.is_step:
            return self.step.log_probabilities(ids.expand(len(self), -1)).exp().sum(-1) >= EXPECTED
        logits = torch.addmm(self.bias[ids], self.states, self.weight[ids].t()).float()
        return (logits - self._of_all_words[0][:, None]).exp().sum(-1) >= EXPECTED

    @torch.no_grad()
    def judge(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        """[T] log-probabilities of the targets [T], and the most probable words [T]."""
        if not len(self):
            return self.states.new_zeros(0), targets
        if self.was_asked:
            return self.step.log_probabilities(targets[:, None])[:, 0], self.step.logits.argmax(0)
        tables = ((self.table(rows), targets[rows, None]) for rows in self.chunks())
        parts = [(table.gather(1, own)[:, 0], table.argmax(-1)) for table, own in tables]
        likely, favourite = zip(*parts, strict=True)
        return torch.cat(likely), torch.cat(favourite)

    @torch.no_grad()
    def look_up(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """ids [T, n] -> their log-probabilities [T, n] and the highest log-probability of each step [T]."""
        if self.is_step:
            return self.step.log_probabilities(ids), self.step.highest
        normaliser, highest = self._of_all_words
        return self._logits(ids) - normaliser[:, None], highest

    @torch.no_grad()
    def ask(self, ids: Tensor) -> Asked:
        """The same, and the best words beside them, where one pass over the vocabulary can tell both."""
        known = self.was_asked or "_of_all_words" in self.__dict__
        asked = None if known else ask(self.states, self.weight, self.bias, self.quick, ids)
        return Asked(*self.look_up(ids)) if asked is None else asked

    @cached_property
    def _of_all_words(self) -> tuple[Tensor, Tensor]:
        """Of each step [T] the normaliser of its logits and its highest log-probability: one pass over the vocabulary
        for all who look up a few words."""
        parts = [normalisers(self.states[rows], self.weight, self.bias) for rows in self.chunks()]
        normaliser, highest = zip(*parts, strict=True) if parts else ((), ())
        none = self.states.new_zeros(0, dtype=torch.float32)
        return torch.cat([*normaliser, none]), torch.cat([*highest, none])

    def _logits(self, ids: Tensor) -> Tensor:
        """[T, n] of words ids [T, n]."""
        step = max(1, CHUNK_ELEMENTS // (ids.shape[1] * self.states.shape[1]))
        chunks = (slice(start, start + step) for start in range(0, len(self), step))
        parts = [logits_of(self.states[rows], self.weight, self.bias, ids[rows]) for rows in chunks]
        return torch.cat(parts) if parts else self.states.new_zeros(ids.shape)


@dataclass(frozen=True)
class Pointed:
    """What a pointer says at T steps.

    share    [T] of the pointer in the mixture, 0 to 1; 0 where nothing was found
    ids      [T, n] the word at each of n places
    weights  [T, n] of the places; sum to one where the share is not 0
    places   [T, n] which place of the memory it is, for whoever explains; None if nobody asked
    asked    what the model says of the words, these first, if that is known
    """

    share: Tensor
    ids: Tensor
    weights: Tensor
    places: Tensor | None = None
    asked: Asked | None = None

    def __getitem__(self, rows: slice | Tensor) -> Pointed:
        places = None if self.places is None else self.places[rows]
        return Pointed(self.share[rows], self.ids[rows], self.weights[rows], places)

    def probabilities(self, targets: Tensor) -> Tensor:
        """[T] what the places give to each target word [T]."""
        return (self.weights * (self.ids == targets[:, None])).sum(-1)


@dataclass(frozen=True)
class Decided:
    """What context says between a few words, at the steps where these are expected. It decides how they share the
    probability that they have together, and what that is not: a sentence in which another word is right loses nothing.

    ids  [n] the words    steps  [m] where they are expected    scores  [m, n] their logits with context
    """

    ids: Tensor
    steps: Tensor
    scores: Tensor

    def apply(self, table: Tensor, rows: slice) -> Tensor:
        """Log-probabilities [r, V] of some steps, shared as context says."""
        there = (self.steps >= rows.start) & (self.steps < rows.stop)
        steps = (self.steps[there] - rows.start)[:, None]
        if not len(steps):
            return table
        together = table[steps, self.ids].logsumexp(-1, keepdim=True)
        return table.index_put((steps, self.ids), together + self.scores[there].to(table.dtype).log_softmax(-1))

    def at(self, steps: Tensor) -> Decided:
        """Of some steps [k], in ascending order, which become the first, second, ..."""
        there = torch.isin(self.steps, steps)
        return Decided(self.ids, torch.searchsorted(steps, self.steps[there]), self.scores[there])


class Pointer(Protocol):
    """Reads at the output. `target` are the steps' input words; a step of beam search has one for each hypothesis, and
    its layout says of which document and sentence. None: nothing to point at, the model's distribution as it is."""

    def point(self, states: DecoderStates, words: Softmax, target: Packed) -> Pointed | None: ...


@dataclass(frozen=True)
class WordDistribution:
    """p(word) at T steps: the model's own, in which context may have decided between some words, and a pointer's; read:
    whether context was asked, at whatever steps it then decided."""

    softmax: Softmax
    pointed: Pointed | None = None
    decided: Decided | None = None
    read: bool = False

    @property
    def states(self) -> Tensor:
        """[T, d] that the output projection reads."""
        return self.softmax.states

    def at(self, steps: Tensor) -> WordDistribution:
        """At some steps [k], in ascending order."""
        pointed = None if self.pointed is None else self.pointed[steps]
        decided = None if self.decided is None else self.decided.at(steps)
        return WordDistribution(replace(self.softmax, states=self.states[steps]), pointed, decided, self.read)

    def own_table(self, rows: slice) -> Tensor:
        """[n, V] log-probabilities of some steps without the pointer."""
        table = self.softmax.table(rows)
        return table if self.decided is None else self.decided.apply(table, rows)

    def log_probabilities(self, targets: Tensor) -> Tensor:
        """[T] of each target word, without gradient."""
        own = token_log_probabilities(self.softmax.states, self.softmax.weight, self.softmax.bias, targets)
        with torch.no_grad():
            if self.decided is not None:
                self._decide(own, self.decided, targets)
            if self.pointed is None:
                return own
            return _mixed(own, self.pointed.share, self.pointed.probabilities(targets))

    def _decide(self, own: Tensor, decided: Decided, targets: Tensor) -> None:
        """Puts the log-probabilities of words that context decides between in their places."""
        steps = decided.steps[torch.isin(targets[decided.steps], decided.ids)]
        few = self.at(steps)
        for rows in few.softmax.chunks():
            own[steps[rows]] = few.own_table(rows).gather(1, targets[steps[rows], None])[:, 0].to(own.dtype)

    def loss(self, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """Sums over steps of the smoothed loss and of the plain negative log-likelihood. Smoothing is over the model's
        own words: a pointer is not taught to say everything."""
        s = self.softmax
        if self.pointed is None and self.decided is None:
            return smoothed_cross_entropy(s.states, s.weight, s.bias, targets, smoothing)
        parts = [checkpoint(self._own, rows, targets[rows], use_reentrant=False) for rows in s.chunks()]
        own, mean = (torch.cat(column) for column in zip(*parts, strict=True))
        if self.pointed is not None:
            own = _mixed(own, self.pointed.share, self.pointed.probabilities(targets))
        likelihood = -own.sum()
        loss = (1 - smoothing) * likelihood - smoothing * mean.sum()
        return loss, likelihood.detach()

    def _own(self, rows: slice, targets: Tensor) -> tuple[Tensor, Tensor]:
        """[n] log-probability of the targets, and the mean over the vocabulary."""
        table = self.own_table(rows)
        return table.gather(1, targets[:, None])[:, 0], table.mean(-1)

    @torch.no_grad()
    def table(self, rows: slice) -> Tensor:
        """[n, V] log-probabilities of some steps."""
        own = self.own_table(rows)
        if self.pointed is None:
            return own
        part = self.pointed[rows]
        share = part.share.to(own.dtype)[:, None]
        mixed = own.exp().mul_(1 - share)
        return mixed.scatter_add_(1, part.ids, share * part.weights.to(own.dtype)).log_()

    @torch.no_grad()
    def best(
        self,
        count: int,
        forbidden: int,
        others: Tensor | None = None,
        renormalize: bool = False,
        allowed: Allowed | None = None,
    ) -> Candidates:
        """The `count` best words of each step; the first `forbidden` ids, and `others`, are never among them. allowed:
        all the words that there are to choose from, beside those that a pointer points at."""
        s, p = self.softmax, self.pointed
        how = count, forbidden, others, renormalize
        if allowed is not None and p is None and self.decided is None:
            return best_words_allowed(s.states, allowed, count, forbidden, renormalize)
        if allowed is not None:
            return best_words_of(self._restrict(self.table(slice(0, len(s))), allowed), *how)
        if p is not None and p.asked is not None and self.decided is None and others is None and not renormalize:
            found = p.asked.best_mixed(p.share, p.ids, p.weights, count, forbidden)
            if found is not None:
                return found
        if not s.is_step and (self.decided is not None or p is not None):
            return best_words_of(self.table(slice(0, len(s))), *how)
        if self.decided is not None:
            s.step.decide(self.decided.ids, self.decided.steps, self.decided.scores)
        if p is not None:
            mixed = s.step.best_mixed(p.share, p.ids, p.weights, *how)
            return mixed if s.quick is None or self.read else self._quick_where_silent(mixed, p, *how)
        if self.decided is not None or s.was_asked:
            return s.step.best(*how)
        if s.quick is not None:
            return best_words_rescored(s.states, s.weight, s.bias, s.quick, *how)
        return best_words(s.states, s.weight, s.bias, *how)

    def _quick_where_silent(self, mixed: Candidates, pointed: Pointed, *how: Any) -> Candidates:
        """Where nothing was found, the words that 8 bits choose, as in a batch in which nobody finds anything."""
        silent = (pointed.share == 0).nonzero()[:, 0]
        s = self.softmax
        if not len(silent) or s.quick is None:
            return mixed
        own = best_words_rescored(s.states[silent], s.weight, s.bias, s.quick, *how)
        room = (0, own.ids.shape[1] - mixed.ids.shape[1])
        values = torch.nn.functional.pad(mixed.log_probabilities, room, value=-torch.inf)
        return Candidates(
            values.index_copy(0, silent, own.log_probabilities),
            torch.nn.functional.pad(mixed.ids, room, value=PAD).index_copy(0, silent, own.ids),
            mixed.end.index_copy(0, silent, own.end),
        )

    def _restrict(self, table: Tensor, allowed: Allowed) -> Tensor:
        """Log-probabilities [N, V] over the words that each step may use, as `best_words_allowed` has them."""
        sentences = allowed.mask.shape[1]
        kept = torch.zeros_like(table, dtype=torch.bool)
        kept[:, allowed.ids] = (allowed.mask == 0).t().repeat_interleave(len(table) // sentences, 0)
        if self.pointed is not None:
            said = self.pointed.weights * self.pointed.share[:, None] > 0
            kept.scatter_(1, torch.where(said, self.pointed.ids, PAD), True)  # PAD is never said
        return table.masked_fill(~kept, -torch.inf).log_softmax(-1)


def _mixed(own: Tensor, share: Tensor, pointed: Tensor) -> Tensor:
    """[T] log((1 - share) exp(own) + share * pointed)"""
    mixed = (1 - share) * own.exp() + share * pointed
    # What is too improbable to be told from zero keeps its logarithm.
    return torch.where(mixed > TINY, mixed.clamp_min(TINY).log(), own + torch.log1p(-share))
