"""What a person changed between draft and confirmation, as terms: source words, the word refused, the word wanted.

A correction is applied by itself only where the same source words got the same refused word; made a term by a key
(`term_of_key`), it holds wherever its source words are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Protocol

import numpy as np

from weitblick.memory.articles import is_article
from weitblick.memory.bounds import LEAST_SHARE, OF_THE_BEST
from weitblick.memory.stems import base_language, stems_of
from weitblick.memory.terms import Term
from weitblick.memory.word_forms import word_forms

MOST_SOURCE_WORDS = 3
"""Of a correction: what stands for more of them is a turn of phrase, not a term."""
SHORTEST = 4
"""Letters of a word that can be a term, unless it has a capital letter."""
PRONOUNS = {"de": frozenset({"Sie", "Ihnen", "Du", "Dich", "Dir", "Ihr", "Euch"})}
"""Words with a capital letter inside a sentence that are neither nouns nor names."""


class Aligned(Protocol):
    """An alignment (see `translation.alignment`): the words of both sides and how much of each comes from which."""

    @property
    def source(self) -> Sequence[tuple[int, int]]: ...
    @property
    def target(self) -> Sequence[tuple[int, int]]: ...
    @property
    def weights(self) -> np.ndarray[Any, Any]: ...


@dataclass(frozen=True)
class Correction:
    """A sentence whose draft was changed when it was confirmed; origin: which one it is, for people."""

    source: str
    draft: str
    confirmed: str
    origin: str = ""


Align = Callable[[Sequence[tuple[str, str]]], Sequence[Aligned]]


def term_of_key(source: str, target: str, origin: str) -> Term:
    """The term that a person makes of source words and a translation: it holds wherever the source words are."""
    return Term(" ".join(source.split()), " ".join(target.split()), origin, kind="key")


def terms_of_corrections(corrections: Sequence[Correction], align: Align, languages: tuple[str, str]) -> list[Term]:
    """What each correction has changed, the latest first; of two that contradict each other the latest alone."""
    changed = [one for one in corrections if one.draft.strip() and one.draft.split() != one.confirmed.split()]
    aligned = align([(one.source, text) for one in changed for text in (one.draft, one.confirmed)])
    found: dict[tuple[str, str], Term] = {}
    for number in reversed(range(len(changed))):
        for term in changes(changed[number], aligned[2 * number], aligned[2 * number + 1], languages):
            found.setdefault((term.source.lower(), term.refused.lower()), term)
    return list(found.values())


def changes(correction: Correction, before: Aligned, after: Aligned, languages: tuple[str, str]) -> list[Term]:
    """The words that one correction has replaced. before, after: the draft and the confirmed text aligned with their
    source."""
    old = [correction.draft[start:end] for start, end in before.target]
    new = [correction.confirmed[start:end] for start, end in after.target]
    found = []
    for kind, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "replace":
            continue
        for place in range(begin, end):
            behind = source_words(after, place)
            refused = [
                old[other] for other in range(first, last) if _is_telling(old, other, languages[1]) and
                set(source_words(before, other)) & set(behind)
            ]  # fmt: skip
            if _is_telling(new, place, languages[1]):
                term = _term(correction, new[place], refused, behind, after, languages)
                found += [] if term is None else [term]
    return found


def _term(
    correction: Correction,
    word: str,
    refused: Sequence[str],
    behind: Sequence[int],
    after: Aligned,
    languages: tuple[str, str],
) -> Term | None:
    """The term of a word that took the place of others; None where only its form has changed, or where no few
    neighbouring source words stand behind it."""
    forms = word_forms(languages[1])
    if len(refused) != 1 or not 1 <= len(behind) <= MOST_SOURCE_WORDS:
        return None
    if behind[-1] - behind[0] != len(behind) - 1 or refused[0] in forms.of(word) or word in forms.of(refused[0]):
        return None
    source = correction.source[after.source[behind[0]][0] : after.source[behind[-1]][1]]
    if not any(_can_be_term(one, languages[0]) for one in source.split()):
        return None
    return Term(source, forms.lemma(word), correction.origin, kind="correction", refused=forms.lemma(refused[0]))


def source_words(aligned: Aligned, place: int) -> list[int]:
    """The source words that stand behind a word of a translation."""
    shares = aligned.weights[place]
    if not len(shares):
        return []
    best = float(shares.max())
    return np.nonzero((shares >= LEAST_SHARE) & (shares >= OF_THE_BEST * best))[0].tolist()


def _is_telling(words: Sequence[str], place: int, language: str) -> bool:
    """Whether a word of a translation can be a term: in German a noun or a name. The capital letter at the beginning of
    a sentence tells neither: there a noun must be known as one, and as nothing else."""
    word, begins = words[place], not place or not words[place - 1][:1].isalnum()
    if not _can_be_term(word, language) or word in PRONOUNS.get(base_language(language), ()):
        return False
    if base_language(language) != "de":
        return len(word) >= SHORTEST or not begins
    forms = word_forms(language)
    return word[:1].isupper() and (not begins or (forms.is_noun(word) and not forms.knows(word.lower())))


def _can_be_term(word: str, language: str) -> bool:
    letters = word[:1].isalpha() and (len(word) >= SHORTEST or word[:1].isupper())
    return letters and not is_article(word, language) and not stems_of(language).negates(word)
