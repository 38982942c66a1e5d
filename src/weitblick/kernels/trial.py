"""Whether kernels that have just been built compute what they should: `build` runs this in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from weitblick.errors import UserError
from weitblick.kernels.library import Kernels, PackedIntegers, load

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
