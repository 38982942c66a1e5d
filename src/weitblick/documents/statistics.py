"""The figures of the paper's Table 1 for any corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weitblick.documents.document import Document


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
