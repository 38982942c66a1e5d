"""Whole steps of training and decoding beside busy processes, by how idle threads of OpenMP wait.

    python benchmarks/busy.py [--busy 0 1 2 3] [--spins 2000 4000] [--rounds 5] [--json FILE]

Contestants are processes of their own that take turns: `product` has what `import weitblick` sets (threads.SPIN_COUNT),
`passive` sleeps at once (OMP_WAIT_POLICY=PASSIVE), `default` is libgomp's own; others spin as often as is asked. Busy
processes count in a loop and have the priority of the contestants. Figures are tokens per second of the clock on the
wall, medians over rounds; shares are medians of quotients of neighbouring runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

from tools.environments import OUR_THREADS, Worker, our_python
from tools.sizes import SIZES
from tools.text import lengths, sentence_batches, words
from tools.turns import circumstances, ratio, report, take_turns

SETTINGS: dict[str, dict[str, str]] = {
    "product": OUR_THREADS,
    "passive": {"OMP_WAIT_POLICY": "PASSIVE"},
    "default": {"GOMP_SPINCOUNT": "300000"},  # what libgomp takes when nothing is set
}
BUSY = "while True: pass"


def main() -> None:
    options = parse_options()
    started = circumstances()
    rows: list[dict[str, Any]] = []
    settings = SETTINGS | {f"spin {count}": {"GOMP_SPINCOUNT": str(count)} for count in options.spins}
    with ExitStack() as stack:
        runs = {
            work: {name: stack.enter_context(worker(work, name, set_, options)) for name, set_ in settings.items()}
            for work in options.works
        }
        for count in options.busy:
            with busy_processes(count):
                for work, workers in runs.items():
                    rows += measure(work, workers, count, options.rounds)
    report("Steps beside busy processes, tokens per second", rows, started, options.json)


def measure(work: str, workers: dict[str, Worker], count: int, rounds: int) -> list[dict[str, Any]]:
    question = {"beam": 1} if work == "decoding" else {}

    def speed(worker: Worker) -> float:
        answer = worker.ask(question)
        return float(answer["tokens"] / answer["wall"])

    turns = {name: lambda worker=worker: speed(worker) for name, worker in workers.items()}
    figures = take_turns(turns, rounds, label=f"{work} beside {count}:")
    return [
        {
            "work": work,
            "busy_processes": count,
            "setting": name,
            "tokens_per_second": median(figures[name]),
            "of_passive": ratio(figures, name, "passive"),
            "of_default": ratio(figures, name, "default"),
        }
        for name in workers
    ]


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def worker(work: str, name: str, variables: dict[str, str], options: argparse.Namespace) -> Worker:
    size = SIZES[options.size]
    task: dict[str, Any] = {"size": size.as_dict(), "threads": options.threads}
    if work == "training":
        batches = sentence_batches(1, size.batch_tokens, size.vocabulary, options.seed)
        task |= {"dropout": 0.1, "label_smoothing": 0.1, "clip": 1.0, "precision": "float32", "batches": batches}
    else:
        source, _ = lengths(32, options.seed)
        sentences = words(source, size.vocabulary - 1, options.seed)
        task |= {"sentences": sentences, "words": 20, "precision": "float32"}
    return Worker(f"{work}, {name}", our_python(), f"ours_{work}.py", task, variables)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", nargs="+", choices=["training", "decoding"], default=["training", "decoding"])
    parser.add_argument("--busy", nargs="+", type=int, default=[0, 1, 2, 3], help="processes that run beside")
    parser.add_argument("--spins", nargs="*", type=int, default=[], help="rounds of spinning to try besides")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="write the results here too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
