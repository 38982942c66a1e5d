"""The best next words straight from the output layer, as a function of tensors; see output.c."""

from __future__ import annotations

from ctypes import Structure, byref, c_int64, c_void_p

import torch
from torch import Tensor

from weitblick.kernels.library import Kernels, PackedIntegers
from weitblick.kernels.linear import float_layer, integer_layer

WORTH = 2_000_000
"""Multiplications from which a second thread pays, four times as many of 8 bits: as in vectors.h."""
_ROOM = ("bytes", "level", "logits", "part_values", "part_ids", "highest", "sums", "values", "ends", "asked", "ids")


class _Wish(Structure):
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
    told = torch.empty(asked.shape)
    room = (
        torch.empty(0 if quick is None else rows * inner, dtype=torch.uint8),
        torch.empty(rows),
        torch.empty(parts * rows * wide),
        torch.empty(parts * rows * count),
        torch.empty(parts * rows * count, dtype=torch.long),
        *(torch.empty(strips * rows) for _ in range(2)),
        values,
        ends,
        told,
        ids,
    )
    wish = _Wish(
        rows,
        forbidden,
        count,
        end,
        None if never is None else never.data_ptr(),
        None if others is None else others.data_ptr(),
        0 if never is None else len(never),
        0 if others is None else len(others),
        asked.data_ptr(),
        asked.shape[1],
        None if quick is None else weight.data_ptr(),
        bias.data_ptr(),
    )
    found = _Found(*(x.data_ptr() for x in room))
    kernels.call.choose_of_layer(byref(layer), states.data_ptr(), byref(wish), byref(found), parts)
    return values, ids, ends, told
