"""Terms are kept by search: the translation says them where alignment puts them, in the form that fits.

1. Sentences that have terms, and whose translations do not say all of them, are aligned: so the places are known.
2. The words at each place are replaced by every form of the term (`memory.word_forms`), the article before it by every
   one of its kind, adjectives between them by every ending; where the place is one word of a compound, by compounds as
   well. The model says how probable each of these is, with a few of the words that follow: all places in one batch.
3. The best go into their sentences. Where the model now objects to a word of the rest, which agreed with what stood
   there before, the rest is searched anew from that word on.

Any model can do this, nothing is trained, and sentences without terms are not touched.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import takewhile
from typing import TYPE_CHECKING

from torch import Tensor

from weitblick.memory.terms import Occurrence, Term, Terms, TermUse
from weitblick.text.base import TextPipeline
from weitblick.text.units import Unit
from weitblick.translation.alignment import Alignment, align_words
from weitblick.translation.beam import Hypothesis
from weitblick.translation.forced import continuing_pieces
from weitblick.translation.term_alternatives import best_candidates
from weitblick.translation.term_cases import Attempt, Change, Found, TermCase
from weitblick.translation.term_places import (
    Candidate,
    TermPlace,
    agrees,
    candidates,
    is_like,
    is_plural,
    with_all,
    with_number,
    with_other_endings,
)
from weitblick.translation.term_scorer import TermScorer

if TYPE_CHECKING:
    from weitblick.translation.driver import Passes

MOST_ROUNDS = 3
"""Of a sentence: terms whose places overlap are put right one after the other."""
KEPT_CANDIDATES = 3
"""The most probable replacements whose adjectives are varied."""
OBJECTION, DOUBT = 3.0, 3.0
"""Nats that a word of the rest has lost, and has at least, where the rest is searched anew from it on."""

MOST_LOST = 4.0
"""Nats by which a sentence may be less probable with a correction that nobody asked for here."""


class TermSearch:
    """Follows terms in the translations of one pipeline. most_lost: nats by which a sentence may be less probable for
    the sake of a correction."""

    def __init__(self, terms: Terms, pipeline: TextPipeline, most_lost: float = math.inf) -> None:
        self.terms, self.pipeline, self.most_lost = terms, pipeline, most_lost
        self.language = pipeline.target_language
        self._barred: Tensor | None = None  # the pieces with which no word begins

    def follow(self, passes: Passes, found: Found, settled: Mapping[int, int] | None = None) -> Found:
        """The hypotheses of those units whose sources have terms, the first of which says them if that can be. settled:
        by number, up to which character a translation stays as it is."""
        cases = []
        for number, hypotheses in found.items():
            unit = passes.units[number]
            occurrences = self.occurrences(unit) if hypotheses and not unit.locked else []
            if occurrences:
                begun = 0 if settled is None else settled.get(number, 0)
                cases.append(TermCase(number, unit.sentence, unit.text, occurrences, hypotheses, settled=begun))
        if not cases:
            return {}
        self._read(cases)
        scorer = TermScorer(passes)
        for _ in range(MOST_ROUNDS):
            attempts = self._attempts(scorer, cases)
            if not attempts:
                break
            self._put_right(scorer, attempts)
        return {case.number: self._with_uses(case) for case in cases}

    def occurrences(self, unit: Unit) -> list[Occurrence]:
        """Where a unit has terms."""
        return self.terms.occurrences(unit.text)

    def _read(self, cases: Sequence[TermCase]) -> None:
        sources = [case.source for case in cases]
        texts = self.pipeline.decode_target([case.hypotheses[0].ids for case in cases], sources)
        for case, text in zip(cases, texts, strict=True):
            case.text = text

    def _with_uses(self, case: TermCase) -> list[Hypothesis]:
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

    def _attempts(self, scorer: TermScorer, cases: Sequence[TermCase]) -> list[Attempt]:
        """All terms that are not said, at their places; of places that overlap the first, the others come later."""
        missing = [(case, own) for case in cases if (own := self._missing(case))]
        attempts = []
        for (case, numbers), alignment in zip(missing, self._aligned(scorer, missing), strict=True):
            free = 0  # the first character behind the places so far
            places = {number: self.place(case, number, alignment) for number in numbers}
            known = {
                number: place
                for number, place in places.items()
                if place is not None and (not numbers[number] or place.words == case.source_words(number))
            }
            case.handled |= places.keys() - known.keys()
            for number, place in sorted(known.items(), key=lambda own: (own[1].begin, own[0])):
                if place.begin < free:
                    continue
                case.handled.add(number)
                term = self._term(case.occurrences[number], place)
                if term is not None:
                    attempts.append(Attempt(case, number, term, place))
                    free = place.end + 1
        return attempts

    def _aligned(self, scorer: TermScorer, missing: Sequence[tuple[TermCase, dict[int, bool]]]) -> list[Alignment]:
        texts = [case.text for case, _ in missing]
        targets = self.pipeline.encode_target(texts)
        found = []
        read = scorer.read([case.number for case, _ in missing], targets)
        for (case, _), ids, own in zip(missing, targets, read, strict=True):
            case.ids, case.states = ids, own.states
            source = scorer.passes.units[case.number].source
            found.append(align_words(self.pipeline, (case.source, case.text), source, ids, own.weights))
        return found

    def _missing(self, case: TermCase) -> dict[int, bool]:
        """Occurrences whose terms the translation does not say as often as the source; True of those that it does say,
        though their source words stand in it as they are: *Dorschquote für cod* has *Dorsch*, and not for the cod."""
        left = [number for number in range(len(case.occurrences)) if number not in case.handled]
        if not left:
            return {}
        wanted = Counter(occurrence.terms for occurrence in case.occurrences)
        said = {terms: sum(self._well_said(term, case.text) for term in terms if not term.refused) for terms in wanted}
        enough = {terms: said[terms] >= wanted[terms] for terms in wanted}
        found = {number: enough[case.occurrences[number].terms] for number in left}
        return {number: own for number, own in found.items() if not own or case.is_copied(number, case.text)}

    def place(self, case: TermCase, number: int, alignment: Alignment) -> TermPlace | None:
        """Where a translation has the occurrence with this number; None: nowhere, or where it is settled."""
        occurrence = case.occurrences[number]
        place = TermPlace.of(case.text, occurrence.start, occurrence.end, alignment, self.language)
        return None if place is None or place.begin < case.settled else place

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

    def _put_right(self, scorer: TermScorer, attempts: Sequence[Attempt]) -> None:
        """Says the terms of all attempts."""
        cases = [attempt.case for attempt in attempts]
        offered = [self._offered(attempt) for attempt in attempts]
        wanted = [KEPT_CANDIDATES if attempt.place.adjectives else 1 for attempt in attempts]
        best = best_candidates(scorer, self.pipeline, cases, offered, wanted)
        varied = [with_other_endings(own[:KEPT_CANDIDATES], self.language) for own in best]
        again = best_candidates(scorer, self.pipeline, cases, varied, [1] * len(cases))
        chosen = [(more or own)[0] for own, more in zip(best, again, strict=True)]
        changes = self._changes(scorer, attempts, chosen)
        anew = self._searched(scorer, changes)
        for change in changes:
            self._choose(scorer, change, anew.get(change.case.number, []))

    def _offered(self, attempt: Attempt) -> list[Candidate]:
        occurrence = attempt.case.occurrences[attempt.occurrence]
        terms = [attempt.term, *(term for term in occurrence.terms if not term.refused and not attempt.term.refused)]
        forms = list(dict.fromkeys(form for term in terms for form in term.forms(self.language)))
        offered = candidates(attempt.place, forms, attempt.term.is_kept, self.language)
        if attempt.term.is_kept or not self.pipeline.source_language.startswith("en"):
            return offered
        said = attempt.case.source[occurrence.start : occurrence.end]
        plural = is_plural(said, attempt.term.sources[0])
        return with_number(offered, attempt.term.targets[0], plural, self.language)

    def _changes(self, scorer: TermScorer, attempts: Sequence[Attempt], chosen: Sequence[Candidate]) -> list[Change]:
        """Every case with all of its terms in their places, and how probable it is, before and after."""
        of_cases: dict[int, list[tuple[Attempt, Candidate]]] = {}
        for attempt, one in zip(attempts, chosen, strict=True):
            of_cases.setdefault(attempt.case.number, []).append((attempt, one))
        cases = [own[0][0].case for own in of_cases.values()]
        texts = [
            with_all(case.text, [one for _, one in own]) for case, own in zip(cases, of_cases.values(), strict=True)
        ]
        ids = self.pipeline.encode_target(texts)
        unknown = [case for case in cases if not case.hypotheses[0].word_log_probabilities]
        numbers = [case.number for case in (*cases, *unknown)]
        targets = [*ids, *(case.hypotheses[0].ids for case in unknown)]
        known = [_known_words(case.hypotheses[0], own) for case, own in zip(cases, ids, strict=True)]
        known += [[] for _ in unknown]
        penalty = scorer.options.search.length_penalty
        scored = []
        for target, first, rest in zip(
            targets, known, scorer.score(numbers, targets, list(map(len, known))), strict=True
        ):
            words = [*first, *rest]
            scored.append(Hypothesis(list(target), sum(words) / len(words) ** penalty, sum(words), words))
        before = {case.number: case.hypotheses[0] for case in cases}
        before |= {case.number: own for case, own in zip(unknown, scored[len(cases) :], strict=True)}
        changes = []
        for case, own, text, after in zip(cases, of_cases.values(), texts, scored, strict=False):
            going_on = next((one for _, one in own if one.open), None)
            opened = None
            if going_on is not None:
                until = (one for _, one in own if one.end <= going_on.end)
                opened = with_all(case.text[: going_on.end], until)
            other_kind = not all(one.same_kind for _, one in own)
            done = [attempt for attempt, _ in own]
            changes.append(Change(done, text, after, before[case.number], opened, other_kind))
        return changes

    def _searched(self, scorer: TermScorer, changes: Sequence[Change]) -> dict[int, list[Hypothesis]]:
        """Of cases to whose rest the model objects, by number, what is found with another one."""
        wanted: list[tuple[int, list[int], list[float], bool]] = []
        opened = self.pipeline.encode_target([change.open or "" for change in changes])
        for change, prefix in zip(changes, opened, strict=True):
            own, number = change.hypothesis, change.case.number
            if change.open is not None and prefix == own.ids[: len(prefix)]:
                wanted.append((number, prefix, own.word_log_probabilities, False))
            place = self._objection(change) if change.may_disagree else None
            if place is not None:
                wanted.append((number, own.ids[:place], own.word_log_probabilities, True))
        if not wanted:
            return {}
        weight = scorer.model.sentence.output()[0]
        if self._barred is None or len(self._barred) != len(weight):
            self._barred = continuing_pieces(self.pipeline, len(weight), weight.device)
        numbers, prefixes, scores, ends = map(list, zip(*wanted, strict=True))
        found: dict[int, list[Hypothesis]] = {}
        searched = scorer.search_from(numbers, prefixes, scores, ends, self._barred)
        for number, hypotheses in zip(numbers, searched, strict=True):
            found.setdefault(number, []).extend(hypotheses[:1])
        return found

    def _objection(self, change: Change) -> int | None:
        """Where the first word begins that was likely before, behind the first of the terms, and no longer is."""
        old, new = change.before, change.hypothesis
        blocks = SequenceMatcher(None, old.ids, new.ids, autojunk=False).get_matching_blocks()
        lost = [
            b + n
            for a, b, size in blocks
            for n in range(size)
            if new.word_log_probabilities[b + n] < -DOUBT
            and new.word_log_probabilities[b + n] < old.word_log_probabilities[a + n] - OBJECTION
        ]
        if not lost:
            return None
        begins = (start for start, _, _ in self.pipeline.words(new.ids, "target") if start <= lost[0])
        return max(begins, default=lost[0])

    def _choose(self, scorer: TermScorer, change: Change, others: Sequence[Hypothesis]) -> None:
        """The best hypothesis that says all terms that the change says; corrections must not cost too much."""
        case = change.case
        least = -math.inf
        if any(attempt.term.refused for attempt in change.attempts):
            least = change.before.log_probability - self.most_lost
        texts = [change.text, *self.pipeline.decode_target([own.ids for own in others], [case.source] * len(others))]
        before, wanted = self._said(case, case.text), self._said(case, change.text)
        if sum(wanted) <= sum(before) or any(now < then for now, then in zip(wanted, before, strict=True)):
            return
        good = [
            (hypothesis.log_probability, -n, hypothesis, text)
            for n, (hypothesis, text) in enumerate(zip((change.hypothesis, *others), texts, strict=True))
            if hypothesis.log_probability >= least
            and is_like(text, change.text)
            and not change.comes_back(text)
            and all(now >= then for now, then in zip(self._said(case, text), wanted, strict=True))
        ]
        if not good:
            return
        good.sort(reverse=True)
        case.text = good[0][3]
        unique = {tuple(own.ids): own for _, _, own, _ in good}
        case.hypotheses = list(unique.values())[: scorer.options.n_best]
        case.changed |= {attempt.occurrence for attempt in change.attempts}

    def _said(self, case: TermCase, text: str) -> list[int]:
        """Of each occurrence how often a text says its term, as far as the source has it so often; once less where the
        source words stand there as they are."""
        wanted = Counter(own.terms for own in case.occurrences)
        found = []
        for number, own in enumerate(case.occurrences):
            terms = [term for term in own.terms if not term.refused] or own.terms
            often = min(wanted[own.terms], max(self._well_said(term, text) for term in terms))
            found.append(often - case.is_copied(number, text))
        return found

    def _well_said(self, term: Term, text: str) -> int:
        """How often a translation says a term, behind an article that goes with it if there is one."""
        places = term.places_said(text, self.language)
        return sum(term.is_kept or agrees(text, start, said, self.language) for start, said in places)


def _known_words(before: Hypothesis, ids: Sequence[int]) -> list[float]:
    """The log-probabilities of the words with which a translation begins as the one before did."""
    pairs = zip(before.ids, ids, before.word_log_probabilities, strict=False)
    return [own for _, _, own in takewhile(lambda pair: pair[0] == pair[1], pairs)]
