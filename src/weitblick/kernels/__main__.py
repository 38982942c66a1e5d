"""Builds the kernels for this processor: `python -m weitblick.kernels`."""

from __future__ import annotations

import sys

from weitblick.errors import UserError
from weitblick.kernels.build import OFF, VARIABLE, build, wanted


def main() -> None:
    try:
        path = build()
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    if wanted() == OFF:
        print(f"{path}: {VARIABLE}={OFF} leaves these kernels out")
    else:
        print(f"{path}: decoding on the CPU uses these kernels from now on")


if __name__ == "__main__":
    main()
