"""Ctrl-C and termination: the first asks a stage to stop at its next update, a second one stops it at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A stage was stopped, and its state saved. Whoever does not care treats it as the Ctrl-C that it was."""


class StopRequest:
    """Used as a context, it listens; true once a signal has come."""

    def __init__(self) -> None:
        self._wanted = False
        self._before: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return self._wanted

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():  # no other may listen
            self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._wanted:
            raise KeyboardInterrupt
        self._wanted = True
