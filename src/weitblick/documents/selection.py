"""Cut out of a corpus what is rich in discourse: sentences that match, each with the sentences around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from weitblick.documents.document import Document, Sentence


@dataclass(frozen=True)
class Pattern:
    """Regular expressions that a sentence pair must match, or must not; None asks for nothing."""

    source: re.Pattern[str] | None = None
    target: re.Pattern[str] | None = None
    not_source: re.Pattern[str] | None = None
    not_target: re.Pattern[str] | None = None

    def matches(self, sentence: Sentence) -> bool:
        target = sentence.target or ""
        wanted = ((self.source, sentence.source), (self.target, target))
        unwanted = ((self.not_source, sentence.source), (self.not_target, target))
        return all(p is None or p.search(text) for p, text in wanted) and not any(
            p is not None and p.search(text) for p, text in unwanted
        )


def select(documents: Iterable[Document], pattern: Pattern, before: int, after: int) -> Iterator[Document]:
    """A document for each stretch of sentences that match, with so many before and after; stretches that touch are
    one."""
    for document in documents:
        hits = (index for index, sentence in enumerate(document.sentences) if pattern.matches(sentence))
        for number, (first, last) in enumerate(_stretches(hits, before, after), 1):
            yield replace(document, id=f"{document.id}.{number}", sentences=document.sentences[first : last + 1])


def _stretches(hits: Iterable[int], before: int, after: int) -> Iterator[tuple[int, int]]:
    current: tuple[int, int] | None = None
    for hit in hits:
        first, last = max(0, hit - before), hit + after
        if current and first <= current[1] + 1:
            current = current[0], last
            continue
        if current:
            yield current
        current = first, last
    if current:
        yield current
