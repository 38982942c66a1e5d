"""A prepared corpus of a million pairs: memory and time of preparing and iterating, time to open, padding.

    python benchmarks/store.py [--pairs 1000000] [--pipeline sentencepiece|moses] [--batches N] [--json FILE]

The corpus is made up: lengths of sentences and documents as in Europarl, words by Zipf's law. Every part runs in a
process of its own; its memory is the peak that the operating system reports, imports included (`before work`). Pages of
memory-mapped files count as long as they happen to be in memory; the system drops them when it needs room.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tools.turns import circumstances, console, report

BUDGET = 4000
WORDS, VOWELS, CONSONANTS = 30_000, "aeiou", "bdfgklmnprstvz"
DOCUMENT = 14.1  # sentences, Europarl's mean
LEARNED_FROM = 20_000


def main() -> None:
    options = parse_options()
    if options.part:
        work = PARTS[options.part](Path(options.folder), options)
        imported = peak_megabytes()
        answer = work()
        print(json.dumps({**answer, "peak_megabytes": peak_megabytes(), "megabytes_before_work": imported}))
        return
    started = circumstances()
    with tempfile.TemporaryDirectory(dir=options.work_folder, prefix="weitblick-store-") as folder:
        console.print(f"writing {options.pairs:,} pairs ...")
        write_corpus(Path(folder), options.pairs)
        learn(Path(folder), options.pipeline)
        results = {name: in_own_process(name, folder, options) for name in PARTS}
    rows = [
        {"part": part, "measure": measure.replace("_", " "), "value": value}
        for part, answer in results.items()
        for measure, value in answer.items()
    ]
    report(f"A corpus of {options.pairs:,} pairs, {options.pipeline}", rows, started, options.json)


def in_own_process(part: str, folder: str, options: argparse.Namespace) -> dict[str, Any]:
    console.print(f"{part} ...")
    command = [sys.executable, __file__, "--part", part, "--folder", folder]
    if options.batches is not None:
        command += ["--batches", str(options.batches)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def peak_megabytes() -> float:
    """Of this process and the largest of its own."""
    return sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024


# The parts: each imports what it needs and gives the work to be measured.

Answer = dict[str, float]
Work = Callable[[], Answer]


def prepare(folder: Path, options: argparse.Namespace) -> Work:
    from weitblick.documents.corpora.formats import read_documents
    from weitblick.text.base import load_pipeline
    from weitblick.training.store import prepare_store

    pipeline = load_pipeline(folder / "pipeline")

    def work() -> Answer:
        started = time.perf_counter()
        store = prepare_store(read_documents([folder / "train.en", folder / "train.de"]), pipeline, folder / "store")
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "pairs_per_second": store.sentences / seconds}

    return work


def open_store(folder: Path, options: argparse.Namespace) -> Work:
    from weitblick.training.store import CorpusStore

    def work() -> Answer:
        started = time.perf_counter()
        store = CorpusStore(folder / "store")
        _ = store.sentence("source", store.sentences - 1).sum()
        return {"milliseconds": 1000 * (time.perf_counter() - started)}

    return work


def iterate_sentences(folder: Path, options: argparse.Namespace) -> Work:
    from weitblick.training.batching import sentence_plans

    return iterate(folder, lambda store: sentence_plans(store, BUDGET, 1, 0), options.batches)


def iterate_documents(folder: Path, options: argparse.Namespace) -> Work:
    from weitblick.training.batching import document_plans

    return iterate(folder, lambda store: document_plans([store], BUDGET, 1, 0), options.batches)


def iterate(folder: Path, plan: Callable[[Any], Any], most: int | None) -> Work:
    """Reads an epoch of batches. Shares of real tokens: outside attention, in attention's grids, if simply padded."""
    from weitblick.training.batching import load_batch
    from weitblick.training.store import CorpusStore

    def work() -> Answer:
        started = time.perf_counter()
        store = CorpusStore(folder / "store")
        plans = plan(store)
        planned = time.perf_counter()
        tokens = packed = grid = padded = pairs = 0
        for chosen in plans[:most]:
            current = load_batch([store], chosen).current
            pairs += current.sentences
            for side in (current.source, current.target):
                tokens += side.layout.tokens
                packed += len(side.tokens)
                grid += side.layout.grid.rows
                padded += side.layout.sentences * side.layout.longest
        seconds = time.perf_counter() - planned
        return {
            "planning_seconds": planned - started,
            "seconds": seconds,
            "pairs_per_second": pairs / seconds,
            "real_tokens_outside_attention": tokens / packed,
            "real_tokens_in_attention_grids": tokens / grid,
            "real_tokens_if_padded": tokens / padded,
        }

    return work


PARTS: dict[str, Callable[[Path, argparse.Namespace], Work]] = {
    "prepare": prepare,
    "open": open_store,
    "iterate_sentences": iterate_sentences,
    "iterate_documents": iterate_documents,
}


# The corpus


def vocabulary(seed: int) -> np.ndarray:
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < WORDS:
        syllables = 1 + min(4, int(chance.expovariate(0.7)))
        found["".join(chance.choice(CONSONANTS) + chance.choice(VOWELS) for _ in range(syllables))] = None
        found["".join(chance.choice(CONSONANTS) + chance.choice(VOWELS) for _ in range(4))] = None
    return np.array(list(found)[:WORDS], dtype=object)


def sentences(sizes: np.ndarray, seed: int) -> Iterator[str]:
    known, chance = vocabulary(seed), np.random.default_rng(seed)
    ranks = np.exp(chance.random(int(sizes.sum())) * np.log(WORDS)).astype(int) - 1
    for part in np.split(known[ranks], np.cumsum(sizes)[:-1]):
        yield " ".join(part) + "."


def write_corpus(folder: Path, pairs: int, chunk: int = 50_000) -> None:
    """Two files, a sentence a line, blank lines between documents."""
    from tools.text import lengths

    chance = np.random.default_rng(0)
    with open(folder / "train.en", "w") as source, open(folder / "train.de", "w") as target:
        for first in range(0, pairs, chunk):
            sizes = lengths(min(chunk, pairs - first), first)
            ends = chance.random(len(sizes[0])) < 1 / DOCUMENT
            for stream, side, seed in ((source, sizes[0], 1), (target, sizes[1], 2)):
                # Subwords are shorter than words.
                text = sentences(np.maximum(1, side * 5 // 6), seed)
                stream.writelines(line + ("\n\n" if end else "\n") for line, end in zip(text, ends, strict=True))


def learn(folder: Path, kind: str) -> None:
    from itertools import islice

    from weitblick.common.files import read_lines
    from weitblick.common.recipe import TextSection
    from weitblick.text.pipeline import learn_pipeline

    sides = [[x for x in islice(read_lines(folder / f"train.{s}"), LEARNED_FROM) if x] for s in ("en", "de")]
    section = TextSection(kind=kind, merges=8000, joint_vocabulary=True)  # type: ignore[arg-type]
    learn_pipeline((sides[0], sides[1]), section).save(folder / "pipeline")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--pipeline", choices=["sentencepiece", "moses"], default="sentencepiece")
    parser.add_argument("--batches", type=int, default=None, help="iterate over so many batches only")
    parser.add_argument(
        "--work-folder", default=None, help="where the corpus is made; about 0.5 GB for a million pairs"
    )
    parser.add_argument("--json", metavar="FILE", help="write the results here too")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
