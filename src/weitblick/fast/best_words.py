"""The best words of a step without the whole table of log-probabilities: doubles of `weitblick.model.output`.

Logits are computed a word a row, [V, N], so that the product reads its larger factor, the weights, as it stands. The
best of them are found in strips of words. The `StepLogits` of a softmax serve whoever looks words up first, for a
pointer or a decision, and then wants the best: one pass over the vocabulary for both.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from weitblick.fast.kernels import kernels_for
from weitblick.model.dispatch import definition
from weitblick.model.modifiers import Pointed, Shortlisted, WordChoice
from weitblick.model.output import (
    CHUNK_ELEMENTS,
    NEVER_PRODUCED,
    Candidates,
    LookedUp,
    Softmax,
    Wanted,
    WordDistribution,
    best_words,
    normalisers,
)
from weitblick.text.base import EOS, PAD

STRIP = 16
"""Words whose maximum is taken together: the k best of a vocabulary lie in the k strips with the best maxima."""
SPARE = 4
"""Words more than are asked for that are scored anew where the first scores are approximate."""


def best_in_strips(
    states: Tensor, weight: Tensor, bias: Tensor, wanted: Wanted, mask: Tensor | None = None
) -> Candidates:
    """The best words after states [N, d]; mask [V, S] is added to the logits of the hypotheses of each of S
    sentences."""
    logits = torch.addmm(bias[:, None], weight, states.t())  # [V, N]
    logits = logits if logits.dtype == torch.float32 else logits.float()
    if mask is not None:
        logits.unflatten(1, (mask.shape[1], -1)).add_(mask[:, :, None])
    maxima = _strip_maxima(logits)
    highest = maxima.amax(0)  # [N]
    end = logits[EOS].clone()
    forbidden = logits[NEVER_PRODUCED if wanted.renormalize else 0 : wanted.forbidden].clone()
    logits[: wanted.forbidden] = -torch.inf
    if wanted.others is None:
        maxima[0] = logits[:STRIP].amax(0)
    else:
        forbidden = forbidden if wanted.renormalize else torch.cat([forbidden, logits[wanted.others]])
        logits[wanted.others] = -torch.inf
        maxima = _strip_maxima(logits)
    values, ids = _best_of_strips(logits, maxima, wanted.count)
    # The logits are not needed any more: their exponentials take their place.
    total = logits.sub_(highest).exp_().sum(0)
    total += forbidden.sub_(highest).exp_().sum(0)
    normaliser = highest + total.log_()
    return Candidates(values - normaliser[:, None], ids, end - normaliser)


def best_of_softmax(words: WordDistribution, wanted: Wanted) -> Candidates:
    """Of a distribution without modifiers."""
    return best_in_strips(words.states, words.softmax.weight, words.softmax.bias, wanted)


def best_of_shortlist(words: WordDistribution, wanted: Wanted) -> Candidates:
    """Of a distribution that a shortlist alone restricts: its few words are a vocabulary of their own."""
    (shortlist,) = words.modifiers
    assert isinstance(shortlist, Shortlisted)
    allowed = shortlist.allowed
    # Words that are never produced are not allowed in the first place.
    found = best_in_strips(words.states, allowed.weight, allowed.bias, replace(wanted, others=None), allowed.mask)
    return replace(found, ids=allowed.ids[found.ids])


def best_rescored(words: WordDistribution, wanted: Wanted) -> Candidates:
    """Of a distribution without modifiers: approximate logits [N, V'] choose a few words more than are wanted, whose
    logits are then computed anew. V' is a multiple of STRIP, with -inf behind the vocabulary."""
    states, weight, bias = words.states, words.softmax.weight, words.softmax.bias
    assert words.softmax.approximate is not None
    logits = words.softmax.approximate(states)
    rows = logits.unflatten(1, (STRIP, -1))  # [N, STRIP, C]: a strip holds every C-th word
    maxima = rows.amax(1)
    highest = maxima.amax(1, keepdim=True)
    count, forbidden, others = wanted.count, wanted.forbidden, wanted.others
    outlawed = logits[:, NEVER_PRODUCED if wanted.renormalize else 0 : forbidden].clone()
    logits[:, :forbidden] = -torch.inf
    if others is None:
        maxima[:, :forbidden] = rows[:, :, :forbidden].amax(1)
    else:
        outlawed = outlawed if wanted.renormalize else torch.cat([outlawed, logits[:, others]], 1)
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


def best_of_step(words: WordDistribution, wanted: Wanted) -> Candidates:
    """Of a small distribution that a decision, a pointer or both have changed."""
    logits = StepLogits.take(words.softmax)
    choice, pointed = words.word_choice, words.pointed
    if choice is not None and len(choice.steps):
        logits.choose(choice)
    return logits.best(wanted) if pointed is None else logits.best_mixed(pointed, wanted)


def best_of_mixture_rescored(words: WordDistribution, wanted: Wanted) -> Candidates:
    """Of a small distribution with approximate logits to which a pointer is all that was added. Where it found nothing,
    words are chosen by these logits, as in a batch in which nobody finds anything."""
    mixed = best_of_step(words, wanted)
    assert words.pointed is not None
    silent = (words.pointed.share == 0).nonzero()[:, 0]
    if not len(silent):
        return mixed
    own = best_words(WordDistribution(words.softmax.at(silent)), wanted)
    room = (0, own.ids.shape[1] - mixed.ids.shape[1])
    values = torch.nn.functional.pad(mixed.log_probabilities, room, value=-torch.inf)
    return Candidates(
        values.index_copy(0, silent, own.log_probabilities),
        torch.nn.functional.pad(mixed.ids, room, value=PAD).index_copy(0, silent, own.ids),
        mixed.end.index_copy(0, silent, own.end),
    )


def look_up_in_step(words: WordDistribution, ids: Tensor, and_best: bool) -> LookedUp:
    """Words ids [N, n] of a small distribution."""
    logits = StepLogits.of(words.softmax)
    return LookedUp(logits.log_probabilities(ids), logits.highest)


def probability_in_step(softmax: Softmax, ids: Tensor) -> Tensor:
    """[N] the probability of words ids [n] together, of a small distribution."""
    return StepLogits.of(softmax).log_probabilities(ids.expand(len(softmax), -1)).exp().sum(-1)


def look_up_in_many(words: WordDistribution, ids: Tensor, and_best: bool) -> LookedUp:
    """Words ids [T, n] of so many steps that all logits cannot be held: these words' own, and a normaliser."""
    softmax = words.softmax
    step = max(1, CHUNK_ELEMENTS // (ids.shape[1] * softmax.states.shape[1]))
    chunks = (slice(start, start + step) for start in range(0, len(softmax), step))
    parts = [_logits_of(softmax.states[rows], softmax.weight, softmax.bias, ids[rows]) for rows in chunks]
    logits = torch.cat(parts) if parts else softmax.states.new_zeros(ids.shape)
    normaliser, highest = _normalisers_of_all(softmax)
    return LookedUp(logits - normaliser[:, None], highest)


def probability_in_many(softmax: Softmax, ids: Tensor) -> Tensor:
    """[T] the probability of words ids [n] together, of so many steps that all logits cannot be held."""
    logits = torch.addmm(softmax.bias[ids], softmax.states, softmax.weight[ids].t()).float()
    return (logits - _normalisers_of_all(softmax)[0][:, None]).exp().sum(-1)


def _normalisers_of_all(softmax: Softmax) -> tuple[Tensor, Tensor]:
    """`normalisers` of all steps [T], once for all who look up a few words."""
    if "normalisers" not in softmax.kept:
        parts = [normalisers(softmax.states[rows], softmax.weight, softmax.bias) for rows in softmax.chunks()]
        none = softmax.states.new_zeros(0, dtype=torch.float32)
        columns = zip(*parts, (none, none), strict=True)
        softmax.kept["normalisers"] = tuple(torch.cat(column) for column in columns)
    found: tuple[Tensor, Tensor] = softmax.kept["normalisers"]
    return found


def _logits_of(states: Tensor, weight: Tensor, bias: Tensor, ids: Tensor) -> Tensor:
    """[N, n] of words ids [N, n] after states [N, d]."""
    compiled = kernels_for(states)
    if compiled is not None and states.shape[1] % compiled.lanes == 0:
        return compiled.scores(states, weight, bias, ids)
    return torch.bmm(weight[ids], states[:, :, None])[:, :, 0].float() + bias[ids]


class StepLogits:
    """Logits [V, N] of N hypotheses, their normaliser [N] and their highest log-probability [N]."""

    KEPT = "step logits"

    def __init__(self, softmax: Softmax) -> None:
        logits = torch.addmm(softmax.bias[:, None], softmax.weight, softmax.states.t())  # [V, N]
        self.logits = logits if logits.dtype == torch.float32 else logits.float()
        highest = self.logits.amax(0)
        total = torch.sub(self.logits, highest).exp_().sum(0)
        self.normaliser = highest + total.log_()
        self.highest = highest - self.normaliser

    @classmethod
    def of(cls, softmax: Softmax) -> StepLogits:
        """Those of a softmax, computed once."""
        if cls.KEPT not in softmax.kept:
            softmax.kept[cls.KEPT] = step_logits(softmax)
        found: StepLogits = softmax.kept[cls.KEPT]
        return found

    @classmethod
    def take(cls, softmax: Softmax) -> StepLogits:
        """The same, to be changed: whoever wants them next has them computed anew."""
        found = cls.of(softmax)
        del softmax.kept[cls.KEPT]
        return found

    def log_probabilities(self, ids: Tensor) -> Tensor:
        """[N, n] -> [N, n]"""
        return self.logits.t().gather(1, ids) - self.normaliser[:, None]

    def choose(self, choice: WordChoice) -> None:
        """As `WordChoice.apply`, in place."""
        place = choice.ids[:, None], choice.steps
        self.logits[place] = choice.shared_out(self.logits[place].t(), choice.scores).t()

    def best(self, wanted: Wanted) -> Candidates:
        """The best words. The logits are spent then."""
        nothing = torch.zeros_like(self.normaliser)
        end = torch.full_like(nothing, EOS, dtype=torch.long)[:, None]
        return self.best_mixed(Pointed(nothing, end, nothing[:, None]), wanted)

    def best_mixed(self, pointed: Pointed, wanted: Wanted) -> Candidates:
        """The best words of the mixture with a pointer: only the best of either can be among them. The logits are
        spent then."""
        share, ids, weights, others = pointed.share[:, None], pointed.ids, pointed.weights, wanted.others
        same = ids[:, :, None] == ids[:, None]  # [N, n, n]
        said = share * torch.einsum("nab,nb->na", same.to(weights.dtype), weights)
        first = ~same.tril(-1).any(-1)  # a word that stands at several places is one candidate
        own = self.log_probabilities(ids)
        mixed = ((1 - share) * own.exp() + said).log()
        ends = (1 - share[:, 0]) * (self.logits[EOS] - self.normaliser).exp() + (share * weights * (ids == EOS)).sum(-1)
        forbidden = ids < wanted.forbidden
        if others is not None:
            forbidden |= (ids[:, :, None] == others).any(-1)
        lost = self._never_produced(share[:, 0], said * first, ids, others) if wanted.renormalize else None
        self.logits[: wanted.forbidden] = -torch.inf
        if others is not None:
            self.logits[others] = -torch.inf
        values, best = self._highest(wanted)
        known = (best[:, :, None] == ids[:, None]).any(-1)
        model = (values - self.normaliser[:, None] + torch.log1p(-share)).masked_fill(known, -torch.inf)
        mixed = mixed.masked_fill(forbidden | ~first, -torch.inf)
        found, order = torch.cat([model, mixed], 1).topk(min(wanted.count, len(self.logits)), sorted=True)
        end = ends.log()
        if lost is not None:
            kept = torch.log1p(-lost)
            found, end = found - kept[:, None], end - kept
        return Candidates(found, torch.cat([best, ids], 1).gather(1, order), end)

    def _highest(self, wanted: Wanted) -> tuple[Tensor, Tensor]:
        """Values and ids [N, count] of the highest logits."""
        return _best_of_strips(self.logits, _strip_maxima(self.logits), wanted.count)

    def _never_produced(self, share: Tensor, said: Tensor, ids: Tensor, others: Tensor | None) -> Tensor:
        """[N] the mixture's probability of words that are never produced."""
        never = never_produced(others, ids)
        own = (self.logits[never] - self.normaliser).exp().sum(0)
        return (1 - share) * own + (said * (ids[:, :, None] == never).any(-1)).sum(-1)


@definition
def step_logits(softmax: Softmax) -> StepLogits:
    """The logits of a small softmax."""
    return StepLogits(softmax)


def never_produced(others: Tensor | None, like: Tensor) -> Tensor:
    """The ids of words that are never produced: the first ones, and `others`."""
    never = torch.arange(NEVER_PRODUCED, device=like.device)
    return never if others is None else torch.cat([never, others]).unique()


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
