"""Decoding speed with context as a share of the speed without, on the same documents.

    python benchmarks/decoding.py [--sizes small] [--beams 1 4] [--rounds 3] [--json FILE]

Everything that translating costs is counted: encoding, context banks, search. One base serves for both: the
sentence-level model is what H-Attention in the encoder adds to, and the first pass of H-Attention in the decoder. Its
second pass has the encoder states of the first and, as the search that found them has told, those of the translations.
Random weights; every sentence gets the same number of words in all contestants. Supports: `random`, as initialised
(wide), or `narrow`, sentence queries scaled until a word attends to 3 sentences on average, as in a trained model.
Contestants take turns; shares are medians of quotients of neighbouring runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from tools.ours import begin, clock_of, model_section, narrow
from tools.sizes import SIZES, Size
from tools.text import lengths, words
from tools.turns import option_parser, ratio, report, take_turns

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection
from weitblick.model.context import Context, Sources
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import EOS
from weitblick.translation.beam import SearchOptions, beam_search
from weitblick.translation.kept_states import TranslationStates
from weitblick.translation.searching import batches_by_length

BASE = "sentence level"
BATCH_TOKENS = 4096


def main() -> None:
    options = parse_options()
    started = begin(options)
    rows = [row for size in options.sizes for beam in options.beams for row in measure(size, beam, options)]
    report("Decoding with context as a share of decoding without", rows, started, options.json)


def measure(size: str, beam: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    shape = SIZES[size]
    runs: dict[str, Callable[[], float]] = {BASE: Contestant(shape, {"kind": "none"}, "random", beam, options)}
    for integration in ("encoder", "decoder"):
        for support in options.supports:
            section = {"kind": "hierarchical", "integration": integration}
            name = f"{integration}{', second pass' * (integration == 'decoder')}, {support}"
            runs[name] = Contestant(shape, section, support, beam, options)
    figures = take_turns(runs, options.rounds, label=f"{size}, beam {beam}:")
    return [
        {
            "size": size,
            "beam": beam,
            "model": name,
            "words_per_second": median(figures[name]),
            "share": ratio(figures, name, BASE),
        }
        for name in runs
    ]


class Contestant:
    """A model and documents; a call translates all of them and gives words per second."""

    def __init__(
        self, shape: Size, section: dict[str, str], support: str, beam: int, options: argparse.Namespace
    ) -> None:
        count = options.documents * options.sentences
        source, target = lengths(count, options.seed)
        documents = [i // options.sentences for i in range(count)]
        positions = [i % options.sentences for i in range(count)]
        self.sources = Sources(words(source, shape.vocabulary, options.seed), documents, positions)
        self.drafts = words(target, shape.vocabulary, options.seed + 1)
        self.model = random_model(shape, section, options.seed)
        self.clock = clock_of(options)
        self.search = SearchOptions(beam, length_factor=1.0, length_slack=0)
        if support == "narrow":
            self._narrow()

    @torch.no_grad()
    def __call__(self) -> float:
        first = self._first_pass() if self.model.reads_translations else None
        start = self.clock()
        produced = 0
        memory = self.sources.encode(self.model.sentence) if first is None else first.memory
        context = self._context(memory, first)
        for batch in batches_by_length(self.sources, range(len(self.sources)), BATCH_TOKENS // self.search.beam):
            packed = self.sources.pack(batch)
            states, _ = self.model.encode(packed, context, states=memory.index_select(0, self.sources.rows(batch)))
            found = beam_search(self.model, states, packed.layout, context, self.search)
            produced += sum(len(hypotheses[0].ids) for hypotheses in found)
        return produced / (self.clock() - start)

    def _first_pass(self) -> TranslationStates:
        """What a first pass leaves to the second."""
        found = TranslationStates(self.model, self.sources, self.sources.encode(self.model.sentence))
        found.context(self.drafts, None)
        return found

    def _context(self, memory: torch.Tensor, first: TranslationStates | None) -> Context | None:
        if first is not None:
            return first.context(self.drafts, None)
        return self.model.context_of(self.sources, memory, self.drafts)

    @torch.no_grad()
    def _narrow(self) -> None:
        memory = self.sources.encode(self.model.sentence)
        queries, layout = memory[: int(self.sources.lengths[0])], self.sources.pack([0]).layout
        context = self.model.context_of(self.sources, memory, self.drafts)
        narrow(self.model.context.attention, queries, layout, context.bank)  # type: ignore[union-attr]


def random_model(shape: Size, section: dict[str, str], seed: int) -> DocumentModel:
    """A model that never ends a sentence by itself: the limit, the length of the source, does."""
    torch.manual_seed(seed)
    model = model_section(shape)
    built = build(model, ContextSection(**section), shape.vocabulary, shape.vocabulary).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        built.sentence.output_bias[EOS] = -1e4
    return built


def parse_options() -> argparse.Namespace:
    parser = option_parser(__doc__, rounds=3)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small", "paper"])
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 4], help="1 is greedy")
    parser.add_argument("--supports", nargs="+", choices=["random", "narrow"], default=["random", "narrow"])
    parser.add_argument("--documents", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=40, help="of a document")
    return parser.parse_args()


if __name__ == "__main__":
    main()
