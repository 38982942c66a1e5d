"""Dense context attention: every query against every context sentence (and word), chunk by chunk of queries.

Scores of a chunk lie as [b * H, J, W, q], the queries last: sums over words or sentences then run along contiguous
memory, several times faster than over a short last dimension. An autograd function keeps the weights for its backward
pass while they are few, and computes them again chunk by chunk when they are many, so that memory stays linear in the
length of a document. Nothing loops over documents, sentences or heads: a chunk is as many of them as fit.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weitblick.fast.context_bank import BankLayout, DocumentGroup, Segment
from weitblick.fast.context_queries import Chunk, QueryPlan
from weitblick.model.attention_definition import Masks
from weitblick.model.plain_attention import WeightDropout
from weitblick.model.sparsemax import Kind, jacobian_product, normalise, rescaled_jacobian_product
from weitblick.model.tuning import tuning_for

KEPT_ELEMENTS = 96 << 20
"""Weights kept for the backward pass at most (384 MB); beyond, all are computed again."""


@dataclass(frozen=True)
class Problem:
    """What an attention computes besides the tensors that carry gradients."""

    bank: BankLayout
    plan: QueryPlan
    online: bool
    sentence_kind: Kind
    word_kind: Kind
    width: int  # d_k: what queries and keys have beyond it are features of order
    differentiable: bool = True
    chosen: np.ndarray | None = None  # [bank documents] which documents to compute; all if None
    dropout: WeightDropout | None = None  # of weights, at every level

    @property
    def scale(self) -> float:
        return 1.0 / math.sqrt(self.width)

    def products(self, keys: Tensor, queries: Tensor, bias: Tensor | None = None) -> Tensor:
        """Scaled products [n, columns, q] of keys [n, columns, d_k] and queries [n, q, d_k], plus a bias.

        Features of order are added in a step of their own: where they are zero, nothing changes, bit for bit.
        """
        k, q = keys[..., : self.width], queries[..., : self.width].transpose(1, 2)
        if bias is None:
            scores = q.new_empty(len(k), k.shape[1], q.shape[2]).baddbmm_(k, q, beta=0.0, alpha=self.scale)
        else:
            scores = torch.baddbmm(bias, k, q, alpha=self.scale)
        if keys.shape[-1] > self.width:
            k, q = keys[..., self.width :], queries[..., self.width :].transpose(1, 2)
            scores.baddbmm_(k, q, alpha=self.scale)
        return scores

    def choosing(self, chosen: np.ndarray, other_masks: bool = False) -> Problem:
        """These documents alone, with the same masks of dropout or others."""
        dropout = self.dropout.other() if self.dropout is not None and other_masks else self.dropout
        return replace(self, chosen=chosen, dropout=dropout)

    def masks(self, device: torch.device) -> Masks | None:
        """The masks of dropout, from the first one on: a backward pass asks for the same in the same order."""
        return None if self.dropout is None else self.dropout.masks(device)

    def of_group(self, group: DocumentGroup) -> np.ndarray:
        """[B] which documents of a group to compute."""
        return np.ones(group.size, dtype=bool) if self.chosen is None else self.chosen[group.documents]

    def chunks(self, scores: Callable[[DocumentGroup], int], elements: int | None = None) -> Iterator[Chunk]:
        """The work in chunks of about so many scores, of which a query of a group has `scores` in each head."""
        return self.plan.chunks(elements or tuning_for(self.bank.device).chunk, scores, self.bank.heads, self.chosen)

    @property
    def keeps_words(self) -> bool:
        """Whether the weights of all words may be kept for the backward pass."""
        return self.differentiable and self.plan.scores(self.bank.heads, self.chosen) <= KEPT_ELEMENTS

    def query_cells(self, cells: Tensor, chunk: Chunk) -> Tensor:
        """[cells + 1, d_k] -> [b * H, q, d_k], a view."""
        q = chunk.queries
        view = cells[q.cells : q.cells + q.group.size * self.bank.heads * q.length].view(-1, q.length, cells.shape[-1])
        return view[self.heads(chunk), chunk.start : chunk.stop]

    def sentence_cells(self, cells: Tensor, chunk: Chunk) -> Tensor:
        """[cells, d_k] -> [b * H, J, d_k], a view."""
        g = chunk.queries.group
        view = cells[g.cells : g.cells + g.size * self.bank.heads * g.slots].view(-1, g.slots, cells.shape[-1])
        return view[self.heads(chunk)]

    def word_cells(self, cells: Tensor, chunk: Chunk, segment: Segment) -> Tensor:
        """[cells, d_k] -> [b * H, J * W, d_k], a view."""
        count = chunk.queries.group.size * self.bank.heads * segment.columns
        view = cells[segment.cells : segment.cells + count].view(-1, segment.columns, cells.shape[-1])
        return view[self.heads(chunk)]

    def heads(self, chunk: Chunk) -> slice:
        return slice(chunk.first * self.bank.heads, chunk.last * self.bank.heads)

    def hidden(self, keys: Tensor, queries: Tensor) -> Tensor:
        """[b, 1, J, q] true where a query may not read a sentence: its own, online a later one, an empty slot.

        Positions of keys [b, J] and of queries [b, q].
        """
        keys, queries = keys.unsqueeze(2), queries.unsqueeze(1)
        unseen = (keys >= queries) if self.online else (keys == queries)
        return (unseen | (keys < 0)).unsqueeze(1)

    def sentence_scores(self, queries: Tensor, keys: Tensor, chunk: Chunk) -> Tensor:
        """[b, H, J, q] scores of sentences from query cells and sentence keys, -inf where hidden."""
        scores = self.products(self.sentence_cells(keys, chunk), self.query_cells(queries, chunk))
        scores = scores.unflatten(0, (chunk.size, -1))
        rows, columns = slice(chunk.first, chunk.last), slice(chunk.start, chunk.stop)
        readers, group = chunk.queries, chunk.queries.group
        if self.online:
            later = group.online_positions[rows, :, None] >= readers.positions[rows, None, columns]
            return scores.masked_fill_(later.unsqueeze(1), -torch.inf)
        # A mask would be as large as the scores of a head; offline it hides but one sentence of each query.
        own, hide = (x[rows, None, None, columns] for x in (readers.own_slots, readers.own_scores))
        shape = (-1, self.bank.heads, -1, -1)
        scores.scatter_add_(2, own.expand(shape), hide.to(scores.dtype).expand(shape))
        if group.counts[rows].min() < group.slots:
            scores.masked_fill_((group.positions[rows] < 0)[:, None, :, None], -torch.inf)
        return scores

    def sentence_weights(self, queries: Tensor, keys: Tensor, chunk: Chunk) -> Tensor:
        """alpha_s [b, H, J, q] of a chunk."""
        return normalise(self.sentence_scores(queries, keys, chunk), self.sentence_kind, 2)

    def word_weights(
        self, queries: Tensor, keys: Tensor, chunk: Chunk, segment: Segment, share: Tensor | None = None
    ) -> Tensor:
        """alpha_w [b * H, J, W, q] of the sentences of a segment, times their share [b * H, J, 1, q] if given."""
        bias = segment.bias[self.heads(chunk)].to(keys.dtype)
        scores = self.products(self.word_cells(keys, chunk, segment), self.query_cells(queries, chunk), bias)
        return normalise(scores.view(len(scores), segment.sentences, segment.width, -1), self.word_kind, 2, share)


def of_sentences(group: DocumentGroup) -> int:
    return group.slots


def _of_words(group: DocumentGroup) -> int:
    return group.columns


def _of_widest_segment(group: DocumentGroup) -> int:
    return group.widest


@dataclass
class Kept:
    """Weights that a forward pass leaves to its backward pass: of sentences by chunk, rescaled ones of words."""

    sentences: list[Tensor] = field(default_factory=list)
    words: list[Tensor] = field(default_factory=list)


def full_precision(method: Callable[..., Any]) -> Callable[..., Any]:
    """For the methods of an autograd function: autocast must not turn products of float32 cells into half ones."""

    @functools.wraps(method)
    def run(ctx: Any, first: Tensor, *others: Any) -> Any:
        with torch.autocast(first.device.type, enabled=False):
            return method(ctx, first, *others)

    return run


class HierarchicalDense(torch.autograd.Function):
    """H-Attention. Cells: sentence and word queries [query cells + 1, d_k], sentence keys, word keys and values.

    Gives (outputs [query cells + 1, d_k], support [places + 1] sentences in support, summed over heads).
    """

    @staticmethod
    @full_precision
    def forward(
        ctx: Any, qs: Tensor, qw: Tensor, ks: Tensor, kw: Tensor, vw: Tensor, problem: Problem
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(qs, qw, ks, kw, vw)
        ctx.problem, ctx.kept = problem, Kept() if problem.keeps_words else None
        output = qw.new_zeros(len(qw), vw.shape[-1])  # keys may be wider than values
        support = qs.new_zeros(problem.plan.places + 1)
        masks = problem.masks(qs.device)
        for chunk in problem.chunks(_of_widest_segment):
            alpha = problem.sentence_weights(qs, ks, chunk)
            _count_support(chunk, alpha, support)
            if ctx.kept:
                ctx.kept.sentences.append(alpha)
            shares = dropped(alpha, masks)
            target = problem.query_cells(output, chunk)
            for segment in chunk.queries.group.segments:
                weights = problem.word_weights(qw, kw, chunk, segment, _of_segment(shares, segment))
                read = dropped(weights, masks).flatten(1, 2).transpose(1, 2)
                target.baddbmm_(read, problem.word_cells(vw, chunk, segment))
                if ctx.kept:
                    ctx.kept.words.append(weights)
        ctx.mark_non_differentiable(support)
        return output, support

    @staticmethod
    @full_precision
    def backward(ctx: Any, d_output: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        qs, qw, ks, kw, vw = ctx.saved_tensors
        problem: Problem = ctx.problem
        kept: Kept | None = ctx.kept
        d_qs, d_qw, d_ks, d_kw, d_vw = (torch.zeros_like(x) for x in (qs, qw, ks, kw, vw))
        words = iter(kept.words if kept else ())
        masks = problem.masks(qs.device)
        for number, chunk in enumerate(problem.chunks(_of_widest_segment)):
            alpha = kept.sentences[number] if kept else problem.sentence_weights(qs, ks, chunk)
            mask = None if masks is None else masks(alpha)
            shares = alpha if mask is None else alpha * mask
            d_alpha = torch.empty_like(alpha)
            d_out, q = problem.query_cells(d_output, chunk), problem.query_cells(qw, chunk)
            d_q = problem.query_cells(d_qw, chunk)
            for segment in chunk.queries.group.segments:
                k, v = problem.word_cells(kw, chunk, segment), problem.word_cells(vw, chunk, segment)
                share = _of_segment(shares, segment)  # [b * H, J, 1, q]
                weights = next(words) if kept else problem.word_weights(qw, kw, chunk, segment, share)
                d_weights = torch.bmm(v, d_out.transpose(1, 2)).view_as(weights)
                read = dropped_backward(weights, d_weights, masks)
                problem.word_cells(d_vw, chunk, segment).baddbmm_(read.flatten(1, 2), d_out)
                d_scores, d_share = rescaled_jacobian_product(weights, share, d_weights, problem.word_kind, 2)
                d_alpha.flatten(0, 1)[:, segment.first : segment.last] = d_share.squeeze(2)
                d_scores = d_scores.flatten(1, 2)
                d_q.baddbmm_(d_scores.transpose(1, 2), k, alpha=problem.scale)
                problem.word_cells(d_kw, chunk, segment).baddbmm_(d_scores, q, alpha=problem.scale)
            if mask is not None:
                d_alpha *= mask
            _sentence_backward(problem, chunk, alpha, d_alpha, qs, ks, d_qs, d_ks)
        return d_qs, d_qw, d_ks, d_kw, d_vw, None


def _begin_flat(ctx: Any, q: Tensor, k: Tensor, v: Tensor, problem: Problem) -> tuple[Tensor, Tensor, Masks | None]:
    """Keeps what the gradient needs; outputs [query cells, d_k] and support [places + 1] to fill, and the dropout."""
    ctx.save_for_backward(q, k, v)
    ctx.problem = problem
    support = q.new_zeros(problem.plan.places + 1)
    return q.new_zeros(len(q), v.shape[-1]), support, problem.masks(q.device)


class FlatDense(torch.autograd.Function):
    """Flat attention over the sentences of a document, by the sentence kind. Cells: queries, keys, values."""

    @staticmethod
    @full_precision
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, problem: Problem) -> tuple[Tensor, Tensor]:
        output, support, masks = _begin_flat(ctx, q, k, v, problem)
        for chunk in problem.chunks(of_sentences):
            alpha = problem.sentence_weights(q, k, chunk)
            _count_support(chunk, alpha, support)
            weights = dropped(alpha, masks).flatten(0, 1).transpose(1, 2)
            problem.query_cells(output, chunk).copy_(torch.bmm(weights, problem.sentence_cells(v, chunk)))
        ctx.mark_non_differentiable(support)
        return output, support

    @staticmethod
    @full_precision
    def backward(ctx: Any, d_output: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        (q, k, v), problem = ctx.saved_tensors, ctx.problem
        d_q, d_k, d_v, masks = *(torch.zeros_like(x) for x in (q, k, v)), problem.masks(q.device)
        for chunk in problem.chunks(of_sentences):
            alpha = problem.sentence_weights(q, k, chunk)
            d_out = problem.query_cells(d_output, chunk)
            d_alpha = torch.bmm(problem.sentence_cells(v, chunk), d_out.transpose(1, 2)).view_as(alpha)
            read = dropped_backward(alpha, d_alpha, masks)
            problem.sentence_cells(d_v, chunk).baddbmm_(read.flatten(0, 1), d_out)
            _sentence_backward(problem, chunk, alpha, d_alpha, q, k, d_q, d_k)
        return d_q, d_k, d_v, None


class FlatWordDense(torch.autograd.Function):
    """Flat attention over all words of a document, by the word kind. Cells: queries, word keys, word values."""

    @staticmethod
    @full_precision
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, problem: Problem) -> tuple[Tensor, Tensor]:
        output, support, masks = _begin_flat(ctx, q, k, v, problem)
        for chunk in problem.chunks(_of_words):
            weights = _document_word_weights(problem, q, k, chunk)
            target, sentences = problem.query_cells(output, chunk), []
            for segment, part in _by_segment(weights, chunk):
                words = part.unflatten(1, (segment.sentences, segment.width))
                sentences.append(words.sum(2))
            for segment, part in _by_segment(dropped(weights, masks), chunk):
                target.baddbmm_(part.transpose(1, 2), problem.word_cells(v, chunk, segment))
            _count_support(chunk, torch.cat(sentences, 1).unflatten(0, (chunk.size, -1)), support)
        ctx.mark_non_differentiable(support)
        return output, support

    @staticmethod
    @full_precision
    def backward(ctx: Any, d_output: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        (q, k, v), problem = ctx.saved_tensors, ctx.problem
        d_q, d_k, d_v, masks = *(torch.zeros_like(x) for x in (q, k, v)), problem.masks(q.device)
        for chunk in problem.chunks(_of_words):
            weights = _document_word_weights(problem, q, k, chunk)
            d_out, queries = problem.query_cells(d_output, chunk), problem.query_cells(q, chunk)
            segments = chunk.queries.group.segments
            values = [problem.word_cells(v, chunk, segment) for segment in segments]
            d_weights = torch.cat([torch.bmm(part, d_out.transpose(1, 2)) for part in values], 1)
            for segment, part in _by_segment(dropped_backward(weights, d_weights, masks), chunk):
                problem.word_cells(d_v, chunk, segment).baddbmm_(part, d_out)
            d_scores = jacobian_product(weights, d_weights, problem.word_kind, 1)
            for segment, part in _by_segment(d_scores, chunk):
                keys = problem.word_cells(k, chunk, segment)
                problem.query_cells(d_q, chunk).baddbmm_(part.transpose(1, 2), keys, alpha=problem.scale)
                problem.word_cells(d_k, chunk, segment).baddbmm_(part, queries, alpha=problem.scale)
        return d_q, d_k, d_v, None


def dropped(weights: Tensor, masks: Masks | None) -> Tensor:
    """Weights as they weigh values: a mask, multiplied with them in place."""
    return weights if masks is None else masks(weights).mul_(weights)


def dropped_backward(weights: Tensor, gradient: Tensor, masks: Masks | None) -> Tensor:
    """Weights as they weighed the values, from those before dropout; the gradient of the former becomes that of the
    latter, in place."""
    if masks is None:
        return weights
    mask = masks(weights)
    gradient *= mask
    return mask.mul_(weights)


def _count_support(chunk: Chunk, alpha: Tensor, support: Tensor) -> None:
    """Counts the sentences with weight, over all heads, into support [places + 1]; alpha [b, H, J, q]."""
    q = chunk.queries
    view = support[q.places : q.places + q.group.size * q.length].view(-1, q.length)
    counts = torch.gt(alpha, 0.0, out=torch.empty_like(alpha)).sum((1, 2))
    view[chunk.first : chunk.last, chunk.start : chunk.stop] = counts


def _of_segment(alpha: Tensor, segment: Segment) -> Tensor:
    """[b, H, J, q] -> [b * H, J of the segment, 1, q]"""
    return alpha.flatten(0, 1)[:, segment.first : segment.last].unsqueeze(2)


def _by_segment(columns: Tensor, chunk: Chunk) -> Iterator[tuple[Segment, Tensor]]:
    """Parts [b * H, J * W, q] of [b * H, columns of all segments, q], views."""
    begin = 0
    for segment in chunk.queries.group.segments:
        yield segment, columns[:, begin : begin + segment.columns]
        begin += segment.columns


def _sentence_backward(
    problem: Problem, chunk: Chunk, alpha: Tensor, d_alpha: Tensor, q: Tensor, k: Tensor, d_q: Tensor, d_k: Tensor
) -> None:
    """From the gradient of the sentence weights to that of their queries (set) and keys (added)."""
    d_scores = jacobian_product(alpha, d_alpha, problem.sentence_kind, 2).mul_(problem.scale).flatten(0, 1)
    problem.query_cells(d_q, chunk).copy_(torch.bmm(d_scores.transpose(1, 2), problem.sentence_cells(k, chunk)))
    problem.sentence_cells(d_k, chunk).baddbmm_(d_scores, problem.query_cells(q, chunk))


def _document_word_weights(problem: Problem, q: Tensor, k: Tensor, chunk: Chunk) -> Tensor:
    """[b * H, columns of all segments, q] weights over all visible words."""
    readers, rows = chunk.queries, slice(chunk.first, chunk.last)
    hidden = problem.hidden(readers.group.positions[rows], readers.positions[rows, chunk.start : chunk.stop])
    scores, places = [], []
    queries = problem.query_cells(q, chunk)
    for segment in chunk.queries.group.segments:
        scores.append(problem.products(problem.word_cells(k, chunk, segment), queries))
        empty = segment.bias[problem.heads(chunk)][:: problem.bank.heads] < 0  # [b, columns, 1]
        unseen = hidden[:, :, segment.first : segment.last].repeat_interleave(segment.width, 2)
        places.append(unseen | empty.unsqueeze(1))
    joined = torch.cat(scores, 1)
    joined = joined.view(chunk.size, problem.bank.heads, *joined.shape[1:])
    return normalise(joined.masked_fill_(torch.cat(places, 2), -torch.inf), problem.word_kind, 2).flatten(0, 1)
