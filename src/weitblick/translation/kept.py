"""Encoded sources that one job leaves to the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from torch import Tensor

KEPT_TOKENS = 50_000
"""Tokens whose states are kept between jobs: 100 MB at 256 numbers for a source token and 512 for one of a target."""


class KeptStates:
    """What was computed of the latest sources and translations, for the next job on the same."""

    def __init__(self, tokens: int = KEPT_TOKENS) -> None:
        self.tokens = tokens
        self._held = 0
        self._states: OrderedDict[Hashable, Tensor] = OrderedDict()

    def get(self, key: Hashable) -> Tensor | None:
        if key in self._states:
            self._states.move_to_end(key)
        return self._states.get(key)

    def put(self, key: Hashable, states: Tensor) -> None:
        states = states.clone()  # not a view: one sentence would hold the memory of all that were computed with it
        self._held += len(states) - len(self._states.pop(key, ()))
        self._states[key] = states
        while self._held > self.tokens:
            self._held -= len(self._states.popitem(last=False)[1])
