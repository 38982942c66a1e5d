"""How much is attacked, and with which numbers: a minute in the suite, up to hours with `make torture`.

`TORTURE_SECONDS` is the time of the whole attack, `TORTURE_SEED` what it is made from. Each attack has a number; the
same seed and number give the same attack. `TORTURE_ONLY=NUMBER` repeats one. `MADE` counts them for the summary.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator

SEED = os.environ.get("TORTURE_SEED", "1")
SECONDS = float(os.environ.get("TORTURE_SECONDS", "0"))
ONLY = os.environ.get("TORTURE_ONLY")
MADE: Counter[str] = Counter()
"""Attacks that were made so far, by name."""


class Attack(random.Random):
    """The random numbers of one attack, which say how it can be repeated."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(f"{SEED} {name} {number}")
        self.name, self.number = name, number

    def __str__(self) -> str:
        return f"TORTURE_SEED={SEED} TORTURE_ONLY={self.number} pytest tests/torture -k {self.name}"


def attacks(name: str, count: int, share: float) -> Iterator[Attack]:
    """`count` attacks in the suite; in `make torture` as many more as fit into this share of its time."""
    if ONLY is not None:
        MADE[name] += 1
        yield Attack(name, int(ONLY))
        return
    end = time.monotonic() + share * SECONDS
    number = 0
    while number < count or time.monotonic() < end:
        MADE[name] += 1
        yield Attack(name, number)
        number += 1
