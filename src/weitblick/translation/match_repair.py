"""Approved translations of like sentences, with the words that differ translated anew.

*Clean the filter = Reinigen Sie den Filter* becomes a draft of *Clean the lamp*: where the two sources differ,
alignment tells which words of the approved translation stand for the old words, and which of the model's own draft for
the new ones; the search for terms puts these in the place of those, in the form that fits (`term_search`).

A match is repaired only where that is plain: words are replaced by words, a few at few places; both sides of each place
are a run of words that stand for nothing else; and the model finds the result no less probable than the match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rapidfuzz.distance import Levenshtein

from weitblick.documents.document import Document, Sentence
from weitblick.memory.articles import is_article, other_endings
from weitblick.memory.bounds import LEAST_SHARE
from weitblick.memory.matches import TOKEN
from weitblick.memory.stems import stems_of
from weitblick.memory.terms import Occurrence, Term, Terms
from weitblick.memory.word_forms import word_forms
from weitblick.text.units import Unit
from weitblick.translation.alignment import Alignment
from weitblick.translation.document_job import DocumentJob
from weitblick.translation.options import TranslationOptions
from weitblick.translation.term_cases import TermCase
from weitblick.translation.term_places import TermPlace
from weitblick.translation.term_search import TermSearch
from weitblick.translation.translator import Translator

MOST_PLACES, MOST_WORDS = 2, 3
"""Places at which a match may differ, and words of each."""

Span = tuple[int, int]


@dataclass(frozen=True)
class NearMatch:
    """A source with the model's draft of it, and an approved pair whose source is like it."""

    source: str
    draft: str
    approved_source: str
    approved_target: str


@dataclass(frozen=True)
class _Repair:
    """What is to be said at a place of an approved translation, for which words of the source at hand."""

    occurrence: Occurrence
    place: TermPlace


class _RepairSearch(TermSearch):
    """Every sentence has terms and places of its own; a result must be no less probable than the match as it was."""

    def __init__(self, translator: Translator, repairs: Sequence[Sequence[_Repair]]) -> None:
        super().__init__(Terms(()), translator.pipeline, most_lost=0.0)
        self._repairs = repairs

    def occurrences(self, unit: Unit) -> list[Occurrence]:
        return [one.occurrence for one in self._repairs[unit.sentence]]

    def place(self, case: TermCase, number: int, alignment: Alignment) -> TermPlace | None:
        """The place of the repair with this number; None once the translation is another one."""
        place = self._repairs[case.sentence][number].place
        return place if place.text == case.text else None


def repair_matches(translator: Translator, matches: Sequence[NearMatch]) -> list[str | None]:
    """The approved translation of each match with the words that differ translated anew; None where this is unsure."""
    changed = [_differences(one.source, one.approved_source) for one in matches]
    plain = [number for number, spans in enumerate(changed) if spans and matches[number].draft.strip()]
    pairs = [(one.source, one.draft) for one in (matches[number] for number in plain)]
    pairs += [(one.approved_source, one.approved_target) for one in (matches[number] for number in plain)]
    aligned = translator.align(pairs)
    repairs: dict[int, list[_Repair]] = {}
    for place, number in enumerate(plain):
        language = translator.pipeline.target_language
        own = _repairs(matches[number], changed[number], aligned[place], aligned[len(plain) + place], language)
        if own:
            repairs[number] = own
    found: list[str | None] = [None] * len(matches)
    for number, text in zip(repairs, _repaired(translator, matches, repairs), strict=True):
        found[number] = text
    return found


def _repaired(
    translator: Translator, matches: Sequence[NearMatch], repairs: dict[int, list[_Repair]]
) -> list[str | None]:
    if not repairs:
        return []
    rows = [Sentence(matches[number].source, matches[number].approved_target, "draft") for number in repairs]
    options = replace(TranslationOptions(), context=False)
    job = DocumentJob(translator, Document("matches", tuple(rows)), options)
    for _ in job.prepare():
        pass
    whole = [index for index in job.chosen if len(job.units_of([index])) == 1]
    found = job.with_terms(_RepairSearch(translator, list(repairs.values())), whole)
    texts: list[str | None] = []
    for index, own in enumerate(repairs.values()):
        best = found[index][0] if index in found else None
        done = best is not None and sum(use.changed and use.followed for use in best.terms) == len(own)
        texts.append(best.text if best is not None and done else None)
    return texts


def _differences(here: str, there: str) -> list[tuple[Span, Span]]:
    """Characters of both texts where words take the place of words; nothing where more than that differs."""
    ours, theirs = list(TOKEN.finditer(here)), list(TOKEN.finditer(there))
    found = []
    for part in Levenshtein.opcodes([own[0] for own in ours], [own[0] for own in theirs]):
        if part.tag == "equal":
            continue
        sizes = part.src_end - part.src_start, part.dest_end - part.dest_start
        if part.tag != "replace" or max(sizes) > MOST_WORDS:
            return []
        own = ours[part.src_start].start(), ours[part.src_end - 1].end()
        found.append((own, (theirs[part.dest_start].start(), theirs[part.dest_end - 1].end())))
    return found if len(found) <= MOST_PLACES else []


def _repairs(
    match: NearMatch, changed: Sequence[tuple[Span, Span]], drafted: Alignment, approved: Alignment, language: str
) -> list[_Repair]:
    """What is to be said at every place that differs; nothing if one of them is not sure."""
    found = []
    for (start, end), old in changed:
        new = _sure_place(match.draft, (start, end), drafted, language)
        place = _sure_place(match.approved_target, old, approved, language)
        words = match.source[start:end]
        if new is None or place is None or not any(map(str.isalnum, words)):
            return []
        if _is_another_kind(new, place) or _is_copied(words, new.words, language):
            return []
        said = _spelled_alike(new, place, language)
        term = Term(words, said, "the words that differ", kind="correction", refused=place.words)
        found.append(_Repair(Occurrence(start, end, (term,)), place))
    return found


def _sure_place(text: str, span: Span, alignment: Alignment, language: str) -> TermPlace | None:
    """The words of a translation that stand for some of its source, and for nothing else; None if others might."""
    place = TermPlace.of(text, *span, alignment, language)
    if place is None or place.shared or place.start == place.end:
        return None
    chosen = [begin < span[1] and span[0] < stop for begin, stop in alignment.source]
    stems = stems_of(language)
    for (begin, stop), shares in zip(alignment.target, alignment.weights, strict=True):
        word, share = text[begin:stop], float(shares[chosen].sum())
        small = is_article(word, language) or stems.links(word) or not word[:1].isalnum()
        if place.start <= begin < place.end:
            if share < LEAST_SHARE and not small:
                return None
        elif share >= LEAST_SHARE and not small and word not in place.adjectives:
            return None
    return place


def _is_another_kind(new: TermPlace, place: TermPlace) -> bool:
    """Whether one of two words inside their sentences is a noun or a name, and the other one is not."""
    inside = bool(new.start and place.start) and new.words[:1].isalpha()
    return inside and new.words[:1].isupper() != place.words[:1].isupper()


def _is_copied(source: str, said: str, language: str) -> bool:
    """Whether a draft says a word as the source does that is neither a name nor known: the model did not know it."""
    return source.islower() and source.lower() == said.lower() and not word_forms(language).knows(said)


def _spelled_alike(new: TermPlace, place: TermPlace, language: str) -> str:
    """The new words as they are spelled inside a sentence: an adjective or a verb at the beginning of one has a capital
    letter there alone."""
    words = new.words
    small = words[:1].lower() + words[1:]
    if not new.start and (place.words[:1].islower() or (not place.start and bool(other_endings(small, language)))):
        return small
    return words
