"""The one place where a plain definition of the model gives way to a fast double.

    @definition
    def best_words(words, wanted): ...     what is computed, as a student reads it and the tests take for the truth

    best_words.add_double(best_in_strips, when=lambda words, wanted: not words.modifiers)

A double computes the same, to rounding, wherever its condition holds. The model only ever calls the definition. Doubles
stand in `weitblick.fast`, which registers them in `doubles` and `compiled_doubles`; without any, the definitions run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Definition(Generic[P, R]):
    """A function that computes by the last of its doubles whose condition holds, or else by its plain definition."""

    def __init__(self, plain: Callable[P, R]) -> None:
        self.plain = plain
        self._doubles: list[tuple[Callable[P, bool], Callable[P, R]]] = []
        update_wrapper(self, plain)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        for fits, double in self._doubles:
            if fits(*arguments, **named):
                return double(*arguments, **named)
        return self.plain(*arguments, **named)

    def add_double(self, double: Callable[P, R], when: Callable[P, bool]) -> None:
        """Registers a double that goes before those that were registered earlier; `when` gets a call's arguments."""
        self._doubles.insert(0, (when, double))


def definition(plain: Callable[P, R]) -> Definition[P, R]:
    """Makes a function the definition of what it computes, for which doubles can be registered."""
    return Definition(plain)
