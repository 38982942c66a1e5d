"""The terms of a project, which its translations keep, and the rows of a document that a new one concerns."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from weitblick.memory.corrections import term_of_key
from weitblick.memory.terms import Term, Terms
from weitblick.workbench.errors import Refused
from weitblick.workbench.parameters import Languages
from weitblick.workbench.schema import Segment, StoredPair
from weitblick.workbench.store import Store

BY_KEY = "approved term"
"""The origin of a term that a person has made at the workbench; those of imported ones are their files."""
NEVER = 2**60
"""A revision that no database will reach: nothing has changed since."""


@dataclass(frozen=True)
class Concerned:
    """Rows whose sources have a term, by position: drafts that do not say it, other rows that do not, and those that
    do. `known`: how the project translates it so far."""

    drafts: list[int]
    left: list[int]
    followed: list[int]
    known: str | None


class ProjectTerms:
    """The terms of all projects. Safe to use from several threads."""

    def __init__(self, store: Store, languages: Languages) -> None:
        self._store, self._languages = store, languages
        self._lock = threading.Lock()
        self._terms: dict[str, tuple[int, Terms | None]] = {}  # by project: the revision of its pairs, and its terms

    def of(self, project: str) -> Terms | None:
        """The terms that translations of a project keep; None if there are none."""
        revision, _ = self._store.pair_changes(project, NEVER)
        with self._lock:
            known = self._terms.get(project)
        if known is None or known[0] != revision:
            found = [_term(pair) for pair in self._store.pairs(project, "term")]
            known = revision, self.indexed(found) if found else None
            with self._lock:
                self._terms[project] = known
        return known[1]

    def said(self, project: str, row: Segment) -> list[dict[str, Any]]:
        """The terms that a row has and says: each with where it comes from, and the words that say it."""
        terms, language = self.of(project), self._languages.target
        found = {} if terms is None else {term: None for own in terms.occurrences(row.source) for term in own.terms}
        return [
            {"source": term.source, "target": term.target, "origin": term.origin, "words": words}
            for term in found
            if (words := [words for _, words in term.places_said(row.target, language)])
        ]

    def marks(self, project: str, rows: Iterable[Segment]) -> dict[int, list[dict[str, Any]]]:
        """The terms in the sources of rows, by position: their words there, their translations, and their origin."""
        terms = self.of(project)
        found = {} if terms is None else {row.position: terms.occurrences(row.source) for row in rows}
        return {
            position: [
                {
                    "start": one.start,
                    "end": one.end,
                    "source": one.terms[0].source,
                    "targets": list(dict.fromkeys(term.target for term in one.terms)),
                    "origin": one.terms[0].origin,
                }
                for one in own
            ]
            for position, own in found.items()
            if own
        }

    def indexed(self, terms: Sequence[Term]) -> Terms:
        """Terms between the languages of this server."""
        return Terms(terms, self._languages.source, self._languages.target)

    def concerned(self, document: str, term: Term) -> Concerned:
        """The rows of a document that a term would concern."""
        index = self.indexed([term])
        rows = self._store.segments(document)
        having = [row for row in rows if index.occurrences(row.source)]
        followed = [row for row in having if term.is_said(row.target, self._languages.target)]
        others = [row for row in having if row not in followed]
        known = [
            pair.target
            for pair in self._store.pairs(self._store.document(document).project, "term")
            if pair.source == term.source
        ]
        return Concerned(
            _positions(row for row in others if row.state in ("draft", "empty")),
            _positions(row for row in others if row.state not in ("draft", "empty")),
            _positions(followed),
            known[-1] if known else None,
        )


def checked_term(source: str, target: str) -> Term:
    """The term of some words that a person gives; refused if there are none."""
    term = term_of_key(source, target, BY_KEY)
    if not any(character.isalnum() for character in term.source) or not term.target:
        raise Refused(422, "a term needs source words and their translation")
    return term


def _term(pair: StoredPair) -> Term:
    by_key = pair.origin == BY_KEY
    return term_of_key(pair.source, pair.target, BY_KEY) if by_key else Term(pair.source, pair.target, pair.origin)


def _positions(rows: Iterable[Segment]) -> list[int]:
    return [row.position for row in rows]
