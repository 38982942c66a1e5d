"""Glossaries: terms and how they are to be translated, and whether a translation does so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weitblick.documents.document import Document
from weitblick.memory.glossary_files import read_kept, read_terms
from weitblick.memory.terms import Term, Terms

MOST_LINES = 200
"""Of a report on the command line."""


@dataclass(frozen=True)
class MissedTerm:
    """A term that stands in a source but whose translation is not in the target."""

    document: str
    sentence: int
    term: Term


class Glossary:
    """Terms; of a term that has several translations each will do."""

    def __init__(self, terms: Sequence[Term], languages: tuple[str, str] = ("en", "de")) -> None:
        self.terms = list(terms)
        self.language = languages[1]
        self.index = Terms(self.terms, *languages)

    @classmethod
    def read(
        cls,
        glossaries: Sequence[str | Path] = (),
        kept: Sequence[str | Path] = (),
        languages: tuple[str, str] = ("en", "de"),
    ) -> Glossary:
        """Files of terms (TSV, CSV, XLSX, TBX), and of terms that stay as they are."""
        terms = [term for path in glossaries for term in read_terms(path, languages)]
        return cls([*terms, *(term for path in kept for term in read_kept(path))], languages)

    def contradictions(self) -> Iterator[str]:
        """What a person should know of terms that are translated in two ways."""
        for first, other in self.index.contradictions():
            both = f"{first.target} ({first.origin}) and {other.target} ({other.origin})"
            yield f"the glossary translates {first.source} as {both}: either will do"

    def used(self, source: str, target: str) -> Iterator[tuple[Term, bool]]:
        """The terms of a sentence, and whether its translation says each as often as the source."""
        occurrences = self.index.occurrences(source)
        left: Counter[Term] = Counter()
        for occurrence in occurrences:
            for term in occurrence.terms:
                left[term] = max(left[term], term.times_said(target, self.language))
        for occurrence in occurrences:
            said = next((term for term in occurrence.terms if left[term] > 0), None)
            if said is not None:
                left[said] -= 1
            yield said or occurrence.terms[-1], said is not None

    def check(self, document: Document, first: int = 1) -> tuple[int, list[MissedTerm]]:
        """How many terms the sources of a document have, sentence by sentence, and which were not translated so; of a
        part of a document, `first` is the number of its first sentence."""
        occurrences, missed = 0, []
        for number, sentence in enumerate(document.sentences, first):
            for term, is_said in self.used(sentence.source, sentence.target or ""):
                occurrences += 1
                if not is_said:
                    missed.append(MissedTerm(document.id, number, term))
        return occurrences, missed


class GlossaryCheck:
    """Counts in translated documents how many terms were used as the glossary says, and which were not."""

    def __init__(self, glossary: Glossary) -> None:
        self.glossary = glossary
        self.found: Counter[Term] = Counter()
        self.followed: Counter[Term] = Counter()
        self.missed: list[MissedTerm] = []

    @property
    def occurrences(self) -> int:
        """Of all terms in all sources so far."""
        return self.found.total()

    def __call__(self, document: Document, first: int = 1) -> None:
        for number, sentence in enumerate(document.sentences, first):
            for term, is_said in self.glossary.used(sentence.source, sentence.target or ""):
                self.found[term] += 1
                if is_said:
                    self.followed[term] += 1
                else:
                    self.missed.append(MissedTerm(document.id, number, term))

    def lines(self) -> Iterator[str]:
        """What was followed and what was not, for people."""
        followed = self.occurrences - len(self.missed)
        yield f"glossary: {followed} of {self.occurrences} terms translated as it says"
        for term, count in self.found.most_common(MOST_LINES):
            said = f"{term.source} -> {term.target} ({term.origin})"
            if self.followed[term]:
                yield f"glossary: {said} followed in {self.followed[term]} of {count} places"
        for miss in self.missed[:MOST_LINES]:
            said = f"{miss.term.source} -> {miss.term.target} ({miss.term.origin})"
            yield f"glossary: sentence {miss.sentence} of document {miss.document} does not say {said}"
        if len(self.missed) > MOST_LINES:
            yield f"glossary: and {len(self.missed) - MOST_LINES} more"
