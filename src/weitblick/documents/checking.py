"""Find what is wrong with a parallel corpus, line by line, and leave it out.

What is usual (length ratio, the look of each language) is learned from the first sentences of the corpus itself, so
that one pass over a stream is enough.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import median
from typing import NamedTuple

from weitblick.documents.corpora import Corpus
from weitblick.documents.corpora.reading import Located
from weitblick.documents.document import Document, Sentence
from weitblick.documents.language_identification import LanguageSides

SAMPLE = 20_000  # sentences from which the usual is learned
SHARED_WORDS = 8  # shorter sentences are shared between train and test by chance
COPIED_WORDS = 4  # shorter lines (names, numbers) may well be the same in both languages
RATIO_DEVIATIONS, LEAST_RATIO_FACTOR, RATIO_PADDING = 6.0, 2.5, 15
WRONG_LANGUAGE_EVIDENCE = 0.5  # mean log-odds per trigram
SHIFT_SENTENCES, SHIFT_GAIN, SHIFT_AGREEMENT = 8, 0.4, 0.6

KINDS = {
    "misaligned": "sides of different length, or a document whose translation is shifted by a line",
    "empty": "one side of a sentence is empty",
    "copied": "source and target are the same",
    "wrong-language": "a line looks like the other side's language",
    "length-ratio": "one side is far longer than usual",
    "duplicate": "a document occurs twice",
    "held-out": "a sentence is also in the held-out corpus",
}


class Finding(NamedTuple):
    kind: str
    line: int
    document: str
    sentence: int | None  # 1-based; None if it concerns the whole document
    detail: str


@dataclass(frozen=True)
class Usual:
    """What sentences of this corpus are like."""

    ratio: float  # median log ratio of target to source characters
    spread: float
    sides: LanguageSides


def _log_ratio(sentence: Sentence) -> float:
    # Padding keeps short sentences, whose ratios vary widely, from looking odd.
    return math.log((len(sentence.target or "") + RATIO_PADDING) / (len(sentence.source) + RATIO_PADDING))


def learn_usual(documents: Iterable[Document]) -> Usual:
    pairs = [s for document in documents for s in document.sentences if s.source.strip() and (s.target or "").strip()]
    ratios = [_log_ratio(sentence) for sentence in pairs] or [0.0]
    centre = median(ratios)
    spread = 1.4826 * median(abs(ratio - centre) for ratio in ratios)
    sides = LanguageSides((s.source for s in pairs), (s.target or "" for s in pairs))
    return Usual(centre, spread, sides)


def normalised(text: str) -> str:
    return " ".join(text.casefold().split())


def shared_sentences(corpora: Iterable[Corpus]) -> set[bytes]:
    """Fingerprints of the held-out source sentences that are long enough not to be shared by chance."""
    return {
        _fingerprint(sentence.source)
        for corpus in corpora
        for document in corpus
        for sentence in document.sentences
        if len(sentence.source.split()) >= SHARED_WORDS
    }


def _fingerprint(text: str) -> bytes:
    return hashlib.blake2b(normalised(text).encode("utf-8", "surrogatepass"), digest_size=12).digest()


def examine(corpus: Corpus, held_out: set[bytes] | None = None) -> Iterator[tuple[Located, list[Finding]]]:
    """Every document with what is wrong with it. Read the corpus leniently, or the first tear ends the reading."""
    stream = corpus.located()
    sample: list[Located] = []
    sentences = 0
    for located in stream:
        sample.append(located)
        sentences += len(located.lines)
        if sentences >= SAMPLE:
            break
    usual = learn_usual(located.document for located in sample)
    seen: dict[bytes, str] = {}
    for located in chain(sample, stream):
        findings = [
            Finding(kind, line, located.document.id, number, detail)
            for number, (sentence, line) in enumerate(zip(located.document.sentences, located.lines, strict=True), 1)
            for kind, detail in sentence_problems(sentence, usual, held_out or set())
        ]
        findings += _document_findings(located, seen)
        yield located, findings


def sentence_problems(sentence: Sentence, usual: Usual, held_out: set[bytes]) -> Iterator[tuple[str, str]]:
    if len(sentence.source.split()) >= SHARED_WORDS and _fingerprint(sentence.source) in held_out:
        yield "held-out", _shown(sentence.source)
    empty_source = not sentence.source.strip()
    if sentence.target is None:
        if empty_source:
            yield "empty", "the source is empty"
        return
    empty_target = not sentence.target.strip()
    if empty_source or empty_target:
        sides = (
            "both sides are" if empty_source and empty_target else f"the {'source' if empty_source else 'target'} is"
        )
        yield "empty", f"{sides} empty"
        return
    if normalised(sentence.source) == normalised(sentence.target):
        if len(sentence.source.split()) >= COPIED_WORDS:
            yield "copied", _shown(sentence.source)
        return
    for side, text in enumerate((sentence.source, sentence.target)):
        if usual.sides.evidence(text, side) > WRONG_LANGUAGE_EVIDENCE:
            yield "wrong-language", f"the {('source', 'target')[side]} looks like the other side: {_shown(text)}"
    deviation = abs(_log_ratio(sentence) - usual.ratio)
    if deviation > max(RATIO_DEVIATIONS * usual.spread, math.log(LEAST_RATIO_FACTOR)):
        yield "length-ratio", f"{len(sentence.source)} and {len(sentence.target)} characters: {_shown(sentence.source)}"


def _document_findings(located: Located, seen: dict[bytes, str]) -> Iterator[Finding]:
    document = located.document
    if not document.sentences:
        return
    fingerprint = _fingerprint("\n".join(document.sources))
    if fingerprint in seen and len(document.sentences) > 1:
        yield Finding(
            "duplicate", located.lines[0], document.id, None, f"the same source as document {seen[fingerprint]}"
        )
    seen.setdefault(fingerprint, document.id)
    if shift := shifted(document):
        yield Finding(
            "misaligned",
            located.lines[0],
            document.id,
            None,
            f"the translation fits better {abs(shift)} line {'later' if shift > 0 else 'earlier'}",
        )


def shifted(document: Document) -> int:
    """1 or -1 if target lengths follow source lengths clearly better one line further on or back, else 0."""
    lengths = [
        (len(s.source), len(s.target)) for s in document.sentences if s.target and s.target.strip() and s.source.strip()
    ]
    if len(lengths) < SHIFT_SENTENCES or len(lengths) < len(document.sentences):
        return 0
    sources, targets = (_ranks(side) for side in zip(*lengths, strict=True))
    straight = _correlation(sources, targets)
    later, earlier = _correlation(sources[:-1], targets[1:]), _correlation(sources[1:], targets[:-1])
    best = max(later, earlier)
    if best < SHIFT_AGREEMENT or best - straight < SHIFT_GAIN:
        return 0
    return 1 if later == best else -1


def _ranks(lengths: Sequence[int]) -> list[float]:
    """Ranks instead of lengths: a single odd sentence must not decide."""
    order = sorted(lengths)
    return [(bisect_left(order, length) + bisect_right(order, length)) / 2 for length in lengths]


def _correlation(left: Sequence[float], right: Sequence[float]) -> float:
    mean_left, mean_right = sum(left) / len(left), sum(right) / len(right)
    products = sum((x - mean_left) * (y - mean_right) for x, y in zip(left, right, strict=True))
    squares = sum((x - mean_left) ** 2 for x in left) * sum((y - mean_right) ** 2 for y in right)
    return products / math.sqrt(squares) if squares else 0.0


def cleaned(located: Located, findings: Sequence[Finding]) -> Document | None:
    """The document without the sentences that were found fault with; None if nothing is left or all is at fault."""
    if any(finding.sentence is None for finding in findings):
        return None
    faulty = {finding.sentence for finding in findings}
    kept = tuple(s for number, s in enumerate(located.document.sentences, 1) if number not in faulty)
    return replace(located.document, sentences=kept) if kept else None


def line_counts_differ(corpus: Corpus) -> Finding | None:
    """Two files of one line each per sentence that, once read, turn out to differ in length."""
    counts = corpus.lines_read()[:2]
    if corpus.format.name not in ("text", "d-lines") or len(counts) < 2 or counts[0] == counts[1]:
        return None
    paths = [Path(path) for path in corpus.paths]
    detail = f"{paths[0]} has {counts[0]} lines, {paths[1]} has {counts[1]}"
    return Finding("misaligned", min(counts) + 1, "", None, detail)


def _shown(text: str, width: int = 60) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
