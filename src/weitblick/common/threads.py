"""Threads: how many this process may use, and how idle ones wait.

OpenMP's threads spin while they wait for work, by default for so long that on a machine with anything else running they
take the cores away from those who have work, ours among them. It reads its settings once, when PyTorch is loaded: so
the command line, and whoever asks the package `weitblick` for a name, set them before, unless the user has or PyTorch
is loaded already. `import weitblick` alone sets nothing.
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

from weitblick.common.errors import UserError

SPIN_COUNT = 1000
"""Rounds for which a thread that waits spins before it sleeps. None at all (OMP_WAIT_POLICY=PASSIVE) makes small layers
slower on an idle machine; many more, slower on a busy one. `benchmarks/busy.py` measures both."""
USERS_OWN = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
MOST_PER_CORE = 16


def set_environment() -> None:
    """Settings for OpenMP, here and in processes started from here. A user's own win."""
    if "torch" in sys.modules:
        return
    if not any(name in os.environ for name in USERS_OWN):
        os.environ["GOMP_SPINCOUNT"] = str(SPIN_COUNT)
    quota = _quota()
    if "OMP_NUM_THREADS" not in os.environ and quota is not None and quota < _affinity():
        os.environ["OMP_NUM_THREADS"] = str(quota)  # OpenMP sees which cores it may use, but not for how long


def cores() -> int:
    """How many cores this process may use, which a container or `taskset` may have limited."""
    return min(_affinity(), _quota() or _affinity())


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Cores' worth of time that a container may use, at least 1; None without a limit."""
    try:
        if (root / "cpu.max").exists():
            limit, period = (root / "cpu.max").read_text(encoding="ascii").split()[:2]
        else:
            limit, period = ((root / "cpu" / f"cpu.cfs_{what}_us").read_text("ascii") for what in ("quota", "period"))
        return max(1, math.ceil(int(limit) / int(period))) if int(limit) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):  # no such limit ("max"), or no cgroups
        return None


def use_threads(count: int | None) -> None:
    """PyTorch computes with so many threads; None leaves its own choice."""
    if count is None:
        return
    most = MOST_PER_CORE * (os.cpu_count() or 1)
    if not 1 <= count <= most:
        raise UserError(f"{count} threads cannot be had here", remedy=f"use 1 to {most}; {cores()} cores may be used")
    import torch

    torch.set_num_threads(count)
