"""Explaining as a multiple of translating: one document as `explain` does, many as `explain --statistics` does.

    python benchmarks/explaining.py TEXT [-m MODEL] [--documents 10] [--beam 4] [--threads 1 --clock cpu] [--json FILE]

Translating is `translate` with both passes, explaining what `explain` computes before it writes anything; of one
document also with its page. Contestants take turns; ratios are medians of quotients of neighbouring runs.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tools.ours import Seconds, begin
from tools.turns import ratio, report, take_turns, text_parser

from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.document import Document
from weitblick.explanation.corpus import CorpusAttention
from weitblick.explanation.explain import explain, explain_documents
from weitblick.explanation.page import write_page
from weitblick.fast.kernels import kernels
from weitblick.translation.translator import Translator

TRANSLATING, EXPLAINING, PAGE = "translating", "explaining", "explaining, with the page"


def main() -> None:
    options = parse_options()
    started = begin(options)
    translator = Translator.load(options.model, quantize=options.int8)
    documents = list(islice(read_documents([options.text]), options.documents))
    longest = max(documents, key=lambda document: len(document.sentences))
    rows = measure(translator, [longest], "one document", options)
    rows += measure(translator, documents, "corpus", options)
    compiled = "with" if kernels() is not None else "without"
    report(f"Explaining as a multiple of translating, {compiled} kernels", rows, started, options.json)


def measure(
    translator: Translator, documents: list[Document], what: str, options: argparse.Namespace
) -> list[dict[str, Any]]:
    def translating() -> float:
        with Seconds(options) as seconds:
            list(translator.translate_documents(documents, beam=options.beam))
        return seconds.passed

    def explaining() -> float:
        with Seconds(options) as seconds:
            if len(documents) == 1:
                explain(translator, documents[0], beam=options.beam)
            else:
                counted = CorpusAttention()
                for explanation in explain_documents(translator, documents, beam=options.beam):
                    counted.add(explanation)
        return seconds.passed

    def writing() -> float:
        with TemporaryDirectory() as folder, Seconds(options) as seconds:
            write_page(Path(folder) / "report.html", explain(translator, documents[0], beam=options.beam))
        return seconds.passed

    contestants = {TRANSLATING: translating, EXPLAINING: explaining}
    if len(documents) == 1:
        contestants[PAGE] = writing
    figures = take_turns(contestants, options.rounds, label=what)
    sentences = sum(len(document.sentences) for document in documents)
    return [
        {
            "what": what,
            "sentences": sentences,
            "work": name,
            "seconds": median(figures[name]),
            "ratio": ratio(figures, name, TRANSLATING),
        }
        for name in contestants
    ]


def parse_options() -> argparse.Namespace:
    parser = text_parser(__doc__, rounds=2)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--documents", type=int, default=10)
    return parser.parse_args()


if __name__ == "__main__":
    main()
