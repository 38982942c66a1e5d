"""Builds the kernels for this processor: `python -m weitblick.kernels`."""

from __future__ import annotations

import sys

from weitblick.errors import UserError
from weitblick.kernels.build import build
from weitblick.kernels.library import load


def main() -> None:
    try:
        path = build()
        load(path)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"{path}: decoding on the CPU uses these kernels from now on")


if __name__ == "__main__":
    main()
