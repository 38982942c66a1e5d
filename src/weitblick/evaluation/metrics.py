"""The metrics by name: BLEU in three ways and chrF, counted by sacreBLEU; METEOR has a package of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weitblick.common.errors import UserError
from weitblick.evaluation.meteor import METEOR_LANGUAGES, Meteor
from weitblick.evaluation.metric import CountedBy, Counts, Metric

MAX_ORDER = 4


class Bleu(Metric):
    """BLEU of n-grams up to 4, case-sensitive, with sacreBLEU's exponential smoothing of empty orders.

    Counts: hypothesis length, reference length, matched n-grams by order, hypothesis n-grams by order.
    """

    def __init__(self, name: str, label: str, tokenizer: MosesText | None = None, unit: CountedBy = "sentence") -> None:
        from sacrebleu.metrics.bleu import BLEU

        self.name, self.label, self.unit, self._moses = name, label, unit, tokenizer
        # force: the text is tokenised on purpose where we have tokenised it ourselves
        self._bleu = BLEU(tokenize="none" if tokenizer else "13a", force=tokenizer is not None)
        self.references = 1

    @property
    def signature(self) -> str:
        import sacrebleu

        tokens = self._moses.signature if self._moses else "13a"
        joined = "|unit:document" if self.unit == "document" else ""
        return (
            f"BLEU|nrefs:{self.references}|case:mixed|eff:no|tok:{tokens}|smooth:exp{joined}"
            f"|sacrebleu:{sacrebleu.__version__}"
        )

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Counts:
        self.references = len(references)
        if self._moses:
            hypotheses = self._moses.tokenize(hypotheses)
            references = tuple(self._moses.tokenize(reference) for reference in references)
        return _sacrebleu_counts(self._bleu, hypotheses, references)

    def score(self, counts: Counts) -> NDArray[np.float64]:
        return self._score(counts, effective_order=False)

    def segment_scores(self, counts: Counts) -> NDArray[np.float64]:
        return self._score(counts, effective_order=True)

    def _score(self, counts: Counts, effective_order: bool) -> NDArray[np.float64]:
        ours, theirs = counts[..., 0], counts[..., 1]
        matched, total = counts[..., 2 : 2 + MAX_ORDER], counts[..., 2 + MAX_ORDER :]
        present = total > 0
        missed = present & (matched == 0)
        # the k-th order without a match counts as 2^-k matches
        smoothed = np.where(missed, 0.5 ** np.cumsum(missed, axis=-1), matched)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(present, np.log(smoothed / total), 0.0)
            brevity = np.where(ours < theirs, np.exp(1 - theirs / np.maximum(ours, 1e-9)), 1.0)
        orders = np.maximum(present.sum(axis=-1), 1) if effective_order else MAX_ORDER
        score = 100 * brevity * np.exp(logs.sum(axis=-1) / orders)
        possible = matched.any(axis=-1) if effective_order else matched.any(axis=-1) & present.all(axis=-1)
        return np.where(possible, score, 0.0)


class Chrf(Metric):
    """chrF2: F-score of character n-grams up to 6. Counts: hypothesis, reference and matched n-grams by order."""

    name, label = "chrf", "chrF"
    beta = 2.0

    def __init__(self) -> None:
        from sacrebleu.metrics.chrf import CHRF

        self._chrf = CHRF()
        self.references = 1

    @property
    def signature(self) -> str:
        import sacrebleu

        return f"chrF2|nrefs:{self.references}|case:mixed|eff:yes|nc:6|nw:0|space:no|sacrebleu:{sacrebleu.__version__}"

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Counts:
        self.references = len(references)
        return _sacrebleu_counts(self._chrf, hypotheses, references)

    def score(self, counts: Counts) -> NDArray[np.float64]:
        ours, theirs, matched = counts[..., 0::3], counts[..., 1::3], counts[..., 2::3]
        present = (ours > 0) & (theirs > 0)
        orders = np.maximum(present.sum(axis=-1), 1)
        precision = (np.where(present, matched / np.maximum(ours, 1), 0.0)).sum(axis=-1) / orders
        recall = (np.where(present, matched / np.maximum(theirs, 1), 0.0)).sum(axis=-1) / orders
        weight = self.beta**2
        norm = weight * precision + recall
        return np.where(norm > 0, 100 * (1 + weight) * precision * recall / np.where(norm > 0, norm, 1.0), 0.0)


class Ter(Metric):
    """Translation edit rate: words put in, taken out, replaced and moved, over the words of the reference; less is
    better. Counts: edits, words of the reference."""

    name, label = "ter", "TER"

    def __init__(self) -> None:
        from sacrebleu.metrics.ter import TER

        self._ter = TER()
        self.references = 1

    @property
    def signature(self) -> str:
        import sacrebleu

        how = "case:lc|tok:tercom|norm:no|punct:yes|asian:no"
        return f"TER|nrefs:{self.references}|{how}|sacrebleu:{sacrebleu.__version__}"

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Counts:
        self.references = len(references)
        return _sacrebleu_counts(self._ter, hypotheses, references)

    def score(self, counts: Counts) -> NDArray[np.float64]:
        edits, words = counts[..., 0], counts[..., 1]
        nothing = np.where(edits > 0, 100.0, 0.0)
        return np.where(words > 0, 100 * edits / np.maximum(words, 1e-9), nothing)


class MosesText:
    """Moses tokenisation of a language, each distinct line only once; `signature` names it.

    With `already` the text is tokenised as it comes, and is used as it is.
    """

    def __init__(self, language: str, already: bool = False) -> None:
        from sacremoses import MosesDetokenizer, MosesTokenizer

        self._tokenizer, self._detokenizer = MosesTokenizer(lang=language), MosesDetokenizer(lang=language)
        self._already = already
        self._known: dict[str, str] = {}
        self.signature = "none(given)" if already else f"moses-{language}(sacremoses)"

    def tokenize(self, lines: Sequence[str]) -> list[str]:
        if self._already:
            return list(lines)
        return [self._tokens(line) for line in lines]

    def _tokens(self, line: str) -> str:
        if line not in self._known:
            self._known[line] = self._tokenizer.tokenize(line, return_str=True, escape=False)
        return self._known[line]

    def detokenize(self, lines: Sequence[str]) -> list[str]:
        return [self._detokenizer.detokenize(line.split()) for line in lines]


def _sacrebleu_counts(metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Counts:
    """The segment statistics that sacreBLEU's own significance tests use; it has no public name for them, and is
    therefore pinned to its major version."""
    rows = metric._extract_corpus_statistics(list(hypotheses), [list(reference) for reference in references])
    return np.asarray(rows, dtype=np.float64)


METRICS = ("bleu", "sacrebleu", "dbleu", "chrf", "ter", "meteor")
WITHOUT_LANGUAGE = ("sacrebleu", "dbleu", "chrf", "ter")
"""Metrics that need not know the language: Moses tokenisation does, and METEOR's stems and function words do."""
ON_REQUEST = ("ter",)
"""Metrics that take much longer than the others."""


def default_metrics(language: str | None) -> tuple[str, ...]:
    """All that can be computed for a language, or without knowing it, in little time."""
    if language is None:
        return tuple(name for name in WITHOUT_LANGUAGE if name not in ON_REQUEST)
    usual = (name for name in METRICS if name not in ON_REQUEST)
    return tuple(name for name in usual if name != "meteor" or language in METEOR_LANGUAGES)


def check_metric(name: str, language: str | None) -> None:
    """Refuses a metric that cannot be computed, before anything long begins."""
    if name not in METRICS:
        raise UserError(f"unknown metric {name!r}", where="--metrics", remedy=f"one or more of {', '.join(METRICS)}")
    if language is None and name not in WITHOUT_LANGUAGE:
        raise UserError(f"{name} needs to know the language", remedy=f"give --language, or use {WITHOUT_LANGUAGE[0]}")
    if name == "meteor" and language not in METEOR_LANGUAGES:
        raise UserError(
            f"METEOR is not there for the language {language!r}, only for {' and '.join(METEOR_LANGUAGES)}",
            remedy=f"choose from {', '.join(default_metrics(language))}",
        )


def build_metric(name: str, language: str | None = None, *, tokenised: bool = False, **meteor: Any) -> Metric:
    """A metric by its name; `meteor` holds METEOR's own options (paraphrases, function words)."""
    if not (tokenised and name == "bleu"):
        check_metric(name, language)
    match name:
        case "bleu":
            return Bleu("bleu", "BLEU", MosesText(language or "en", already=tokenised))
        case "sacrebleu":
            return Bleu("sacrebleu", "sacreBLEU")
        case "dbleu":
            return Bleu("dbleu", "d-BLEU", unit="document")
        case "chrf":
            return Chrf()
        case "ter":
            return Ter()
        case _:
            return Meteor(str(language), **meteor)


def metric_statistics(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]], lengths: Sequence[int]
) -> Counts:
    """Rows of counts in the metric's own unit: of sentences, or of documents whose sentences are joined by a space."""
    if metric.unit == "document":
        hypotheses = join_documents(hypotheses, lengths)
        references = [join_documents(reference, lengths) for reference in references]
    return metric.statistics(hypotheses, *references)


def join_documents(sentences: Sequence[str], lengths: Sequence[int]) -> list[str]:
    ends = np.cumsum(lengths)
    return [" ".join(sentences[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def sum_documents(counts: Counts, lengths: Sequence[int]) -> Counts:
    """Counts of sentences [N, K] summed over each document: [D, K]."""
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return np.add.reduceat(counts, starts, axis=0)
