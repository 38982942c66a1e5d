"""Linear layers that multiply 8-bit integers, for decoding on the CPU.

Every row of the input has a scale of its own, its largest magnitude, so that what comes out for a sentence never
depends on what else is in the batch. Inputs have 8 bits and weights 7 where a processor has no VNNI: pairs of products
of 8 bits would overflow, and inputs, with a few large values in each row, need the levels more.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import cache

import torch
from torch import Tensor, nn

from weitblick.common.errors import UserError
from weitblick.fast.best_words import STRIP
from weitblick.fast.kernels import Kernels, PackedIntegers, kernels
from weitblick.model.document_model import DocumentModel
from weitblick.model.layers import FeedForward

LEAST_WEIGHTS, FEWER_WEIGHTS = 150_000, 50_000
"""Of a layer that is quantised: for smaller products, finding the scales costs more than 8 bits save; with kernels of
our own and all 8 bits of weights it pays sooner, and is as exact."""
ROWS = 32
"""Hypotheses of a step for which speeds are compared."""
ROUNDS = 5
WORTH = 1.1
"""Gain below which 8 bits only cost exactness."""


def quantize_linears(model: DocumentModel, least_weights: int | None = None) -> DocumentModel:
    """A model with the same parameters whose larger linear layers multiply 8-bit integers. The output layer, too: it
    proposes words, and those proposed are scored in float32."""
    if next(model.parameters()).device.type != "cpu":
        raise UserError("8-bit linear layers run on the CPU only", remedy="use --device cpu, or leave --int8 out")
    if not available():
        raise UserError("this PyTorch has no 8-bit kernels for this processor", remedy="leave --int8 out")
    least = _least_weights(model) if least_weights is None else least_weights
    shared = {id(x): x for x in (*model.parameters(), *model.buffers(), model.pointer) if x is not None}
    quantized = deepcopy(model, shared)  # the pointer as it is: the keys of approved translations outlive this process
    for module in list(quantized.modules()):
        rectified = isinstance(module, FeedForward) and module.nonnegative
        for name, child in module.named_children():
            if not isinstance(child, nn.Linear) or module is model.pointer:
                continue
            if child.weight.numel() >= least:
                layer = QuantizedLinear(child.weight, child.bias, nonnegative=rectified and name == "output")
                setattr(module, name, layer)
    quantized.sentence.approximate_output = QuantizedOutput(*model.sentence.output())
    return quantized.eval()


def _least_weights(model: DocumentModel) -> int:
    own, all_bits = compiled_for(model.sentence.dimension), weight_levels(model.sentence.dimension) == WEIGHT_LEVELS
    return FEWER_WEIGHTS if own is not None and all_bits else LEAST_WEIGHTS


@torch.no_grad()
def gain(model: DocumentModel, quantized: DocumentModel) -> float:
    """How many times as fast the output layer, the largest product of a step, is with 8 bits, by a measurement of some
    hundredths of a second."""
    weight, bias = model.sentence.output()
    found = quantized.sentence.approximate_output
    assert found is not None
    quick: Callable[[Tensor], Tensor] = found
    states = torch.randn(ROWS, weight.shape[1], generator=torch.Generator().manual_seed(1))
    exact = approximate = math.inf
    for _ in range(ROUNDS):
        exact = min(exact, _seconds(lambda: torch.addmm(bias, states, weight.t())))
        approximate = min(approximate, _seconds(lambda: quick(states)))
    return exact / approximate


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


INPUT_LEVELS = 255
WEIGHT_LEVELS = 127
FEWER_WEIGHT_LEVELS = 63
"""Where pairs of products overflow."""
SMALLEST = 1e-30


def available() -> bool:
    """Whether there are kernels for this processor, PyTorch's or our own."""
    compiled = kernels()
    return (
        compiled is not None and compiled.integer_columns > 0
    ) or "fbgemm" in torch.backends.quantized.supported_engines


class QuantizedLinear(nn.Module):
    """x W' + b, with W in 8 bits, scaled row by row. nonnegative: of inputs that are (behind a ReLU), all levels are
    above zero; levels: of weights, as many as this processor can have without."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, nonnegative: bool = False, levels: int | None = None
    ) -> None:
        super().__init__()
        self.bias = None if bias is None else bias.detach()
        self.nonnegative = nonnegative
        self.zero = 0 if nonnegative else (INPUT_LEVELS + 1) // 2
        self.scale = 1.0 / (INPUT_LEVELS - self.zero)
        self.out_features, self.in_features = weight.shape
        scales = weight.detach().float().abs().amax(1).clamp_min(SMALLEST) / (levels or weight_levels(weight.shape[1]))
        self.compiled = compiled_for(weight.shape[1])
        self.packed: PackedIntegers | torch.ScriptObject
        if self.compiled is None:
            self.packed = _pack(weight.detach().float(), scales)
        else:
            integers = (weight.detach() / scales[:, None]).round().to(torch.int8)
            self.packed = PackedIntegers(self.compiled, integers, scales, self.bias, self.zero)

    def forward(self, x: Tensor, rectified: bool = False) -> Tensor:
        """[..., d] -> [..., out]; rectified: what is below zero becomes zero."""
        if self.compiled is not None:
            assert isinstance(self.packed, PackedIntegers)
            return self.compiled.linear_integers(x, self.packed, rectified)
        product = self._product(x)
        return product.relu_() if rectified else product

    def _product(self, x: Tensor) -> Tensor:
        largest = (x if self.nonnegative else x.abs()).amax(-1, keepdim=True).clamp_min_(SMALLEST)
        product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x / largest, self.scale, self.zero, self.packed
        )
        if self.bias is None:
            return product.mul_(largest)
        return torch.addcmul(self.bias, product, largest, out=product)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}"


class QuantizedOutput(QuantizedLinear):
    """Approximate logits, with -inf at words that fill up the last strip (see `candidates`)."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        missing = -len(weight) % STRIP
        filled = torch.nn.functional.pad(weight.detach(), (0, 0, 0, missing))
        super().__init__(filled, torch.nn.functional.pad(bias.detach(), (0, missing), value=-torch.inf))


def weight_levels(size: int) -> int:
    """Levels of weights on either side of zero, for inputs of this size."""
    return _most_levels(size, compiled_for(size))


@cache
def _most_levels(size: int, compiled: Kernels | None) -> int:
    """As many as this processor multiplies without overflow, told by the product that would overflow first."""
    layer = QuantizedLinear(torch.ones(1, size), None, nonnegative=True, levels=WEIGHT_LEVELS)
    exact = abs(float(layer(torch.ones(1, size))) - size) < size / 100
    return WEIGHT_LEVELS if exact else FEWER_WEIGHT_LEVELS


def compiled_for(size: int) -> Kernels | None:
    """Kernels of our own for inputs of this size, if there are some."""
    found = kernels()
    return found if found is not None and found.integer_columns and size % found.lanes == 0 else None


def _pack(weight: Tensor, scales: Tensor) -> torch.ScriptObject:
    """The weight [out, d] in 8 bits, scaled row by row, laid out as PyTorch's kernels read it."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm"
    try:
        with warnings.catch_warnings():
            # The tensor type goes, says PyTorch; the kernels, which take it, stay without another way in so far.
            warnings.simplefilter("ignore", UserWarning)
            zeros = torch.zeros(len(weight), dtype=torch.long)
            integers = torch.quantize_per_channel(weight, scales.double(), zeros, 0, torch.qint8)
        packed: torch.ScriptObject = torch.ops.quantized.linear_prepack(integers, None)
        return packed
    finally:
        torch.backends.quantized.engine = before
