"""Locks between processes, and signals that ask a training to stop.

The system releases a lock when its process ends, however it ends. File systems without locks are trusted.
"""

from __future__ import annotations

import os
import platform
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from weitblick.common.errors import UserError
from weitblick.common.files import make_folder
from weitblick.common.system import SYSTEM

LOCK = ".lock"


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Holds the folder of a run; refuses if another process does."""
    with open(make_folder(folder) / LOCK, "a+", encoding="utf-8") as lock:
        if not SYSTEM.lock(lock, wait=False):
            lock.seek(0)
            holder = lock.read(100).strip() or "another process"
            raise UserError(
                f"another training is at work there ({holder})",
                where=folder,
                remedy="wait for it, stop it, or choose another output",
            )
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {platform.node()}\n")
        lock.flush()
        yield


@contextmanager
def waiting_lock(path: Path) -> Iterator[None]:
    """Holds a lock file; waits while another process does."""
    with open(path, "a+", encoding="utf-8") as lock:
        SYSTEM.lock(lock, wait=True)
        yield


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Tries to hold a lock file, and says whether it does; does not wait."""
    with open(path, "a+", encoding="utf-8") as lock:
        yield SYSTEM.lock(lock, wait=False)


# Ctrl-C and termination: the first asks a stage to stop at its next update, a second one stops it at once.

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A stage was stopped, and its state saved. Whoever does not care treats it as the Ctrl-C that it was."""


class StopRequest:
    """Used as a context, it listens; true once a signal has come. A signal that its block did not act on is sent again
    at the end of it, to whoever listened before."""

    def __init__(self) -> None:
        self._wanted: int | None = None
        self._before: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return self._wanted is not None

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():  # no other may listen
            self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._wanted is not None and kind is None and self._before:
            signal.raise_signal(self._wanted)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._wanted is not None:
            raise KeyboardInterrupt
        self._wanted = number
