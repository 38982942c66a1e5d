"""A map over all cores that keeps the order and never runs ahead of its consumer by more than a few tasks."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_TASKS_AHEAD = 3  # per process


def ordered_map(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    workers: int,
    initializer: Callable[..., None],
    initial_arguments: tuple[Any, ...],
) -> Iterator[Result]:
    """`map(function, tasks)` in `workers` fresh processes (no fork: threads and their locks are not copied)."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer, initial_arguments) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(function, task))
                if len(waiting) >= _TASKS_AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
