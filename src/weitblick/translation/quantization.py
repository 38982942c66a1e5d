"""A model whose linear layers multiply 8-bit integers, for the CPU; and whether that pays on this processor."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn

from weitblick.errors import UserError
from weitblick.model.document_model import DocumentModel
from weitblick.sentence.layers import FeedForward
from weitblick.sentence.quantized import (
    WEIGHT_LEVELS,
    QuantizedLinear,
    QuantizedOutput,
    available,
    compiled_for,
    weight_levels,
)

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
    quantized.sentence.quick_output = QuantizedOutput(*model.sentence.output())
    return quantized.eval()


def _least_weights(model: DocumentModel) -> int:
    own, all_bits = compiled_for(model.sentence.dimension), weight_levels(model.sentence.dimension) == WEIGHT_LEVELS
    return FEWER_WEIGHTS if own is not None and all_bits else LEAST_WEIGHTS


@torch.no_grad()
def gain(model: DocumentModel, quantized: DocumentModel) -> float:
    """How many times as fast the output layer, the largest product of a step, is with 8 bits, by a measurement of some
    hundredths of a second."""
    weight, bias = model.sentence.output()
    found = quantized.sentence.quick_output
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
