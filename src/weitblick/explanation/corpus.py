"""Attention over a whole corpus: how far it reaches and how sparse it is, by head and by length.

The paper says of its own models, by way of examples, that attention is sparse and reaches far; these are the figures
to say so, or not, of one's own. They come from explanations, a document at a time, and add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weitblick.common.errors import UserError
from weitblick.common.files import atomic_path
from weitblick.common.imports import optional_package
from weitblick.explanation.attention import Attention
from weitblick.explanation.schema import Explanation

SENTENCE_LENGTHS = (10, 20, 30, 40)
DOCUMENT_LENGTHS = (5, 10, 20, 40, 80)
"""Upper ends of the classes that lengths fall into; longer ones are a class of their own."""


Figures = dict[str, Any]
"""By name, as `--json` prints them; None where nothing was attended to."""


@dataclass
class CorpusAttention:
    """Sums over query words and heads; `statistics` turns them into means.

    distances[h]    signed distance in sentences -> mass that head h sent there
    attended[h]     of head h: [sum of sentences attended, sum of their share of those visible, rows]
    """

    heads: int = 0
    documents: int = 0
    words: int = 0
    distances: list[dict[int, float]] = field(default_factory=list)
    attended: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    by_sentence_length: dict[str, np.ndarray] = field(default_factory=dict)
    by_document_length: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, explanation: Explanation) -> None:
        """Counts one document in. Sentences that could attend to nothing do not count."""
        model = explanation.model
        if not any(sentence.attention for sentence in explanation.sentences):
            return
        if not self.documents:
            self.heads = model.heads
            self.distances = [{} for _ in range(model.heads)]
            self.attended = np.zeros((model.heads, 3))
        elif model.heads != self.heads:
            raise UserError(
                f"{explanation.document} has {model.heads} heads, others {self.heads}", remedy="do not mix models"
            )
        self.documents += 1
        total = len(explanation.sentences)
        for index, sentence in enumerate(explanation.sentences):
            visible = index if model.direction == "online" else total - 1
            if sentence.attention is None or not visible:
                continue
            self.words += sentence.attention.queries
            lengths = len(explanation.query_words(index)), total
            self._count(sentence.attention, index, visible, lengths)

    def _count(self, attention: Attention, index: int, visible: int, lengths: tuple[int, int]) -> None:
        """lengths: words of the sentence, sentences of the document"""
        rows, sentences, masses = attention.entries()
        heads, distances = rows % self.heads, sentences.astype(np.int64) - index
        for head, reached in enumerate(self.distances):
            own = heads == head
            found, places = np.unique(distances[own], return_inverse=True)
            for distance, mass in zip(found, np.bincount(places, masses[own]), strict=False):
                reached[int(distance)] = reached.get(int(distance), 0.0) + float(mass)
        attended = attention.attended.astype(float)  # [queries, H]
        rows_of_head = (attended > 0).sum(0)
        figures = np.stack([attended.sum(0), attended.sum(0) / visible, rows_of_head], 1)  # [H, 3]
        self.attended += figures
        tables = (self.by_sentence_length, SENTENCE_LENGTHS), (self.by_document_length, DOCUMENT_LENGTHS)
        for (table, ends), length in zip(tables, lengths, strict=True):
            if rows_of_head.any():
                name = _class(length, ends)
                table[name] = table.get(name, np.zeros(3)) + figures.sum(0)

    def statistics(self) -> Figures:
        """Means as plain data, of each head, of all, and by the length of sentences and of documents: how far attention
        goes (distances in sentences, shares of its mass), and how many sentences a word attends to."""
        return {
            "documents": self.documents,
            "words": self.words,
            "heads": [self._head(head) for head in range(self.heads)],
            "all_heads": {**_reach(self._all_distances()), **_means(self.attended.sum(0))},
            "by_sentence_length": _table(self.by_sentence_length, SENTENCE_LENGTHS),
            "by_document_length": _table(self.by_document_length, DOCUMENT_LENGTHS),
        }

    def _all_distances(self) -> dict[int, float]:
        total: dict[int, float] = {}
        for reached in self.distances:
            for distance, mass in reached.items():
                total[distance] = total.get(distance, 0.0) + mass
        return total

    def _head(self, head: int) -> Figures:
        return {"head": head + 1, **_reach(self.distances[head]), **_means(self.attended[head])}


def _reach(reached: dict[int, float]) -> Figures:
    mass = sum(reached.values())
    if not mass:
        return {"mean_distance": None, "beyond_three": None, "past": None, "mass_by_distance": {}}
    return {
        "mean_distance": sum(abs(distance) * share for distance, share in reached.items()) / mass,
        "beyond_three": sum(share for distance, share in reached.items() if abs(distance) > 3) / mass,
        "past": sum(share for distance, share in reached.items() if distance < 0) / mass,
        "mass_by_distance": {str(distance): reached[distance] / mass for distance in sorted(reached)},
    }


def gather(explanations: Iterable[Explanation]) -> CorpusAttention:
    corpus = CorpusAttention()
    for explanation in explanations:
        corpus.add(explanation)
    return corpus


def _class(length: int, ends: tuple[int, ...]) -> str:
    first = 1
    for end in ends:
        if length <= end:
            return f"{first}-{end}"
        first = end + 1
    return f">{ends[-1]}"


def _means(figures: np.ndarray) -> Figures:
    attended, share, rows = (float(figure) for figure in figures)
    if not rows:
        return {"attended": None, "attended_share": None}
    return {"attended": attended / rows, "attended_share": share / rows}


def _table(classes: dict[str, np.ndarray], ends: tuple[int, ...]) -> list[Figures]:
    order = [_class(end, ends) for end in (*ends, ends[-1] + 1)]
    return [{"length": name, **_means(classes[name])} for name in order if name in classes]


def write_plots(path: str | Path, statistics: Figures, kind: str | None = None) -> None:
    """Four plots on one sheet: mass by distance, by head, by sentence length, by document length."""
    if not statistics["documents"]:
        raise UserError(
            "no attention to plot", remedy="take a model with a context layer and documents of several sentences"
        )
    with optional_package("plots"):
        from matplotlib import rc_context
        from matplotlib.figure import Figure

    with rc_context(
        {"font.family": "sans-serif", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure = Figure(figsize=(9, 6), layout="constrained")
        ((distance, head), (sentence, document)) = figure.subplots(2, 2)
        reached = {int(key): mass for key, mass in statistics["all_heads"]["mass_by_distance"].items()}
        distance.bar(list(reached), list(reached.values()), color="#1b5a9c", width=0.8)
        distance.set(xlabel="distance of the context sentence", ylabel="share of attention")
        distance.xaxis.get_major_locator().set_params(integer=True)
        heads = statistics["heads"]
        head.bar([entry["head"] for entry in heads], [entry["attended"] or 0 for entry in heads], color="#1b5a9c")
        head.set(xlabel="head", ylabel="sentences attended")
        head.set_xticks([entry["head"] for entry in heads])
        for axes, table, label in (
            (sentence, statistics["by_sentence_length"], "words of the sentence"),
            (document, statistics["by_document_length"], "sentences of the document"),
        ):
            attended = [entry["attended"] or 0 for entry in table]
            axes.plot([entry["length"] for entry in table], attended, "o-", color="#1b5a9c")
            axes.set(xlabel=label, ylabel="sentences attended")
            axes.set_ylim(0, 1.15 * max(attended))
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=kind or Path(path).suffix.lstrip(".") or "png", dpi=150)
