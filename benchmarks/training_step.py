"""The whole training step of each context-aware variant as a share of the plain Transformer's on the same documents.

    python benchmarks/training_step.py [--sizes small] [--sentences 10 40 120] [--rounds 7] [--json FILE]

A step is forward, loss, backward, clipping and Adam, with live context states, dropout and 2 threads. The `ceiling` is
the same step whose context layer has its projections, feed-forward and gate but no attention: what no attention can
pass, however fast. Supports: `random` weights as initialised (wide supports, as at the start of stage 2), and `narrow`,
the sentence queries scaled until a word attends to 3 sentences on average (as in a trained model). Contestants take
turns; shares are medians of quotients of neighbouring runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from tools.ours import begin, clock_of, model_section, narrow
from tools.sizes import SIZES, Size
from tools.text import lengths, words
from tools.turns import option_parser, ratio, report, take_turns
from torch import Tensor

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ContextStageSection
from weitblick.fast.context_attention import ContextBank
from weitblick.model.batch import Batch, Layout, pack_pairs
from weitblick.model.context_attention import ContextAttention
from weitblick.model.document_model import DocumentModel
from weitblick.model.loss import smoothed_cross_entropy
from weitblick.model.plain_attention import Attended
from weitblick.training.update import Optimiser

KINDS: dict[str, dict[str, str]] = {
    "sentence": {"kind": "sentence", "sentence_attention": "soft"},
    "word": {"kind": "word", "word_attention": "soft"},
    "sparse-soft": {"kind": "hierarchical"},
    "sparse-sparse": {"kind": "hierarchical", "word_attention": "sparse"},
}
ENOUGH_SENTENCES = 40  # short documents come several in a batch
PLAIN = "plain Transformer"


@dataclass(frozen=True)
class Variant:
    kind: str
    integration: str
    support: str

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.integration}, {self.support}"


def main() -> None:
    options = parse_options()
    started = begin(options)
    rows = [row for size in options.sizes for count in options.sentences for row in measure(size, count, options)]
    report("Training step as a share of the plain Transformer", rows, started, options.json)


def measure(size: str, sentences: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    shape = SIZES[size]
    texts = documents(shape, sentences, options.seed)
    plain = Contestant(shape, ContextSection(), texts)
    clock = clock_of(options)
    rows: list[dict[str, Any]] = []
    for integration in options.integrations:
        variants = [
            Variant(kind, integration, support)
            for kind in options.variants
            for support in (options.supports if kind.startswith("sparse") else ["random"])
        ]
        runs: dict[str, Contestant] = {PLAIN: plain}
        for variant in variants:
            section = ContextSection(integration=integration, **KINDS[variant.kind])
            runs[variant.name] = Contestant(shape, section, texts, narrowed=variant.support == "narrow")
        ceiling = Contestant(shape, ContextSection(integration=integration, kind="hierarchical"), texts)
        ceiling.remove_attention()
        runs["ceiling"] = ceiling
        figures = take_turns(
            {name: lambda run=run: run.step(clock) for name, run in runs.items()},
            options.rounds,
            label=f"{size}, {sentences} sentences, {integration}:",
        )
        rows += [
            {
                "size": size,
                "sentences": sentences,
                "integration": integration,
                "variant": name.replace(f", {integration}", ""),
                "mean_support": run.support,
                "tokens_per_second": median(figures[name]),
                "share_of_plain": ratio(figures, name, PLAIN),
                "share_of_ceiling": ratio(figures, name, "ceiling"),
            }
            for name, run in runs.items()
        ]
    return rows


Texts = tuple[list[list[int]], list[list[int]], list[int], list[int]]


def documents(shape: Size, sentences: int, seed: int) -> Texts:
    """Sources, targets, documents and positions of one batch of documents of so many sentences."""
    count = max(1, ENOUGH_SENTENCES // sentences)
    source, target = lengths(count * sentences, seed)
    return (
        words(source, shape.vocabulary, seed),
        words(target, shape.vocabulary, seed + 1),
        [d for d in range(count) for _ in range(sentences)],
        [s for _ in range(count) for s in range(sentences)],
    )


class Contestant:
    """A model and its optimiser. The rate is 0: the work is the same, and supports stay as they were set."""

    def __init__(self, shape: Size, context: ContextSection, texts: Texts, *, narrowed: bool = False) -> None:
        torch.manual_seed(1)
        self.texts = texts
        self.stage = ContextStageSection(learning_rate=1e-30)
        self.model = build(model_section(shape), context, shape.vocabulary, shape.vocabulary)
        self.optimiser = Optimiser(self.model, self.stage)
        self.update = 0
        self.support: float | None = None
        if self.model.context is not None:
            self.support = support_of(self.model, Batch(pack_pairs(*texts)), narrowed)

    def remove_attention(self) -> None:
        attention = self.model.context.attention  # type: ignore[union-attr]
        assert isinstance(attention, ContextAttention)
        attention._attend = without_attention.__get__(attention)  # type: ignore[method-assign]
        self.support = None

    def step(self, clock: Callable[[], float]) -> float:
        """Target tokens per second of one step, from ids to updated weights."""
        model = self.model.train()
        started = clock()
        self.update += 1
        self.optimiser.prepare(self.update)
        batch = Batch(pack_pairs(*self.texts))
        labels = batch.current.labels
        output = model(batch)
        loss, _ = smoothed_cross_entropy(output.states, *model.sentence.output(), labels, self.stage.label_smoothing)
        (loss / len(labels)).backward()
        self.optimiser.step(1.0)
        self.optimiser.zero()
        return len(labels) / (clock() - started)


def support_of(model: DocumentModel, batch: Batch, narrowed: bool) -> float:
    """The mean support of a batch, after narrowing it if wanted."""
    context, seen = model.context, []
    assert context is not None
    hook = context.register_forward_pre_hook(lambda _, inputs: seen.append(inputs))
    with torch.no_grad():
        model.eval()(batch)
        hook.remove()
        _, queries, layout, bank = seen[0]
        if narrowed:
            narrow(context.attention, queries, layout, bank)
        return float(context.attention(queries, layout, bank).support.mean())


class _Projections(torch.autograd.Function):
    """Stands where attention stood: costs nothing, and every projection before it still has its backward to do."""

    @staticmethod
    def forward(ctx, qs: Tensor, qw: Tensor, ks: Tensor, kw: Tensor, vw: Tensor, places: int):  # type: ignore[no-untyped-def, override]
        ctx.save_for_backward(ks, kw, vw)
        support = qs.new_zeros(places)
        ctx.mark_non_differentiable(support)
        return qs + qw, support

    @staticmethod
    def backward(ctx, gradient: Tensor, _: Tensor):  # type: ignore[no-untyped-def, override]
        return gradient, gradient, *(torch.zeros_like(x) for x in ctx.saved_tensors), None


def without_attention(self: Any, rows: dict[str, Tensor], layout: Layout, bank: ContextBank, _: bool) -> Attended:
    qs, qw = rows["sentence_queries"], rows["word_queries"]
    values, support = _Projections.apply(
        qs, qw, bank.cells.sentence_keys, bank.cells.word_keys, bank.cells.word_values, len(qs)
    )
    return Attended(values, torch.ones(len(qs), dtype=torch.bool), support)


def parse_options() -> argparse.Namespace:
    parser = option_parser(__doc__, rounds=7)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small"])
    parser.add_argument("--sentences", nargs="+", type=int, default=[10, 40, 120], help="of a document")
    parser.add_argument("--variants", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--integrations", nargs="+", choices=["encoder", "decoder"], default=["encoder", "decoder"])
    parser.add_argument("--supports", nargs="+", choices=["random", "narrow"], default=["random", "narrow"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
