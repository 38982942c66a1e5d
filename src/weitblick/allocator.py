"""Memory: an allocator that gives pages back less eagerly, and out-of-memory errors in plain words."""

from __future__ import annotations

import ctypes
import sys

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def tune_allocator() -> None:
    """glibc returns large blocks to the system after each use; keeping them saves most page faults."""
    if sys.platform != "linux":
        return
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
    except (OSError, AttributeError):
        return


def give_back() -> None:
    """Free pages go back to the system, those between blocks in use, too. Without it a process that lives for long and
    keeps some of what it computes grows a little all the time."""
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return


def explain_out_of_memory(error: BaseException) -> str | None:
    """One line if `error` is a lack of memory, else None."""
    text = str(error)
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError) or "can't allocate memory" in text:
        return f"out of memory ({text.splitlines()[0] if text else 'MemoryError'})"
    return None
