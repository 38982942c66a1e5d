"""Batched beam search with cached decoding. S sentences with K hypotheses each stay one rectangle [S, K] throughout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from weitblick.common.errors import UserError
from weitblick.model.batch import Layout
from weitblick.model.context import Context
from weitblick.model.document_model import DocumentModel
from weitblick.model.modifiers import Allowed
from weitblick.model.output import NEVER_PRODUCED, NOT_FIRST, Candidates
from weitblick.text.base import BOS, EOS, UNK
from weitblick.translation.degenerate import degenerate
from weitblick.translation.forced import Forced, step_forced
from weitblick.translation.kept_states import BestStates

if TYPE_CHECKING:
    from weitblick.memory.terms import TermUse


@dataclass(frozen=True)
class SearchOptions:
    """beam: hypotheses per sentence, 1 is greedy search; length_penalty: scores are log-probabilities over
    length ** length_penalty; n_best: how many hypotheses to return; most_words = factor * source words + slack, unless
    the model has a greatest length of its own; forbidden: ids of words that no hypothesis may have, besides the model's
    own."""

    beam: int = 4
    length_penalty: float = 1.0
    n_best: int = 1
    length_factor: float = 2.0
    length_slack: int = 10
    forbidden: tuple[int, ...] = ()

    def most_words(self, source_words: Tensor) -> Tensor:
        return (source_words * self.length_factor).long().add_(self.length_slack).clamp_(min=1)


@dataclass(frozen=True)
class Hypothesis:
    """Word ids without EOS; the score that ranks it; its log-probability, and that of each word and of EOS; the terms
    of its source, and whether it says them."""

    ids: list[int]
    score: float
    log_probability: float
    word_log_probabilities: list[float]
    terms: tuple[TermUse, ...] = ()


@torch.no_grad()
def beam_search(
    model: DocumentModel,
    encoder_states: Tensor,
    source: Layout,
    context: Context | None,
    options: SearchOptions,
    allowed: Allowed | None = None,
    best_states: BestStates | None = None,
    forced: Forced | None = None,
    source_repeats: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """The n best hypotheses, best first, of every sentence of `source`, whose encoder states are given [T, d].

    allowed         the words to choose from, where that is not the vocabulary
    best_states     is left with the decoder's states of the best hypotheses
    forced          how the hypotheses of each sentence begin, whatever the model would say
    source_repeats  [S] which sources repeat themselves, as their translations may then; if given, hypotheses that no
                    reader would take for a translation come behind all others
    """
    if not source.sentences:
        return []
    given = model, encoder_states, source, context, options, allowed, best_states, forced, source_repeats
    greedy = options.beam == 1 and model.sentence.generation.stop != "never"
    found = (_GreedySearch if greedy else _BeamSearch)(*given).run()
    if not all(found):
        raise UserError(
            "the model's scores are not finite (NaN or inf): its weights are damaged or too large",
            remedy="restore the model; with --int8 or half precision, try without",
        )
    return found


@dataclass
class _Hypotheses:
    """A rectangle of hypotheses of S sentences, best first; -inf marks a place without one.

    scores, sums [S, K]: what ranks them, and their log-probability; lengths [S, K]: words and EOS
    rows [S, K]: of the step that ended them, which of all its hypotheses they were
    ids, words [S, K, L]: the words produced and the log-probability of each
    """

    scores: Tensor
    sums: Tensor
    lengths: Tensor
    rows: Tensor
    ids: Tensor
    words: Tensor

    @classmethod
    def none(cls, sentences: int, count: int, longest: int, like: Tensor) -> _Hypotheses:
        nothing = like.new_full((sentences, count), -torch.inf, dtype=torch.float32)
        ids = torch.zeros(sentences, count, longest, dtype=torch.long, device=like.device)
        lengths = ids.new_zeros(sentences, count)
        return cls(nothing, nothing.clone(), lengths, lengths.clone(), ids, ids.to(torch.float32))

    def of(self, index: Tensor) -> _Hypotheses:
        """Those of some sentences."""
        return _Hypotheses(*(x.index_select(0, index) for x in self._fields()))

    def merge(self, other: _Hypotheses) -> _Hypotheses:
        """The best K of both, of equal ones those of `self`."""
        count = self.scores.shape[1]
        both = _Hypotheses(*(torch.cat(pair, 1) for pair in zip(self._fields(), other._fields(), strict=True)))
        return both.in_order(torch.sort(both.scores, dim=1, descending=True, stable=True).indices[:, :count])

    def in_order(self, order: Tensor) -> _Hypotheses:
        """Those in the places `order` [S, k], in this order."""
        deep = order[:, :, None].expand(-1, -1, self.ids.shape[2])
        return _Hypotheses(*(x.gather(1, order if x.dim() == 2 else deep) for x in self._fields()))

    def store(self, index: Tensor, other: _Hypotheses) -> None:
        count = self.scores.shape[1]
        for mine, theirs in zip(self._fields(), other._fields(), strict=True):
            mine.index_copy_(0, index, theirs[:, :count])

    def lists(self) -> list[list[Hypothesis]]:
        scores, sums, lengths, _, ids, words = (x.tolist() for x in self._fields())
        return [
            [
                Hypothesis(ids[s][k][: lengths[s][k] - 1], score, sums[s][k], words[s][k][: lengths[s][k]])
                for k, score in enumerate(row)
                if score > -torch.inf
            ]
            for s, row in enumerate(scores)
        ]

    def _fields(self) -> tuple[Tensor, ...]:
        return self.scores, self.sums, self.lengths, self.rows, self.ids, self.words


class _Batch:
    """Sentences that are searched together, each until it is done or at its greatest length."""

    def __init__(
        self,
        model: DocumentModel,
        encoder_states: Tensor,
        source: Layout,
        context: Context | None,
        options: SearchOptions,
        allowed: Allowed | None,
        best_states: BestStates | None = None,
        forced: Forced | None = None,
        source_repeats: Tensor | None = None,
    ) -> None:
        self.model, self.context, self.options, self.allowed = model, context, options, allowed
        self.best_states, self.source_repeats = best_states, source_repeats
        self.generation = model.sentence.generation
        forbidden = [*self.generation.forbidden, *options.forbidden]
        self.forbidden = torch.tensor(forbidden, device=encoder_states.device) if forbidden else None
        self.cache = model.sentence.start(encoder_states, source)
        self.limits, self.forced = options.most_words(source.lengths - 1), forced  # [S]
        if self.generation.longest is not None:
            self.limits = torch.full_like(self.limits, self.generation.longest - 2)  # without start and end
        if forced is not None:
            self.limits = torch.maximum(self.limits, forced.lengths + options.length_slack)
        self.all_limits = self.limits  # of the sentences that have left, too
        self.next_limit, self.longest = int(self.limits.min()), int(self.limits.max()) + 1
        self.documents, self.positions = source.documents, source.positions
        self.sentences = torch.arange(source.sentences, device=encoder_states.device)  # [S] those still in the batch
        self.tokens, self.layout = torch.full_like(self.sentences, BOS), self.step_layout(1)
        self.begin(encoder_states, source)

    def begin(self, encoder_states: Tensor, source: Layout) -> None:
        """What a kind of search keeps besides."""

    def candidates(self, step: int) -> Candidates:
        """The best words of every hypothesis."""
        if self.forced is not None and step < self.forced.shortest:
            step_forced(self.model, self.tokens, self.cache, self.layout, self.context)
            return self.forced.only(step)
        words = self.model.step(self.tokens, self.cache, self.layout, self.context)
        if self.best_states is not None and self.cache.latest is not None:
            self.best_states.add(self.cache.latest)
        asked = 2 * self.options.beam, NEVER_PRODUCED if step else NOT_FIRST, self.forbidden
        found = words.best(*asked, self.generation.renormalize, self.allowed)
        return found if self.forced is None else self.forced.apply(found, words, step)

    def keep(self, staying: Tensor) -> None:
        """The sentences in these rows [S'] stay."""
        self.sentences, self.limits = self.sentences[staying], self.limits[staying]
        self.documents, self.positions = self.documents[staying], self.positions[staying]
        self.next_limit = int(self.limits.min()) if len(staying) else 0
        if len(staying):
            self.cache.select_sentences(staying)
            self.allowed = None if self.allowed is None else self.allowed.select(staying)
            self.forced = None if self.forced is None else self.forced.select(staying)

    def step_layout(self, hypotheses: int) -> Layout:
        """One token for each hypothesis; the same object as long as the rectangle is the same."""
        documents = self.documents.repeat_interleave(hypotheses)
        return Layout(torch.ones_like(documents), documents, self.positions.repeat_interleave(hypotheses))

    def continues_from(self, rows: Tensor | None) -> None:
        """The hypotheses of the next step come from these rows of this one; None: each from its own."""
        if self.best_states is not None:
            self.best_states.continues_from(rows)


class _GreedySearch(_Batch):
    """The most probable word of every step, until that is the end: a beam of one without what only beams need."""

    def run(self) -> list[list[Hypothesis]]:
        ids = self.sentences.new_zeros(len(self.sentences), self.longest)
        words = torch.zeros(ids.shape, device=ids.device)
        lengths, final_rows = torch.zeros_like(self.sentences), torch.zeros_like(self.sentences)
        step = 0
        while len(self.sentences):
            found = self.candidates(step)
            values, place = found.log_probabilities.max(1)
            tokens = found.ids.gather(1, place[:, None])[:, 0]
            if step == self.next_limit:  # where a sentence can only end
                last = self.limits == step
                values = torch.where(last, 0 if self.generation.free_end else found.end, values)
                tokens = torch.where(last, EOS, tokens)
            ids[self.sentences, step], words[self.sentences, step] = tokens, values
            done = tokens == EOS
            step += 1
            staying: Tensor | None = None
            if bool(done.any()):
                lengths[self.sentences[done]] = step
                final_rows[self.sentences[done]] = done.nonzero()[:, 0]
                staying = _close_ranks(done)
                self.keep(staying)
                self.cache.select_hypotheses(staying)
                self.layout, tokens = self.step_layout(1), tokens[staying]
            self.continues_from(staying)
            self.tokens = tokens
        if self.best_states is not None:
            self.best_states.end(final_rows, lengths)
        rows = zip(ids.tolist(), words.tolist(), lengths.tolist(), strict=True)
        return [self._hypotheses(ids[:length], words[:length]) for ids, words, length in rows]

    def _hypotheses(self, ids: list[int], words: list[float]) -> list[Hypothesis]:
        """One, or none if its probability is not finite."""
        total = math.fsum(words)
        score = total / len(words) ** self.options.length_penalty
        return [Hypothesis(ids[:-1], score, total, words)] if math.isfinite(total) else []


class _BeamSearch(_Batch):
    """`live` hypotheses grow by a word each step, `finished` ones have met EOS; a sentence leaves the batch when its n
    best are settled, or at its greatest length."""

    def begin(self, encoder_states: Tensor, source: Layout) -> None:
        kept = self.options.n_best if self.source_repeats is None else self.options.beam
        self.results = _Hypotheses.none(source.sentences, kept, self.longest, encoder_states)
        self.finished = _Hypotheses.none(source.sentences, self.options.beam, self.longest, encoder_states)
        # The first step has one hypothesis a sentence, all later ones K.
        self.sums = encoder_states.new_zeros(source.sentences, 1, dtype=torch.float32)
        self.ids = self.finished.ids[:, :1].clone()
        self.words = self.finished.words[:, :1].clone()

    def run(self) -> list[list[Hypothesis]]:
        step = 0
        while len(self.sentences):
            self._advance(step)
            step += 1
        if self.source_repeats is not None:
            self.results = self._sensible_first(self.source_repeats)
        if self.best_states is not None:
            self.best_states.end(self.results.rows[:, 0], self.results.lengths[:, 0])
        return self.results.lists()

    def _sensible_first(self, source_repeats: Tensor) -> _Hypotheses:
        """The n best results of every sentence; those that are no translations come behind all others."""
        found = self.results
        last = degenerate(found.ids, found.lengths, self.all_limits, source_repeats).to(torch.uint8)
        last.masked_fill_(found.scores == -torch.inf, 2)  # a place without a hypothesis
        return found.in_order(torch.sort(last, dim=1, stable=True).indices[:, : self.options.n_best])

    def _advance(self, step: int) -> None:
        beam, found = self.options.beam, self.candidates(step)
        if self.forced is not None and step < self.forced.shortest:
            return self._take(found, step)
        sums, parents, tokens = self._best(found, step)
        ended = (tokens[:, :beam] == EOS) & (sums[:, :beam] > -torch.inf)
        # Of 2K candidates at most K end, one for each hypothesis: the first K of the others live on.
        alive = torch.sort((tokens == EOS).to(torch.uint8), dim=1, stable=True).indices[:, :beam]
        new_sums = sums.gather(1, alive)
        at_limit = step == self.next_limit
        keep: Tensor | None = None
        if at_limit or bool(ended.any() | self._settled(new_sums, step).any()):
            self._finish(ended, sums[:, :beam], parents[:, :beam], step)
            done = self._settled(new_sums, step)
            keep = self._leave(done | (self.limits == step) if at_limit else done)
        self._grow(new_sums, parents.gather(1, alive), tokens.gather(1, alive), keep, step)

    def _take(self, only: Candidates, step: int) -> None:
        """The only word of every sentence: it keeps its one hypothesis."""
        self.sums, self.tokens = self.sums + only.log_probabilities, only.ids[:, 0]
        self.ids[:, :, step], self.words[:, :, step] = only.ids, only.log_probabilities

    def _best(self, found: Candidates, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Sums, parents and words [S, 2K] of the best continuations, in order. At its limit a sentence can only end."""
        sentences, hypotheses = self.sums.shape
        wanted = 2 * self.options.beam
        width = found.ids.shape[1]
        sums = (self.sums[:, :, None] + found.log_probabilities.view(sentences, hypotheses, width)).flatten(1)
        tokens = found.ids.view(sentences, -1)
        if sums.shape[1] < wanted:  # a tiny vocabulary
            missing, pad = (0, wanted - sums.shape[1]), torch.nn.functional.pad
            sums, tokens = pad(sums, missing, value=-torch.inf), pad(tokens, missing, value=UNK)
        sums, order = sums.topk(wanted, sorted=True)
        parents, tokens = (order // width).clamp_(max=hypotheses - 1), tokens.gather(1, order)
        if step == self.next_limit:
            last = (self.limits == step)[:, None]
            ends = self.sums if self.generation.free_end else self.sums + found.end.view(sentences, hypotheses)
            ends, order = ends.sort(dim=1, descending=True, stable=True)
            missing = (0, wanted - hypotheses)
            sums = torch.where(last, torch.nn.functional.pad(ends, missing, value=-torch.inf), sums)
            parents = torch.where(last, torch.nn.functional.pad(order, missing), parents)
            tokens = torch.where(last, torch.full_like(tokens, EOS), tokens)
        return sums, parents, tokens

    def _settled(self, live: Tensor, step: int) -> Tensor:
        """[S] whether n hypotheses have finished that no live one [S, K] will overtake: however long it goes
        on, as long as fewer than K have finished; then, if it goes on as it did so far. The other ways to stop are
        those of transformers: they ask this of all K that have finished, or nothing."""
        full = self.finished.scores[:, -1] > -torch.inf
        stop = self.generation.stop
        if stop == "first":
            return full
        length = torch.where(full & (stop != "never"), step + 1, self.limits + 1)
        best_possible = live[:, 0] / length.pow(self.options.length_penalty)
        rank = self.options.n_best if stop == "settled" else self.options.beam
        return self.finished.scores[:, rank - 1] >= best_possible

    def _finish(self, ended: Tensor, sums: Tensor, parents: Tensor, step: int) -> None:
        """Candidates [S, K] that end here join the finished hypotheses."""
        deep = parents[:, :, None].expand(-1, -1, self.ids.shape[2])
        words = self.words.gather(1, deep)
        words[:, :, step] = sums - self.sums.gather(1, parents)
        scores = (sums / (step + 1) ** self.options.length_penalty).masked_fill(~ended, -torch.inf)
        sums = sums.masked_fill(~ended, -torch.inf)
        lengths = torch.full_like(parents, step + 1)
        rows = torch.arange(len(parents), device=parents.device)[:, None] * self.sums.shape[1] + parents
        self.finished = self.finished.merge(_Hypotheses(scores, sums, lengths, rows, self.ids.gather(1, deep), words))

    def _leave(self, done: Tensor) -> Tensor | None:
        """Stores the results of sentences that are done; gives the rows [S'] that stay, None if all do."""
        leaving = done.nonzero()[:, 0]
        if not len(leaving):
            return None
        self.results.store(self.sentences[leaving], self.finished.of(leaving))
        staying = _close_ranks(done)
        self.finished = self.finished.of(staying)
        self.keep(staying)
        return staying

    def _grow(self, sums: Tensor, parents: Tensor, tokens: Tensor, keep: Tensor | None, step: int) -> None:
        """The chosen continuations [S, K] become the live hypotheses of the sentences that stay."""
        before, beam = self.sums.shape[1], self.options.beam
        rows = torch.arange(len(sums), device=sums.device) if keep is None else keep
        if keep is not None:
            sums, parents, tokens = sums[keep], parents[keep], tokens[keep]
        if not len(rows):
            return
        origins: Tensor | None = None
        if beam > 1 or keep is not None:
            origins = (rows[:, None] * before + parents).flatten()  # [S' * K]
            self.cache.select_hypotheses(origins)
            shape = (len(rows), beam, self.ids.shape[2])
            self.ids, self.words = (
                x.flatten(0, 1).index_select(0, origins).view(shape) for x in (self.ids, self.words)
            )
            previous = self.sums.flatten().index_select(0, origins).view(sums.shape)
        else:
            previous = self.sums
        self.continues_from(origins)
        self.ids[:, :, step] = tokens
        self.words[:, :, step] = sums - previous
        self.sums, self.tokens = sums, tokens.flatten()
        if keep is not None or before != beam:
            self.layout = self.step_layout(beam)


def _close_ranks(done: Tensor) -> Tensor:
    """[S] -> [S'] the rows that are not done: in their places, but for the last ones, which fill the gaps."""
    count = len(done) - int(done.sum())
    rows = torch.arange(count, device=done.device)
    rows[done[:count]] = (~done[count:]).nonzero()[:, 0] + count
    return rows
