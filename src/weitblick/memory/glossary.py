"""Glossaries: terms and how they are to be translated. Soft, through the pointer; then checked and reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weitblick.documents.document import Document
from weitblick.errors import UserError
from weitblick.files import read_lines

SHORTEST_STEM = 4
LONGEST_ENDING = 3
"""Letters of a term that remain when it is inflected, and letters that may be added."""


@dataclass(frozen=True)
class Term:
    source: str
    target: str
    origin: str


@dataclass(frozen=True)
class MissedTerm:
    """A term that stands in a source but whose translation is not in the target."""

    document: str
    sentence: int
    term: Term


class Glossary:
    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = list(terms)

    @classmethod
    def read(cls, glossaries: Sequence[str | Path] = (), kept: Sequence[str | Path] = ()) -> Glossary:
        """Files of two columns (source and target term, a tab between them), and of terms that stay as they are."""
        terms = [term for path in glossaries for term in _columns(path)]
        terms += [Term(line, line, f"{Path(path).name}:{number}") for path in kept for number, line in _lines(path)]
        return cls(terms)

    def missed(self, document: Document) -> list[MissedTerm]:
        return [
            MissedTerm(document.id, number, term)
            for number, sentence in enumerate(document.sentences, 1)
            for term in self.terms
            if says(sentence.source, term.source) and not says(sentence.target or "", term.target, compounds=True)
        ]

    def occurrences(self, document: Document) -> int:
        return sum(says(s.source, term.source) for s in document.sentences for term in self.terms)


class GlossaryCheck:
    """Watches translated documents; then tells how many terms were used, and which were not."""

    def __init__(self, glossary: Glossary | None) -> None:
        self.glossary, self.occurrences = glossary, 0
        self.missed: list[MissedTerm] = []

    def __call__(self, document: Document) -> None:
        if self.glossary is not None:
            self.occurrences += self.glossary.occurrences(document)
            self.missed += self.glossary.missed(document)

    def lines(self) -> Iterator[str]:
        if self.glossary is None:
            return
        yield f"glossary: {self.occurrences - len(self.missed)} of {self.occurrences} terms translated as it says"
        for miss in self.missed:
            term = f"{miss.term.source} -> {miss.term.target} ({miss.term.origin})"
            yield f"glossary: sentence {miss.sentence} of document {miss.document} does not say {term}"


def says(text: str, term: str, compounds: bool = False) -> bool:
    """Whether a text has a term, each of its words perhaps inflected; or, if wanted, as a part of a longer word."""
    words = []
    for word in term.split():
        stem = _stem(word)
        ending = len(word) - len(stem) + LONGEST_ENDING
        words.append(re.escape(stem) + (r"\w*" if compounds else f"\\w{{0,{ending}}}"))
    start = r"\w*" if compounds else ""
    pattern = rf"(?<!\w){start}" + r"\s+".join(words) + r"(?!\w)"
    return bool(words) and re.search(pattern, text, re.IGNORECASE) is not None


def _stem(word: str) -> str:
    """What is left of a word in its inflected forms, at least: Häuser and Haus are taken for different terms."""
    return word if len(word) <= SHORTEST_STEM else word[: max(SHORTEST_STEM, len(word) - 2)]


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
        if len(columns) != 2 or not all(columns):
            raise UserError(
                f"{line!r} is not a term and its translation",
                where=path,
                line=number,
                remedy="write two columns with a tab between them",
            )
        yield Term(columns[0], columns[1], f"{Path(path).name}:{number}")
