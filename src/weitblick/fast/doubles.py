"""The doubles in PyTorch of the model's definitions, and when each computes in the place of its definition.

Importing this module registers them. Of several doubles of a definition whose conditions hold, the last one here
computes: special ones come behind general ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from weitblick.fast import best_words as words_of_step
from weitblick.model import plain_attention
from weitblick.model.batch import Grid, Layout
from weitblick.model.context_module import Projected
from weitblick.model.layers import Dropout, attend_inside, attend_source
from weitblick.model.modifiers import Decided, Pointed, Shortlisted
from weitblick.model.output import WordDistribution, best_words, look_up, probability_together
from weitblick.model.plain_attention import Attended, AttentionBank, AttentionSettings, WeightDropout

# What follows is imported when it first computes: a model that does not need it never loads it.


def _lay_out(projected: Projected, settings: AttentionSettings) -> AttentionBank:
    from weitblick.fast.context_attention import lay_out

    return lay_out(projected, settings)


def _attend(
    queries: Mapping[str, Tensor],
    layout: Layout,
    bank: AttentionBank,
    settings: AttentionSettings,
    dropout: WeightDropout | None = None,
) -> Attended:
    from weitblick.fast.context_attention import attend

    return attend(queries, layout, bank, settings, dropout)


plain_attention.lay_out.add_double(_lay_out, when=lambda projected, settings: True)
plain_attention.attend.add_double(
    _attend, when=lambda queries, layout, bank, settings, dropout=None: type(bank) is not AttentionBank
)


def _drops_on_the_cpu(x: Tensor, dropout: Dropout) -> bool:
    """Whether attention weights are dropped in training on the CPU; elsewhere PyTorch has fused kernels."""
    return dropout.training and dropout.rate > 0 and x.device.type == "cpu" and len(x) > 0


def _attend_inside(projected: Tensor, layout: Layout, heads: int, causal: bool, dropout: Dropout) -> Tensor:
    from weitblick.fast.grid_attention import attend_inside_by_rows

    return attend_inside_by_rows(projected, layout, heads, causal, dropout)


def _attend_source(
    queries: Tensor, source: Tensor, grid: Grid, source_grid: Grid, heads: int, dropout: Dropout
) -> Tensor:
    from weitblick.fast.grid_attention import attend_source_by_rows

    return attend_source_by_rows(queries, source, grid, source_grid, heads, dropout)


attend_inside.add_double(
    _attend_inside, when=lambda projected, layout, heads, causal, dropout: _drops_on_the_cpu(projected, dropout)
)
attend_source.add_double(
    _attend_source,
    when=lambda queries, source, grid, source_grid, heads, dropout: _drops_on_the_cpu(queries, dropout),
)


# The best words of a step of decoding.


def is_changed_step(words: WordDistribution) -> bool:
    """Whether a small distribution is changed by a decision, a pointer or both."""
    return words.softmax.is_small and any(
        words.is_only(*kinds) for kinds in ((Decided,), (Pointed,), (Decided, Pointed))
    )


best_words.add_double(words_of_step.best_of_softmax, when=lambda words, wanted: not words.modifiers)
best_words.add_double(
    words_of_step.best_rescored,
    when=lambda words, wanted: not words.modifiers and words.softmax.approximate is not None,
)
best_words.add_double(words_of_step.best_of_shortlist, when=lambda words, wanted: words.is_only(Shortlisted))
best_words.add_double(words_of_step.best_of_step, when=lambda words, wanted: is_changed_step(words))
best_words.add_double(
    words_of_step.best_of_mixture_rescored,
    when=lambda words, wanted: (
        words.is_only(Pointed) and words.softmax.is_small and words.softmax.approximate is not None
    ),
)
look_up.add_double(words_of_step.look_up_in_many, when=lambda words, ids, and_best: True)
look_up.add_double(words_of_step.look_up_in_step, when=lambda words, ids, and_best: words.softmax.is_small)
probability_together.add_double(words_of_step.probability_in_many, when=lambda softmax, ids: True)
probability_together.add_double(words_of_step.probability_in_step, when=lambda softmax, ids: softmax.is_small)
