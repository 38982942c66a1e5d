"""The compiled step of the pointer to approved translations as functions of tensors; see pointer.c."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from weitblick.kernels.library import Kernels, kernels_for

_POINTER, _LONG, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
_TABLES = ("keys", "level", "ids", "previous", "favourite", "expected", "inside", "before", "same")
_CANDIDATES = ("first", "start", "length", "nearness", "overlap", "own")


class _Places(ctypes.Structure):
    _fields_ = [
        ("size", _LONG),
        ("width", _LONG),
        *((name, _POINTER) for name in (*_TABLES, *_CANDIDATES)),
        ("sharpness", _FLOAT),
        ("selection", _FLOAT),
    ]


class _Network(ctypes.Structure):
    _fields_ = [("hidden", _LONG), ("weight", _POINTER * 3), ("bias", _POINTER * 3)]


_ARGUMENTS = {
    "find_places": [_POINTER] * 4 + [_LONG] * 2 + [_POINTER] * 4 + [_INT],
    "decide_share": [_POINTER, _LONG, _LONG, *[_POINTER] * 7],
    "mix": [
        _LONG, *[_POINTER] * 2, *[_LONG] * 2, *[_POINTER] * 2, _LONG, *[_POINTER] * 2, *[_LONG] * 4, *[_POINTER] * 3,
    ],
}  # fmt: skip


class PlaceTables:
    """Places of approved translations, and which of them each reader may point at, as the kernels read them: what
    these are stands in pointer.c."""

    def __init__(
        self, tables: dict[str, Tensor], candidates: dict[str, Tensor], width: int, sharpness: float, selection: float
    ) -> None:
        self._kept = {name: table.contiguous() for name, table in (tables | candidates).items()}
        addresses = (self._kept[name].data_ptr() for name in (*_TABLES, *_CANDIDATES))
        self.places = _Places(tables["keys"].shape[1], width, *addresses, sharpness, selection)


@dataclass(frozen=True)
class Located:
    """What T steps find: words [T, 2n] at the best places and, behind these, what the model itself wished there;
    weights and places [T, n]; about [T, OF_PLACES]: see pointer.c."""

    words: Tensor
    weights: Tensor
    places: Tensor
    about: Tensor


class PointerKernels:
    """See `pointer_kernels`."""

    def __init__(self, kernels: Kernels) -> None:
        self.call, self.lanes = kernels.call, kernels.lanes
        for name, arguments in _ARGUMENTS.items():
            function = getattr(self.call, name)
            function.argtypes, function.restype = arguments, None
        self.features, self.of_places, self.most_hidden = (
            self._constant(name) for name in ("pointer_features", "pointer_of_places", "pointer_most_hidden")
        )

    def _constant(self, name: str) -> int:
        function = getattr(self.call, name)
        function.restype = _LONG
        return int(function())

    def find(self, tables: PlaceTables, queries: Tensor, readers: Tensor, previous: Tensor, most: int) -> Located:
        """queries [T, k] of any length, readers [T] (-1: none), previous [T] the word that each step has read."""
        steps = len(queries)
        words = torch.empty(steps, 2 * most, dtype=torch.long)
        places = torch.empty(steps, most, dtype=torch.long)
        weights, about = queries.new_empty(steps, most), queries.new_empty(steps, self.of_places)
        queries, previous = queries.contiguous(), previous.contiguous()
        self.call.find_places(
            ctypes.byref(tables.places),
            queries.data_ptr(),
            readers.data_ptr(),
            previous.data_ptr(),
            steps,
            most,
            words.data_ptr(),
            weights.data_ptr(),
            places.data_ptr(),
            about.data_ptr(),
            torch.get_num_threads(),
        )
        return Located(words, weights, places, about)

    def knows(self, layers: Sequence[nn.Linear]) -> bool:
        """Whether these are a network that `share` computes: another model may have other features."""
        hidden = layers[0].out_features
        shapes = [(self.features, hidden), (hidden, hidden), (hidden, 1)]
        return hidden <= self.most_hidden and [(layer.in_features, layer.out_features) for layer in layers] == shapes

    def share(self, layers: Sequence[nn.Linear], found: Located, own: Tensor, highest: Tensor) -> tuple[Tensor, Tensor]:
        """own [T, 2n] the model's log-probabilities of the words found, highest [T] of its best word -> the pointer's
        share [T], and the features [T, FEATURES] by which it is decided."""
        steps, most = found.weights.shape
        weights, biases = (
            (_POINTER * 3)(*(getattr(x, name).data_ptr() for x in layers)) for name in ("weight", "bias")
        )
        features, share = own.new_empty(steps, self.features), own.new_empty(steps)
        own, highest = own.contiguous(), highest.contiguous()
        self.call.decide_share(
            ctypes.byref(_Network(layers[0].out_features, weights, biases)),
            steps,
            most,
            found.words.data_ptr(),
            found.weights.data_ptr(),
            found.about.data_ptr(),
            own.data_ptr(),
            highest.data_ptr(),
            features.data_ptr(),
            share.data_ptr(),
        )
        return share, features

    def mix(
        self,
        best: tuple[Tensor, Tensor],
        wanted: int,
        end: Tensor,
        pointed: tuple[Tensor, Tensor, Tensor, Tensor],
        count: int,
        barred: int,
        ending: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities and ids [N, k] of the model's best words, of which the first `wanted` that are not below
        `barred` count, and that of the word `ending`, end [N], mixed with share [N], words [N, n], weights [N, n] of a
        pointer and the model's own log-probabilities [N, n] of these: the same [N, count] of the best of both."""
        (values, ids), (share, words, weights, own) = best, pointed
        words = words if words.stride(1) == 1 else words.contiguous()
        values, ids, weights, own, share = (x.contiguous() for x in (values, ids, weights, own, share))
        found, chosen, end = values.new_empty(len(values), count), ids.new_empty(len(ids), count), end.clone()
        self.call.mix(
            len(values),
            values.data_ptr(),
            ids.data_ptr(),
            values.shape[1],
            wanted,
            share.data_ptr(),
            words.data_ptr(),
            words.stride(0),
            weights.data_ptr(),
            own.data_ptr(),
            weights.shape[1],
            barred,
            ending,
            count,
            found.data_ptr(),
            chosen.data_ptr(),
            end.data_ptr(),
        )
        return found, chosen, end


@cache
def _pointer_kernels(kernels: Kernels) -> PointerKernels:
    return PointerKernels(kernels)


def pointer_kernels(x: Tensor) -> PointerKernels | None:
    """The kernels of the pointer, if there are any that can compute with `x`."""
    compiled = kernels_for(x)
    return None if compiled is None else _pointer_kernels(compiled)
