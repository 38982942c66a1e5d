"""The context layer alone: dense and routed H-Attention beside the same layer without attention, and long documents.

    python benchmarks/context_attention.py training [--sizes small paper] [--sentences 10 40 120] [--json FILE]
    python benchmarks/context_attention.py inference [--sizes small] [--sentences 40 500 2000 5000] [--json FILE]

Training is the layer's forward and backward pass. Inference is one forward pass over a whole document: of the `layer`
alone, prepared bank included, and of the `whole`, which encodes the sentences too and is what one pays for a sentence
before decoding. The layer's sentence scores are quadratic in the length of the document, all else is linear. Supports:
`random` weights (wide, as at the start of stage 2) and `narrow`, the sentence queries scaled until a query attends to
about 3 sentences. Contestants take turns. Times are processor time on one thread by default, which other work on the
machine disturbs least; `--clock wall --threads 2` for wall time. Peak memory is the growth of the process while they
run.
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from tools.ours import begin, clock_of, model_section, narrow
from tools.sizes import SIZES
from tools.text import lengths
from tools.turns import CLOCK_HELP, CLOCKS, ratio, report, take_turns
from torch import Tensor

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection
from weitblick.model.batch import Layout
from weitblick.model.context_layer import ContextLayer
from weitblick.model.plain_attention import Attended

ENOUGH_SENTENCES = 40
ENCODED_SENTENCES = 64
CEILING = "no attention"


def main() -> None:
    options = parse_options()
    started = begin(options)
    measure = {"training": training, "inference": inference}[options.what]
    rows = [row for size in options.sizes for count in options.sentences for row in measure(size, count, options)]
    report(f"Context layer, {options.what}", rows, started, options.json)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["training", "inference"])
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=["small"])
    parser.add_argument("--sentences", nargs="+", type=int)
    parser.add_argument("--words", nargs="+", choices=["soft", "sparse"], default=["soft", "sparse"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=CLOCKS, default="cpu", help=CLOCK_HELP)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.sentences = options.sentences or ([10, 40, 120] if options.what == "training" else [40, 500, 2000, 5000])
    return options


def documents(sentences: int, dimension: int) -> tuple[Layout, Tensor]:
    """Documents of so many sentences, several if they are short, and states of unit variance."""
    count = max(1, ENOUGH_SENTENCES // sentences)
    words, _ = lengths(count * sentences, seed=1)
    layout = Layout.of(
        (words + 1).tolist(),
        [d for d in range(count) for _ in range(sentences)],
        [s for _ in range(count) for s in range(sentences)],
    )
    return layout, torch.randn(layout.tokens, dimension, generator=torch.Generator().manual_seed(1))


def layer_of(size: str, words: str, path: str, scale: float = 1.0) -> ContextLayer:
    torch.manual_seed(1)
    section = ContextSection(kind="hierarchical", word_attention=words, path=path)
    layer = ContextLayer(section, model_section(SIZES[size]))
    with torch.no_grad():
        layer.attention.sentence_query.weight.mul_(scale)
    return layer


def narrow_scale(size: str, layout: Layout, states: Tensor) -> float:
    """How much stronger sentence queries must be for narrow supports, found on a sample of them."""
    attention = layer_of(size, "soft", "dense").attention
    sample = Layout.of([64], [0], [int(layout.positions.max()) + 1])
    with torch.no_grad():
        return narrow(attention, states[:64], sample, attention.prepare(states, states, layout))


def timed(run: Callable[[], Any], options: argparse.Namespace, tokens: int) -> Callable[[], float]:
    """Microseconds per token of one run."""
    clock = clock_of(options)

    def once() -> float:
        started = clock()
        run()
        return (clock() - started) / tokens * 1e6

    return once


def train_step(layer: ContextLayer, layout: Layout, states: Tensor) -> None:
    layer.zero_grad(set_to_none=True)
    queries = states.detach().requires_grad_()
    layer(queries, queries, layout, layer.prepare(states, states, layout)).states.backward(states)


def training(size: str, sentences: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    layout, states = documents(sentences, SIZES[size].dimension)
    ceiling = layer_of(size, "soft", "dense")
    ceiling.attention._attend = without_attention.__get__(ceiling.attention)  # type: ignore[method-assign]
    layers = {CEILING: ceiling}
    for support, scale in (("random", 1.0), ("narrow", narrow_scale(size, layout, states))):
        for words in options.words:
            for path in ("dense", "routed"):
                layers[f"sparse-{words}, {support}, {path}"] = layer_of(size, words, path, scale)
    runs = {
        name: timed(lambda layer=layer: train_step(layer, layout, states), options, layout.tokens)  # type: ignore[misc]
        for name, layer in layers.items()
    }
    figures = take_turns(runs, options.rounds, label=f"{size}, {sentences} sentences:")
    return [
        {
            "size": size,
            "sentences": sentences,
            "variant": name,
            "microseconds_per_token": median(figures[name]),
            "times_no_attention": ratio(figures, name, CEILING),
        }
        for name in layers
    ]


def without_attention(self: Any, rows: dict[str, Tensor], layout: Layout, bank: Any, _: bool) -> Attended:
    """In place of attention: the projections and their backward passes, and nothing else."""
    q = rows["sentence_queries"] + rows["word_queries"]
    read = bank.cells.word_keys.sum() + bank.cells.word_values.sum() + bank.cells.sentence_keys.sum()
    return Attended(q + read * 0.0, torch.ones(len(q), dtype=torch.bool), q.new_zeros(len(q)))


def inference(size: str, sentences: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The layer alone on given states, and the encoder with the layer: what a sentence costs before decoding."""
    layout, states = documents(sentences, SIZES[size].dimension)
    scale = narrow_scale(size, layout, states)
    encode = encoder_of(size, layout)
    rows = []
    for words in options.words:
        for path in ("dense", "routed") if sentences <= 500 else ("routed",):
            layer = layer_of(size, words, path, scale).eval()
            supports: list[float] = []

            def alone(layer: ContextLayer = layer, supports: list[float] = supports) -> None:
                supports.append(
                    float(layer(states, states, layout, layer.prepare(states, states, layout)).support.mean())
                )

            def whole(alone: Callable[[], None] = alone) -> None:
                encode()
                alone()

            clear_peak()
            before = memory("VmRSS")
            runs = {name: timed(run, options, layout.tokens) for name, run in (("layer", alone), ("whole", whole))}
            rounds = options.rounds if sentences <= 500 else 1
            label = f"{size}, {sentences} sentences, sparse-{words}, {path}:"
            with torch.no_grad():
                figures = take_turns(runs, rounds, warm_up=int(sentences <= 500), label=label)
            milliseconds = {name: median(figures[name]) * layout.tokens / layout.sentences / 1e3 for name in runs}
            rows.append(
                {
                    "size": size,
                    "sentences": sentences,
                    "variant": f"sparse-{words}, {path}",
                    "mean_support": supports[-1],
                    "layer_microseconds_per_token": median(figures["layer"]),
                    "layer_milliseconds_per_sentence": milliseconds["layer"],
                    "whole_milliseconds_per_sentence": milliseconds["whole"],
                    "peak_megabytes": memory("VmHWM") - before,
                }
            )
    return rows


def encoder_of(size: str, layout: Layout) -> Callable[[], None]:
    """Encodes the sentences of `layout` in batches, as translating does."""
    shape = SIZES[size]
    model = build(model_section(shape), ContextSection(), shape.vocabulary, shape.vocabulary).sentence.eval()
    batches = [Layout.of(part.tolist()) for part in layout.lengths.split(ENCODED_SENTENCES)]
    tokens = [torch.randint(4, shape.vocabulary, (batch.tokens,)) for batch in batches]

    def encode() -> None:
        for batch, ids in zip(batches, tokens, strict=True):
            model.encode(ids, batch)

    return encode


def memory(field: str) -> float:
    """Megabytes that /proc says of this process: VmRSS now, VmHWM at most since `clear_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return float("nan")


def clear_peak() -> None:
    """Forgets the peak, after giving back what was freed: memory that stayed with the process would not count anew."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    main()
