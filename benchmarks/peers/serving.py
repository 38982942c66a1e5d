"""The worker's side of `tools.environments.Worker`: one JSON object a line in, one out. Standard library only."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def tune_allocator() -> None:
    """The allocator setting that our own training uses, given to every contestant."""
    libc = ctypes.CDLL("libc.so.6")
    libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
    libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)


def serve(make: Callable[[dict[str, Any]], tuple[Callable[..., int], dict[str, Any]]]) -> None:
    """`make(task)` gives what to run and facts about it; every further line of input runs it once, timed.

    Whatever libraries print goes to standard error: standard output belongs to the answers.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    tune_allocator()
    run: Callable[..., int] | None = None
    for line in sys.stdin:
        question = json.loads(line)
        if run is None:
            run, answer = make(question)
        else:
            started, worked = time.perf_counter(), time.process_time()
            tokens = run(**question)
            answer = {
                "wall": time.perf_counter() - started,
                "cpu": time.process_time() - worked,
                "tokens": tokens,
            }
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
