"""What may change the distribution of the next word, one modifier behind the other (see `output`).

A modifier says what becomes of log-probabilities [n, V] of some steps (`apply`), and of those of one word of each step
(`of_words`), which does not need the whole vocabulary. A pointer, a decision and a shortlist are modifiers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from weitblick.text.base import PAD

if TYPE_CHECKING:
    from weitblick.model.output import LookedUp

TINY = 1e-30


class Distribution(Protocol):
    """What a modifier changes: log-probabilities [n, V] of any steps."""

    def at(self, steps: Tensor) -> Distribution: ...
    def chunks(self) -> Iterator[slice]: ...
    def table(self, rows: slice) -> Tensor: ...


class Modifier(Protocol):
    """A change of the distribution of T steps."""

    @property
    def changes_something(self) -> bool:
        """False if the distribution is surely the same without."""

    def apply(self, table: Tensor, rows: slice) -> Tensor:
        """Log-probabilities [n, V] of the steps `rows`, changed; the table itself stays as it is."""

    def of_words(self, own: Tensor, words: Tensor, before: Distribution) -> Tensor:
        """Log-probabilities own [T] of one word of each step, words [T], changed; before: whose they are."""

    def at(self, steps: Tensor) -> Modifier:
        """Of some steps [k], in ascending order, which become the first, second, ..."""


def joined_sets(sets: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor] | None:
    """Words [n] of all sets, and of which set each is one [k, n]; None if there are no sets."""
    if not sets:
        return None
    words = torch.tensor([word for words in sets for word in words], device=device)
    numbers = torch.arange(len(sets), device=device)
    lengths = torch.tensor([len(words) for words in sets], device=device)
    return words, numbers.repeat_interleave(lengths) == numbers[:, None]


def log_softmax_in_sets(scores: Tensor, sets: Tensor) -> Tensor:
    """[m, n] log-probabilities of words among those of their own set, from their logits; sets [k, n]: of which set each
    word is one."""
    if len(sets) == 1:
        return scores.log_softmax(-1)
    together = torch.where(sets, scores[:, None], -torch.inf).logsumexp(-1)  # [m, k]
    return scores - together @ sets.to(scores.dtype)


@dataclass(frozen=True)
class WordChoice:
    """What context says between a few words, at the steps where these are expected. It decides how those of a set share
    the probability that they have together and nothing else: where another word is right, nothing is lost.

    ids  [n] the words    sets  [k, n] of which set each is one    steps  [m] where they are expected
    scores  [m, n] their logits with context
    """

    ids: Tensor
    sets: Tensor
    steps: Tensor
    scores: Tensor

    @property
    def changes_something(self) -> bool:
        return len(self.steps) > 0

    def apply(self, table: Tensor, rows: slice) -> Tensor:
        there = (self.steps >= rows.start) & (self.steps < rows.stop)
        steps = (self.steps[there] - rows.start)[:, None]
        if not len(steps):
            return table
        return table.index_put((steps, self.ids), self.shared_out(table[steps, self.ids], self.scores[there]))

    def shared_out(self, own: Tensor, scores: Tensor) -> Tensor:
        """[k, n] log-probabilities of the words with context, from their own ones [k, n] and their scores [k, n]."""
        together = own - log_softmax_in_sets(own, self.sets)
        return together + log_softmax_in_sets(scores.to(own.dtype), self.sets)

    def of_words(self, own: Tensor, words: Tensor, before: Distribution) -> Tensor:
        steps = self.steps[torch.isin(words[self.steps], self.ids)]
        few, decided, found = before.at(steps), self.at(steps), own.clone()
        for rows in few.chunks():
            chosen = words[steps[rows], None]
            found[steps[rows]] = decided.apply(few.table(rows), rows).gather(1, chosen)[:, 0].to(own.dtype)
        return found

    def at(self, steps: Tensor) -> WordChoice:
        there = torch.isin(self.steps, steps)
        return WordChoice(self.ids, self.sets, torch.searchsorted(steps, self.steps[there]), self.scores[there])


@dataclass(frozen=True)
class Pointed:
    """What a pointer adds: p(word) = (1 - share) p(word) + share * sum of the weights of places where the word stands.

    share    [T] of the pointer in the mixture, 0 to 1; 0 where nothing was found
    ids      [T, n] the word at each of n places
    weights  [T, n] of the places; sum to one where the share is not 0
    places   [T, n] which place of the approved translations it is, for explanations; None if nobody asked
    own      what the softmax says of the words, these first, if the pointer has looked them up
    """

    share: Tensor
    ids: Tensor
    weights: Tensor
    places: Tensor | None = None
    own: LookedUp | None = None

    @property
    def changes_something(self) -> bool:
        return True

    def __getitem__(self, rows: slice | Tensor) -> Pointed:
        places = None if self.places is None else self.places[rows]
        return Pointed(self.share[rows], self.ids[rows], self.weights[rows], places)

    @torch.no_grad()
    def apply(self, table: Tensor, rows: slice) -> Tensor:
        part = self[rows]
        share = part.share.to(table.dtype)[:, None]
        mixed = table.exp().mul_(1 - share)
        return mixed.scatter_add_(1, part.ids, share * part.weights.to(table.dtype)).log_()

    def of_words(self, own: Tensor, words: Tensor, before: Distribution) -> Tensor:
        said = (self.weights * (self.ids == words[:, None])).sum(-1)
        mixed = (1 - self.share) * own.exp() + self.share * said
        # What is too improbable to be told from zero keeps its logarithm.
        return torch.where(mixed > TINY, mixed.clamp_min(TINY).log(), own + torch.log1p(-self.share))

    def at(self, steps: Tensor) -> Pointed:
        return self[steps]


@dataclass(frozen=True)
class Allowed:
    """The words that S sentences may use: ids [U] of all of them, sorted, the special ones first; their weight [U, d]
    and bias [U] of the output projection; mask [U, S], -inf where a word is not of a sentence's own."""

    ids: Tensor
    weight: Tensor
    bias: Tensor
    mask: Tensor

    def select(self, sentences: Tensor) -> Allowed:
        """Those of some of the sentences."""
        return replace(self, mask=self.mask[:, sentences])


@dataclass(frozen=True)
class Shortlisted:
    """Only allowed words have a probability, and those that a pointer, `beside`, points at; sentences [T]: which of the
    shortlist's sentences each step is of."""

    allowed: Allowed
    sentences: Tensor
    beside: Pointed | None = None

    @property
    def changes_something(self) -> bool:
        return True

    def apply(self, table: Tensor, rows: slice) -> Tensor:
        kept = torch.zeros_like(table, dtype=torch.bool)
        kept[:, self.allowed.ids] = (self.allowed.mask == 0).t()[self.sentences[rows]]
        if self.beside is not None:
            beside = self.beside[rows]
            said = beside.weights * beside.share[:, None] > 0
            kept.scatter_(1, torch.where(said, beside.ids, PAD), True)  # PAD is never said
        return table.masked_fill(~kept, -torch.inf).log_softmax(-1)

    def of_words(self, own: Tensor, words: Tensor, before: Distribution) -> Tensor:
        parts = [self.apply(before.table(rows), rows).gather(1, words[rows, None])[:, 0] for rows in before.chunks()]
        return torch.cat(parts) if parts else own

    def at(self, steps: Tensor) -> Shortlisted:
        return Shortlisted(self.allowed, self.sentences[steps], None if self.beside is None else self.beside[steps])
