"""A step of a Transformer's decoder in one call of a compiled function, instead of some forty calls for each layer."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_double, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from weitblick.kernels.library import Kernels, PackedIntegers
from weitblick.kernels.linear import LinearLayer, float_layer, integer_layer

ACTIVATIONS = {"relu": 1, "swish": 2}
GAP = 16
"""Numbers between the keys and values of two cells: a power of two apart, all would compete for a few places of the
cache."""


class _Norm(Structure):
    _fields_ = (("weight", c_void_p), ("bias", c_void_p), ("epsilon", c_double))


class _Layer(Structure):
    _fields_ = (
        *((name, LinearLayer) for name in ("input", "output", "query", "read", "widen", "narrow")),
        *((name, _Norm) for name in ("attention", "source", "feed_forward")),
    )


class _Decoder(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("count", "size", "heads", "inner", "norms_before", "activation")),
        ("layers", POINTER(_Layer)),
        ("last", POINTER(_Norm)),
        ("table", c_void_p),
        ("scale", c_double),
    )


class _Step(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("sentences", "hypotheses", "cells", "room", "cell", "words")),
        ("tokens", c_void_p),
        ("position", c_void_p),
        ("pasts", POINTER(c_void_p)),
        ("past_bias", c_void_p),
        ("keys", POINTER(c_void_p)),
        ("values", POINTER(c_void_p)),
        ("memory_bias", c_void_p),
        ("attended", c_void_p),
        ("final", c_void_p),
        ("space", c_void_p),
    )


@dataclass(frozen=True)
class LayerParts:
    """The linear layers and norms of a decoder layer, in the order of `_Layer`; linear layers are PyTorch's or packed
    8-bit ones."""

    linears: Sequence[nn.Linear | PackedIntegers]
    norms: Sequence[nn.LayerNorm]


class CompiledDecoder:
    """The weights of a decoder as they are now; for one search, in which they do not change."""

    def __init__(
        self,
        kernels: Kernels,
        layers: Sequence[LayerParts],
        last: nn.LayerNorm | None,
        table: Tensor,
        scale: float,
        heads: int,
        activation: str,
    ) -> None:
        """last: the norm behind the layers of a decoder whose norms stand before sub-layers."""
        self.kernels = kernels
        self.kept: list[Any] = [layers, last, table]  # what the structures point to
        self.size = table.shape[1]
        self.layers = (_Layer * len(layers))()
        inner = self.size
        for layer, parts in zip(self.layers, layers, strict=True):
            linears = [self._linear(part) for part in parts.linears]
            inner = max(inner, linears[-1].inner)
            for field, part in zip(_Layer._fields_, [*linears, *map(self._norm, parts.norms)], strict=True):
                setattr(layer, field[0], part)
        self.last = None if last is None else self._norm(last)
        self.decoder = _Decoder(
            len(layers), self.size, heads, inner, last is not None, ACTIVATIONS[activation], self.layers
        )
        if self.last is not None:
            self.decoder.last = ctypes.pointer(self.last)
        self.decoder.table, self.decoder.scale = table.data_ptr(), scale
        self.space = torch.empty(0)

    def _linear(self, part: nn.Linear | PackedIntegers) -> LinearLayer:
        if isinstance(part, PackedIntegers):
            return integer_layer(part)
        self.kept.append(self.kernels.packed(part.weight))
        return float_layer(self.kernels, part.weight, part.bias)

    def _norm(self, norm: nn.LayerNorm) -> _Norm:
        return _Norm(norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps)

    def step(
        self,
        tokens: Tensor,
        position: Tensor,
        pasts: Sequence[Tensor],
        cells: int,
        past_bias: Tensor | None,
        memory: Sequence[tuple[Tensor, Tensor]],
        memory_bias: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """tokens [S * K], position [d], of each layer the room of its past [>= S, R, 2d + GAP], which this step fills
        up to `cells`; past_bias [S, 1, K, cells]; keys and values [S, H, W, d / H] of the source of each layer,
        memory_bias [S, 1, 1, W] -> states [S * K, d] after attention to the source, and final ones."""
        tokens = tokens.contiguous()
        rows, sentences = len(tokens), len(memory_bias)
        needed = self.kernels.call.space_needed(byref(self.decoder), rows)
        if len(self.space) < needed:
            self.space = torch.empty(needed)
        attended, final = torch.empty(rows, self.size), torch.empty(rows, self.size)
        past_bias = None if past_bias is None else past_bias.contiguous()
        step = _Step(
            sentences,
            rows // sentences,
            cells,
            *pasts[0].shape[1:],
            memory_bias.shape[-1],
            tokens.data_ptr(),
            position.data_ptr(),
            _pointers(pasts),
            None if past_bias is None else past_bias.data_ptr(),
            _pointers([keys for keys, _ in memory]),
            _pointers([values for _, values in memory]),
            memory_bias.data_ptr(),
            attended.data_ptr(),
            final.data_ptr(),
            self.space.data_ptr(),
        )
        self.kernels.call.decoder_step(byref(self.decoder), byref(step), torch.get_num_threads())
        return attended, final


def _pointers(tensors: Sequence[Tensor]) -> Any:
    return (c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
