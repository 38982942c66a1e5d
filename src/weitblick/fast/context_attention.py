"""Context attention at speed: packed, dense or routed; doubles of `lay_out` and `attend` in `model.plain_attention`.

    bank = lay_out(projected, settings)              once for a batch of documents
    read = attend(queries, layout, bank, settings)   any number of times

`context_bank` says where words and sentences lie, `context_queries` which queries read them; `context_dense` computes
every pair, `context_routed` only pairs with weight, and chooses between the two. The few queries of a step of decoding
are left to a compiled kernel where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from weitblick.fast.context_kernel import KINDS, ContextReader
from weitblick.fast.kernels import kernels_for
from weitblick.model.batch import Layout
from weitblick.model.context_module import Projected
from weitblick.model.plain_attention import PROBES, Attended, AttentionBank, AttentionSettings, WeightDropout

if TYPE_CHECKING:  # where a kernel reads the context, nothing else is loaded
    from weitblick.fast.context_bank import BankCells
    from weitblick.fast.context_dense import Problem


class ContextBank(AttentionBank):
    """All context sentences of a batch; built once, read at every step of decoding. They are laid out as cells when
    there are queries that read cells, and for kernels when there are steps that these read."""

    def __init__(
        self,
        projected: Projected,
        lay_out: Callable[[Projected], BankCells],
        reader: Callable[[Projected], ContextReader | None],
    ) -> None:
        super().__init__(projected)
        self._lay_out, self._reader = lay_out, reader

    @cached_property
    def cells(self) -> BankCells:
        return self._lay_out(self.projected)

    @cached_property
    def reader(self) -> ContextReader | None:
        """For steps of decoding; None where kernels cannot read this context."""
        return self._reader(self.projected)


def lay_out(projected: Projected, settings: AttentionSettings) -> ContextBank:
    """Projected sentences as attention reads them."""
    return ContextBank(
        projected, lambda context: _lay_out_cells(context, settings), lambda context: _reader_of(context, settings)
    )


def _lay_out_cells(projected: Projected, settings: AttentionSettings) -> BankCells:
    """Here it is decided which documents are routed: by what they are, never by who reads them or what else is in the
    batch."""
    from weitblick.fast.context_bank import BankCells, BankLayout
    from weitblick.fast.context_routed import documents_to_route

    places = BankLayout(projected.layout, settings.heads)
    rows = {name: _cells(rows, settings) for name, rows in projected.rows.items()}
    cells = {
        name: (places.sentence_gather if name.startswith("sentence") else places.word_gather)(rows[name])
        for name in ("sentence_keys", "sentence_values", "word_keys", "word_values")
        if name in rows
    }
    bank = BankCells(
        places,
        cells.get("sentence_keys"),
        cells.get("sentence_values"),
        cells.get("word_keys"),
        cells.get("word_values"),
    )
    return replace(bank, routed=documents_to_route(bank, rows.get(PROBES), settings))


def _reader_of(projected: Projected, settings: AttentionSettings) -> ContextReader | None:
    kinds = settings.sentence_kind, settings.word_kind
    if "word_keys" not in projected.rows or not set(kinds) <= KINDS.keys():
        return None
    compiled = kernels_for(projected.parts[0].rows["word_keys"])
    if compiled is None or settings.width % compiled.lanes:
        return None
    parts = [(part.layout, part.rows) for part in projected.parts]
    return ContextReader(compiled, parts, settings.heads, settings.width, settings.online, kinds)


def attend(
    queries: Mapping[str, Tensor],
    layout: Layout,
    bank: AttentionBank,
    settings: AttentionSettings,
    dropout: WeightDropout | None = None,
) -> Attended:
    """See `weitblick.model.plain_attention.attend`; of a bank that `lay_out` made."""
    assert isinstance(bank, ContextBank)
    if dropout is None and _is_step(queries, layout, settings) and bank.reader is not None:
        read, support = bank.reader(queries.get("sentence_queries"), queries["word_queries"], layout)
        return Attended(read, support > 0, support)
    return _attend_cells(queries, layout, bank.cells, settings, dropout)


def _is_step(queries: Mapping[str, Tensor], layout: Layout, settings: AttentionSettings) -> bool:
    """Whether these are queries of a step of decoding, one of each sentence, that kernels may read for."""
    words = queries.get("word_queries")
    return settings.path == "auto" and words is not None and layout.longest == 1 and kernels_for(words) is not None


def _attend_cells(
    queries: Mapping[str, Tensor],
    layout: Layout,
    bank: BankCells,
    settings: AttentionSettings,
    dropout: WeightDropout | None,
) -> Attended:
    from weitblick.fast.context_dense import FlatDense, FlatWordDense, Problem
    from weitblick.fast.context_queries import plan_of

    plan = plan_of(layout, bank.layout)
    problem = Problem(
        bank.layout,
        plan,
        settings.online,
        settings.sentence_kind,
        settings.word_kind,
        settings.width,
        differentiable=torch.is_grad_enabled(),
        dropout=dropout,
    )
    cells = {name: plan.spread(_cells(rows, settings)) for name, rows in queries.items()}
    if "word_queries" not in cells:
        read = FlatDense.apply(cells["sentence_queries"], bank.sentence_keys, bank.sentence_values, problem)
    elif "sentence_queries" not in cells:
        read = FlatWordDense.apply(cells["word_queries"], bank.word_keys, bank.word_values, problem)
    else:
        read = _hierarchical(cells["sentence_queries"], cells["word_queries"], layout, bank, problem, settings)
    values, support = read
    return Attended(
        plan.collect(values).view(-1, settings.heads * settings.width),
        plan.visible(settings.online),
        support[plan.token_place] / settings.heads,
    )


def _hierarchical(
    qs: Tensor, qw: Tensor, layout: Layout, bank: BankCells, problem: Problem, settings: AttentionSettings
) -> tuple[Tensor, Tensor]:
    from weitblick.fast.context_dense import HierarchicalDense
    from weitblick.fast.context_routed import HierarchicalRouted, routed_now

    tensors = (qs, qw, bank.sentence_keys, bank.word_keys, bank.word_values)
    routed = routed_now(bank, layout, settings)
    if routed is None or not routed.any():
        return HierarchicalDense.apply(*tensors, problem)
    if all(routed[queries.group.documents].all() for queries in problem.plan.groups):
        return HierarchicalRouted.apply(*tensors, problem)
    dense, dense_support = HierarchicalDense.apply(*tensors, problem.choosing(~routed))
    sparse, sparse_support = HierarchicalRouted.apply(*tensors, problem.choosing(routed, other_masks=True))
    return dense + sparse, dense_support + sparse_support


def _cells(rows: Tensor, settings: AttentionSettings) -> Tensor:
    """[n, H * d_k] -> [n * H, d_k], in float32 at least: under autocast projections come in half precision."""
    wide = torch.promote_types(rows.dtype, torch.float32)
    return rows.to(wide).view(-1, rows.shape[-1] // settings.heads)
