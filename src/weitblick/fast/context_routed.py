"""Routed H-Attention: words of a context sentence are read only by the queries that give the sentence any weight.

With sparse attention over sentences most (query, head, sentence) triples have weight zero: they add nothing to the
output and get no gradient. As in mixture-of-experts layers, the other triples are sorted by (document, head, sentence),
a *row* of the bank, and each row's queries are cut into tiles of equal capacity, which are batches of small matrix
products. The result is that of dense attention, forward and backward; the cost follows the support.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from weitblick.fast.context_bank import BankCells, BankLayout, DocumentGroup, Segment
from weitblick.fast.context_dense import Problem, dropped, dropped_backward, full_precision, of_sentences
from weitblick.model.attention_definition import Masks
from weitblick.model.batch import Layout
from weitblick.model.plain_attention import AttentionSettings
from weitblick.model.sparsemax import normalise, normalise_entries, rescaled_jacobian_product, slope
from weitblick.model.tuning import tuning_for

LIKELY_SUPPORT = 4.0
"""Sentences that a query reads where routing is chosen; trained layers read 3 to 6."""


@dataclass(frozen=True)
class Routes:
    """The M triples with weight, in order of their query cell, and where they stand among the tiles.

    A slot is a place for one triple in a tile; slots left over have weight zero.
    """

    weights: Tensor  # [M] alpha_s, before dropout
    queries: Tensor  # [M] query cell, never falling
    sentences: Tensor  # [M] sentence cell
    query_starts: Tensor  # [query cells + 1] first triple of each query cell
    by_row: Tensor  # [M] triples in order of their row
    row_starts: Tensor  # [rows] first of each row in that order
    slots: Tensor  # [M] slot of each triple
    slot_queries: Tensor  # [tiles * C] query cell of each slot
    slot_weights: Tensor  # [tiles * C]
    tile_rows: Tensor  # [tiles] row of each tile, never falling
    capacity: int  # C

    @classmethod
    def of(cls, weights: Tensor, queries: Tensor, sentences: Tensor, problem: Problem, masks: Masks | None) -> Routes:
        order = _stable_order(queries)
        weights, queries, sentences = (x.index_select(0, order) for x in (weights, queries, sentences))
        row_of_triple = problem.bank.cell_rows.index_select(0, sentences)
        by_row = _stable_order(row_of_triple)
        counts = torch.bincount(row_of_triple, minlength=problem.bank.rows)
        row_starts = counts.cumsum(0) - counts
        capacity = _capacity(problem)
        tiles = (counts + capacity - 1).div(capacity, rounding_mode="floor")
        tile_starts = tiles.cumsum(0) - tiles
        tile_rows = torch.repeat_interleave(tiles)
        shift = torch.repeat_interleave(tile_starts * capacity - row_starts, counts, output_size=len(by_row))
        slots_by_row = torch.arange(len(by_row), device=by_row.device).add_(shift)
        slots = torch.empty_like(by_row).scatter_(0, by_row, slots_by_row)
        slot_queries = queries.new_zeros(len(tile_rows) * capacity).scatter_(0, slots, queries)
        slot_weights = weights.new_zeros(len(tile_rows) * capacity).scatter_(0, slots, dropped(weights, masks))
        query_counts = torch.bincount(queries, minlength=problem.plan.cells + 1)
        return cls(
            weights=weights,
            queries=queries,
            sentences=sentences,
            query_starts=query_counts.cumsum(0) - query_counts,
            by_row=by_row,
            row_starts=row_starts,
            slots=slots,
            slot_queries=slot_queries,
            slot_weights=slot_weights,
            tile_rows=tile_rows,
            capacity=capacity,
        )

    def tiles_of(self, problem: Problem, d_k: int) -> list[tuple[DocumentGroup, Segment, slice]]:
        """The tiles of each segment, in slices that hold few enough numbers."""
        segments = [(group, segment) for group in problem.bank.groups for segment in group.segments]
        edges = torch.tensor([segment.rows for _, segment in segments] + [problem.bank.rows])
        cuts = torch.searchsorted(self.tile_rows, edges.to(self.tile_rows.device)).tolist()
        parts = []
        for (group, segment), begin, end in zip(segments, cuts[:-1], cuts[1:], strict=True):
            numbers = self.capacity * (segment.width + d_k) + segment.width * d_k
            step = max(1, tuning_for(problem.bank.device).tile // numbers)
            parts += [(group, segment, slice(t, min(t + step, end))) for t in range(begin, end, step)]
        return parts


class HierarchicalRouted(torch.autograd.Function):
    """The same as `HierarchicalDense`, for sparse attention over sentences."""

    @staticmethod
    @full_precision
    def forward(
        ctx: Any, qs: Tensor, qw: Tensor, ks: Tensor, kw: Tensor, vw: Tensor, problem: Problem
    ) -> tuple[Tensor, Tensor]:
        masks = problem.masks(qs.device)
        routes = _find_routes(qs, ks, problem, masks)
        read = qw.new_empty(len(routes.slot_queries), vw.shape[-1])  # [slots, d_k]
        ctx.kept = []
        for group, segment, tiles in routes.tiles_of(problem, qw.shape[-1]):
            blocks = _tile_blocks(routes, segment, tiles)
            q, k = _gather_slots(qw, routes, tiles), _row_blocks(kw, problem, group, segment).index_select(0, blocks)
            bias = segment.bias.to(kw.dtype).view(-1, segment.width, 1).index_select(0, blocks)
            scores = problem.products(k, q, bias)  # [tiles, W, C]
            share = _slots(routes.slot_weights, routes, tiles).unsqueeze(1)
            weights = normalise(scores, problem.word_kind, 1, share)
            values = _row_blocks(vw, problem, group, segment).index_select(0, blocks)
            torch.bmm(dropped(weights, masks).transpose(1, 2), values, out=_slots(read, routes, tiles))
            if problem.differentiable:
                ctx.kept.append(weights)
        output = _sum_by_query(routes.slots, read, routes)
        support = _support(routes, problem)
        ctx.save_for_backward(qs, qw, ks, kw, vw)
        ctx.problem, ctx.routes = problem, routes
        ctx.mark_non_differentiable(support)
        return output, support

    @staticmethod
    @full_precision
    def backward(ctx: Any, d_output: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        qs, qw, ks, kw, vw = ctx.saved_tensors
        problem: Problem = ctx.problem
        routes: Routes = ctx.routes
        d_kw, d_vw = torch.zeros_like(kw), torch.zeros_like(vw)
        d_slot_queries = qw.new_empty(len(routes.slot_queries), qw.shape[-1])
        d_slot_weights = torch.empty_like(routes.slot_weights)
        masks = problem.masks(qs.device)
        sentence_mask = None if masks is None else masks(routes.weights)
        parts = routes.tiles_of(problem, qw.shape[-1])
        for (group, segment, tiles), weights in zip(parts, ctx.kept, strict=True):
            blocks = _tile_blocks(routes, segment, tiles)
            d_out, q = _gather_slots(d_output, routes, tiles), _gather_slots(qw, routes, tiles)
            share = _slots(routes.slot_weights, routes, tiles).unsqueeze(1)  # [tiles, 1, C]
            values = _row_blocks(vw, problem, group, segment).index_select(0, blocks)
            d_weights = torch.bmm(values, d_out.transpose(1, 2))
            read = dropped_backward(weights, d_weights, masks)
            d_scores, d_share = rescaled_jacobian_product(weights, share, d_weights, problem.word_kind, 1)
            d_scores.mul_(problem.scale)
            _slots(d_slot_weights, routes, tiles).copy_(d_share.squeeze(1))
            keys = _row_blocks(kw, problem, group, segment).index_select(0, blocks)
            torch.bmm(d_scores.transpose(1, 2), keys, out=_slots(d_slot_queries, routes, tiles))
            _row_blocks(d_kw, problem, group, segment).index_add_(0, blocks, torch.bmm(d_scores, q))
            _row_blocks(d_vw, problem, group, segment).index_add_(0, blocks, torch.bmm(read, d_out))
        d_qw = _sum_by_query(routes.slots, d_slot_queries, routes)
        d_weights = d_slot_weights.index_select(0, routes.slots)
        d_weights = d_weights if sentence_mask is None else d_weights * sentence_mask
        d_qs, d_ks = _sentence_gradients(qs, ks, problem, routes, d_weights)
        return d_qs, d_qw, d_ks, d_kw, d_vw, None


def _capacity(problem: Problem) -> int:
    """Slots of a tile: about half the number of queries that a row is likely to have, so that little of a last tile is
    empty. From shapes alone: were it from the support found, future sentences would change how past ones are added."""
    queries = sum(int(q.counts[problem.of_group(q.group)].sum()) for q in problem.plan.groups)
    sentences = sum(int(q.group.counts[problem.of_group(q.group)].sum()) for q in problem.plan.groups)
    likely = LIKELY_SUPPORT * queries / max(sentences, 1)
    for capacity in (64, 32, 16, 8, 4):
        if likely >= 1.5 * capacity:
            return capacity
    return 2 if likely > 1.5 else 1


def _find_routes(qs: Tensor, ks: Tensor, problem: Problem, masks: Masks | None) -> Routes:
    """The triples with weight of all chosen documents, from scores of one chunk of queries at a time."""
    empty = torch.zeros(0, dtype=torch.long, device=qs.device)
    weights, queries, sentences = [qs.new_zeros(0)], [empty], [empty]
    for chunk in problem.chunks(of_sentences, tuning_for(problem.bank.device).sentence_chunk):
        scores = problem.sentence_scores(qs, ks, chunk)  # [b, H, J, q]
        entries = normalise_entries(scores.flatten(0, 1), problem.sentence_kind)
        head = entries.outer + chunk.first * problem.bank.heads  # of B * H
        weights.append(entries.weights)
        queries.append(chunk.queries.cells + chunk.start + head * chunk.queries.length + entries.inner)
        sentences.append(chunk.queries.group.cells + head * chunk.queries.group.slots + entries.place)
    return Routes.of(torch.cat(weights), torch.cat(queries), torch.cat(sentences), problem, masks)


def _support(routes: Routes, problem: Problem) -> Tensor:
    """[places + 1] sentences in support, summed over heads."""
    counts = routes.query_starts.diff(append=routes.query_starts.new_tensor([len(routes.queries)]))
    support = routes.weights.new_zeros(problem.plan.places + 1)
    for q in problem.plan.groups:
        places, cells = q.group.size * q.length, q.group.size * problem.bank.heads * q.length
        by_head = counts[q.cells : q.cells + cells].view(q.group.size, problem.bank.heads, q.length)
        support[q.places : q.places + places] = by_head.sum(1).flatten()
    return support


def _stable_order(numbers: Tensor) -> Tensor:
    """Indices that sort whole numbers, equal ones as they stand. Half the width is sorted in half the time."""
    return numbers.int().sort(stable=True).indices


def _slots(tensor: Tensor, routes: Routes, tiles: slice) -> Tensor:
    """[slots, ...] -> [tiles, C, ...], a view."""
    return tensor[tiles.start * routes.capacity : tiles.stop * routes.capacity].unflatten(0, (-1, routes.capacity))


def _gather_slots(cells: Tensor, routes: Routes, tiles: slice) -> Tensor:
    """[query cells + 1, d_k] -> [tiles, C, d_k]"""
    chosen = routes.slot_queries[tiles.start * routes.capacity : tiles.stop * routes.capacity]
    return cells.index_select(0, chosen).view(-1, routes.capacity, cells.shape[-1])


def _row_blocks(cells: Tensor, problem: Problem, group: DocumentGroup, segment: Segment) -> Tensor:
    """[word cells, d_k] -> [rows of the segment, W, d_k], a view."""
    count = group.size * problem.bank.heads * segment.columns
    return cells[segment.cells : segment.cells + count].view(-1, segment.width, cells.shape[-1])


def _tile_blocks(routes: Routes, segment: Segment, tiles: slice) -> Tensor:
    return routes.tile_rows[tiles] - segment.rows


def _sum_by_query(index: Tensor, rows: Tensor, routes: Routes, weights: Tensor | None = None) -> Tensor:
    """[query cells + 1, d_k]: the (weighted) sum of the rows of each query's triples; index [M] into rows."""
    if not len(rows):
        return rows.new_zeros(len(routes.query_starts), rows.shape[-1])
    return F.embedding_bag(index, rows, routes.query_starts, mode="sum", per_sample_weights=weights)


def _sentence_gradients(
    qs: Tensor, ks: Tensor, problem: Problem, routes: Routes, d_weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of sentence queries and keys; off the support they are zero, so the triples are all there is."""
    d_ks = torch.zeros_like(ks)
    if not len(routes.weights):
        return torch.zeros_like(qs), d_ks
    s = slope(routes.weights, problem.sentence_kind)
    sums = s.new_zeros(2, len(routes.query_starts))
    sums[0].index_add_(0, routes.queries, s * d_weights)
    sums[1].index_add_(0, routes.queries, s)
    mean = sums[0] / sums[1].clamp_min(1e-30)
    d_scores = s * (d_weights - mean[routes.queries]) * problem.scale
    d_qs = _sum_by_query(routes.sentences, ks, routes, d_scores)
    by_row = F.embedding_bag(
        routes.queries[routes.by_row],
        qs,
        routes.row_starts,
        mode="sum",
        per_sample_weights=d_scores[routes.by_row],
    )
    return d_qs, d_ks.index_copy_(0, problem.bank.row_cells, by_row)


# Which documents are routed. The choice is about speed alone; it is made from a document's own shape and states, so
# that what a sentence reads never depends on its neighbours in a batch.

# Where routing pays, measured on one processor (benchmarks/context_attention.py): below that share of sentences in
# support, from so many sentences and so many pairs of a word and a sentence of a document; sorting few of them costs
# more than it saves. Another processor may move the break-even, never the result.
SUPPORT = 0.35
SENTENCES = 8
PAIRS = 2000
# Online the choice must not depend on weights, or future sentences could change it: there length alone decides.
ONLINE_SENTENCES = 400
# A step of decoding has few queries, whatever the document: there it pays from so many sentences on.
STEP_SENTENCES = 64
# Sentences of a document whose support is looked at.
SAMPLE = 32


def routed_now(bank: BankCells, layout: Layout, settings: AttentionSettings) -> np.ndarray | None:
    """[documents + 1] which documents to route for these queries: fewer in a step of decoding."""
    if bank.routed is None or settings.path != "auto" or layout.longest > 1:
        return bank.routed
    return bank.routed & (bank.layout.count_of >= STEP_SENTENCES)


def documents_to_route(bank: BankCells, probes: Tensor | None, settings: AttentionSettings) -> np.ndarray | None:
    """[documents + 1] which documents of a bank to route."""
    places, counts = bank.layout, bank.layout.count_of  # [documents + 1] sentences with words
    if settings.path == "dense" or settings.sentence_kind == "soft" or bank.word_keys is None:
        return None
    if settings.path == "routed":
        return counts > 0
    tokens = np.bincount(places.documents, weights=places.words + 1, minlength=len(counts))
    worth = (counts >= (ONLINE_SENTENCES if settings.online else SENTENCES)) & (tokens * counts >= PAIRS)
    if worth.any() and probes is not None and bank.sentence_keys is not None:
        worth &= _measured_support(places, probes, bank.sentence_keys, settings) <= SUPPORT * counts
    return worth


@torch.no_grad()
def _measured_support(places: BankLayout, probes: Tensor, keys: Tensor, settings: AttentionSettings) -> np.ndarray:
    """[documents + 1] mean number of sentences in support of some sentences of each document, evenly spread."""
    found = np.zeros(len(places.count_of))
    cells = places.sentence_gather(probes)
    for group in places.groups:
        size, shape = group.size * places.heads * group.slots, (group.size, places.heads, group.slots, -1)
        k, q = (x.narrow(0, group.cells, size).view(shape) for x in (keys, cells))
        count = min(SAMPLE, group.slots)
        sample = torch.from_numpy(group.counts[:, None] * np.arange(count) // count).to(k.device)  # [B, n]
        q = q.gather(2, sample[:, None, :, None].expand(-1, places.heads, -1, q.shape[-1]))
        hidden = group.positions[:, :, None] == group.positions.gather(1, sample)[:, None]  # [B, J, n]
        hidden |= group.positions[:, :, None] < 0
        scores = (k @ q.transpose(2, 3)).div_(math.sqrt(settings.width)).masked_fill_(hidden.unsqueeze(1), -torch.inf)
        weights = normalise(scores, settings.sentence_kind, 2)
        found[group.documents] = (weights > 0).sum(2).to(torch.float64).mean((1, 2)).cpu().numpy()
    return found
