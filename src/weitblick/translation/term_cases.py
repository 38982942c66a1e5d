"""What a search for terms works on: sentences with terms, the terms at their places, sentences with terms in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from weitblick.memory.terms import Occurrence, Term
from weitblick.translation.beam import Hypothesis
from weitblick.translation.term_places import TermPlace

Found = dict[int, list[Hypothesis]]

SHORTEST_STEM, LONGEST_ENDING = 4, 2
"""Letters of a word that must be left, and that are left out, where it is looked for in any form."""


@dataclass
class TermCase:
    """A sentence with terms, the unit `number` of all, of the document's sentence `sentence`: its hypotheses, their
    first as text, as words, and as the decoder's states at these; the terms that were put right or given up; settled:
    up to which character the text stays as it is."""

    number: int
    sentence: int
    source: str
    occurrences: list[Occurrence]
    hypotheses: list[Hypothesis]
    text: str = ""
    ids: list[int] = field(default_factory=list)
    states: Tensor | None = None
    handled: set[int] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)
    settled: int = 0

    def source_words(self, number: int) -> str:
        """Those of an occurrence."""
        return self.source[self.occurrences[number].start : self.occurrences[number].end]

    def is_copied(self, number: int, text: str) -> bool:
        """Whether a translation has them as they are, and should not."""
        kept = any(term.is_kept for term in self.occurrences[number].terms)
        return not kept and self.source_words(number) in text.split()


@dataclass(frozen=True)
class Attempt:
    """A term of a case at its place."""

    case: TermCase
    occurrence: int
    term: Term
    place: TermPlace


@dataclass(frozen=True)
class Change:
    """A case with the terms of its attempts in their places: its text, its words with their log-probabilities, and
    those of before; open: the beginning, up to the end of a term whose word may go on;
    may_disagree: a term has another gender or number than what stood there."""

    attempts: list[Attempt]
    text: str
    hypothesis: Hypothesis
    before: Hypothesis
    open: str | None
    may_disagree: bool

    @property
    def case(self) -> TermCase:
        return self.attempts[0].case

    def comes_back(self, text: str) -> bool:
        """Whether a translation whose rest was searched anew says a word again in whose place a term stands now."""
        replaced = (attempt.place.words for attempt in self.attempts)
        stems = [words[:-LONGEST_ENDING] for words in replaced if len(words) > SHORTEST_STEM + LONGEST_ENDING]
        return any(text.count(stem) > self.text.count(stem) for stem in stems)
