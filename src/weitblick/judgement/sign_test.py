"""The two-sided sign test of paired preferences."""

from __future__ import annotations

import math
from dataclasses import dataclass

from weitblick.errors import UserError


@dataclass(frozen=True)
class SignTest:
    """`x` of `n` judgements prefer the system; a tie counts half for each side."""

    x: float
    n: int
    p: float


def sign_test(x: float, n: int) -> SignTest:
    """Two-sided binomial test against 1/2.

    Ties split evenly may leave half a judgement; it is moved toward n/2, so that splitting never makes a
    difference look more significant.
    """
    from scipy.stats import binomtest

    if n < 1:
        raise UserError(f"n is {n}", remedy="give at least one judgement")
    if not 0 <= x <= n or (2 * x) % 1:
        raise UserError(f"x is {x:g} of n = {n}", remedy="x counts judgements from 0 to n, ties as halves")
    whole = math.floor(x) if x > n / 2 else math.ceil(x)
    return SignTest(x, n, float(binomtest(whole, n, 0.5).pvalue))
