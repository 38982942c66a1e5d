"""Contrastive accuracy: how often a model finds the reference more probable than every wrong variant of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weitblick.common.errors import UserError
from weitblick.common.intervals import Estimate, Resampling
from weitblick.documents.contrast import DISTANCES, ContrastItem
from weitblick.evaluation.scoring import (
    BATCH_TOKENS,
    Candidate,
    ContextMode,
    Progress,
    ScoringDocument,
    score_candidates,
)
from weitblick.model.concatenation import Concatenation, reads_documents
from weitblick.model.document_model import DocumentModel
from weitblick.translation.translator import Translator

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Verdict:
    """An item, the log-probability of its reference and the greatest of its variants'."""

    item: ContrastItem
    reference: float
    best_variant: float

    @property
    def correct(self) -> bool:
        return self.reference > self.best_variant

    @property
    def tie(self) -> bool:
        """No decision: counted as wrong, and shown."""
        return self.reference == self.best_variant


@dataclass(frozen=True)
class EncodedSuite:
    """Documents and candidates of a suite as ids, each distinct one once.

    `references` [N] and `variants` [N][..] are numbers of candidates: variants that encode to the same ids as the
    reference are the same candidate, so that they tie exactly.
    """

    items: Sequence[ContrastItem]
    documents: list[ScoringDocument]
    candidates: list[Candidate]
    references: list[int]
    variants: list[list[int]]


def encode_suite(translator: Translator, items: Sequence[ContrastItem]) -> EncodedSuite:
    """A suite as a model reads it: one that reads target sentences as context needs those of every item."""
    model, pipeline = translator.model, translator.pipeline
    concatenation = Concatenation.of(model.section)
    with_targets = model.reads_translations or (concatenation is not None and concatenation.both_sides)
    if with_targets:
        _check_targets(items)
    numbers: dict[Any, int] = {}
    first: list[ContrastItem] = []
    of_item = []
    for item in items:
        key = (item.source, item.target if with_targets else None)
        if key not in numbers:
            numbers[key] = len(first)
            first.append(item)
        of_item.append(numbers[key])
    sources = _encode(pipeline.encode_source, [item.source for item in first])
    targets: Sequence[Any] = [None] * len(first)
    if with_targets:
        targets = _encode(pipeline.encode_target, [[text or "" for text in item.target or ()] for item in first])
    documents = [ScoringDocument(*pair) for pair in zip(sources, targets, strict=True)]
    texts = _encode(pipeline.encode_target, [(item.reference, *item.contrastive) for item in items])
    candidates: dict[tuple[int, int, tuple[int, ...]], int] = {}
    chosen = [
        [candidates.setdefault((document, item.sentence, tuple(ids)), len(candidates)) for ids in options]
        for item, document, options in zip(items, of_item, texts, strict=True)
    ]
    return EncodedSuite(
        items,
        documents,
        [Candidate(*key) for key in candidates],
        [options[0] for options in chosen],
        [options[1:] for options in chosen],
    )


def _encode(
    encode: Callable[[Sequence[str]], list[list[int]]], groups: Sequence[Sequence[str]]
) -> list[list[list[int]]]:
    """Groups of sentences as groups of ids, each distinct sentence encoded once."""
    distinct = {text: number for number, text in enumerate(dict.fromkeys(text for group in groups for text in group))}
    ids = encode(list(distinct))
    return [[ids[distinct[text]] for text in group] for group in groups]


def _check_targets(items: Sequence[ContrastItem]) -> None:
    for item in items:
        if item.target is None:
            raise UserError(
                f"item {item.id}: field 'target' is missing, and this model reads target sentences as context",
                where=item.where,
                line=item.line,
                remedy="give the translation of every sentence, null where there is none",
            )


def judge_suite(
    model: DocumentModel,
    suite: EncodedSuite,
    context: ContextMode = "own",
    *,
    seed: int = 1,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
) -> list[Verdict]:
    scores = score_candidates(
        model, suite.documents, suite.candidates, context, seed=seed, batch_tokens=batch_tokens, progress=progress
    ).log_probabilities
    return [
        Verdict(item, float(scores[reference]), float(scores[variants].max()))
        for item, reference, variants in zip(suite.items, suite.references, suite.variants, strict=True)
    ]


def without_context(model: DocumentModel, items: Sequence[ContrastItem]) -> int:
    """Items whose document offers nothing to read to this model (any other sentence, if it reads none at all)."""
    online = reads_documents(model) and model.online
    count = 0
    for item in items:
        texts = model.context_side(item.source, item.target or item.source)
        others = texts[: item.sentence] if online else (*texts[: item.sentence], *texts[item.sentence + 1 :])
        count += not any(text and text.strip() for text in others)
    return count


@dataclass(frozen=True)
class Accuracy:
    """How many of some items were decided rightly; a tie is no decision."""

    items: int
    correct: int
    ties: int
    chance: float
    by_distance: Mapping[str, Accuracy] | None = None

    @property
    def accuracy(self) -> float:
        return round(self.correct / self.items, 6)

    @classmethod
    def of(cls, verdicts: Sequence[Verdict]) -> Accuracy:
        chance = round(float(np.mean([verdict.item.chance for verdict in verdicts])), 6)
        return cls(len(verdicts), sum(v.correct for v in verdicts), sum(v.tie for v in verdicts), chance)

    def to_json(self) -> dict[str, Any]:
        counts = {"accuracy": self.accuracy, "items": self.items, "correct": self.correct, "ties": self.ties}
        nested = {} if self.by_distance is None else {"by_distance": _groups_to_json(self.by_distance)}
        return {**counts, "chance": self.chance, **nested}


@dataclass(frozen=True)
class Summary:
    """Accuracy over all items, and by every property that they have; empty where no item has it."""

    overall: Accuracy
    by_distance: Mapping[str, Accuracy]
    by_pronoun: Mapping[str, Accuracy]
    by_phenomenon: Mapping[str, Accuracy]
    by_direction: Mapping[str, Accuracy]
    by_antecedent: Mapping[str, Accuracy]

    def to_json(self) -> dict[str, Any]:
        groups = {name: value for name, value in vars(self).items() if name != "overall"}
        return {**self.overall.to_json(), **{name: _groups_to_json(value) for name, value in groups.items()}}


def _groups_to_json(groups: Mapping[str, Accuracy]) -> dict[str, Any]:
    return {name: group.to_json() for name, group in groups.items()}


def summarise(verdicts: Sequence[Verdict]) -> Summary:
    """Accuracy overall and by every property that the items have, each with counts."""
    directions = _by(verdicts, lambda item: item.direction, ("past", "future"))
    for direction, group in directions.items():
        chosen = [verdict for verdict in verdicts if (verdict.item.direction or UNKNOWN) == direction]
        directions[direction] = replace(group, by_distance=_by(chosen, lambda item: item.distance_group, DISTANCES))
    return Summary(
        Accuracy.of(verdicts),
        _by(verdicts, lambda item: item.distance_group, DISTANCES),
        _by(verdicts, lambda item: item.pronoun),
        _by(verdicts, lambda item: item.phenomenon),
        directions,
        _by(verdicts, _antecedent, ("seen", "unseen")),
    )


def _antecedent(item: ContrastItem) -> str | None:
    return None if item.unseen_antecedent is None else "unseen" if item.unseen_antecedent else "seen"


def _by(
    verdicts: Sequence[Verdict], key: Callable[[ContrastItem], str | None], order: Sequence[str] = ()
) -> dict[str, Accuracy]:
    """Accuracy for each value of a property, of items without it as unknown; empty if no item has it."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(key(verdict.item) or UNKNOWN, []).append(verdict)
    names = [name for name in order if name in groups]
    names += sorted(groups.keys() - set(names) - {UNKNOWN})
    if not names:
        return {}
    return {name: Accuracy.of(groups[name]) for name in [*names, *([UNKNOWN] if UNKNOWN in groups else [])]}


# Two ways of judging the same items: the difference of their accuracies, its interval, and whether it is chance.

PAIRS: dict[str, tuple[ContextMode, ContextMode]] = {
    "own_over_removed": ("own", "removed"),
    "own_over_random": ("own", "random"),
}


@dataclass(frozen=True)
class PairedDifference:
    """Accuracy of the first less that of the second, with an interval over resampled documents.

    better  items that only the first has right; worse: that only the second has right
    p       exact McNemar test: how likely so uneven a split of these items is if both are equally good
    """

    difference: Estimate
    better: int
    worse: int
    p: float

    def to_json(self) -> dict[str, Any]:
        estimate = self.difference
        counts = {"better": self.better, "worse": self.worse, "p": self.p}
        return {"difference": estimate.mean, "interval": [estimate.low, estimate.high], **counts}


def compare_correct(
    first: Sequence[bool], second: Sequence[bool], documents: Sequence[str], seed: int = 1
) -> PairedDifference:
    """`documents` [N]: where each item is from; items of one document are drawn together."""
    from scipy.stats import binomtest

    gain = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    units, position = np.unique(np.asarray(documents), return_inverse=True)
    gains, sizes = np.bincount(position, weights=gain), np.bincount(position).astype(float)
    better, worse = int((gain > 0).sum()), int((gain < 0).sum())
    p = float(binomtest(better, better + worse).pvalue) if better + worse else 1.0
    return PairedDifference(Resampling(len(units), (seed, 8)).ratio(gains, sizes), better, worse, float(f"{p:.4g}"))


def compare_verdicts(verdicts: Mapping[ContextMode, Sequence[Verdict]], seed: int = 1) -> dict[str, PairedDifference]:
    """Own context against none and against a random one, on the same items."""
    return {
        name: compare_correct(
            [verdict.correct for verdict in verdicts[mode]],
            [verdict.correct for verdict in verdicts[other]],
            [document_of(verdict.item.id) for verdict in verdicts[mode]],
            seed,
        )
        for name, (mode, other) in PAIRS.items()
    }


def document_of(item: str) -> str:
    """Items of one document are called DOCUMENT.1, DOCUMENT.2, ...; any other id is a document of its own."""
    return item.rpartition(".")[0] or item
