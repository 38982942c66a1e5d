"""Dense context attention: every query against every context sentence (and word), chunk by chunk of queries.

Each autograd function here holds one chunk of scores at a time and computes it again in its backward pass, so memory is
linear in the length of a document. Nothing loops over documents, sentences or heads: a chunk is as many of them as fit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from weitblick.model.context_bank import BankLayout, Chunk, Group, QueryPlan, Segment
from weitblick.model.sparsemax import Kind, jacobian_product, normalise, slope

CHUNK_ELEMENTS = 1 << 20
"""Scores held at a time: a few MB stay in the processor's cache between one operation and the next."""


class Recorder(Protocol):
    """Takes the weights of each chunk as they are computed."""

    def sentences(self, chunk: Chunk, weights: Tensor) -> None:
        """weights [b, H, q, J]"""

    def words(self, chunk: Chunk, segment: Segment, weights: Tensor) -> None:
        """weights [b, H, q, J of the segment, W], before they are rescaled by the sentence weights"""

    def routed_words(self, group: Group, segment: Segment, cells: Tensor, rows: Tensor, weights: Tensor) -> None:
        """weights [m, W] of the queries in `cells` [m] for the sentences in `rows` [m] of the segment"""


@dataclass(frozen=True)
class Problem:
    """What an attention computes besides the tensors that carry gradients."""

    bank: BankLayout
    plan: QueryPlan
    online: bool
    sentence_kind: Kind
    word_kind: Kind
    scale: float
    chosen: np.ndarray | None = None  # [bank documents] which documents to compute; all if None
    recorder: Recorder | None = None
    elements: int = CHUNK_ELEMENTS

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

    def hidden(self, chunk: Chunk) -> Tensor:
        """[b, 1, q, J] true where a query may not read a sentence: its own, online a later one, an empty slot."""
        keys = chunk.queries.group.positions[chunk.first : chunk.last, None, :]
        return self._hidden(keys, chunk.queries.positions[chunk.first : chunk.last, chunk.start : chunk.stop, None])

    def _hidden(self, keys: Tensor, queries: Tensor) -> Tensor:
        unseen = (keys >= queries) if self.online else (keys == queries)
        return (unseen | (keys < 0)).unsqueeze(1)

    def visible_weights(self, scores: Tensor, keys: Tensor, queries: Tensor) -> Tensor:
        """[b, H, q, J] sentence weights from products (overwritten), positions of keys [b, 1, J], queries [b, q, 1]."""
        return _visible_weights(scores.mul_(self.scale), self._hidden(keys, queries), self.sentence_kind)

    def choosing(self, chosen: np.ndarray) -> Problem:
        return replace(self, chosen=chosen)

    def sentence_weights(self, queries: Tensor, keys: Tensor, chunk: Chunk) -> Tensor:
        """alpha_s [b, H, q, J] of a chunk, from query cells and sentence keys."""
        scores = torch.bmm(self.query_cells(queries, chunk), self.sentence_cells(keys, chunk).transpose(1, 2))
        scores = scores.mul_(self.scale).view(chunk.size, self.bank.heads, -1, scores.shape[-1])
        return _visible_weights(scores, self.hidden(chunk), self.sentence_kind)

    def word_weights(self, queries: Tensor, keys: Tensor, chunk: Chunk, segment: Segment) -> Tensor:
        """alpha_w [b * H, q, J, W] of the sentences of a segment."""
        bias = segment.bias[self.heads(chunk)].to(keys.dtype)
        k = self.word_cells(keys, chunk, segment).transpose(1, 2)
        scores = torch.baddbmm(bias, self.query_cells(queries, chunk), k, alpha=self.scale)
        return normalise(scores.view(*scores.shape[:2], segment.sentences, segment.width), self.word_kind)


def full_precision(method: Callable[..., Any]) -> Callable[..., Any]:
    """For the methods of an autograd function: autocast must not turn products of float32 cells into half ones."""

    @functools.wraps(method)
    def run(ctx: Any, first: Tensor, *others: Any) -> Any:
        with torch.autocast(first.device.type, enabled=False):
            return method(ctx, first, *others)

    return run


class HierarchicalDense(torch.autograd.Function):
    """H-Attention. Cells: sentence and word queries [query cells + 1, d_k], sentence keys, word keys and values.

    Gives (outputs [query cells + 1, d_k], support [places] sentences in support, summed over heads).
    """

    @staticmethod
    @full_precision
    def forward(
        ctx: Any, qs: Tensor, qw: Tensor, ks: Tensor, kw: Tensor, vw: Tensor, problem: Problem
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(qs, qw, ks, kw, vw)
        ctx.problem = problem
        output = torch.zeros_like(qw)
        support = qs.new_zeros(problem.plan.places + 1)
        for chunk in problem.plan.chunks(problem.elements, "widest", problem.bank.heads, problem.chosen):
            alpha = problem.sentence_weights(qs, ks, chunk)
            add_support(support, chunk, alpha)
            target = problem.query_cells(output, chunk)
            if problem.recorder:
                problem.recorder.sentences(chunk, alpha)
            for segment in chunk.queries.group.segments:
                weights = problem.word_weights(qw, kw, chunk, segment)
                if problem.recorder:
                    problem.recorder.words(chunk, segment, weights.view(chunk.size, -1, *weights.shape[1:]))
                weights.mul_(_of_segment(alpha, segment))
                target.baddbmm_(weights.flatten(2), problem.word_cells(vw, chunk, segment))
        ctx.mark_non_differentiable(support)
        return output, support

    @staticmethod
    @full_precision
    def backward(ctx: Any, d_output: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        qs, qw, ks, kw, vw = ctx.saved_tensors
        problem: Problem = ctx.problem
        d_qs, d_qw, d_ks, d_kw, d_vw = (torch.zeros_like(x) for x in (qs, qw, ks, kw, vw))
        for chunk in problem.plan.chunks(problem.elements, "widest", problem.bank.heads, problem.chosen):
            alpha = problem.sentence_weights(qs, ks, chunk)
            d_alpha = torch.empty_like(alpha)
            d_out, q = problem.query_cells(d_output, chunk), problem.query_cells(qw, chunk)
            d_q = problem.query_cells(d_qw, chunk)
            for segment in chunk.queries.group.segments:
                k, v = problem.word_cells(kw, chunk, segment), problem.word_cells(vw, chunk, segment)
                share = _of_segment(alpha, segment)  # [b * H, q, J, 1]
                weights = problem.word_weights(qw, kw, chunk, segment)
                d_weights = torch.bmm(d_out, v.transpose(1, 2)).view_as(weights)  # of the rescaled weights
                d_scores, d_share = _rescaled_jacobian(weights, share, d_weights, problem.word_kind)
                d_alpha.flatten(0, 1)[..., segment.first : segment.last] = d_share.squeeze(-1)
                weights.mul_(share)
                problem.word_cells(d_vw, chunk, segment).baddbmm_(weights.flatten(2).transpose(1, 2), d_out)
                d_scores = d_scores.flatten(2)
                d_q.baddbmm_(d_scores, k, alpha=problem.scale)
                problem.word_cells(d_kw, chunk, segment).baddbmm_(d_scores.transpose(1, 2), q, alpha=problem.scale)
            _sentence_backward(problem, chunk, alpha, d_alpha, qs, ks, d_qs, d_ks)
        return d_qs, d_qw, d_ks, d_kw, d_vw, None


class FlatDense(torch.autograd.Function):
    """Flat attention over the sentences of a document, by the sentence kind. Cells: queries, keys, values."""

    @staticmethod
    @full_precision
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, problem: Problem) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(q, k, v)
        ctx.problem = problem
        output = torch.zeros_like(q)
        support = q.new_zeros(problem.plan.places + 1)
        for chunk in problem.plan.chunks(problem.elements, "slots", problem.bank.heads):
            alpha = problem.sentence_weights(q, k, chunk)
            add_support(support, chunk, alpha)
            if problem.recorder:
                problem.recorder.sentences(chunk, alpha)
            problem.query_cells(output, chunk).copy_(torch.bmm(alpha.flatten(0, 1), problem.sentence_cells(v, chunk)))
        ctx.mark_non_differentiable(support)
        return output, support

    @staticmethod
    @full_precision
    def backward(ctx: Any, d_output: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v = ctx.saved_tensors
        problem: Problem = ctx.problem
        d_q, d_k, d_v = (torch.zeros_like(x) for x in (q, k, v))
        for chunk in problem.plan.chunks(problem.elements, "slots", problem.bank.heads):
            alpha = problem.sentence_weights(q, k, chunk)
            d_out = problem.query_cells(d_output, chunk)
            d_alpha = torch.bmm(d_out, problem.sentence_cells(v, chunk).transpose(1, 2)).view_as(alpha)
            problem.sentence_cells(d_v, chunk).baddbmm_(alpha.flatten(0, 1).transpose(1, 2), d_out)
            _sentence_backward(problem, chunk, alpha, d_alpha, q, k, d_q, d_k)
        return d_q, d_k, d_v, None


class FlatWordDense(torch.autograd.Function):
    """Flat attention over all words of a document, by the word kind. Cells: queries, word keys, word values."""

    @staticmethod
    @full_precision
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, problem: Problem) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(q, k, v)
        ctx.problem = problem
        output = torch.zeros_like(q)
        support = q.new_zeros(problem.plan.places + 1)
        for chunk in problem.plan.chunks(problem.elements, "columns", problem.bank.heads):
            weights = _document_word_weights(problem, q, k, chunk)
            target, begin, sentences = problem.query_cells(output, chunk), 0, []
            for segment in chunk.queries.group.segments:
                part = weights[..., begin : (begin := begin + segment.columns)]
                words = part.unflatten(-1, (segment.sentences, segment.width))
                sentences.append(words.sum(-1))
                if problem.recorder:
                    problem.recorder.words(chunk, segment, words)
                target.baddbmm_(part.flatten(0, 1), problem.word_cells(v, chunk, segment))
            alpha = torch.cat(sentences, -1)
            add_support(support, chunk, alpha)
            if problem.recorder:
                problem.recorder.sentences(chunk, alpha)
        ctx.mark_non_differentiable(support)
        return output, support

    @staticmethod
    @full_precision
    def backward(ctx: Any, d_output: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v = ctx.saved_tensors
        problem: Problem = ctx.problem
        d_q, d_k, d_v = (torch.zeros_like(x) for x in (q, k, v))
        for chunk in problem.plan.chunks(problem.elements, "columns", problem.bank.heads):
            weights = _document_word_weights(problem, q, k, chunk)
            d_out, queries = problem.query_cells(d_output, chunk), problem.query_cells(q, chunk)
            segments = chunk.queries.group.segments
            d_weights = torch.cat(
                [torch.bmm(d_out, problem.word_cells(v, chunk, s).transpose(1, 2)) for s in segments], -1
            )
            d_scores = jacobian_product(weights, d_weights.view_as(weights), problem.word_kind).flatten(0, 1)
            weights, begin = weights.flatten(0, 1), 0
            for segment in segments:
                columns = slice(begin, begin := begin + segment.columns)
                d_part, part = d_scores[..., columns], weights[..., columns]
                problem.word_cells(d_v, chunk, segment).baddbmm_(part.transpose(1, 2), d_out)
                problem.query_cells(d_q, chunk).baddbmm_(
                    d_part, problem.word_cells(k, chunk, segment), alpha=problem.scale
                )
                problem.word_cells(d_k, chunk, segment).baddbmm_(d_part.transpose(1, 2), queries, alpha=problem.scale)
        return d_q, d_k, d_v, None


def add_support(support: Tensor, chunk: Chunk, alpha: Tensor) -> None:
    """Counts the sentences with weight, over all heads, into support [places + 1]; alpha [b, H, q, J]."""
    q = chunk.queries
    view = support[q.places : q.places + q.group.size * q.length].view(-1, q.length)
    view[chunk.first : chunk.last, chunk.start : chunk.stop] = (alpha > 0).sum((1, 3)).to(support.dtype)


def _visible_weights(scores: Tensor, hidden: Tensor, kind: Kind) -> Tensor:
    """Weights over visible columns; scores are overwritten. Rows without any are zeros."""
    weights = normalise(scores.masked_fill_(hidden, -torch.inf), kind)
    return weights.masked_fill_(hidden, 0.0) if kind == "soft" else weights


def _of_segment(alpha: Tensor, segment: Segment) -> Tensor:
    """[b, H, q, J] -> [b * H, q, J of the segment, 1]"""
    return alpha.flatten(0, 1)[..., segment.first : segment.last].unsqueeze(-1)


def _rescaled_jacobian(weights: Tensor, share: Tensor, gradient: Tensor, kind: Kind) -> tuple[Tensor, Tensor]:
    """Gradients of scores and shares, where `gradient` is that of share * normalise(scores); it is overwritten."""
    d_share = (weights * gradient).sum(-1, keepdim=True)
    if kind == "soft":
        return gradient.sub_(d_share).mul_(weights).mul_(share), d_share
    s = slope(weights, kind)
    mean = (s * gradient).sum(-1, keepdim=True) / s.sum(-1, keepdim=True).clamp_min_(1e-30)
    return gradient.sub_(mean).mul_(s).mul_(share), d_share


def _sentence_backward(
    problem: Problem, chunk: Chunk, alpha: Tensor, d_alpha: Tensor, q: Tensor, k: Tensor, d_q: Tensor, d_k: Tensor
) -> None:
    """From the gradient of the sentence weights to that of their queries (set) and keys (added)."""
    d_scores = jacobian_product(alpha, d_alpha, problem.sentence_kind).mul_(problem.scale).flatten(0, 1)
    problem.query_cells(d_q, chunk).copy_(torch.bmm(d_scores, problem.sentence_cells(k, chunk)))
    problem.sentence_cells(d_k, chunk).baddbmm_(d_scores.transpose(1, 2), problem.query_cells(q, chunk))


def _document_word_weights(problem: Problem, q: Tensor, k: Tensor, chunk: Chunk) -> Tensor:
    """[b, H, q, columns of all segments] weights over all visible words."""
    hidden, scores, places = problem.hidden(chunk), [], []
    for segment in chunk.queries.group.segments:
        bias = segment.bias[problem.heads(chunk)]
        keys = problem.word_cells(k, chunk, segment).transpose(1, 2)
        scores.append(torch.bmm(problem.query_cells(q, chunk), keys))
        empty = (bias[:: problem.bank.heads] < 0).unsqueeze(1)  # [b, 1, 1, columns]
        places.append(hidden[..., segment.first : segment.last].repeat_interleave(segment.width, -1) | empty)
    joined = torch.cat(scores, -1).mul_(problem.scale)
    joined = joined.view(chunk.size, problem.bank.heads, *joined.shape[1:])
    return _visible_weights(joined, torch.cat(places, -1), problem.word_kind)
