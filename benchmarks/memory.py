"""Speed of decoding with approved translations, as a share of the speed without, all measured in one run.

    python benchmarks/memory.py SOURCE PAIRS.tsv [-m MODEL] [--sentences 200] [--size 100000] [--clock cpu]

PAIRS is any file that holds both sides. Two memories are made of it: its first 40 pairs, and its first 100,000 in a
folder. Also measured: to open that folder, to add one pair to it, and to search it. Rounds alternate, and the median of
each is taken; keys of pairs are computed in a first round, which is reported apart, and kept. `--clock cpu` takes the
processor time of one thread, which other processes do not disturb. Compiled kernels are used where they have been built
(`python -m weitblick.fast`); WEITBLICK_KERNELS=off leaves them out.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice

import torch

from weitblick.common.process import tune_allocator
from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.document import Document, Sentence
from weitblick.fast.kernels import kernels
from weitblick.memory.reading import read_pairs
from weitblick.memory.store import Memory
from weitblick.translation.translator import Translator

SMALL = 40


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    begun = clock()
    work()
    return clock() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("pairs")
    parser.add_argument("-m", "--model")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    options = parser.parse_args()
    clock = CLOCKS[options.clock]
    tune_allocator()
    torch.set_num_threads(options.threads)
    translator = Translator.load(options.model)
    languages = (translator.pipeline.source_language, translator.pipeline.target_language)
    texts = (s.source for d in read_documents([options.source]) for s in d.sentences)
    document = Document("1", tuple(Sentence(text) for text in islice(texts, options.sentences)))
    with tempfile.TemporaryDirectory() as folder:
        with Memory.open(folder) as memory:
            memory.extend(islice(read_pairs(options.pairs, languages), options.size))
        opened = seconds(lambda: Memory.open(folder))
        large, small = Memory.open(folder), Memory()
        small.extend((pair.source, pair.target, "") for pair in islice(iter(large), SMALL))
        print(f"kernels: {'yes' if kernels() is not None else 'no'}; {options.threads} threads, {options.clock} clock")
        print(f"{len(large)} pairs, opened in {opened * 1000:.1f} ms")
        adding = [seconds(lambda n=n: large.add(f"One more pair {n}.", "Noch eins.")) for n in range(20)]
        print(f"one pair added in {statistics.median(adding) * 1000:.1f} ms")
        texts = [sentence.source for sentence in document.sentences]
        searching = seconds(lambda: large.candidates(texts, 16), clock)
        print(f"searched in {searching / len(texts) * 1000:.1f} ms a sentence")

        def translate(memory: Memory | None) -> None:
            translator.translate(document, memory=memory, beam=options.beam)

        kinds = {"none": None, f"{SMALL} pairs": small, f"{len(large)} pairs": large}
        for name, memory in kinds.items():
            print(f"{name}: first round {seconds(lambda memory=memory: translate(memory), clock):.2f} s")
        times: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(options.rounds):
            for name, memory in kinds.items():
                times[name].append(seconds(lambda memory=memory: translate(memory), clock))
        base = statistics.median(times["none"])
        for name, measured in times.items():
            median = statistics.median(measured)
            print(f"{name}: {median:.2f} s, speed {base / median:.2f} of that without")


if __name__ == "__main__":
    main()
