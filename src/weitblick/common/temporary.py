"""What lies behind a file that appears complete: temporary names, sweeping those that were left behind, the disc."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
from contextlib import suppress
from pathlib import Path

from weitblick.common.system import SYSTEM

MARK = "weitblick"
"""Part of the name of every temporary file, with the machine and process that write it."""


def _machine() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def temporary_prefix(path: Path) -> str:
    start = os.fsencode(path.name)[:60].decode("utf-8", "ignore")  # names have an end
    return f".{start}.{MARK}-{_machine()}-{os.getpid()}-"


_TEMPORARY = re.compile(rf"\..*\.{MARK}-([0-9a-f]{{8}})-(\d+)-")
_swept: set[Path] = set()


def sweep(folder: Path) -> None:
    """Removes what commands that were killed left in a folder, once for each folder and process. Temporary files of
    living processes and of other machines stay."""
    if folder in _swept:
        return
    _swept.add(folder)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _TEMPORARY.match(entry.name)
            if found and found[1] == _machine() and not SYSTEM.is_alive(int(found[2])):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    with suppress(OSError):
                        os.unlink(entry.path)


def make_durable(path: Path) -> None:
    """Returns when the disc has a file, or a folder and all in it."""
    if path.is_dir():
        for inner in path.iterdir():
            if not inner.is_symlink():
                make_durable(inner)
    SYSTEM.sync(path)
