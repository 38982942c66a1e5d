"""The compiled kernels as functions of tensors, where they have been built; see `build`."""

from __future__ import annotations

import ctypes
import logging
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from weitblick.errors import UserError
from weitblick.kernels.build import OFF, built, wanted

MOST_CELLS = 16_384
"""Words that are attended to: their weights lie on the stack."""
KEPT = "_packed_for_kernels"

_POINTER, _LONG, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
_ARGUMENTS = {
    "pack": [_POINTER, _LONG, _LONG, _POINTER],
    "linear": [_POINTER, _LONG, _LONG, _POINTER, _POINTER, _LONG, _POINTER, _INT, _INT],
    "add_norm": [_POINTER, _POINTER, _POINTER, _POINTER, _FLOAT, _LONG, _LONG, _POINTER, _POINTER],
    "attend": [_POINTER, _LONG, _POINTER, _POINTER, _POINTER, _POINTER, _INT, *[_LONG] * 5, _POINTER, _INT],
    "attend_sentences": [_POINTER, _POINTER, _LONG, _LONG, _LONG, _INT, _POINTER, _POINTER, _INT],
    "scores": [_POINTER, _LONG, _LONG, _POINTER, _POINTER, _POINTER, _LONG, _POINTER],
    "normalisers": [_POINTER, _LONG, _LONG, _POINTER, _POINTER, _INT],
    "choose": [_POINTER, *[_LONG] * 4, *[_POINTER, _LONG] * 2, _LONG, *[_POINTER] * 3, _INT],
    "pack_integers": [_POINTER, _LONG, _LONG, _POINTER],
    "linear_integers": [_POINTER, _LONG, _LONG, _INT, *[_POINTER] * 4, _LONG, _POINTER, _POINTER, _POINTER, _INT, _INT],
    "decoder_step": [_POINTER, _POINTER, _INT],
    "choose_of_layer": [_POINTER, _POINTER, _POINTER, _POINTER, _LONG],
    "best": [_POINTER, *[_LONG] * 4, _POINTER, _POINTER, _INT],
}


class Packed:
    """A weight [N, K] laid out as the kernels read it."""

    def __init__(self, kernels: Kernels, weight: Tensor) -> None:
        self.made_of = _state(weight)
        self.columns, self.inner = weight.shape
        self.panels = torch.empty(-(-self.columns // kernels.panel), self.inner, kernels.panel)
        own = weight.detach().contiguous()
        kernels.call.pack(own.data_ptr(), self.columns, self.inner, self.panels.data_ptr())


class PackedIntegers:
    """A weight [N, K] of 8-bit integers, each row with a scale [N], for inputs whose zero is the level `zero`; K is a
    multiple of LANES of the kernels."""

    def __init__(self, kernels: Kernels, integers: Tensor, scale: Tensor, bias: Tensor | None, zero: int) -> None:
        self.columns, self.inner = integers.shape
        self.zero = zero
        filled = -self.columns % kernels.integer_columns
        self.panels = torch.empty(self.columns + filled, self.inner, dtype=torch.int8)
        own = integers.contiguous()
        kernels.call.pack_integers(own.data_ptr(), self.columns, self.inner, self.panels.data_ptr())
        shift = (integers.to(torch.int32) * zero).sum(1, dtype=torch.int32)
        self.scale, self.shift = (nn.functional.pad(x, (0, filled)) for x in (scale, shift))
        self.bias = nn.functional.pad(torch.zeros(self.columns) if bias is None else bias, (0, filled))


def _state(weight: Tensor) -> tuple[int, int]:
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version


class Kernels:
    """Float32 on the CPU, without gradient: see `kernels_for`."""

    def __init__(self, path: Path) -> None:
        _share_openmp()
        self.call = ctypes.CDLL(str(path))
        for name, arguments in _ARGUMENTS.items():
            function = getattr(self.call, name)
            function.argtypes, function.restype = arguments, None
        self.call.strip_width.argtypes, self.call.strip_width.restype = [], _LONG
        self.call.space_needed.argtypes, self.call.space_needed.restype = [_POINTER, _LONG], _LONG
        self.panel, self.lanes, self.integer_columns = map(self._constant, ("panel_width", "lanes", "integer_columns"))

    def _constant(self, name: str) -> int:
        function = getattr(self.call, name)
        function.restype = _LONG
        return int(function())

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None, rectified: bool = False) -> Tensor:
        """[..., K] -> [..., N]: x W' + b, and what is below zero becomes zero if `rectified`."""
        packed = self.packed(weight)
        x = x.contiguous()
        out = x.new_empty(*x.shape[:-1], packed.columns)
        self.call.linear(
            x.data_ptr(),
            x.numel() // packed.inner,
            packed.inner,
            packed.panels.data_ptr(),
            None if bias is None else bias.data_ptr(),
            packed.columns,
            out.data_ptr(),
            rectified,
            torch.get_num_threads(),
        )
        return out

    def packed(self, weight: Tensor) -> Packed:
        """Kept at the weight itself, and made anew when it has changed."""
        found: Packed | None = getattr(weight, KEPT, None)
        if found is None or found.made_of != _state(weight):
            found = Packed(self, weight)
            setattr(weight, KEPT, found)
        return found

    def linear_integers(self, x: Tensor, weight: PackedIntegers, rectified: bool = False) -> Tensor:
        """As `linear`, with a scale for each row of x [..., K]."""
        x = x.contiguous()
        rows = x.numel() // weight.inner
        out = x.new_empty(*x.shape[:-1], weight.columns)
        room = torch.empty(rows * weight.inner, dtype=torch.uint8)
        level = torch.empty(rows)
        self.call.linear_integers(
            x.data_ptr(),
            rows,
            weight.inner,
            weight.zero,
            weight.panels.data_ptr(),
            weight.scale.data_ptr(),
            weight.shift.data_ptr(),
            weight.bias.data_ptr(),
            weight.columns,
            room.data_ptr(),
            level.data_ptr(),
            out.data_ptr(),
            rectified,
            torch.get_num_threads(),
        )
        return out

    def norm(self, norm: nn.LayerNorm, x: Tensor, change: Tensor | None = None) -> Tensor:
        """The norm of x + change [M, d]; d is a multiple of `lanes`."""
        x = x.contiguous()
        out = torch.empty_like(x)
        self.call.add_norm(
            x.data_ptr(),
            None if change is None else change.contiguous().data_ptr(),
            norm.weight.data_ptr(),
            norm.bias.data_ptr(),
            norm.eps,
            len(x),
            x.shape[1],
            None,
            out.data_ptr(),
        )
        return out

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
        """queries [S, H, K, size], keys and values [S, H, C, size], strided alike -> [S * K, H * size]; bias
        [S, 1, K or 1, C] is 0 where a cell is seen. Heads of a query, and numbers of a head, are adjacent."""
        sentences, heads, hypotheses, size = queries.shape
        cells = keys.shape[2]
        step = (ctypes.c_int64 * 3)(keys.stride(0), keys.stride(2), keys.stride(1))
        out = queries.new_empty(sentences * hypotheses, heads * size)
        bias = None if bias is None else bias.contiguous()
        self.call.attend(
            queries.data_ptr(),
            queries.stride(2) if hypotheses > 1 else queries.stride(0),
            keys.data_ptr(),
            values.data_ptr(),
            step,
            None if bias is None else bias.data_ptr(),
            bias is not None and bias.shape[2] == 1,
            sentences,
            hypotheses,
            heads,
            size,
            cells,
            out.data_ptr(),
            torch.get_num_threads(),
        )
        return out

    def attend_sentences(self, projected: Tensor, starts: Tensor, heads: int, causal: bool) -> Tensor:
        """projected [T, 3d], queries, keys and values of the words of sentences that begin at starts [S] -> [T, d],
        every word over those of its sentence, with `causal` over those up to itself; d / H is a multiple of `lanes`."""
        words, size = len(projected), projected.shape[1] // (3 * heads)
        projected = projected.contiguous()
        room, out = projected.new_empty(words * 2 * size), projected.new_empty(words, heads * size)
        bounds = torch.cat([starts, starts.new_tensor([words])])
        self.call.attend_sentences(
            projected.data_ptr(),
            bounds.data_ptr(),
            len(starts),
            heads,
            size,
            causal,
            room.data_ptr(),
            out.data_ptr(),
            torch.get_num_threads(),
        )
        return out

    def normalisers(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Of logits [N, V] the highest [N] and the logarithm of the sum of exponentials [N]."""
        highest, normaliser = (logits.new_empty(len(logits)) for _ in range(2))
        self.call.normalisers(
            logits.data_ptr(), *logits.shape, highest.data_ptr(), normaliser.data_ptr(), torch.get_num_threads()
        )
        return highest, normaliser

    def scores(self, states: Tensor, weight: Tensor, bias: Tensor, ids: Tensor) -> Tensor:
        """Logits [N, n] of the words ids [N, n] after states [N, d]; d is a multiple of `lanes`."""
        states, ids, weight = states.contiguous(), ids.contiguous(), weight.contiguous()
        out = states.new_empty(ids.shape)
        self.call.scores(
            states.data_ptr(),
            *states.shape,
            weight.data_ptr(),
            bias.data_ptr(),
            ids.data_ptr(),
            ids.shape[1],
            out.data_ptr(),
        )
        return out

    def choose(
        self,
        logits: Tensor,
        count: int,
        forbidden: int,
        never: Tensor | None,
        others: Tensor | None,
        end: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities and ids [N, count] of the best words of logits [N, V], which are overwritten, and the
        log-probability [N] of the word `end`. The first `forbidden` ids, and `others`, are not chosen; words `never`
        have no probability."""
        values, ends = logits.new_empty(len(logits), count), logits.new_empty(len(logits))
        ids = torch.empty(len(logits), count, dtype=torch.long)
        self.call.choose(
            logits.data_ptr(),
            *logits.shape,
            forbidden,
            count,
            *_pointer_and_size(never),
            *_pointer_and_size(others),
            end,
            values.data_ptr(),
            ids.data_ptr(),
            ends.data_ptr(),
            torch.get_num_threads(),
        )
        return values, ids, ends

    def best(self, logits: Tensor, count: int, forbidden: int) -> tuple[Tensor, Tensor]:
        """Values and ids [N, count] of the highest logits [N, V], best first; none of the first `forbidden` ids."""
        values = logits.new_empty(len(logits), count)
        ids = torch.empty(len(logits), count, dtype=torch.long)
        self.call.best(
            logits.data_ptr(),
            *logits.shape,
            forbidden,
            count,
            values.data_ptr(),
            ids.data_ptr(),
            torch.get_num_threads(),
        )
        return values, ids


def _pointer_and_size(ids: Tensor | None) -> tuple[int | None, int]:
    return (None, 0) if ids is None else (ids.data_ptr(), len(ids))


def load(path: Path) -> Kernels:
    try:
        return Kernels(path)
    except (OSError, AttributeError) as error:
        raise UserError(f"cannot be loaded: {error}", where=path) from None


@cache
def kernels() -> Kernels | None:
    """Those that are wanted (see `build`), if they have been built and can be used."""
    if wanted() == OFF or (path := built()) is None:
        return None
    try:
        return load(path)
    except UserError as error:
        logging.getLogger("weitblick").warning("%s; decoding goes on without kernels", error)
        return None


def kernels_for(x: Tensor) -> Kernels | None:
    """The kernels, if they can compute with `x`."""
    if torch.is_grad_enabled() or x.dtype != torch.float32 or x.device.type != "cpu":
        return None
    return kernels()


def _share_openmp() -> None:
    """PyTorch's OpenMP for the kernels, too: two pools of threads would be in each other's way."""
    bundled = sorted((Path(torch.__file__).parent / "lib").glob("libgomp*"))
    ctypes.CDLL(str(bundled[0]) if bundled else "libgomp.so.1", ctypes.RTLD_GLOBAL)
