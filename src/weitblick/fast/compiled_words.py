"""The best words of a step by compiled kernels: doubles of `weitblick.model.output`; see output.c.

One pass over the vocabulary computes logits strip by strip, keeps the best words and the sum of exponentials, and tells
the log-probabilities of words that were asked for; the logits themselves are never stored.
"""

from __future__ import annotations

from ctypes import Structure, byref, c_int64, c_void_p

import torch
from torch import Tensor

from weitblick.fast.best_words import SPARE, StepLogits, never_produced
from weitblick.fast.decoder import float_layer, integer_layer
from weitblick.fast.kernels import Kernels, PackedIntegers, address, address_of_ids, kernels_for
from weitblick.model.modifiers import Pointed, Shortlisted
from weitblick.model.output import Candidates, LookedUp, Softmax, Wanted, WordDistribution
from weitblick.text.base import EOS

KEPT = 16
"""Best words kept by a pass that is asked for others: enough for a beam of 6 (of 4 with 8 bits), which wants twice as
many, three that cannot be the first, and SPARE."""
WORTH = 2_000_000
"""Multiplications from which a second thread pays, four times as many of 8 bits: as in vectors.h."""
_ROOM = ("bytes", "level", "logits", "part_values", "part_ids", "highest", "sums", "values", "ends", "asked", "ids")


class _Request(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("rows", "first", "count", "end")),
        ("never", c_void_p),
        ("others", c_void_p),
        *((name, c_int64) for name in ("nevers", "others_count")),
        ("asked", c_void_p),
        ("asks", c_int64),
        ("weight", c_void_p),
        ("bias", c_void_p),
    )


class _Found(Structure):
    _fields_ = tuple((name, c_void_p) for name in _ROOM)


def choose_words(
    kernels: Kernels,
    states: Tensor,
    weight: Tensor,
    bias: Tensor,
    quick: PackedIntegers | None,
    count: int,
    forbidden: int,
    never: Tensor | None,
    others: Tensor | None,
    end: int,
    asked: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As `Kernels.choose` of the logits of states [N, d] by weight [V, d] and bias [V], and the log-probabilities of
    words asked [N, n]. quick: the same layer in 8 bits, by which words are chosen that are then scored anew; d is a
    multiple of `lanes` then."""
    states, weight = states.contiguous(), weight.contiguous()
    rows, inner = states.shape
    layer = float_layer(kernels, weight, bias) if quick is None else integer_layer(quick)
    wide = int(kernels.call.strip_width())
    strips = -(-layer.columns // wide)
    worth = rows * inner * layer.columns >= WORTH * (1 if quick is None else 4)
    parts = min(torch.get_num_threads(), strips) if worth else 1
    values, ends = torch.empty(rows, count), torch.empty(rows)
    ids = torch.empty(rows, count, dtype=torch.long)
    asked = ids.new_empty(rows, 0) if asked is None else asked.contiguous()
    asked_values = torch.empty(asked.shape)
    room = (
        torch.empty(0 if quick is None else rows * inner, dtype=torch.uint8),
        torch.empty(rows),
        torch.empty(parts * rows * wide),
        torch.empty(parts * rows * count),
        torch.empty(parts * rows * count, dtype=torch.long),
        *(torch.empty(strips * rows) for _ in range(2)),
        values,
        ends,
        asked_values,
        ids,
    )
    words = len(weight)
    request = _Request(
        rows,
        forbidden,
        count,
        end,
        address_of_ids(never, words),
        address_of_ids(others, words),
        0 if never is None else len(never),
        0 if others is None else len(others),
        address_of_ids(asked, words, (rows, asked.shape[1])),
        asked.shape[1],
        None if quick is None else address(weight, shape=(words, inner)),
        address(bias, shape=(words,)),
    )
    found = _Found(*(x.data_ptr() for x in room))  # which were made above
    kernels.call.choose_of_layer(
        byref(layer), address(states, shape=(rows, layer.inner)), byref(request), byref(found), parts
    )
    return values, ids, ends, asked_values


def packed_output(softmax: Softmax) -> PackedIntegers | None:
    """The output layer in 8 bits as the kernels read it; None: there is none, or PyTorch's."""
    packed = getattr(softmax.approximate, "packed", None)
    return packed if isinstance(packed, PackedIntegers) else None


def _kernels(x: Tensor) -> Kernels:
    found = kernels_for(x)
    assert found is not None
    return found


def best_compiled(words: WordDistribution, wanted: Wanted) -> Candidates:
    """Of a distribution without modifiers."""
    softmax, packed = words.softmax, packed_output(words.softmax)
    never = never_produced(wanted.others, words.states) if wanted.renormalize else None
    count = min(wanted.count + (0 if packed is None else SPARE), softmax.vocabulary)
    how = count, wanted.forbidden, never, wanted.others, EOS
    compiled = _kernels(words.states)
    return Candidates(*choose_words(compiled, words.states, softmax.weight, softmax.bias, packed, *how)[:3])


def best_of_shortlist_compiled(words: WordDistribution, wanted: Wanted) -> Candidates:
    """Of a distribution that a shortlist alone restricts."""
    (shortlist,) = words.modifiers
    assert isinstance(shortlist, Shortlisted)
    allowed, compiled = shortlist.allowed, _kernels(words.states)
    logits = compiled.linear(words.states, allowed.weight, allowed.bias)  # [N, U]
    logits.unflatten(0, (allowed.mask.shape[1], -1)).add_(allowed.mask.t()[:, None])
    never = never_produced(None, words.states) if wanted.renormalize else None
    found = compiled.choose(logits, min(wanted.count, len(allowed.ids)), wanted.forbidden, never, None, EOS)
    return Candidates(found[0], allowed.ids[found[1]], found[2])


def look_up_in_one_pass(words: WordDistribution, ids: Tensor, and_best: bool) -> LookedUp:
    """Words ids [N, n] of a distribution without modifiers, and its best words beside them."""
    softmax, packed = words.softmax, packed_output(words.softmax)
    how = KEPT, 0, None, None, EOS
    compiled = _kernels(words.states)
    values, best, end, asked = choose_words(
        compiled, words.states, softmax.weight, softmax.bias, packed, *how, asked=ids
    )
    return LookedUp(asked, values.amax(1), Candidates(values, best, end), 0 if packed is None else SPARE)


def has_kept_enough(pointed: Pointed, wanted: Wanted) -> bool:
    """Whether the best words that the pass kept for a pointer suffice for what is wanted."""
    own = pointed.own
    return (
        own is not None
        and own.best is not None
        and own.best.ids.shape[1] >= wanted.count + own.spare + wanted.forbidden
        and wanted.others is None
        and not wanted.renormalize
    )


def best_of_one_pass(words: WordDistribution, wanted: Wanted) -> Candidates:
    """Of a mixture with a pointer for whom `look_up_in_one_pass` has kept the best words."""
    from weitblick.fast.pointer import pointer_kernels

    pointed, kernels = words.pointed, pointer_kernels(words.states)
    assert kernels is not None
    assert pointed is not None
    assert pointed.own is not None
    assert pointed.own.best is not None
    own, best = pointed.own, pointed.own.best
    said = pointed.share, pointed.ids, pointed.weights, own.log_probabilities[:, : pointed.ids.shape[1]]
    kept = best.log_probabilities, best.ids
    return Candidates(*kernels.mix(kept, wanted.count + own.spare, best.end, said, wanted.count, wanted.forbidden, EOS))


def normalisers_compiled(states: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """See `weitblick.model.output.normalisers`."""
    compiled = _kernels(states)
    highest, normaliser = compiled.normalisers(compiled.linear(states, weight, bias))
    return normaliser, highest - normaliser


class CompiledStepLogits(StepLogits):
    """The logits of a step where these must be stored: a decision changes some, or more is wanted than a pass keeps."""

    def __init__(self, softmax: Softmax) -> None:
        compiled = self.compiled = _kernels(softmax.states)
        rows = compiled.linear(softmax.states, softmax.weight, softmax.bias)  # [N, V]
        highest, self.normaliser = compiled.normalisers(rows)
        self.logits, self.highest = rows.t(), highest - self.normaliser

    def best(self, wanted: Wanted) -> Candidates:
        never = never_produced(wanted.others, self.logits) if wanted.renormalize else None
        how = min(wanted.count, len(self.logits)), wanted.forbidden, never, wanted.others, EOS
        return Candidates(*self.compiled.choose(self.logits.t(), *how))

    def best_mixed(self, pointed: Pointed, wanted: Wanted) -> Candidates:
        from weitblick.fast.pointer import pointer_kernels

        kernels = pointer_kernels(self.normaliser)
        if kernels is None or wanted.others is not None or wanted.renormalize:
            return super().best_mixed(pointed, wanted)
        values, best = self._highest(wanted)
        own = values - self.normaliser[:, None], best
        end, count = self.logits[EOS] - self.normaliser, min(wanted.count, len(self.logits))
        said = pointed.share, pointed.ids, pointed.weights, self.log_probabilities(pointed.ids)
        return Candidates(*kernels.mix(own, count, end, said, count, wanted.forbidden, EOS))

    def _highest(self, wanted: Wanted) -> tuple[Tensor, Tensor]:
        return self.compiled.best(self.logits.t(), min(wanted.count, len(self.logits)), wanted.forbidden)
