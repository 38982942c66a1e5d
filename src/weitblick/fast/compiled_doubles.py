"""The doubles by compiled kernels, and when each computes: on the CPU, in float32, without a gradient.

Importing this module registers them; they go before all doubles in PyTorch.
"""

from __future__ import annotations

from torch import Tensor, nn

import weitblick.fast.doubles  # noqa: F401 (which are registered first)
from weitblick.fast import compiled_words as words_of_step
from weitblick.fast.best_words import step_logits
from weitblick.fast.compiled_words import KEPT, has_kept_enough, packed_output
from weitblick.fast.decoder import can_step, compiled_step
from weitblick.fast.kernels import MOST_CELLS, Kernels, kernels_for
from weitblick.model.batch import Layout
from weitblick.model.layers import Dropout, attend_inside, attend_step, linear, normalise
from weitblick.model.modifiers import Pointed, Shortlisted
from weitblick.model.output import WordDistribution, best_words, look_up, normalisers
from weitblick.model.transformer import decoder_step


def kernels_of(x: Tensor) -> Kernels:
    """The kernels that a condition has found to be there."""
    found = kernels_for(x)
    assert found is not None
    return found


def _has_lanes(x: Tensor, width: int) -> bool:
    """Whether there are kernels for `x` whose vectors fill up rows of a width."""
    found = kernels_for(x)
    return found is not None and width % found.lanes == 0


# The layers of a Transformer.


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None, rectified: bool) -> Tensor:
    return kernels_of(x).linear(x, weight, bias, rectified)


def _normalise(norm: nn.LayerNorm, x: Tensor, change: Tensor | None) -> Tensor:
    return kernels_of(x).norm(norm, x, change)


def _attend_inside(projected: Tensor, layout: Layout, heads: int, causal: bool, dropout: Dropout) -> Tensor:
    return kernels_of(projected).attend_sentences(projected, layout.starts, heads, causal)


def _attend_step(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    return kernels_of(q).attend(q, k, v, bias)


linear.add_double(_linear, when=lambda x, weight, bias, rectified: kernels_for(x) is not None)
normalise.add_double(
    _normalise, when=lambda norm, x, change: not norm.training and x.dim() == 2 and _has_lanes(x, x.shape[-1])
)
attend_inside.add_double(
    _attend_inside,
    when=lambda projected, layout, heads, causal, dropout: (
        not (dropout.training and dropout.rate > 0)
        and layout.longest <= MOST_CELLS
        and _has_lanes(projected, projected.shape[1] // (3 * heads))
    ),
)
attend_step.add_double(_attend_step, when=lambda q, k, v, bias: k.shape[2] <= MOST_CELLS and _has_lanes(q, k.shape[3]))
decoder_step.add_double(compiled_step, when=can_step)


# The best words of a step of decoding.


def _can(words: WordDistribution) -> bool:
    return kernels_for(words.states) is not None


def _has_output(words: WordDistribution) -> bool:
    """Whether the kernels have the output layer: 8 bits may be PyTorch's."""
    return _can(words) and (words.softmax.approximate is None or packed_output(words.softmax) is not None)


best_words.add_double(
    words_of_step.best_compiled, when=lambda words, wanted: not words.modifiers and _has_output(words)
)
best_words.add_double(
    words_of_step.best_of_shortlist_compiled,
    when=lambda words, wanted: words.is_only(Shortlisted) and _can(words),
)
best_words.add_double(
    words_of_step.best_of_one_pass,
    when=lambda words, wanted: (
        words.is_only(Pointed) and _can(words) and words.pointed is not None and has_kept_enough(words.pointed, wanted)
    ),
)
look_up.add_double(
    words_of_step.look_up_in_one_pass,
    when=lambda words, ids, and_best: (
        and_best and not words.modifiers and words.softmax.vocabulary >= KEPT and _can(words)
    ),
)
step_logits.add_double(words_of_step.CompiledStepLogits, when=lambda softmax: kernels_for(softmax.states) is not None)
normalisers.add_double(
    words_of_step.normalisers_compiled, when=lambda states, weight, bias: kernels_for(states) is not None
)
