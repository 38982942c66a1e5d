"""Corpora measured (the paper's Table 1) and checked: what is wrong with a parallel corpus, line by line."""

from __future__ import annotations

import hashlib
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import median
from typing import NamedTuple

from weitblick.documents.corpora.formats import Corpus
from weitblick.documents.corpora.reading import Located
from weitblick.documents.document import Document, Sentence


@dataclass(frozen=True)
class Statistics:
    """Words are what white space separates. `target_words` is None for a corpus without targets."""

    documents: int
    sentences: int
    source_words: int
    target_words: int | None
    average_document_length: float


def measure(documents: Iterable[Document]) -> Statistics:
    count = sentences = source_words = target_words = 0
    has_target = False
    for document in documents:
        count += 1
        sentences += len(document.sentences)
        for sentence in document.sentences:
            source_words += len(sentence.source.split())
            if sentence.target is not None:
                has_target = True
                target_words += len(sentence.target.split())
    average = round(sentences / count, 2) if count else 0.0
    return Statistics(count, sentences, source_words, target_words if has_target else None, average)


def rounded(count: int) -> str:
    """A count as the paper prints it: 1.67M, 0.21M, 9K, 3.6K, 81."""
    if count >= 100_000:
        return f"{count / 1e6:.2f}M"
    if count >= 1000:
        return f"{count / 1e3:.1f}".removesuffix(".0") + "K"
    return str(count)


def table_rows(corpora: Mapping[str, Statistics]) -> list[tuple[str, str, str]]:
    """Corpus, sentences and average document length, parts (`TED/train`, `TED/dev`) side by side as in Table 1."""
    grouped: dict[str, list[Statistics]] = {}
    for name, statistics in corpora.items():
        grouped.setdefault(name.split("/")[0], []).append(statistics)
    return [
        (
            name,
            " / ".join(rounded(part.sentences) for part in parts),
            " / ".join(f"{part.average_document_length:.2f}" for part in parts),
        )
        for name, parts in grouped.items()
    ]


# Tell the two languages of a corpus apart, learned from the corpus itself: most of its lines are on the right side.
#
# Naive Bayes over character trigrams. It needs no list of languages, and a few hundred sentences are enough.

FEWEST_LETTERS = 22  # with the spaces between words; less text does not show its language
SMOOTHING = 0.1


WORD = re.compile(r"[^\W\d_]+")


def letters_of(text: str) -> str:
    """The words alone: digits, punctuation and case tell nothing about the language."""
    return f" {' '.join(WORD.findall(text.lower()))} "


def trigrams(words: str) -> Counter[str]:
    return Counter(map("".join, zip(words, words[1:], words[2:], strict=False)))


class LanguageSides:
    """How much a line looks like the source and like the target side of its corpus."""

    def __init__(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        self.counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for counts, lines in zip(self.counts, (sources, targets), strict=True):
            for line in lines:
                counts.update(trigrams(letters_of(line)))
        self.totals = tuple(sum(counts.values()) for counts in self.counts)
        self.types = len(set(self.counts[0]) | set(self.counts[1])) or 1

    def evidence(self, text: str, side: int) -> float:
        """Mean log-odds per trigram that `text`, found on `side` (0 source, 1 target), is of the other side's language.

        The line's own trigrams are taken out of its side first: a line must not vouch for itself.
        """
        words = letters_of(text)
        if len(words) < FEWEST_LETTERS or not all(self.totals):
            return -math.inf
        own = trigrams(words)
        size = len(words) - 2
        here, there = self.counts[side], self.counts[1 - side]
        total_here = max(self.totals[side] - size, 0) + SMOOTHING * self.types
        total_there = self.totals[1 - side] + SMOOTHING * self.types
        score = 0.0
        for trigram, count in own.items():
            odds = (there.get(trigram, 0) + SMOOTHING) / (max(here.get(trigram, 0) - count, 0) + SMOOTHING)
            score += count * math.log(odds)
        return score / size + math.log(total_here / total_there)


# Find what is wrong with a parallel corpus, line by line, and leave it out.
#
# What is usual (length ratio, the look of each language) is learned from the first sentences of the corpus itself, so
# that one pass over a stream is enough.

SAMPLE = 20_000  # sentences from which the usual is learned
SHARED_WORDS = 8  # shorter sentences are shared between train and test by chance
SHARED_PART = 0.5  # of a document's longer sentences: it is a held-out document, and not one with the same formulas
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
    "held-out": "a sentence, or at least half of a document, is also in the held-out corpus",
}


class Finding(NamedTuple):
    kind: str
    line: int
    document: str
    sentence: int | None  # 1-based; None if it concerns the whole document
    detail: str


@dataclass(frozen=True)
class CorpusNorms:
    """What sentences of this corpus are like."""

    ratio: float  # median log ratio of target to source characters
    spread: float
    sides: LanguageSides


def _log_ratio(sentence: Sentence) -> float:
    # Padding keeps short sentences, whose ratios vary widely, from looking odd.
    return math.log((len(sentence.target or "") + RATIO_PADDING) / (len(sentence.source) + RATIO_PADDING))


def learn_norms(documents: Iterable[Document]) -> CorpusNorms:
    pairs = [s for document in documents for s in document.sentences if s.source.strip() and (s.target or "").strip()]
    ratios = [_log_ratio(sentence) for sentence in pairs] or [0.0]
    centre = median(ratios)
    spread = 1.4826 * median(abs(ratio - centre) for ratio in ratios)
    sides = LanguageSides((s.source for s in pairs), (s.target or "" for s in pairs))
    return CorpusNorms(centre, spread, sides)


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
    """Letters and digits alone count: tokenised text is the same as plain text."""
    letters = "".join(filter(str.isalnum, text.casefold()))
    return hashlib.blake2b((letters or normalised(text)).encode("utf-8", "surrogatepass"), digest_size=12).digest()


def examine(
    corpus: Corpus, held_out: set[bytes] | None = None, *, by_document: bool = False
) -> Iterator[tuple[Located, list[Finding]]]:
    """Every document with what is wrong with it. Read the corpus leniently, or the first tear ends the reading.
    `by_document`: what is held out are documents, not sentences."""
    stream = corpus.located()
    sample: list[Located] = []
    sentences = 0
    for located in stream:
        sample.append(located)
        sentences += len(located.lines)
        if sentences >= SAMPLE:
            break
    usual = learn_norms(located.document for located in sample)
    seen: dict[bytes, str] = {}
    for located in chain(sample, stream):
        findings = [
            Finding(kind, line, located.document.id, number, detail)
            for number, (sentence, line) in enumerate(zip(located.document.sentences, located.lines, strict=True), 1)
            for kind, detail in sentence_problems(sentence, usual, set() if by_document else held_out or set())
        ]
        findings += _document_findings(located, seen)
        if by_document:
            findings += _held_out_document(located, held_out or set())
        yield located, findings


def sentence_problems(sentence: Sentence, usual: CorpusNorms, held_out: set[bytes]) -> Iterator[tuple[str, str]]:
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
    if shift := line_shift(document):
        yield Finding(
            "misaligned",
            located.lines[0],
            document.id,
            None,
            f"the translation fits better {abs(shift)} line {'later' if shift > 0 else 'earlier'}",
        )


def _held_out_document(located: Located, held_out: set[bytes]) -> Iterator[Finding]:
    """A document at least half of whose longer sentences are held out. One without longer sentences is never found."""
    long = [s.source for s in located.document.sentences if len(s.source.split()) >= SHARED_WORDS]
    shared = sum(_fingerprint(source) in held_out for source in long)
    if long and shared >= SHARED_PART * len(long):
        detail = f"{shared} of {len(long)} sentences of {SHARED_WORDS} words and more: {_shown(long[0])}"
        yield Finding("held-out", located.lines[0], located.document.id, None, detail)


def line_shift(document: Document) -> int:
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
