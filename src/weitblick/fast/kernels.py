"""The compiled kernels as functions of tensors, where they have been built; see `build`."""

from __future__ import annotations

import ctypes
import logging
import sys
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from weitblick.common.errors import UserError
from weitblick.fast.build import OFF, built, wanted

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
        kernels.call.pack(address(own), self.columns, self.inner, address(self.panels))


class PackedIntegers:
    """A weight [N, K] of 8-bit integers, each row with a scale [N], for inputs whose zero is the level `zero`; K is a
    multiple of LANES of the kernels."""

    def __init__(self, kernels: Kernels, integers: Tensor, scale: Tensor, bias: Tensor | None, zero: int) -> None:
        self.columns, self.inner = integers.shape
        self.zero = zero
        filled = -self.columns % kernels.integer_columns
        self.panels = torch.empty(self.columns + filled, self.inner, dtype=torch.int8)
        own = integers.contiguous()
        kernels.call.pack_integers(address(own, torch.int8), self.columns, self.inner, address(self.panels, torch.int8))
        shift = (integers.to(torch.int32) * zero).sum(1, dtype=torch.int32)
        self.scale, self.shift = (nn.functional.pad(x, (0, filled)) for x in (scale, shift))
        self.bias = nn.functional.pad(torch.zeros(self.columns) if bias is None else bias, (0, filled))


def address(x: Tensor | None, dtype: torch.dtype = torch.float32, shape: tuple[int, ...] | None = None) -> int | None:
    """Where the numbers of a tensor lie, for a compiled function: it would read whatever is there, so their type, order
    and, if given, shape are checked. None stays None."""
    if x is None:
        return None
    if x.dtype != dtype or x.device.type != "cpu" or not x.is_contiguous() or (shape is not None and x.shape != shape):
        raise ValueError(
            f"kernels read {dtype} in rows of shape {shape or 'any'} on the CPU, not {x.dtype} of shape "
            f"{tuple(x.shape)} on {x.device}{'' if x.is_contiguous() else ', not in rows'}"
        )
    return x.data_ptr()


def address_of_ids(ids: Tensor | None, size: int, shape: tuple[int, ...] | None = None) -> int | None:
    """The same of ids of words or rows, which must be below `size`."""
    if ids is not None and ids.numel():
        least, most = ids.aminmax()
        if int(least) < 0 or int(most) >= size:
            raise ValueError(f"ids from {int(least)} to {int(most)} name no rows of {size}")
    return address(ids, torch.long, shape)


def raise_if_out_of_memory(failed: int) -> None:
    """What a compiled function that needs memory gave back, as Python says it."""
    if failed:
        raise MemoryError("a compiled kernel found no memory")


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
        if x.shape[-1] != packed.inner:
            raise ValueError(f"rows of {x.shape[-1]} numbers do not fit a weight {tuple(weight.shape)}")
        out = x.new_empty(*x.shape[:-1], packed.columns)
        self.call.linear(
            address(x),
            x.numel() // packed.inner,
            packed.inner,
            address(packed.panels),
            address(bias, shape=(packed.columns,)),
            packed.columns,
            address(out),
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
        if x.shape[-1] != weight.inner:
            raise ValueError(f"rows of {x.shape[-1]} numbers do not fit a weight of {weight.inner}")
        rows = x.numel() // weight.inner
        out = x.new_empty(*x.shape[:-1], weight.columns)
        room = torch.empty(rows * weight.inner, dtype=torch.uint8)
        level = torch.empty(rows)
        self.call.linear_integers(
            address(x),
            rows,
            weight.inner,
            weight.zero,
            address(weight.panels, torch.int8),
            address(weight.scale),
            address(weight.shift, torch.int32),
            address(weight.bias),
            weight.columns,
            address(room, torch.uint8),
            address(level),
            address(out),
            rectified,
            torch.get_num_threads(),
        )
        return out

    def norm(self, norm: nn.LayerNorm, x: Tensor, change: Tensor | None = None) -> Tensor:
        """The norm of x + change [M, d]; d is a multiple of `lanes`."""
        x, change = x.contiguous(), None if change is None else change.contiguous()
        out, width = torch.empty_like(x), (x.shape[1],)
        if x.shape[1] % self.lanes:
            raise ValueError(f"rows of {x.shape[1]} numbers do not fill vectors of {self.lanes}")
        self.call.add_norm(
            address(x),
            address(change, shape=tuple(x.shape)),
            address(norm.weight, shape=width),
            address(norm.bias, shape=width),
            norm.eps,
            len(x),
            x.shape[1],
            None,
            address(out),
        )
        return out

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
        """queries [S, H, K, size], keys and values [S, H, C, size], strided alike -> [S * K, H * size]; bias
        [S, 1, K or 1, C] is 0 where a cell is seen. Heads of a query, and numbers of a head, are adjacent."""
        sentences, heads, hypotheses, size = queries.shape
        cells = keys.shape[2]
        adjacent = all(x.stride(3) == 1 and x.dtype == torch.float32 for x in (queries, keys, values))
        alike = keys.stride() == values.stride() and keys.shape == values.shape == (sentences, heads, cells, size)
        if not adjacent or not alike or size % self.lanes or cells > MOST_CELLS or queries.stride(1) != size:
            raise ValueError(f"kernels cannot attend from {tuple(queries.shape)} to {tuple(keys.shape)}")
        step = (ctypes.c_int64 * 3)(keys.stride(0), keys.stride(2), keys.stride(1))
        out = queries.new_empty(sentences * hypotheses, heads * size)
        bias = None if bias is None else bias.contiguous()
        self.call.attend(
            queries.data_ptr(),
            queries.stride(2) if hypotheses > 1 else queries.stride(0),
            keys.data_ptr(),
            values.data_ptr(),
            step,
            address(bias),
            bias is not None and bias.shape[2] == 1,
            sentences,
            hypotheses,
            heads,
            size,
            cells,
            address(out),
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
        if size % self.lanes or int(bounds[0]) or bool((bounds.diff() < 0).any()):
            raise ValueError("sentences begin one behind the other, and heads fill vectors")
        self.call.attend_sentences(
            address(projected),
            address(bounds, torch.long),
            len(starts),
            heads,
            size,
            causal,
            address(room),
            address(out),
            torch.get_num_threads(),
        )
        return out

    def normalisers(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Of logits [N, V] the highest [N] and the logarithm of the sum of exponentials [N]."""
        highest, normaliser = (logits.new_empty(len(logits)) for _ in range(2))
        self.call.normalisers(
            address(logits), *logits.shape, address(highest), address(normaliser), torch.get_num_threads()
        )
        return highest, normaliser

    def scores(self, states: Tensor, weight: Tensor, bias: Tensor, ids: Tensor) -> Tensor:
        """Logits [N, n] of the words ids [N, n] after states [N, d]; d is a multiple of `lanes`."""
        states, ids, weight = states.contiguous(), ids.contiguous(), weight.contiguous()
        out = states.new_empty(ids.shape)
        if states.shape[1] % self.lanes:
            raise ValueError(f"states of {states.shape[1]} numbers do not fill vectors of {self.lanes}")
        self.call.scores(
            address(states),
            *states.shape,
            address(weight, shape=(len(bias), states.shape[1])),
            address(bias),
            address_of_ids(ids, len(weight)),
            ids.shape[1],
            address(out, shape=(len(states), ids.shape[1])),
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
        words = logits.shape[1]
        self.call.choose(
            address(logits),
            *logits.shape,
            forbidden,
            count,
            address_of_ids(never, words),
            0 if never is None else len(never),
            address_of_ids(others, words),
            0 if others is None else len(others),
            end,
            address(values),
            address(ids, torch.long),
            address(ends),
            torch.get_num_threads(),
        )
        return values, ids, ends

    def best(self, logits: Tensor, count: int, forbidden: int) -> tuple[Tensor, Tensor]:
        """Values and ids [N, count] of the highest logits [N, V], best first; none of the first `forbidden` ids."""
        values = logits.new_empty(len(logits), count)
        ids = torch.empty(len(logits), count, dtype=torch.long)
        self.call.best(
            address(logits),
            *logits.shape,
            forbidden,
            count,
            address(values),
            address(ids, torch.long),
            torch.get_num_threads(),
        )
        return values, ids


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


# Whether kernels that have just been built compute what they should: `build` runs this in a process of its own.

ROWS, INNER, COLUMNS = 7, 64, 40


def check(kernels: Kernels) -> None:
    """A product in float32 and, where there are some, one of 8-bit integers: between them they need every instruction
    that not all processors have."""
    x = torch.linspace(-1, 1, ROWS * INNER).view(ROWS, INNER)
    integers = (torch.arange(COLUMNS * INNER) % 127 - 63).view(COLUMNS, INNER).to(torch.int8)
    scale = torch.full((COLUMNS,), 1 / 63)
    weight, bias = integers * scale[:, None], torch.ones(COLUMNS)
    found = [kernels.linear(x, weight, bias)]
    if kernels.integer_columns:
        found.append(kernels.linear_integers(x, PackedIntegers(kernels, integers, scale, bias, 128)))
    exact = x @ weight.t() + bias
    if not all(torch.allclose(one, exact, atol=0.3) for one in found):
        raise UserError("their results are wrong")


def main() -> None:
    try:
        check(load(Path(sys.argv[1])))
    except UserError as error:
        print(f"error: {error.message}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
