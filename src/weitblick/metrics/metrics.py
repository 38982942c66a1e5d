"""Automatic metrics as sums of sufficient statistics: each number travels with the signature of how it was obtained.

Every metric turns a sentence (or document) pair into a row of counts; the score of a corpus is a function of the sum
of its rows. That is all that significance tests need, so 10,000 pseudo-systems are one matrix product away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from weitblick.errors import UserError

Unit = Literal["sentence", "document"]
Counts = NDArray[np.float64]

LANGUAGES = ("de", "en")
MAX_ORDER = 4


@dataclass(frozen=True)
class Score:
    """A metric's value for one corpus, in percent."""

    metric: str
    value: float
    signature: str


class Metric(ABC):
    """`statistics` counts, `score` is a pure function of sums of counts. `unit` is the smallest thing it can count."""

    name: str
    label: str
    unit: Unit = "sentence"

    @property
    @abstractmethod
    def signature(self) -> str: ...

    @abstractmethod
    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
        """Counts of each pair: [N, K]."""

    @abstractmethod
    def score(self, counts: Counts) -> NDArray[np.float64]:
        """Percent for each row of summed counts: [..., K] -> [...]."""

    def segment_scores(self, counts: Counts) -> NDArray[np.float64]:
        """The scores of single sentences, where they are computed differently from those of a corpus."""
        return self.score(counts)

    def corpus_score(self, counts: Counts) -> Score:
        return Score(self.name, float(self.score(counts.sum(axis=0))), self.signature)


class Bleu(Metric):
    """BLEU of n-grams up to 4, case-sensitive, with sacreBLEU's exponential smoothing of empty orders.

    Counts: hypothesis length, reference length, matched n-grams by order, hypothesis n-grams by order.
    """

    def __init__(self, name: str, label: str, tokenizer: MosesText | None = None, unit: Unit = "sentence") -> None:
        from sacrebleu.metrics import BLEU

        self.name, self.label, self.unit, self._moses = name, label, unit, tokenizer
        # force: the text is tokenised on purpose where we have tokenised it ourselves
        self._bleu = BLEU(tokenize="none" if tokenizer else "13a", force=tokenizer is not None)

    @property
    def signature(self) -> str:
        import sacrebleu

        tokens = self._moses.signature if self._moses else "13a"
        joined = "|unit:document" if self.unit == "document" else ""
        return f"BLEU|nrefs:1|case:mixed|eff:no|tok:{tokens}|smooth:exp{joined}|sacrebleu:{sacrebleu.__version__}"

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
        if self._moses:
            hypotheses, references = self._moses.tokenize(hypotheses), self._moses.tokenize(references)
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
        from sacrebleu.metrics import CHRF

        self._chrf = CHRF()

    @property
    def signature(self) -> str:
        import sacrebleu

        return f"chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|sacrebleu:{sacrebleu.__version__}"

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
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


def _sacrebleu_counts(metric: Any, hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """The segment statistics that sacreBLEU's own significance tests use."""
    rows = metric._extract_corpus_statistics(list(hypotheses), [list(references)])
    return np.asarray(rows, dtype=np.float64)


METRICS = ("bleu", "sacrebleu", "dbleu", "chrf", "meteor")


def check_language(language: str) -> str:
    if language not in LANGUAGES:
        raise UserError(f"unknown language {language!r}", where="--language", remedy=f"one of {', '.join(LANGUAGES)}")
    return language


def build_metric(name: str, language: str = "de", *, tokenised: bool = False, **meteor: Any) -> Metric:
    """A metric by its name; `meteor` holds METEOR's own options (paraphrases, function words)."""
    check_language(language)
    match name:
        case "bleu":
            return Bleu("bleu", "BLEU", MosesText(language, already=tokenised))
        case "sacrebleu":
            return Bleu("sacrebleu", "sacreBLEU")
        case "dbleu":
            return Bleu("dbleu", "d-BLEU", unit="document")
        case "chrf":
            return Chrf()
        case "meteor":
            from weitblick.metrics.meteor import Meteor

            return Meteor(language, **meteor)
    raise UserError(f"unknown metric {name!r}", where="--metrics", remedy=f"one or more of {', '.join(METRICS)}")


def metric_statistics(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[str], lengths: Sequence[int]
) -> Counts:
    """Rows of counts in the metric's own unit: of sentences, or of documents whose sentences are joined by a space."""
    if metric.unit == "document":
        hypotheses, references = join_documents(hypotheses, lengths), join_documents(references, lengths)
    return metric.statistics(hypotheses, references)


def join_documents(sentences: Sequence[str], lengths: Sequence[int]) -> list[str]:
    ends = np.cumsum(lengths)
    return [" ".join(sentences[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def sum_documents(counts: Counts, lengths: Sequence[int]) -> Counts:
    """Counts of sentences [N, K] summed over each document: [D, K]."""
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return np.add.reduceat(counts, starts, axis=0)
