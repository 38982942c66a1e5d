"""The compiled step of the pointer to approved translations as functions of tensors; see pointer.c."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from weitblick.fast.kernels import Kernels, address, address_of_ids, kernels_for, raise_if_out_of_memory

_POINTER, _LONG, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
_TABLES = ("keys", "level", "ids", "previous", "favourite", "expected", "inside", "before", "same")
_CANDIDATES = ("first", "start", "length", "nearness", "overlap", "own")
_TYPES = {
    "keys": torch.int8,
    **dict.fromkeys(("ids", "previous", "favourite"), torch.int32),
    **dict.fromkeys(("first", "start", "length"), torch.long),
}


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
        self.readers = len(candidates["first"]) - 1
        addresses = (address(self._kept[name], _TYPES.get(name, torch.float32)) for name in (*_TABLES, *_CANDIDATES))
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
            function.argtypes, function.restype = arguments, _INT if name == "find_places" else None
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
        address_of_ids(readers + 1, tables.readers + 1)  # checks them; -1 is nobody
        failed = self.call.find_places(
            ctypes.byref(tables.places),
            address(queries, shape=(steps, tables.places.size)),
            address(readers, torch.long, (steps,)),
            address(previous, torch.long, (steps,)),
            steps,
            most,
            address(words, torch.long),
            address(weights),
            address(places, torch.long),
            address(about),
            torch.get_num_threads(),
        )
        raise_if_out_of_memory(failed)
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
        if not self.knows(layers):
            raise ValueError("kernels do not know such a network")
        weights, biases = ((_POINTER * 3)(*(address(getattr(x, name)) for x in layers)) for name in ("weight", "bias"))
        features, share = own.new_empty(steps, self.features), own.new_empty(steps)
        own, highest = own.contiguous(), highest.contiguous()
        self.call.decide_share(
            ctypes.byref(_Network(layers[0].out_features, weights, biases)),
            steps,
            most,
            address(found.words, torch.long, (steps, 2 * most)),
            address(found.weights),
            address(found.about, shape=(steps, self.of_places)),
            address(own, shape=(steps, 2 * most)),
            address(highest, shape=(steps,)),
            address(features),
            address(share),
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
        rows, width = weights.shape
        if words.dtype != torch.long or words.shape != weights.shape:
            raise ValueError(
                f"words {words.dtype} {tuple(words.shape)} do not belong to weights {tuple(weights.shape)}"
            )
        self.call.mix(
            rows,
            address(values, shape=tuple(ids.shape)),
            address(ids, torch.long, (rows, values.shape[1])),
            values.shape[1],
            wanted,
            address(share, shape=(rows,)),
            words.data_ptr(),
            words.stride(0),
            address(weights),
            address(own, shape=(rows, width)),
            width,
            barred,
            ending,
            count,
            address(found),
            address(chosen, torch.long),
            address(end, shape=(rows,)),
        )
        return found, chosen, end


@cache
def _pointer_kernels(kernels: Kernels) -> PointerKernels:
    return PointerKernels(kernels)


def pointer_kernels(x: Tensor) -> PointerKernels | None:
    """The kernels of the pointer, if there are any that can compute with `x`."""
    compiled = kernels_for(x)
    return None if compiled is None else _pointer_kernels(compiled)
