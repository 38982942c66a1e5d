"""How long the rest of a row takes while somebody types it: the server's time from a beginning to what follows.

    python benchmarks/completion.py --source dev.en --target dev.de [--rows 592] [--typed 40] [--seed 1]

The sentences are one document of so many rows, translated first. Of rows by chance the references are typed, each up to
a place by chance, within words as well. `preparing` is the first time in a row, which has to read the document around
it; `completing` is every other. Milliseconds of the clock on the wall, and of the processor.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from weitblick.documents.document import Sentence
from weitblick.translation.translator import Translator
from weitblick.workbench.app import create_app
from weitblick.workbench.service import Service

SECONDS = 3600
BEGINNINGS = 6
"""Of each row that is typed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=592)
    parser.add_argument("--typed", type=int, default=40, help="rows that are typed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-m", "--model")
    options = parser.parse_args()
    pairs = [
        pair
        for pair in zip(lines(options.source), lines(options.target), strict=True)
        if pair[0].strip() and pair[1].strip()
    ][: options.rows]
    with tempfile.TemporaryDirectory() as folder:
        service: Service = create_app(Translator.load(options.model, device="cpu"), Path(folder)).state.service
        document = opened(service, [source for source, _ in pairs])
        preparing, completing = typed(service, document, [target for _, target in pairs], options)
        service.close()
    print(f"{len(pairs)} rows, {options.typed} of them typed, seed {options.seed}")
    report("preparing", preparing)
    report("completing", completing)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def opened(service: Service, sources: list[str]) -> str:
    text = "".join(f"{source}\n\n" for source in sources).encode()
    project = service.store.add_project("one").id
    document = service.workbench.add(project, "one.txt", [Sentence(source) for source in sources], text)
    service.workbench._filling[document].result.result(SECONDS)
    return document


Times = list[tuple[float, float]]


def typed(service: Service, document: str, targets: list[str], options: argparse.Namespace) -> tuple[Times, Times]:
    chance = random.Random(options.seed)
    preparing: Times = []
    completing: Times = []
    for position in chance.sample(range(len(targets)), min(options.typed, len(targets))):
        for number in range(BEGINNINGS):
            beginning = targets[position][: chance.randrange(len(targets[position]))]
            wall, processor = time.perf_counter(), time.process_time()
            steps = service.workbench.completing.steps(document, position, beginning)
            service.engine.run(steps, urgent=True).result.result(SECONDS)
            took = 1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - processor)
            (completing if number else preparing).append(took)
    return preparing, completing


def report(name: str, times: Times) -> None:
    for clock, own in zip(("wall", "processor"), zip(*times, strict=True), strict=True):
        slow = quantiles(own, n=20)[-1]
        print(f"{name:>10} {clock:>9}: median {median(own):6.1f} ms   95 % {slow:6.1f} ms   most {max(own):6.1f} ms")


if __name__ == "__main__":
    main()
