"""One training a folder: a lock that the system releases when its process ends, however it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weitblick.errors import UserError
from weitblick.files import make_folder

LOCK = ".lock"


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Holds the folder of a run; refuses if another process does. File systems without locks are trusted."""
    try:
        import fcntl
    except ImportError:  # no such thing on this system
        yield
        return
    with open(make_folder(folder) / LOCK, "a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read(100).strip() or "another process"
            raise UserError(
                f"another training is at work there ({holder})",
                where=folder,
                remedy="wait for it, stop it, or choose another output",
            ) from None
        except OSError:
            pass
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        lock.flush()
        yield
