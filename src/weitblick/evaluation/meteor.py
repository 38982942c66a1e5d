"""METEOR 1.5 for German and English: weighted precision and recall of aligned words, less a penalty for disorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weitblick.common.files import read_lines
from weitblick.evaluation.meteor_alignment import EXACT, PARAPHRASE, STEM, Matcher, Paraphrases, align, normalise
from weitblick.evaluation.metric import Counts, Metric


@dataclass(frozen=True)
class Parameters:
    """Tuned to human ranking by Meteor's authors.

    `alpha` weighs recall against precision, `gamma` and `beta` shape the penalty, `delta` weighs content words against
    function words; `weights` are those of a match by its kind.
    """

    alpha: float
    beta: float
    gamma: float
    delta: float
    weights: dict[str, float]


PARAMETERS = {
    "de": Parameters(0.95, 1.0, 0.55, 0.55, {EXACT: 1.0, STEM: 0.8, PARAPHRASE: 0.2}),
    "en": Parameters(0.85, 0.2, 0.6, 0.75, {EXACT: 1.0, STEM: 0.6, PARAPHRASE: 0.6}),
}

METEOR_LANGUAGES = tuple(PARAMETERS)

# counts of a sentence pair: lengths and function words of both sides, four match counts for each kind of match
# (content and function words, hypothesis and reference), then chunks and matched words of both sides
LENGTHS = 4
KINDS = 4


class Meteor(Metric):
    name, label = "meteor", "METEOR"

    def __init__(
        self, language: str = "de", paraphrases: str | Path | None = None, function_words: str | Path | None = None
    ) -> None:
        self.language = language
        self.parameters = PARAMETERS[language]
        self._matcher = Matcher(language, None if paraphrases is None else Paraphrases(paraphrases))
        self._weights = [self.parameters.weights[module] for module in self._matcher.modules]
        self._function_words, self._words_name = _function_words(function_words, language)
        self._tokens: dict[str, list[str]] = {}
        self.references = 1

    @property
    def signature(self) -> str:
        import snowballstemmer

        version = getattr(snowballstemmer, "__version__", None) or _version("snowballstemmer")
        return (
            f"METEOR-1.5|nrefs:{self.references}|lang:{self.language}|norm:yes|case:lower|modules:{'+'.join(self._matcher.modules)}"
            f"|function-words:{self._words_name}|snowball:{version}|weitblick"
        )

    def statistics(self, hypotheses: Sequence[str], *references: Sequence[str]) -> Counts:
        """With several references, the counts beside the one that a sentence matches best, as Meteor 1.5 takes them."""
        self.references = len(references)
        tables = np.stack([self._table(hypotheses, reference) for reference in references])  # [R, N, K]
        best = self.score(tables).argmax(0)  # [N]
        return tables[best, np.arange(tables.shape[1])]

    def _table(self, hypotheses: Sequence[str], reference: Sequence[str]) -> Counts:
        pairs = zip(hypotheses, reference, strict=True)
        return np.asarray([self._counts(self._words(h), self._words(r)) for h, r in pairs], dtype=np.float64)

    def _words(self, line: str) -> list[str]:
        if line not in self._tokens:
            self._tokens[line] = normalise(line, self.language)
        return self._tokens[line]

    def _counts(self, hypothesis: list[str], reference: list[str]) -> list[float]:
        ours, theirs = self._are_function_words(hypothesis), self._are_function_words(reference)
        found = align(self._matcher.matches(hypothesis, reference), len(hypothesis), self._weights)
        kinds = [[0, 0, 0, 0] for _ in self._weights]
        for match in found.matches:
            kind = kinds[match.module]
            for place in range(match.other, match.other + match.other_length):
                kind[2 * ours[place]] += 1
            for place in range(match.start, match.start + match.length):
                kind[2 * theirs[place] + 1] += 1
        matched_ours = sum(kind[0] + kind[2] for kind in kinds)
        matched_theirs = sum(kind[1] + kind[3] for kind in kinds)
        perfect = matched_ours == len(hypothesis) and matched_theirs == len(reference) and found.chunks == 1
        # a perfect sentence has no disorder to be penalised for, alone or within a corpus
        chunks = 0 if perfect else found.chunks
        lengths = [len(hypothesis), len(reference), sum(ours), sum(theirs)]
        return [*lengths, *(count for kind in kinds for count in kind), chunks, matched_ours, matched_theirs]

    def _are_function_words(self, words: list[str]) -> list[bool]:
        return [word in self._function_words for word in words]

    def score(self, counts: Counts) -> NDArray[np.float64]:
        p = self.parameters
        content, function = p.delta, 1 - p.delta
        kinds = counts[..., LENGTHS:-3].reshape(*counts.shape[:-1], len(self._weights), KINDS)
        totals = np.tensordot(kinds, np.asarray(self._weights), axes=([-2], [0]))  # [..., 4]
        matched = content * totals[..., :2] + function * totals[..., 2:]  # [..., 2]: hypothesis, reference
        lengths, functional = counts[..., :2], counts[..., 2:LENGTHS]
        weighted_lengths = content * (lengths - functional) + function * functional
        chunks, words = counts[..., -3], counts[..., -2:].mean(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            precision, recall = np.moveaxis(matched / weighted_lengths, -1, 0)
            mean = 1 / ((1 - p.alpha) / precision + p.alpha / recall)
            penalty = p.gamma * (chunks / words) ** p.beta
        return np.where(words > 0, 100 * np.nan_to_num(mean) * np.maximum(1 - np.nan_to_num(penalty), 0.0), 0.0)


@cache
def shipped_function_words(language: str) -> frozenset[str]:
    """Words with a share above 1/1000 in at least two of three domains, so that the subjects of one are left out:
    Europarl (1999-2012), News-Commentary and TED."""
    text = resources.files("weitblick.evaluation").joinpath("meteor_data", f"function_words.{language}.txt")
    return frozenset(text.read_text(encoding="utf-8").split())


def _function_words(given: str | Path | None, language: str) -> tuple[frozenset[str], str]:
    """The words and their name in the signature. `given` is a file or the language of one of our own lists.

    Meteor 1.5's command line weighs with English function words whatever the language (unless told a list by `-s`),
    so `en` is the choice to come near published German numbers.
    """
    if given is None or str(given) in PARAMETERS:
        chosen = language if given is None else str(given)
        return shipped_function_words(chosen), chosen
    return _read_words(given), "given"


def _read_words(path: str | Path) -> frozenset[str]:
    return frozenset(word for line in read_lines(path) for word in line.lower().split())


def _version(package: str) -> str:
    from importlib.metadata import version

    return version(package)
