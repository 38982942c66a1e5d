"""How much of its context a model uses: what own, removed and random context are worth to it.

CXMI, the conditional cross-mutual information of Fernandes et al. (2021), is the mean log-probability of a reference
with context less that without. Context of a random other document is the control: what it gains too is no use of
context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weitblick.common.errors import UserError
from weitblick.common.intervals import Estimate, Resampling
from weitblick.documents.document import Document, Sentence
from weitblick.evaluation.scoring import (
    BATCH_TOKENS,
    CONTEXT_MODES,
    Candidate,
    ContextMode,
    Progress,
    Scores,
    ScoringDocument,
    reading_order,
    score_candidates,
)
from weitblick.evaluation.significance import Comparison
from weitblick.model.concatenation import reads_documents
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import TextPipeline
from weitblick.text.units import split_documents
from weitblick.translation.driver import translate_units
from weitblick.translation.options import TranslationOptions
from weitblick.translation.results import join_documents
from weitblick.translation.translator import Translator, windows

DIFFERENCES: dict[str, tuple[ContextMode, ContextMode]] = {
    "cxmi": ("own", "removed"),
    "cxmi_random": ("random", "removed"),
    "own_over_random": ("own", "random"),
}
"""Name in reports: mean log-probability with the first context less that with the second."""


@dataclass(frozen=True)
class EncodedCorpus:
    """Documents as ids, and the reference of every sentence that has words on both sides as a candidate."""

    documents: list[ScoringDocument]
    references: list[Candidate]


def encode_corpus(
    pipeline: TextPipeline, documents: Sequence[Document], contexts: Sequence[Document] | None = None
) -> EncodedCorpus:
    """`contexts`: the same documents with the targets that are read as context, if not the references."""
    encoded, references = [], []
    for number, (document, context) in enumerate(zip(documents, contexts or documents, strict=True)):
        sources = pipeline.encode_source(document.sources)
        targets = _encode_targets(pipeline, document)
        encoded.append(ScoringDocument(sources, _encode_targets(pipeline, context) if contexts else targets))
        pairs = enumerate(zip(sources, targets, strict=True))
        references += [Candidate(number, index, target) for index, (source, target) in pairs if source and target]
    if not references:
        raise UserError("no sentence has both a source and a target", remedy="name SOURCE and TARGET")
    return EncodedCorpus(encoded, references)


def _encode_targets(pipeline: TextPipeline, document: Document) -> list[list[int]]:
    return pipeline.encode_target([target or "" for target in document.targets])


@dataclass(frozen=True)
class Difference:
    """Mean log-probability with one context less that with another."""

    per_token: Estimate
    per_sentence: Estimate
    sentences_better: int
    sentences_worse: int

    def to_json(self) -> dict[str, Any]:
        return {
            "per_token": self.per_token.to_json(),
            "per_sentence": self.per_sentence.to_json(),
            "sentences_better": self.sentences_better,
            "sentences_worse": self.sentences_worse,
        }


@dataclass(frozen=True)
class ContextUse:
    """Log-probabilities per token with each context, their differences, and what the context layer did on average."""

    documents: int
    sentences: int
    tokens: int
    log_probability_per_token: Mapping[ContextMode, float]
    differences: Mapping[str, Difference]
    gate: float | None
    support: float | None

    def to_json(self) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "sentences": self.sentences,
            "tokens": self.tokens,
            "log_probability_per_token": dict(self.log_probability_per_token),
            **{name: difference.to_json() for name, difference in self.differences.items()},
            "gate": self.gate,
            "support": self.support,
        }


def measure_context_use(
    model: DocumentModel,
    corpus: EncodedCorpus,
    *,
    seed: int = 1,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
) -> ContextUse:
    """Scores the references with own, removed and random context."""
    scores = {
        mode: score_candidates(
            model, corpus.documents, corpus.references, mode, seed=seed, batch_tokens=batch_tokens, progress=progress
        )
        for mode in CONTEXT_MODES
    }
    own = scores["own"]
    return ContextUse(
        len(corpus.documents),
        len(corpus.references),
        int(own.tokens.sum()),
        {mode: round(float(found.log_probabilities.sum() / found.tokens.sum()), 6) for mode, found in scores.items()},
        compare_contexts(scores, [reference.document for reference in corpus.references], seed),
        None if own.gate is None else round(own.gate, 6),
        None if own.support is None else round(own.support, 4),
    )


def compare_contexts(
    scores: Mapping[ContextMode, Scores], documents: Sequence[int], seed: int
) -> dict[str, Difference]:
    """The differences of contexts, per token and per sentence, with intervals from resampled documents."""
    units, position = np.unique(documents, return_inverse=True)
    tokens = np.bincount(position, weights=scores["own"].tokens)
    sentences = np.bincount(position).astype(float)
    resampling = Resampling(len(units), (seed, 6))
    report = {}
    for name, (mode, other) in DIFFERENCES.items():
        gain = scores[mode].log_probabilities - scores[other].log_probabilities
        gains = np.bincount(position, weights=gain)
        report[name] = Difference(
            resampling.ratio(gains, tokens),
            resampling.ratio(gains, sentences),
            int((gain > 0).sum()),
            int((gain < 0).sum()),
        )
    return report


def translate_with(
    translator: Translator,
    documents: Sequence[Document],
    context: ContextMode,
    options: TranslationOptions,
    *,
    seed: int = 1,
) -> list[Document]:
    """The documents translated with own, removed or random context."""
    without_targets = [Document(d.id, tuple(map(Sentence, d.sources))) for d in documents]
    if context != "random" or not reads_documents(translator.model):
        keywords = {**vars(options), "context": context == "own"}
        return list(translator.translate_documents(without_targets, **keywords))
    order = reading_order(len(documents), seed)
    translated: dict[int, Document] = {}
    place = 0
    for window in windows(without_targets[number] for number in order):
        numbers = order[place : place + len(window)]
        place += len(window)
        together = [*window, without_targets[order[place % len(order)]]]  # the last one reads one more document
        units = split_documents(together, translator.pipeline, translator.warn)
        reads = [*range(1, len(together)), 0]
        found = translate_units(translator.model, units, options, reads=reads)
        joined = join_documents(together, units, found, translator.pipeline)
        translated |= {number: one.document for number, one in zip(numbers, joined, strict=False)}
    return [translated[number] for number in range(len(documents))]


@dataclass(frozen=True)
class TranslationScores:
    """A metric of a corpus by the context that its sentences read, and the differences that own context makes, with
    intervals over documents."""

    scores: Mapping[ContextMode, float]
    differences: Mapping[str, Comparison]
    signature: str
    beam: int

    def to_json(self) -> dict[str, Any]:
        differences = {
            name: {
                "difference": round(found.difference, 4),
                "interval": [round(found.interval.low, 4), round(found.interval.high, 4)],
                "p": round(found.p_randomisation, 6),
            }
            for name, found in self.differences.items()
        }
        scores = {str(mode): value for mode, value in self.scores.items()}
        return {**scores, **differences, "signature": self.signature, "beam": self.beam}


TRANSLATION_METRICS = {"bleu": "sacrebleu", "chrf": "chrf"}
TRIALS = 2000


def measure_translations(
    translator: Translator, documents: Sequence[Document], *, beam: int | None = None, seed: int = 1
) -> dict[str, TranslationScores]:
    """BLEU and chrF of the documents' translations with own, removed and random context."""
    from weitblick.evaluation.metrics import build_metric, sum_documents
    from weitblick.evaluation.significance import compare

    references = [target or "" for document in documents for target in document.targets]
    lengths = [len(document.sentences) for document in documents]
    options = TranslationOptions(beam=beam).of(translator.model.sentence.generation)
    lines = {
        mode: [
            target or ""
            for document in translate_with(translator, documents, mode, options, seed=seed)
            for target in document.targets
        ]
        for mode in CONTEXT_MODES
    }
    report = {}
    for name, metric in ((name, build_metric(wanted)) for name, wanted in TRANSLATION_METRICS.items()):
        counts = {mode: sum_documents(metric.statistics(found, references), lengths) for mode, found in lines.items()}
        report[name] = TranslationScores(
            {mode: round(metric.corpus_score(found).value, 4) for mode, found in counts.items()},
            {
                f"own_over_{other}": compare(metric, [counts[other]], [counts["own"]], TRIALS, seed)
                for other in CONTEXT_MODES
                if other != "own"
            },
            metric.signature,
            options.search.beam,
        )
    return report
