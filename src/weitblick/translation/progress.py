"""How far a translation is: whoever waits for one says what to call as sentences are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Advance = Callable[[int], None]

_advance: ContextVar[Advance | None] = ContextVar("advance", default=None)


@contextmanager
def reporting(advance: Advance) -> Iterator[None]:
    """In the block, `advance` hears of sentences that are done, once for each pass over them."""
    token = _advance.set(advance)
    try:
        yield
    finally:
        _advance.reset(token)


def report(sentences: int) -> None:
    advance = _advance.get()
    if advance is not None:
        advance(sentences)
