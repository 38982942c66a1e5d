"""Glossaries: terms and how they are to be translated. Soft, through the pointer; then checked and reported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weitblick.documents.document import Document
from weitblick.errors import UserError
from weitblick.files import read_lines
from weitblick.memory.terms import Terms, says

TITLES = ("source", "target")


@dataclass(frozen=True)
class Term:
    source: str
    target: str
    origin: str

    @property
    def is_kept(self) -> bool:
        return self.source == self.target

    def is_said(self, text: str) -> bool:
        """Whether a translation has the term, as it is or, if it need not stay so, inflected."""
        return self.target in text if self.is_kept else says(text, self.target, compounds=True)


@dataclass(frozen=True)
class MissedTerm:
    """A term that stands in a source but whose translation is not in the target."""

    document: str
    sentence: int
    term: Term


class Glossary:
    """Terms; of a term that has several translations each will do."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = list(terms)
        self._translations: defaultdict[str, list[Term]] = defaultdict(list)
        for term in self.terms:
            self._translations[term.source].append(term)
        # IT is not it, nor US us: names and what is written in capitals is found as it is written.
        cased = (term.source for term in self.terms if term.is_kept or term.source.isupper())
        self._sources = Terms(self._translations, cased)

    @classmethod
    def read(cls, glossaries: Sequence[str | Path] = (), kept: Sequence[str | Path] = ()) -> Glossary:
        """Files of two columns (source and target term, a tab between them), and of terms that stay as they are."""
        terms = [term for path in glossaries for term in _columns(path)]
        terms += [Term(line, line, f"{Path(path).name}:{number}") for path in kept for number, line in _lines(path)]
        return cls(terms)

    def check(self, document: Document, first: int = 1) -> tuple[int, list[MissedTerm]]:
        """How many terms the sources of a document have, sentence by sentence, and which were not translated so; of a
        part of a document, `first` is the number of its first sentence."""
        occurrences, missed = 0, []
        for number, sentence in enumerate(document.sentences, first):
            for source in self._sources.found_in(sentence.source):
                translations = self._translations[source]
                occurrences += 1
                if not any(term.is_said(sentence.target or "") for term in translations):
                    missed.append(MissedTerm(document.id, number, translations[-1]))
        return occurrences, missed


class GlossaryCheck:
    """Watches translated documents; then tells how many terms were used, and which were not."""

    def __init__(self, glossary: Glossary | None) -> None:
        self.glossary, self.occurrences = glossary, 0
        self.missed: list[MissedTerm] = []

    def __call__(self, document: Document, first: int = 1) -> None:
        if self.glossary is not None:
            occurrences, missed = self.glossary.check(document, first)
            self.occurrences += occurrences
            self.missed += missed

    def lines(self) -> Iterator[str]:
        if self.glossary is None:
            return
        yield f"glossary: {self.occurrences - len(self.missed)} of {self.occurrences} terms translated as it says"
        for miss in self.missed:
            term = f"{miss.term.source} -> {miss.term.target} ({miss.term.origin})"
            yield f"glossary: sentence {miss.sentence} of document {miss.document} does not say {term}"


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    found = False
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            found = True
            yield number, line.strip()
    if not found:
        raise UserError("holds no term", where=path, remedy="write a term a line")


def _columns(path: str | Path) -> Iterator[Term]:
    for number, line in _lines(path):
        columns = [column.strip() for column in line.split("\t")]
        if number == 1 and tuple(column.lower() for column in columns) == TITLES:
            continue
        if len(columns) != 2 or not all(columns):
            raise UserError(
                f"{line!r} is not a term and its translation",
                where=path,
                line=number,
                remedy="write two columns with a tab between them",
            )
        yield Term(columns[0], columns[1], f"{Path(path).name}:{number}")
