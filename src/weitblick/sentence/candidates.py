"""The most probable next words of many hypotheses, with as few passes over hypotheses x vocabulary as possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from weitblick.kernels.library import PackedIntegers, kernels_for
from weitblick.kernels.output import choose_words
from weitblick.kernels.pointer import pointer_kernels
from weitblick.text.special import EOS

NEVER_PRODUCED = 2  # PAD and BOS, the first ids
NOT_FIRST = 3  # nor EOS as the first word: a sentence with words has a translation with words

STRIP = 16
"""Words whose maximum is taken together: the k best of a vocabulary lie in the k strips with the best maxima."""
KEPT = 16
"""Best words kept by a pass that is asked for others: enough for a beam of 6 (of 4 with 8 bits), which wants twice as
many, three that cannot be the first, and SPARE."""
SPARE = 4
"""Words more than are asked for that are scored anew where the first scores are approximate."""


@dataclass(frozen=True)
class Candidates:
    """log_probabilities [N, k] and ids [N, k] of the best words of N hypotheses; end [N] the log-probability of EOS."""

    log_probabilities: Tensor
    ids: Tensor
    end: Tensor


@dataclass(frozen=True)
class Allowed:
    """The words that S sentences may use: ids [U] of all of them, sorted, the special ones first; their weight [U, d]
    and bias [U] of the output projection; mask [U, S], -inf where a word is not of a sentence's own."""

    ids: Tensor
    weight: Tensor
    bias: Tensor
    mask: Tensor

    def select(self, sentences: Tensor) -> Allowed:
        return replace(self, mask=self.mask[:, sentences])


def best_words_allowed(
    states: Tensor, allowed: Allowed, count: int, forbidden: int, renormalize: bool = False
) -> Candidates:
    """`best_words` among those that each sentence may use, over which probabilities are; states [S * K, d]."""
    found = best_words(states, allowed.weight, allowed.bias, count, forbidden, None, renormalize, allowed.mask)
    return replace(found, ids=allowed.ids[found.ids])


def best_words(
    states: Tensor,
    weight: Tensor,
    bias: Tensor,
    count: int,
    forbidden: int,
    others: Tensor | None = None,
    renormalize: bool = False,
    mask: Tensor | None = None,
) -> Candidates:
    """The `count` best words after states [N, d]; the first `forbidden` ids, and `others`, are never among them.

    Probabilities are over the whole vocabulary, forbidden words included, as in training; `renormalize` leaves those
    out that are never produced. Of fewer words than `count` all are given. mask [V, S] is added for the hypotheses of
    each of S sentences.
    """
    compiled = kernels_for(states)
    if compiled is not None:
        never = _never_produced(others, states) if renormalize else None
        wanted = min(count, len(weight)), forbidden, never, others, EOS
        if mask is None:
            return Candidates(*choose_words(compiled, states, weight, bias, None, *wanted)[:3])
        logits = compiled.linear(states, weight, bias)  # [N, V]
        logits.unflatten(0, (mask.shape[1], -1)).add_(mask.t()[:, None])
        return Candidates(*compiled.choose(logits, *wanted))
    # A word a row: the product then reads its larger factor as it stands.
    logits = torch.addmm(bias[:, None], weight, states.t())  # [V, N]
    logits = logits if logits.dtype == torch.float32 else logits.float()
    if mask is not None:
        logits.unflatten(1, (mask.shape[1], -1)).add_(mask[:, :, None])
    maxima = _strip_maxima(logits)
    highest = maxima.amax(0)  # [N]
    end = logits[EOS].clone()
    outlawed = logits[NEVER_PRODUCED if renormalize else 0 : forbidden].clone()
    logits[:forbidden] = -torch.inf
    if others is None:
        maxima[0] = logits[:STRIP].amax(0)
    else:
        outlawed = outlawed if renormalize else torch.cat([outlawed, logits[others]])
        logits[others] = -torch.inf
        maxima = _strip_maxima(logits)
    values, ids = _best_of_strips(logits, maxima, count)
    # The logits are not needed any more: their exponentials take their place.
    total = logits.sub_(highest).exp_().sum(0)
    total += outlawed.sub_(highest).exp_().sum(0)
    normaliser = highest + total.log_()
    return Candidates(values - normaliser[:, None], ids, end - normaliser)


def _never_produced(others: Tensor | None, like: Tensor) -> Tensor:
    never = torch.arange(NEVER_PRODUCED, device=like.device)
    return never if others is None else torch.cat([never, others]).unique()


def best_words_rescored(
    states: Tensor,
    weight: Tensor,
    bias: Tensor,
    quick: Callable[[Tensor], Tensor],
    count: int,
    forbidden: int,
    others: Tensor | None = None,
    renormalize: bool = False,
) -> Candidates:
    """The same by approximate logits quick(states) [N, V']: they choose a few words more than `count`, whose logits are
    then computed anew. V' is a multiple of STRIP, with -inf behind the vocabulary."""
    compiled, packed = kernels_for(states), getattr(quick, "packed", None)
    if compiled is not None and isinstance(packed, PackedIntegers):
        never = _never_produced(others, states) if renormalize else None
        wanted = min(count + SPARE, len(weight)), forbidden, never, others, EOS
        return Candidates(*choose_words(compiled, states, weight, bias, packed, *wanted)[:3])
    logits = quick(states)
    rows = logits.unflatten(1, (STRIP, -1))  # [N, STRIP, C]: a strip holds every C-th word
    maxima = rows.amax(1)
    highest = maxima.amax(1, keepdim=True)
    outlawed = logits[:, NEVER_PRODUCED if renormalize else 0 : forbidden].clone()
    logits[:, :forbidden] = -torch.inf
    if others is None:
        maxima[:, :forbidden] = rows[:, :, :forbidden].amax(1)
    else:
        outlawed = outlawed if renormalize else torch.cat([outlawed, logits[:, others]], 1)
        logits[:, others] = -torch.inf
        maxima = rows.amax(1)
    strips = maxima.topk(min(count + SPARE, maxima.shape[1]), sorted=False).indices  # [N, c]
    step = torch.arange(STRIP, device=logits.device) * rows.shape[2]
    places = (strips[:, :, None] + step).flatten(1)  # [N, c * STRIP]
    values, chosen = logits.gather(1, places).topk(min(count + SPARE, logits.shape[1]), sorted=False)
    ids = places.gather(1, chosen).clamp_(max=len(weight) - 1)
    anew = torch.bmm(weight[ids], states[:, :, None])[:, :, 0] + bias[ids]
    anew = torch.where(values > -torch.inf, anew, values)
    total = logits.sub_(highest).exp_().sum(1) + outlawed.sub_(highest).exp_().sum(1)
    normaliser = highest + total.log_()[:, None]
    end = states @ weight[EOS] + bias[EOS]
    return Candidates(anew - normaliser, ids, end - normaliser[:, 0])


def normalisers(states: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Of states [N, d] the logarithm of the sum of exponentials of their logits [N], and the highest of these less
    that [N]."""
    compiled = kernels_for(states)
    if compiled is not None:
        highest, normaliser = compiled.normalisers(compiled.linear(states, weight, bias))
    else:
        logits = torch.addmm(bias, states, weight.t()).float()
        highest, normaliser = logits.amax(1), logits.logsumexp(1)
    return normaliser, highest - normaliser


def logits_of(states: Tensor, weight: Tensor, bias: Tensor, ids: Tensor) -> Tensor:
    """[N, n] of words ids [N, n] after states [N, d]."""
    compiled = kernels_for(states)
    if compiled is not None and states.shape[1] % compiled.lanes == 0:
        return compiled.scores(states, weight, bias, ids)
    return torch.bmm(weight[ids], states[:, :, None])[:, :, 0].float() + bias[ids]


@dataclass(frozen=True)
class Asked:
    """Log-probabilities [N, n] of words that were asked for and the highest of each hypothesis [N]; where one pass over
    the vocabulary told both, the KEPT best words as well, any words, and how many more than are asked for count (as
    `best_words_rescored` has SPARE)."""

    log_probabilities: Tensor
    highest: Tensor
    best: Candidates | None = None
    spare: int = 0

    def best_mixed(self, share: Tensor, ids: Tensor, weights: Tensor, count: int, forbidden: int) -> Candidates | None:
        """As `StepLogits.best_mixed` with ids [N, n] that are the first of those asked for; None: too few are kept."""
        kernels = pointer_kernels(share)
        wanted = count + self.spare
        if kernels is None or self.best is None or self.best.ids.shape[1] < wanted + forbidden:
            return None
        said = share, ids, weights, self.log_probabilities[:, : ids.shape[1]]
        best = self.best.log_probabilities, self.best.ids
        return Candidates(*kernels.mix(best, wanted, self.best.end, said, count, forbidden, EOS))


def ask(
    states: Tensor, weight: Tensor, bias: Tensor, quick: Callable[[Tensor], Tensor] | None, ids: Tensor
) -> Asked | None:
    """Words ids [N, n] after states [N, d]; quick: as of `best_words_rescored`; None: no kernels for it."""
    compiled, packed = kernels_for(states), getattr(quick, "packed", None)
    if compiled is None or len(weight) < KEPT:
        return None
    packed = packed if isinstance(packed, PackedIntegers) else None
    wanted = KEPT, 0, None, None, EOS
    values, best, end, asked = choose_words(compiled, states, weight, bias, packed, *wanted, ids)
    return Asked(asked, values.amax(1), Candidates(values, best, end), 0 if packed is None else SPARE)


class StepLogits:
    """Logits of N hypotheses that are asked twice: some words are looked up, for a pointer or for context, then the
    best are wanted. One pass over the vocabulary serves both."""

    def __init__(self, states: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.compiled = kernels_for(states)
        if self.compiled is not None:
            rows = self.compiled.linear(states, weight, bias)  # [N, V]
            highest, self.normaliser = self.compiled.normalisers(rows)
            self.logits = rows.t()
        else:
            logits = torch.addmm(bias[:, None], weight, states.t())  # [V, N]
            self.logits = logits if logits.dtype == torch.float32 else logits.float()
            highest = self.logits.amax(0)
            total = torch.sub(self.logits, highest).exp_().sum(0)
            self.normaliser = highest + total.log_()  # [N]
        self.highest = highest - self.normaliser

    def decide(self, ids: Tensor, steps: Tensor, scores: Tensor) -> None:
        """Words ids [n] share what they have together as scores [m, n] say, at steps [m] of hypotheses."""
        together = self.logits[ids[:, None], steps].logsumexp(0)  # [m]
        self.logits[ids[:, None], steps] = scores.to(together.dtype).log_softmax(1).t() + together

    def log_probabilities(self, ids: Tensor) -> Tensor:
        """[N, n] -> [N, n]"""
        return self.logits.t().gather(1, ids) - self.normaliser[:, None]

    def best(self, count: int, forbidden: int, others: Tensor | None = None, renormalize: bool = False) -> Candidates:
        """As `best_words`. The logits are spent then."""
        if self.compiled is not None:
            never = _never_produced(others, self.logits) if renormalize else None
            wanted = min(count, len(self.logits))
            return Candidates(*self.compiled.choose(self.logits.t(), wanted, forbidden, never, others, EOS))
        nothing = torch.zeros_like(self.normaliser)
        end = torch.full_like(nothing, EOS, dtype=torch.long)[:, None]
        return self.best_mixed(nothing, end, nothing[:, None], count, forbidden, others, renormalize)

    def best_mixed(
        self,
        share: Tensor,
        ids: Tensor,
        weights: Tensor,
        count: int,
        forbidden: int,
        others: Tensor | None = None,
        renormalize: bool = False,
    ) -> Candidates:
        """As `best_words`, of (1 - share [N]) softmax + share * weights [N, n] of the words ids [N, n]. Only the best
        words of either can be among the best of the mixture. The logits are spent then."""
        kernels = pointer_kernels(self.normaliser)
        if self.compiled is not None and kernels is not None and others is None and not renormalize:
            wanted = min(count, len(self.logits))
            values, best = self.compiled.best(self.logits.t(), wanted, forbidden)
            best_own, end = (values - self.normaliser[:, None], best), self.logits[EOS] - self.normaliser
            pointed_at = share, ids, weights, self.log_probabilities(ids)
            return Candidates(*kernels.mix(best_own, wanted, end, pointed_at, wanted, forbidden, EOS))
        share = share[:, None]
        same = ids[:, :, None] == ids[:, None]  # [N, n, n]
        said = share * torch.einsum("nab,nb->na", same.to(weights.dtype), weights)
        first = ~same.tril(-1).any(-1)  # a word that stands at several places is one candidate
        own = self.log_probabilities(ids)
        pointed = ((1 - share) * own.exp() + said).log()
        ends = (1 - share[:, 0]) * (self.logits[EOS] - self.normaliser).exp() + (share * weights * (ids == EOS)).sum(-1)
        barred = ids < forbidden
        if others is not None:
            barred |= (ids[:, :, None] == others).any(-1)
        lost = self._never(share[:, 0], said * first, ids, others) if renormalize else None
        self.logits[:forbidden] = -torch.inf
        if others is not None:
            self.logits[others] = -torch.inf
        values, best = self._highest(count, forbidden)
        known = (best[:, :, None] == ids[:, None]).any(-1)
        model = (values - self.normaliser[:, None] + torch.log1p(-share)).masked_fill(known, -torch.inf)
        pointed = pointed.masked_fill(barred | ~first, -torch.inf)
        found, order = torch.cat([model, pointed], 1).topk(min(count, len(self.logits)), sorted=True)
        end = ends.log()
        if lost is not None:
            kept = torch.log1p(-lost)
            found, end = found - kept[:, None], end - kept
        return Candidates(found, torch.cat([best, ids], 1).gather(1, order), end)

    def _highest(self, count: int, forbidden: int) -> tuple[Tensor, Tensor]:
        """Values and ids [N, count] of the highest logits."""
        if self.compiled is not None:
            return self.compiled.best(self.logits.t(), min(count, len(self.logits)), forbidden)
        return _best_of_strips(self.logits, _strip_maxima(self.logits), count)

    def _never(self, share: Tensor, said: Tensor, ids: Tensor, others: Tensor | None) -> Tensor:
        """[N] the mixture's probability of words that are never produced."""
        never = _never_produced(others, ids)
        own = (self.logits[never] - self.normaliser).exp().sum(0)
        return (1 - share) * own + (said * (ids[:, :, None] == never).any(-1)).sum(-1)


def best_words_of(
    table: Tensor, count: int, forbidden: int, others: Tensor | None = None, renormalize: bool = False
) -> Candidates:
    """The same of log-probabilities [N, V], which are overwritten."""
    if others is not None:
        table[:, others] = -torch.inf
    if renormalize:
        table -= table[:, NEVER_PRODUCED:].logsumexp(1, keepdim=True)
    end = table[:, EOS].clone()
    table[:, :forbidden] = -torch.inf
    values, ids = table.topk(min(count, table.shape[1]), sorted=True)
    return Candidates(values, ids, end)


def _strip_maxima(logits: Tensor) -> Tensor:
    """[V, N] -> [strips, N], the last strip perhaps shorter than the others."""
    whole = (logits.shape[0] - 1) // STRIP
    maxima = logits.new_empty(whole + 1, logits.shape[1])
    if whole:
        maxima[:whole] = logits[: whole * STRIP].unflatten(0, (whole, STRIP)).amax(1)
    maxima[whole] = logits[whole * STRIP :].amax(0)
    return maxima


def _best_of_strips(logits: Tensor, maxima: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Values and ids [N, count] of the highest logits, from the strips that hold them."""
    size = len(logits)
    strips = maxima.t().topk(min(count, len(maxima)), sorted=False).indices  # [N, c]
    places = (strips[:, :, None] * STRIP + torch.arange(STRIP, device=logits.device)).flatten(1)  # [N, c * STRIP]
    found = logits.t().gather(1, places.clamp(max=size - 1)).masked_fill_(places >= size, -torch.inf)
    values, chosen = found.topk(min(count, size), sorted=True)
    return values, places.gather(1, chosen).clamp_(max=size - 1)
