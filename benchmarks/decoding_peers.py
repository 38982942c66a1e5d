"""Decoding speed of our beam search next to Hugging Face `generate` and CTranslate2, models of the same size.

    python benchmarks/decoding_peers.py [--sizes small paper] [--beams 1 5] [--rounds 5] [--no-kernels] [--json FILE]

Random weights; every contestant translates the same 32 sentences in one batch and must produce the same number of words
of each, so that the work is the same. That hides what batches gain where finished sentences leave them. Contestants are
processes of their own (peers in a virtual environment made on first use) with the same allocator setting and threads,
and take turns; figures are words per second, medians over rounds; quotients are of neighbouring runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from tools.environments import INSTRUCTIONS, OUR_THREADS, WORK_FOLDER, Worker, our_python, python_with
from tools.sizes import SIZES
from tools.text import lengths, words
from tools.turns import circumstances, option_parser, ratio, report, take_turns

from weitblick.fast.build import COMPILERS, OFF, VARIABLE, build

CONTESTANTS = {
    "weitblick float32": ("ours_decoding.py", "float32"),
    "weitblick int8": ("ours_decoding.py", "int8"),
    "weitblick float32, kernels": ("ours_decoding.py", "float32"),
    "weitblick int8, kernels": ("ours_decoding.py", "int8"),
    "transformers generate": ("marian_decoding.py", "float32"),
    "ctranslate2 float32": ("ctranslate2_decoding.py", "float32"),
    "ctranslate2 int8": ("ctranslate2_decoding.py", "int8"),
}
BASE = "transformers generate"
KERNELS = {"native": "on", "avx2": "avx2"}


def main() -> None:
    options = parse_options()
    if options.kernels:
        os.environ[VARIABLE] = KERNELS[options.instructions]
        build()
    started = circumstances()
    rows = [row for size in options.sizes for row in measure(size, options)]
    report("Decoding, words per second", rows, started, options.json)


def measure(size: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    shape = SIZES[size]
    source, _ = lengths(options.sentences, options.seed)
    task = {
        "size": shape.as_dict(),
        "threads": options.threads,
        # The last id is padding in Marian.
        "sentences": words(source, shape.vocabulary - 1, options.seed),
        "words": options.words,
    }
    rows = []
    with ExitStack() as stack:
        workers = {}
        for name, (script, precision) in CONTESTANTS.items():
            python = our_python() if script.startswith("ours") else python_with("marian", options.work_folder)
            compiled = name.endswith("kernels")
            if compiled and not options.kernels:
                continue
            variables = INSTRUCTIONS[options.instructions] | {
                VARIABLE: KERNELS[options.instructions] if compiled else OFF
            }
            if script.startswith("ours"):
                variables |= OUR_THREADS
            worker = Worker(name, python, script, {**task, "precision": precision}, variables)
            workers[name] = stack.enter_context(worker)

        def speed(worker: Worker, beam: int) -> float:
            answer = worker.ask({"beam": beam})
            wanted = options.sentences * options.words
            if answer["tokens"] != wanted:
                raise SystemExit(f"{worker.name} produced {answer['tokens']} words, not {wanted}: no fair comparison")
            return float(answer["tokens"] / answer[options.clock])

        for beam in options.beams:
            turns = {name: lambda worker=worker, beam=beam: speed(worker, beam) for name, worker in workers.items()}
            figures = take_turns(turns, options.rounds, label=f"{size}, beam {beam}:")
            rows += [
                {
                    "size": size,
                    "instructions": options.instructions,
                    "threads": options.threads,
                    "beam": beam,
                    "model": f"{name} ({workers[name].facts['version']})",
                    "parameters": workers[name].facts["parameters"],
                    "words_per_second": median(figures[name]),
                    "times_generate": ratio(figures, name, BASE),
                    "slowest": min(figures[name]),
                    "fastest": max(figures[name]),
                }
                for name in workers
            ]
    return rows


def parse_options() -> argparse.Namespace:
    parser = option_parser(__doc__, rounds=5)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small", "paper"])
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 5], help="1 is greedy")
    parser.add_argument("--sentences", type=int, default=32)
    parser.add_argument("--words", type=int, default=30, help="produced of each sentence, its end included")
    parser.add_argument(
        "--kernels",
        action=argparse.BooleanOptionalAction,
        default=any(map(shutil.which, COMPILERS)),
        help="our compiled kernels, too (they are built if need be); by default where there is a C compiler",
    )
    parser.add_argument(
        "--instructions", choices=INSTRUCTIONS, default="native", help="avx2: no contestant uses newer instructions"
    )
    parser.add_argument("--work-folder", type=Path, default=WORK_FOLDER, help="where environments are made and kept")
    return parser.parse_args()


if __name__ == "__main__":
    main()
