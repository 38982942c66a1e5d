"""Time per word of long documents against short ones, by whole translations and in a stream.

    python benchmarks/long_documents.py TEXT [-m MODEL] [--sentences 5000] [--short 40] [--beam 1] [--json FILE]

*translating*: the same sentences of TEXT, first as documents of `--short` sentences, a sample of them spread over all,
then as a single document of `--sentences`; both read ahead as `translate` does. *streaming*: one sentence after the
other, behind a past of so many sentences of random words.
"""

from __future__ import annotations

import argparse
from itertools import islice
from statistics import mean, median
from typing import Any

import numpy as np
import torch
from tools.ours import Seconds, begin
from tools.text import words
from tools.turns import report, text_parser

from weitblick.documents.corpora.formats import read_documents
from weitblick.documents.document import Document, Sentence
from weitblick.fast.kernels import kernels
from weitblick.model.context import Sources
from weitblick.translation.streaming import Stream
from weitblick.translation.translator import Translator

PARTS = ["translating", "streaming"]
PAST_WORDS = 20
"""Words of each sentence of a stream's past."""


def main() -> None:
    options = parse_options()
    started = begin(options)
    translator = Translator.load(options.model, quantize=options.int8)
    texts = (s.source for d in read_documents([options.text]) for s in d.sentences)
    chosen = (text for text in texts if 0 < len(text.split()) <= options.most_words)
    sentences = list(islice(chosen, options.sentences))
    rows: list[dict[str, Any]] = []
    if "translating" in options.parts:
        rows += translating(translator, sentences, options)
    if "streaming" in options.parts:
        rows += streaming(translator, sentences, options)
    compiled = "with" if kernels() is not None else "without"
    report(f"Long documents against short ones, {compiled} kernels", rows, started, options.json)


def translating(translator: Translator, sentences: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    runs = [sentences[i : i + options.short] for i in range(0, len(sentences) - options.short + 1, options.short)]
    sample = runs[:: max(1, len(runs) // options.sample)][: options.sample]
    _measure(translator, [_document(run) for run in sample], options)  # warm
    short = _measure(translator, [_document(run) for run in sample], options)
    long = _measure(translator, [_document(sentences)], options)
    again = _measure(translator, [_document(run) for run in sample], options)
    base = (short["ms_per_word"] + again["ms_per_word"]) / 2
    return [
        {"part": "translating", "sentences": options.short, **short, "ratio": 1.0},
        {"part": "translating", "sentences": len(sentences), **long, "ratio": long["ms_per_word"] / base},
        {"part": "translating", "sentences": options.short, **again, "ratio": 1.0},
    ]


def _document(sentences: list[str]) -> Document:
    return Document("1", tuple(map(Sentence, sentences)))


def _measure(translator: Translator, documents: list[Document], options: argparse.Namespace) -> dict[str, Any]:
    with Seconds(options) as seconds:
        translated = list(translator.translate_documents(documents, beam=options.beam))
    produced = sum(len((target or "").split()) for document in translated for target in document.targets)
    count = sum(len(document.sentences) for document in documents)
    each = {"ms_per_sentence": 1000 * seconds.passed / count, "ms_per_word": 1000 * seconds.passed / produced}
    return {"seconds": seconds.passed, **each}


def streaming(translator: Translator, sentences: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for past in (options.short, options.sentences):
        stream = translator.stream(beam=options.beam)
        _fill(stream, past, options.seed)
        stream.translate(sentences[0])  # warm
        times = []
        for sentence in sentences[1 : 1 + options.streamed]:
            with Seconds(options) as seconds:
                stream.translate(sentence)
            times.append(1000 * seconds.passed)
        rows.append({"part": "streaming", "sentences": past, "ms_per_sentence": mean(times), "median": median(times)})
    for row in rows:
        row["ratio"] = row["ms_per_sentence"] / rows[0]["ms_per_sentence"]
    return rows


@torch.no_grad()
def _fill(stream: Stream, count: int, seed: int) -> None:
    """A past of random words, projected in one piece instead of sentence by sentence; the rows are the same."""
    model, sizes = stream.model, (stream.pipeline.source_vocabulary, stream.pipeline.target_vocabulary)
    ids, targets = (words(np.full(count, PAST_WORDS), len(size), seed) for size in sizes)
    sources = Sources(ids, [0] * count, list(range(count)))
    stream.past._runs = [model.project(sources, sources.encode(model.sentence), targets)]
    stream.position = count


def parse_options() -> argparse.Namespace:
    parser = text_parser(__doc__, rounds=1)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=5000)
    parser.add_argument("--most-words", type=int, default=100, help="of a sentence; longer ones are left out")
    parser.add_argument("--short", type=int, default=40)
    parser.add_argument("--sample", type=int, default=10, help="short documents that are translated")
    parser.add_argument("--streamed", type=int, default=20, help="sentences of a stream that are timed")
    parser.add_argument(
        "--parts", nargs="+", choices=["translating", "streaming"], default=["translating", "streaming"]
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
