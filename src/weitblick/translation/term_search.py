"""Terms are kept by search: the translation says them where alignment puts them, in the form that fits.

1. A sentence that has terms and a translation that does not say one of them is aligned with it: so the place is known.
2. The words there are replaced by every form of the term (`memory.word_forms`), the article before it by every one of
   its kind, adjectives between them by every ending; where the place is one word of a compound, by compounds as well.
   The model says how probable each of these sentences is, all in one batch.
3. With the most probable ones the rest of the sentence is searched anew, so that it agrees with the term. The best
   hypothesis of all that says the term wins; then comes the next term behind it.

Any model can do this, nothing is trained, and sentences without terms are not touched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from torch import Tensor

from weitblick.memory.terms import Occurrence, Term, Terms, TermUse
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import TextPipeline
from weitblick.text.units import Unit
from weitblick.translation.alignment import Alignment, align
from weitblick.translation.beam import Hypothesis
from weitblick.translation.forced import continuing_pieces
from weitblick.translation.options import TranslationOptions
from weitblick.translation.term_places import (
    Candidate,
    TermPlace,
    agrees,
    candidates,
    is_like,
    is_plural,
    with_number,
    with_other_endings,
)

MOST_ROUNDS = 6
"""Terms of one sentence that are put right one after the other."""
KEPT_CANDIDATES, SEARCHED_CANDIDATES = 4, 2
"""The most probable replacements whose adjectives are varied, and those with which the rest is searched anew."""

MOST_LOST = 4.0
"""Nats by which a sentence may be less probable with a correction that nobody asked for here."""

Found = dict[int, list[Hypothesis]]
Scored = tuple[Candidate, list[float]]
"""A candidate, and the log-probabilities of the words of its sentence."""


class Searcher(Protocol):
    """What a search for terms asks of the passes over a document."""

    model: DocumentModel
    units: Sequence[Unit]
    options: TranslationOptions

    def score(self, numbers: Sequence[int], targets: Sequence[Sequence[int]]) -> list[list[float]]: ...
    def search_from(
        self, numbers: Sequence[int], prefixes: Sequence[Sequence[int]], ends: Sequence[bool], barred: Tensor
    ) -> list[list[Hypothesis]]: ...


@dataclass
class _Case:
    """A sentence with terms: its hypotheses and their first as text, the terms that were put right or given up, and
    where the last of these ends."""

    number: int
    source: str
    occurrences: list[Occurrence]
    hypotheses: list[Hypothesis]
    text: str = ""
    handled: set[int] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)
    settled: int = 0


@dataclass(frozen=True)
class _Attempt:
    """A term of a case at its place."""

    case: _Case
    occurrence: int
    term: Term
    place: TermPlace


class TermSearch:
    """Follows terms in the translations of one pipeline. most_lost: nats by which a sentence may be less probable for
    the sake of a correction."""

    def __init__(self, terms: Terms, pipeline: TextPipeline, most_lost: float = math.inf) -> None:
        self.terms, self.pipeline, self.most_lost = terms, pipeline, most_lost
        self.language = pipeline.target_language

    def follow(self, searcher: Searcher, found: Found, settled: Mapping[int, int] | None = None) -> Found:
        """The hypotheses of those units whose sources have terms, the first of which says them if that can be. settled:
        by number, up to which character a translation stays as it is."""
        cases = []
        for number, hypotheses in found.items():
            unit = searcher.units[number]
            occurrences = self.occurrences(unit) if hypotheses and not unit.locked else []
            if occurrences:
                begun = 0 if settled is None else settled.get(number, 0)
                cases.append(_Case(number, unit.text, occurrences, hypotheses, settled=begun))
        self._read(cases)
        for _ in range(MOST_ROUNDS):
            attempts = self._attempts(searcher.model, cases)
            if not attempts:
                break
            self._put_right(searcher, attempts)
        return {case.number: self._told(case) for case in cases}

    def occurrences(self, unit: Unit) -> list[Occurrence]:
        """Where a unit has terms."""
        return self.terms.occurrences(unit.text)

    def _read(self, cases: Sequence[_Case]) -> None:
        sources = [case.source for case in cases]
        texts = self.pipeline.decode_target([case.hypotheses[0].ids for case in cases], sources)
        for case, text in zip(cases, texts, strict=True):
            case.text = text

    def _told(self, case: _Case) -> list[Hypothesis]:
        """The hypotheses of a case, of which the first tells what became of its terms."""
        uses = []
        for number, occurrence in enumerate(case.occurrences):
            asked = [term for term in occurrence.terms if not term.refused or number in case.changed]
            if not asked:
                continue
            said = next((term for term in asked if term.is_said(case.text, self.language)), None)
            changed = number in case.changed
            if said is None:
                uses.append(TermUse(asked[-1], False))
            else:
                uses.append(TermUse(said, True, said.places_said(case.text, self.language)[0][1], changed))
        first, *others = case.hypotheses
        return [replace(first, terms=tuple(uses)), *others]

    # What is missing, and where it belongs

    def _attempts(self, model: DocumentModel, cases: Sequence[_Case]) -> list[_Attempt]:
        """Of every case the first term in the translation that is not said."""
        missing = [(case, own) for case in cases if (own := self._missing(case))]
        aligned = align(model.sentence, self.pipeline, [(case.source, case.text) for case, _ in missing])
        attempts = []
        for (case, numbers), alignment in zip(missing, aligned, strict=True):
            places = [(number, self._place(case, case.occurrences[number], alignment)) for number in numbers]
            usable = [(place.start, number, place) for number, place in places if place is not None]
            case.handled |= {number for number, place in places if place is None}
            if usable:
                _, number, place = min(usable, key=lambda own: own[:2])
                case.handled.add(number)
                term = self._term(case.occurrences[number], place)
                if term is not None:
                    attempts.append(_Attempt(case, number, term, place))
                elif len(usable) > 1:
                    attempts += self._attempts(model, [case])
        return attempts

    def _missing(self, case: _Case) -> list[int]:
        """Occurrences whose terms the translation does not say as often as the source."""
        wanted: dict[tuple[Term, ...], int] = {}
        for occurrence in case.occurrences:
            wanted[occurrence.terms] = wanted.get(occurrence.terms, 0) + 1
        said = {terms: sum(self._well_said(term, case.text) for term in terms if not term.refused) for terms in wanted}
        return [
            number
            for number, occurrence in enumerate(case.occurrences)
            if number not in case.handled and said[occurrence.terms] < wanted[occurrence.terms]
        ]

    def _place(self, case: _Case, occurrence: Occurrence, alignment: Alignment) -> TermPlace | None:
        place = TermPlace.of(case.text, occurrence.start, occurrence.end, alignment, self.language)
        return None if place is None or place.start < case.settled else place

    def _term(self, occurrence: Occurrence, place: TermPlace) -> Term | None:
        """Which of the terms of an occurrence holds at a place: the word that a correction refused must stand there."""
        for term in occurrence.terms:
            if not term.refused:
                return term
            refused = Term(term.source, term.refused, term.origin)
            if refused.is_said(place.words, self.language) and not term.is_said(place.words, self.language):
                return term
        return None

    # How it is said

    def _put_right(self, searcher: Searcher, attempts: Sequence[_Attempt]) -> None:
        """Says the term of every attempt, each in a case of its own."""
        best = self._best(searcher, attempts, [self._offered(attempt) for attempt in attempts], KEPT_CANDIDATES)
        varied = [with_other_endings([one for one, _ in own], self.language) for own in best]
        again = self._best(searcher, attempts, varied, SEARCHED_CANDIDATES)
        best = [more or own for own, more in zip(best, again, strict=True)]
        results = {
            attempt.case.number: self._replaced(searcher, own) for attempt, own in zip(attempts, best, strict=True)
        }
        unsure = [
            (attempt, one)
            for attempt, own in zip(attempts, best, strict=True)
            if any(one.open or not one.same_kind for one, _ in own[:1])
            for one, _ in own[: 2 * SEARCHED_CANDIDATES]
        ]
        if unsure:  # another gender or number: what follows has to agree
            prefixes = self.pipeline.encode_target([one.beginning for _, one in unsure])
            weight = searcher.model.sentence.output()[0]
            barred = continuing_pieces(self.pipeline, len(weight), weight.device)
            numbers, ends = [attempt.case.number for attempt, _ in unsure], [not one.open for _, one in unsure]
            for (attempt, one), found in zip(
                unsure, searcher.search_from(numbers, prefixes, ends, barred), strict=True
            ):
                results[attempt.case.number] += [(hypothesis, one) for hypothesis in found[:1]]
        least = self._least(searcher, attempts)
        for attempt in attempts:
            self._choose(searcher, attempt, results[attempt.case.number], least.get(attempt.case.number, -math.inf))

    def _least(self, searcher: Searcher, attempts: Sequence[_Attempt]) -> dict[int, float]:
        """By number, how probable a sentence must be that takes over a correction."""
        own = [attempt.case for attempt in attempts if attempt.term.refused and self.most_lost < math.inf]
        drafts = [case.hypotheses[0].ids for case in own]
        scored = searcher.score([case.number for case in own], drafts) if own else []
        return {case.number: sum(words) - self.most_lost for case, words in zip(own, scored, strict=True)}

    def _offered(self, attempt: _Attempt) -> list[Candidate]:
        occurrence = attempt.case.occurrences[attempt.occurrence]
        terms = [attempt.term, *(term for term in occurrence.terms if not term.refused and not attempt.term.refused)]
        forms = list(dict.fromkeys(form for term in terms for form in term.forms(self.language)))
        offered = candidates(attempt.place, forms, attempt.term.is_kept, self.language)
        if attempt.term.is_kept or not self.pipeline.source_language.startswith("en"):
            return offered
        said = attempt.case.source[occurrence.start : occurrence.end]
        plural = is_plural(said, attempt.term.sources[0])
        return with_number(offered, attempt.term.targets[0], plural, self.language)

    def _best(
        self, searcher: Searcher, attempts: Sequence[_Attempt], offered: Sequence[Sequence[Candidate]], count: int
    ) -> list[list[Scored]]:
        """The most probable sentences of each attempt, and behind them those with the most probable words up to the
        term: a rest that agrees with the word of before would keep its article."""
        numbers = [a.case.number for a, own in zip(attempts, offered, strict=True) for _ in own]
        flat = [one for own in offered for one in own]
        begun = (len(ids) for ids in self.pipeline.encode_target([one.beginning for one in flat]))
        words = searcher.score(numbers, self.pipeline.encode_target([one.text for one in flat])) if flat else []
        scored = iter([*zip(flat, words, begun, strict=True)])
        found = []
        for own in offered:
            rows = [next(scored) for _ in own]
            whole = sorted(rows, key=lambda row: row[0].penalty - sum(row[1]))[:count]
            beginnings = sorted(rows, key=lambda row: row[0].penalty - sum(row[1][: row[2]]))[:count]
            found.append(list({one: (one, own) for one, own, _ in (*whole, *beginnings)}.values()))
        return found

    def _replaced(self, searcher: Searcher, scored: Sequence[Scored]) -> list[tuple[Hypothesis, Candidate]]:
        """Candidates as they are, with the rest of before."""
        ids = self.pipeline.encode_target([one.text for one, _ in scored])
        penalty = searcher.options.search.length_penalty
        return [
            (Hypothesis(list(own), sum(words) / len(words) ** penalty, sum(words), words), one)
            for own, (one, words) in zip(ids, scored, strict=True)
        ]

    def _choose(
        self, searcher: Searcher, attempt: _Attempt, results: list[tuple[Hypothesis, Candidate]], least: float
    ) -> None:
        """The best hypothesis that says the term, and no other term less often than before; least: what its
        log-probability must be."""
        case, occurrence = attempt.case, attempt.case.occurrences[attempt.occurrence]
        texts = self.pipeline.decode_target([own.ids for own, _ in results], [case.source] * len(results))
        before = self._said(case, case.text)
        good: list[tuple[float, int, Hypothesis, str, Candidate]] = []
        for (hypothesis, candidate), text in zip(results, texts, strict=True):
            terms = [term for term in occurrence.terms if not term.refused] or [attempt.term]
            times = max(self._well_said(term, text) for term in terms)
            more = times > max(self._well_said(term, case.text) for term in terms)
            kept = all(now >= then for now, then in zip(self._said(case, text), before, strict=True))
            if more and kept and hypothesis.log_probability >= least and is_like(text, candidate.text):
                good.append((hypothesis.log_probability - candidate.penalty, len(good), hypothesis, text, candidate))
        if not good:
            return
        good.sort(key=lambda own: (-own[0], own[1]))
        _, _, hypothesis, case.text, candidate = good[0]
        others = [own for _, _, own, text, _ in good[1:] if text != case.text]
        unique = {tuple(own.ids): own for own in (hypothesis, *others)}
        case.hypotheses = list(unique.values())[: searcher.options.n_best]
        case.changed.add(attempt.occurrence)
        case.settled = max(case.settled, len(candidate.beginning))

    def _said(self, case: _Case, text: str) -> list[int]:
        return [
            max((self._well_said(term, text) for term in own.terms if not term.refused), default=0)
            for own in case.occurrences
        ]

    def _well_said(self, term: Term, text: str) -> int:
        """How often a translation says a term, behind an article that goes with it if there is one."""
        places = term.places_said(text, self.language)
        return sum(term.is_kept or agrees(text, start, self.language) for start, _ in places)
