"""The compiled kernels alone, one product at a time, next to PyTorch's, at the shapes of decoding.

    python benchmarks/kernels.py [--sizes small paper] [--rows 1 8 32 160] [--rounds 15] [--threads 1] [--json FILE]

Contestants take turns; a turn repeats the product for some milliseconds. Figures are microseconds of processor time,
the best of all rounds, and thousands of millions of multiplications a second.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from tools.ours import begin
from tools.sizes import SIZES, Size
from tools.turns import option_parser, report

from weitblick.common.errors import UserError
from weitblick.fast.build import build
from weitblick.fast.kernels import load
from weitblick.fast.quantized import QuantizedLinear

TURN = 0.004
"""Seconds of a turn."""


def main() -> None:
    options = parse_options()
    started = begin(options)
    with torch.inference_mode():
        rows = [
            row
            for size in options.sizes
            for outputs, inputs in layers(SIZES[size])
            for count in options.rows
            for row in [measure(outputs, inputs, count, options.rounds)]
        ]
    report("Products of decoding, microseconds of processor time", rows, started, options.json)


def layers(size: Size) -> list[tuple[int, int]]:
    """Outputs and inputs of the linear layers of a step."""
    d, inner = size.dimension, size.feed_forward
    return [(d, d), (3 * d, d), (inner, d), (d, inner), (size.vocabulary, d)]


def measure(outputs: int, inputs: int, rows: int, rounds: int) -> dict[str, Any]:
    x, weight, bias = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs)
    compiled = load(build())
    quantized = QuantizedLinear(weight, bias)
    if quantized.compiled is None:
        raise UserError("no compiled 8-bit layers", remedy="run it without WEITBLICK_KERNELS=off")
    runs = {
        "pytorch": lambda: torch.addmm(bias, x, weight.t()),
        "float32": lambda: compiled.linear(x, weight, bias),
        "int8": lambda: quantized(x),
    }
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best[name], seconds(run))
    products = rows * inputs * outputs
    return {
        "inputs": inputs,
        "outputs": outputs,
        "rows": rows,
        **{name: 1e6 * found for name, found in best.items()},
        **{f"{name}_G/s": products / found / 1e9 for name, found in best.items()},
    }


def seconds(run: Callable[[], object]) -> float:
    """Of processor time, of one call."""
    start = time.process_time()
    calls = 0
    while True:
        run()
        calls += 1
        taken = time.process_time() - start
        if taken > TURN:
            return taken / calls


def parse_options() -> argparse.Namespace:
    parser = option_parser(__doc__, rounds=15)
    parser.set_defaults(threads=1)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small"])
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 8, 32, 160])
    return parser.parse_args()


if __name__ == "__main__":
    main()
