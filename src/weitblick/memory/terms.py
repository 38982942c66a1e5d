"""Terms: source words, how they are to be translated, and who said so; and where a sentence has them.

A term is found by the stems of its words, the longest first, and by an index: a hundred thousand of them cost a
sentence what ten do. What stays as it is, and what is written in capitals (IT, US), is found only as it is written.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from weitblick.memory.stems import WORD, Stems, base_language, stems_of
from weitblick.memory.word_forms import word_forms

SHORTEST_STEM = 4
LONGEST_ENDING = 3
"""Letters of a term that remain when it is inflected, and letters that may be added."""
MOST_PATTERNS = 50_000
ALTERNATIVES = re.compile(r"\s*[|;]\s*")
"""Between several translations, or several spellings, in one field."""

NOUN_ENDINGS = frozenset(["", "s", "es", "'s", "'", "y", "ies", "is", "um", "a", "us", "i", "f", "fe", "ves"])
"""In which forms of an English noun differ."""

Kind = Literal["glossary", "key", "correction"]
RANKS: dict[Kind, int] = {"key": 0, "correction": 1, "glossary": 2}
"""What a person said in the project itself comes before a glossary."""


@dataclass(frozen=True)
class Term:
    """source, target: the words and their translation, in its basic form; several translations with | between them
    origin: where it stands, for people    kind: who said so
    cased: found only as it is written    refused: of a correction, the word in whose place the translation stands"""

    source: str
    target: str
    origin: str
    kind: Kind = "glossary"
    cased: bool = False
    refused: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether it is not translated."""
        return self.source == self.target

    @property
    def found_as_written(self) -> bool:
        """Whether only the very same capitals are the term: IT is not it, nor US us."""
        return self.cased or self.is_kept or self.source.isupper()

    @property
    def sources(self) -> tuple[str, ...]:
        """The spellings of its source."""
        return (self.source,) if self.is_kept else _several(self.source)

    @property
    def targets(self) -> tuple[str, ...]:
        """Its translations, of which any will do."""
        return (self.target,) if self.is_kept else _several(self.target)

    def forms(self, language: str) -> list[str]:
        """Every way to say it in the target language: all forms of all of its translations."""
        if self.is_kept:
            return [self.target]
        return list(dict.fromkeys(form for target in self.targets for form in word_forms(language).of(target)))

    def is_said(self, text: str, language: str = "") -> bool:
        """Whether a translation has the term, as it is or, if it need not stay so, inflected or in a compound."""
        return bool(self.places_said(text, language))

    def places_said(self, text: str, language: str = "") -> list[tuple[int, str]]:
        """Where a translation says it, and with which words."""
        if self.is_kept:
            patterns = [re.compile(rf"(?<!\w){re.escape(self.target)}(?!\w)")]
        else:
            patterns = [_ways_to_say(target, language) for target in self.targets]
        every = (found for pattern in patterns for found in pattern.finditer(text))
        return [(found.start(), found[0]) for found in every if _goes_on_with_a_word(found, language)]

    def times_said(self, text: str, language: str = "") -> int:
        """How often a translation has it."""
        return len(self.places_said(text, language))

    @property
    def reason(self) -> str:
        """Why a translation says it, for people."""
        return f"because of the term {self.source} = {self.target}, {self.origin}"


def _several(field: str) -> tuple[str, ...]:
    return tuple(part for part in ALTERNATIVES.split(field) if part) or (field,)


@lru_cache(MOST_PATTERNS)
def _ways_to_say(target: str, language: str) -> re.Pattern[str]:
    """A translation inflected, or a part of a compound. Where its forms are known they count, else its stem."""
    known = word_forms(language) if language else None
    if known is None or not known.inflects(target):
        return re.compile(_pattern(target, True), re.IGNORECASE)
    forms = sorted(known.of(target), key=len, reverse=True)
    every = "|".join(r"\s+".join(map(re.escape, form.split())) for form in forms)
    patterns = [rf"(?<!\w)(?:{every})(?!\w)"]
    if len(target) >= SHORTEST_STEM and " " not in target:
        patterns.append(rf"(?<!\w)\w+(?:{every})(?!\w)")
        patterns.append(rf"(?<!\w){re.escape(target)}-?(?P<{REST}>\w{{3,}})(?!\w)")
    return re.compile("|".join(patterns), re.IGNORECASE)


REST = "rest"
LINKS = ("", "s", "es", "n", "en", "e")
"""What stands between the parts of a compound."""


def _goes_on_with_a_word(found: re.Match[str], language: str) -> bool:
    """Whether what follows a term in one word is a word as well, so that both are a compound: Berichtsjahr, but not
    Berichterstatter or berichtet; so it is where nothing follows."""
    rest = found.groupdict().get(REST)
    if rest is None:
        return True
    rests = (rest.removeprefix(link).capitalize() for link in LINKS if rest.startswith(link))
    return any(word_forms(language).is_noun(one) for one in rests)


def says(text: str, term: str, *, compounds: bool = False, cased: bool = False) -> bool:
    """Whether a text has a term, each of its words perhaps inflected; if wanted, as a part of a longer word as well, or
    only with the very same capitals."""
    flags = 0 if cased else re.IGNORECASE
    return bool(term.split()) and re.search(_pattern(term, compounds), text, flags) is not None


@lru_cache(MOST_PATTERNS)
def _pattern(term: str, compounds: bool) -> str:
    words = []
    for word in term.split():
        stem = word if len(word) <= SHORTEST_STEM else word[: max(SHORTEST_STEM, len(word) - 2)]
        ending = len(word) - len(stem) + LONGEST_ENDING
        words.append(re.escape(stem) + (r"\w*" if compounds else f"\\w{{0,{ending}}}"))
    start = r"\w*" if compounds else ""
    return rf"(?<!\w){start}" + r"\s+".join(words) + r"(?!\w)"


@dataclass(frozen=True)
class TermUse:
    """A term that a source has: whether its translation says it, the words with which it does, and whether the search
    had to see to it."""

    term: Term
    followed: bool
    said: str = ""
    changed: bool = False

    def as_json(self) -> dict[str, object]:
        """What files and interfaces tell of it."""
        term = self.term
        about = {"source": term.source, "target": term.target, "origin": term.origin, "kind": term.kind}
        reason = {"said": self.said, "reason": term.reason} if self.followed else {}
        return {**about, "followed": self.followed, "changed": self.changed, **reason}


@dataclass(frozen=True)
class Occurrence:
    """Characters [start, end) of a source that are a term, and the term: several where people or lines disagree."""

    start: int
    end: int
    terms: tuple[Term, ...]


class Terms:
    """Terms by the stems of their words."""

    def __init__(self, terms: Iterable[Term], source_language: str = "en", target_language: str = "de") -> None:
        self.terms = list(terms)
        self.source_language, self.target_language = source_language, target_language
        self._stems = stems_of(source_language)
        self._of_stems: defaultdict[tuple[str, ...], list[tuple[Term, str]]] = defaultdict(list)
        self._lengths: defaultdict[str, set[int]] = defaultdict(set)
        for term in self.terms:
            for source in term.sources:
                stems = tuple(self._stem(word) for word in WORD.findall(source))
                if stems:
                    self._of_stems[stems].append((term, source))
                    self._lengths[stems[0]].add(len(stems))

    def __len__(self) -> int:
        return len(self.terms)

    def __bool__(self) -> bool:
        return True

    def _stem(self, word: str) -> str:
        return self._stems.of(word) if word[0].isalnum() else word

    def occurrences(self, text: str) -> list[Occurrence]:
        """Where a text has terms, in order; of terms that share words, the longest, of equal ones the first."""
        words = list(WORD.finditer(text))
        stems = [self._stem(word[0]) for word in words]
        found: list[Occurrence] = []
        free = 0
        for first, stem in enumerate(stems):
            if first < free or stem not in self._lengths:
                continue
            for count in sorted(self._lengths[stem], reverse=True):
                if first + count > len(stems):
                    continue
                own = self._of_stems.get(tuple(stems[first : first + count]), ())
                own_words = [word[0] for word in words[first : first + count]]
                terms = _by_authority([term for term, source in own if self._fits(term, source, own_words)])
                if terms:
                    found.append(Occurrence(words[first].start(), words[first + count - 1].end(), terms))
                    free = first + count
                    break
        return found

    def _fits(self, term: Term, source: str, words: Sequence[str]) -> bool:
        """Whether these words are the term: as it has to be written, or in the form of a noun where it is one."""
        own = WORD.findall(source)
        if term.found_as_written:
            return own == list(words)
        return not self._is_noun(term) or all(_same_noun(one, word) for one, word in zip(own, words, strict=True))

    def _is_noun(self, term: Term) -> bool:
        """Whether a term is a noun, as far as that can be told: nouns have capital letters in German."""
        if (base_language(self.source_language), base_language(self.target_language)) != ("en", "de"):
            return False
        return any(word[:1].isupper() for word in term.target.split())

    def are_said(self, source: str, target: str) -> bool:
        """Whether a translation says all terms that its source has."""
        own = (occurrence.terms for occurrence in self.occurrences(source))
        return all(any(term.is_said(target, self.target_language) for term in terms) for terms in own)

    def contradictions(self) -> list[tuple[Term, Term]]:
        """Terms with the same source and another translation, each with the first of them."""
        found = []
        for own in self._of_stems.values():
            exact: dict[tuple[str, Kind], Term] = {}
            for term, source in own:
                first = exact.setdefault((source, term.kind), term)
                if not set(first.targets) & set(term.targets):
                    found.append((first, term))
        return found

    @property
    def stems(self) -> Stems:
        """Of the source language."""
        return self._stems


def _same_noun(one: str, other: str) -> bool:
    """Whether two words with the same stem are forms of one English noun: *rents* is *rent*, *bears* no *bearing*."""
    ours, theirs = one.lower().replace("’", "'"), other.lower().replace("’", "'")
    letters = enumerate(zip(ours, theirs, strict=False))
    same = next((n for n, (a, b) in letters if a != b), min(len(ours), len(theirs)))
    return ours[same:] in NOUN_ENDINGS and theirs[same:] in NOUN_ENDINGS


def _by_authority(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Those that were said by the nearest authority, behind those that hold only where a certain word was refused."""
    asked = [term for term in terms if not term.refused]
    best = min((RANKS[term.kind] for term in asked), default=0)
    refusing = [term for term in terms if term.refused]
    return tuple(dict.fromkeys((*refusing, *(term for term in asked if RANKS[term.kind] == best))))
