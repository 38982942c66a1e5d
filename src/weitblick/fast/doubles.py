"""The doubles in PyTorch of the model's definitions, and when each computes in the place of its definition.

Importing this module registers them. Of several doubles of a definition whose conditions hold, the last one here
computes: special ones come behind general ones.
"""

from __future__ import annotations

from torch import Tensor

from weitblick.common.imports import lazy
from weitblick.fast import best_words as words_of_step
from weitblick.model import plain_attention
from weitblick.model.layers import Dropout, attend_inside, attend_source
from weitblick.model.modifiers import Pointed, Shortlisted, WordChoice
from weitblick.model.output import WordDistribution, best_words, look_up, probability_together
from weitblick.model.plain_attention import AttentionBank

# `lazy`: imported when it first computes; a model that does not need it never loads it.

plain_attention.lay_out.add_double(lazy("fast.context_attention.lay_out"), when=lambda projected, settings: True)
plain_attention.attend.add_double(
    lazy("fast.context_attention.attend"),
    when=lambda queries, layout, bank, settings, dropout=None: type(bank) is not AttentionBank,
)


def _drops_on_the_cpu(x: Tensor, dropout: Dropout) -> bool:
    """Whether attention weights are dropped in training on the CPU; elsewhere PyTorch has fused kernels."""
    return dropout.training and dropout.rate > 0 and x.device.type == "cpu" and len(x) > 0


attend_inside.add_double(
    lazy("fast.grid_attention.attend_inside_by_rows"),
    when=lambda projected, layout, heads, causal, dropout: _drops_on_the_cpu(projected, dropout),
)
attend_source.add_double(
    lazy("fast.grid_attention.attend_source_by_rows"),
    when=lambda queries, source, grid, source_grid, heads, dropout: _drops_on_the_cpu(queries, dropout),
)


# The best words of a step of decoding.


def is_changed_step(words: WordDistribution) -> bool:
    """Whether a small distribution is changed by a decision, a pointer or both."""
    return words.softmax.is_small and any(
        words.is_only(*kinds) for kinds in ((WordChoice,), (Pointed,), (WordChoice, Pointed))
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
