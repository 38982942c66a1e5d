"""A step of a Transformer's decoder in one call of a compiled function: a double of `transformer.decoder_step`.

One call instead of some forty for each layer; decoder.c computes it. The structures here are those of kernels.h and
decoder.c: they point into tensors, which whoever makes them keeps.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_double, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from weitblick.fast.kernels import MOST_CELLS, Kernels, PackedIntegers, address, address_of_ids, kernels_for
from weitblick.fast.quantized import QuantizedLinear
from weitblick.model.sentence_model import DecoderStates
from weitblick.model.transformer import DecoderLayer, Extra, Transformer, TransformerCache


class LinearLayer(Structure):
    """Points into what it was made of, which the caller keeps."""

    _fields_ = (
        ("columns", c_int64),
        ("inner", c_int64),
        ("panels", c_void_p),
        ("bias", c_void_p),
        ("scale", c_void_p),
        ("shift", c_void_p),
        ("zero", c_int64),
    )


def integer_layer(packed: PackedIntegers) -> LinearLayer:
    panels = address(packed.panels, torch.int8)
    scale, shift, bias = address(packed.scale), address(packed.shift, torch.int32), address(packed.bias)
    return LinearLayer(packed.columns, packed.inner, panels, bias, scale, shift, packed.zero)


def float_layer(kernels: Kernels, weight: Tensor, bias: Tensor | None) -> LinearLayer:
    """The weight keeps what is made of it here."""
    packed = kernels.packed(weight)
    own = address(bias, shape=(packed.columns,))
    return LinearLayer(packed.columns, packed.inner, address(packed.panels), own, None, None, 0)


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
        self.words, self.size = table.shape
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
        self.decoder.table, self.decoder.scale = address(table), scale
        self.space = torch.empty(0)

    def _linear(self, part: nn.Linear | PackedIntegers) -> LinearLayer:
        if isinstance(part, PackedIntegers):
            return integer_layer(part)
        self.kept.append(self.kernels.packed(part.weight))
        return float_layer(self.kernels, part.weight, part.bias)

    def _norm(self, norm: nn.LayerNorm) -> _Norm:
        return _Norm(address(norm.weight, shape=(self.size,)), address(norm.bias, shape=(self.size,)), norm.eps)

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
        each, words = rows // sentences, memory_bias.shape[-1]
        step = _Step(
            sentences,
            each,
            cells,
            *pasts[0].shape[1:],
            words,
            address_of_ids(tokens, self.words, (sentences * each,)),
            address(position, shape=(self.size,)),
            _addresses(pasts),
            address(past_bias, shape=(sentences, 1, each, cells)),
            _addresses([keys for keys, _ in memory]),
            _addresses([values for _, values in memory]),
            address(memory_bias, shape=(sentences, 1, 1, words)),
            address(attended),
            address(final),
            address(self.space),
        )
        self.kernels.call.decoder_step(byref(self.decoder), byref(step), torch.get_num_threads())
        return attended, final


def _addresses(tensors: Sequence[Tensor]) -> Any:
    return (c_void_p * len(tensors))(*(address(tensor, shape=tuple(tensors[0].shape)) for tensor in tensors))


KEPT = "compiled decoder"


def can_step(model: Transformer, tokens: Tensor, cache: TransformerCache, extras: Sequence[Extra] | None) -> bool:
    """Whether the kernels know all that the decoder does, and nobody wants to read between its layers."""
    if extras is not None or kernels_for(cache.memory_bias) is None or cache.memory_bias.shape[-1] > MOST_CELLS:
        return False
    if KEPT not in cache.kept:
        cache.kept[KEPT] = _compile(model, cache)
    return cache.kept[KEPT] is not None


def compiled_step(
    model: Transformer, tokens: Tensor, cache: TransformerCache, extras: Sequence[Extra] | None
) -> DecoderStates:
    """See `weitblick.model.transformer.decoder_step`."""
    compiled: CompiledDecoder = cache.kept[KEPT]
    rooms = [past.more(len(tokens) // past.sentences, 2 * model.dimension + GAP) for past in cache.past]
    position = model.target_embedding.positions(cache.length + 1, rooms[0])[cache.length]
    cells = cache.past[0].count
    return DecoderStates(
        *compiled.step(tokens, position, rooms, cells, cache.past_bias, cache.memory, cache.memory_bias)
    )


def _compile(model: Transformer, cache: TransformerCache) -> CompiledDecoder | None:
    compiled, layers = kernels_for(cache.memory_bias), list(model.decoder)
    heads, activation = layers[0].attention.heads, layers[0].feed_forward.kind
    if compiled is None or model.training or activation not in ACTIVATIONS:
        return None
    if (model.dimension // heads) % compiled.lanes or layers[0].feed_forward.inner % compiled.lanes:
        return None
    if not compiled.integer_columns and any(isinstance(x, QuantizedLinear) for x in model.modules()):
        return None  # these are PyTorch's
    last = model.decoder_norm if isinstance(model.decoder_norm, nn.LayerNorm) else None
    parts, table = [_parts(layer) for layer in layers], model.target_table.weight
    return CompiledDecoder(compiled, parts, last, table, model.embedding_scale, heads, activation)


def _parts(layer: DecoderLayer) -> LayerParts:
    attention, source, wide = layer.attention, layer.source_attention, layer.feed_forward
    linears = attention.input, attention.output, source.query, source.output, wide.input, wide.output
    norms = layer.around_attention.norm, layer.around_source_attention.norm, layer.around_feed_forward.norm
    return LayerParts([_packed(linear) for linear in linears], norms)


def _packed(linear: nn.Module) -> nn.Linear | PackedIntegers:
    if isinstance(linear, QuantizedLinear):
        assert isinstance(linear.packed, PackedIntegers)
        return linear.packed
    assert isinstance(linear, nn.Linear)
    return linear
