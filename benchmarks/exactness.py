"""How exact 8-bit layers are: a model's own judgement of a translation, in float32 and with layers of 8 bits.

    python benchmarks/exactness.py SOURCE TARGET [--model FOLDER] [--pairs 100] [--json FILE]

Teacher-forced over the first pairs of two files (a sentence a line). *error* is that of final decoder states, as a part
of their deviation; *nats more* what the reference loses a word; *another best* how often another word is the most
probable. Weights of 7 bits are what a processor needs on which pairs of 8-bit products overflow.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from tools.turns import circumstances, report
from torch import Tensor

from weitblick.fast import quantized
from weitblick.fast.quantized import quantize_linears
from weitblick.model.batch import pack_source, pack_target
from weitblick.model.document_model import DocumentModel
from weitblick.translation.translator import Translator

LEVELS = {7: 63, 8: 127}


def main() -> None:
    options = parse_options()
    started = circumstances()
    translator = Translator.load(options.model, "cpu")
    pipeline = translator.pipeline
    texts = [
        [line for line in path.read_text(encoding="utf-8").splitlines() if line][: options.pairs]
        for path in (options.source, options.target)
    ]
    sources, targets = pipeline.encode_source(texts[0]), pipeline.encode_target(texts[1])
    exact = judge(translator.model, sources, targets)
    rows: list[dict[str, Any]] = [{"weights": "float32", "nats_a_word": float(exact[1].mean())}]
    for bits in options.bits:
        for least in options.least_weights:
            with patch.object(quantized, "weight_levels", lambda size, bits=bits: LEVELS[bits]):
                found = judge(quantize_linears(translator.model, least), sources, targets)
            rows.append({"weights": f"{bits} bits", "layers_from": least, **compare(exact, found)})
    report("8-bit layers next to float32", rows, started, options.json)


Judged = tuple[Tensor, Tensor, Tensor]


@torch.no_grad()
def judge(model: DocumentModel, sources: list[list[int]], targets: list[list[int]]) -> Judged:
    """Final states [T, d], nats [T] of the reference's words, and the most probable words [T]."""
    source, (target, labels) = pack_source(sources), pack_target(targets)
    memory, _ = model.encode(source, None)
    words = model.decode(target, memory, source.layout).words
    likely, best = words.softmax.judge(labels)
    return words.states, -likely, best


def compare(exact: Judged, found: Judged) -> dict[str, Any]:
    return {
        "nats_a_word": float(found[1].mean()),
        "error_%": 100 * float((found[0] - exact[0]).std() / exact[0].std()),
        "nats_more": float((found[1] - exact[1]).mean()),
        "another_best_%": 100 * float((found[2] != exact[2]).float().mean()),
    }


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--model", help="the one that comes with Weitblick without")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--bits", nargs="+", type=int, choices=LEVELS, default=[7, 8], help="of weights")
    parser.add_argument("--least-weights", nargs="+", type=int, default=[0, 50_000, 150_000])
    parser.add_argument("--json", metavar="FILE", help="write the results here too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
