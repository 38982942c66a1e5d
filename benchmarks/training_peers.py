"""Training speed of our Transformer next to JoeyNMT and a Hugging Face Marian model of the same size.

    python benchmarks/training_peers.py [--sizes small paper] [--rounds 5] [--batches 3]
        [--precision bfloat16] [--json FILE]

Every contestant is a process of its own (peers in virtual environments of their own, made on first use) with the same
batches, allocator setting, dropouts, label smoothing, clipping and threads, in float32 or, with autocast around model
and loss, bfloat16. They take turns; figures are target tokens per second, medians over rounds; quotients are of
neighbouring runs. Peers pad, as they always do.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from tools.environments import OUR_THREADS, WORK_FOLDER, Worker, our_python, python_with
from tools.sizes import SIZES
from tools.text import sentence_batches
from tools.turns import circumstances, option_parser, ratio, report, take_turns

SCRIPTS = {"weitblick": "ours_training.py", "joeynmt": "joeynmt_training.py", "marian": "marian_training.py"}


def main() -> None:
    options = parse_options()
    started = circumstances()
    rows = [row for size in options.sizes for row in measure(size, options)]
    report("Training, target tokens per second", rows, started, options.json)


def measure(size: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    shape = SIZES[size]
    task = {
        "size": shape.as_dict(),
        "threads": options.threads,
        "dropout": 0.1,
        "label_smoothing": 0.1,
        "clip": 1.0,
        "precision": options.precision,
        "batches": sentence_batches(options.batches, shape.batch_tokens, shape.vocabulary, options.seed),
    }
    with ExitStack() as stack:
        workers = {}
        for name in ("weitblick", *options.peers):
            python = our_python() if name == "weitblick" else python_with(name, options.work_folder)
            variables = OUR_THREADS if name == "weitblick" else None
            workers[name] = stack.enter_context(Worker(name, python, SCRIPTS[name], task, variables))

        def speed(worker: Worker) -> float:
            answer = worker.ask({})
            return float(answer["tokens"] / answer[options.clock])

        turns = {name: lambda worker=worker: speed(worker) for name, worker in workers.items()}
        figures = take_turns(turns, options.rounds, label=size)
    return [
        {
            "size": size,
            "precision": options.precision,
            "threads": options.threads,
            "model": f"{name} {workers[name].facts['version']}",
            "parameters": workers[name].facts["parameters"],
            "tokens_per_second": median(figures[name]),
            "ours_is_so_many_times_faster": ratio(figures, "weitblick", name),
            "slowest": min(figures[name]),
            "fastest": max(figures[name]),
        }
        for name in workers
    ]


def parse_options() -> argparse.Namespace:
    parser = option_parser(__doc__, rounds=5)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small", "paper"])
    parser.add_argument("--peers", nargs="*", choices=["joeynmt", "marian"], default=["joeynmt", "marian"])
    parser.add_argument("--batches", type=int, default=3, help="batches of a round")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--work-folder", type=Path, default=WORK_FOLDER, help="where environments are made and kept")
    return parser.parse_args()


if __name__ == "__main__":
    main()
