"""Both passes of a model that reads translations, as a share of the speed of sentence-level translating.

    python benchmarks/passes.py TEXT [-m MODEL] [--beams 4 1] [--documents 10] [--threads 1 --clock cpu] [--json FILE]

Everything is counted that `translate` does, from text to text; `--no-context` is the base. Contestants take turns;
shares are medians of quotients of neighbouring runs. Compiled kernels are used where they have been built.
"""

from __future__ import annotations

import argparse
from itertools import islice
from statistics import median
from typing import Any

from tools.ours import Seconds, begin
from tools.turns import ratio, report, take_turns, text_parser

from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.document import Document
from weitblick.fast.kernels import kernels
from weitblick.translation.translator import Translator

BASE, BOTH = "sentence level", "both passes"


def main() -> None:
    options = parse_options()
    started = begin(options)
    translator = Translator.load(options.model, quantize=options.int8)
    documents = list(islice(read_documents([options.text]), options.documents))
    rows = [row for beam in options.beams for row in measure(translator, documents, beam, options)]
    compiled = "with" if kernels() is not None else "without"
    report(f"Both passes as a share of sentence level, {compiled} kernels", rows, started, options.json)


def measure(
    translator: Translator, documents: list[Document], beam: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    targets: dict[str, list[str | None]] = {}

    def run(name: str) -> float:
        with Seconds(options) as seconds:
            translated = list(translator.translate_documents(documents, beam=beam, context=name == BOTH))
        targets[name] = [target for document in translated for target in document.targets]
        return sum(len((target or "").split()) for target in targets[name]) / seconds.passed

    figures = take_turns({name: lambda name=name: run(name) for name in (BASE, BOTH)}, options.rounds)  # type: ignore[misc]
    changed = sum(x != y for x, y in zip(targets[BASE], targets[BOTH], strict=True))
    return [
        {
            "beam": beam,
            "model": name,
            "words_per_second": median(figures[name]),
            "share": ratio(figures, name, BASE),
            "sentences": len(targets[BASE]),
            "changed": changed if name == BOTH else 0,
        }
        for name in (BASE, BOTH)
    ]


def parse_options() -> argparse.Namespace:
    parser = text_parser(__doc__, rounds=3)
    parser.add_argument("--beams", nargs="+", type=int, default=[4, 1], help="1 is greedy")
    parser.add_argument("--documents", type=int, default=10)
    return parser.parse_args()


if __name__ == "__main__":
    main()
