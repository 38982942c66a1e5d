"""Builds the kernels for this processor now: `python -m weitblick.fast`. Without it the first use does, unasked."""

from __future__ import annotations

import sys

from weitblick.common.errors import UserError
from weitblick.fast.build import BACKGROUND, OFF, VARIABLE, build, finish_in_background, wanted


def main() -> None:
    if BACKGROUND in sys.argv[1:]:
        finish_in_background()
        return
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
