"""German nouns: their forms with articles, pronouns and possessives, and how to learn them from a corpus."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from weitblick.documents.document import Document

Gender = Literal["m", "f", "n"]
Case = Literal["nominative", "accusative", "dative"]

GENDERS: tuple[Gender, ...] = ("m", "f", "n")

DEFINITE: dict[Case, dict[Gender, str]] = {
    "nominative": {"m": "der", "f": "die", "n": "das"},
    "accusative": {"m": "den", "f": "die", "n": "das"},
    "dative": {"m": "dem", "f": "der", "n": "dem"},
}
PRONOUN: dict[Case, dict[Gender, str]] = {
    "nominative": {"m": "er", "f": "sie", "n": "es"},
    "accusative": {"m": "ihn", "f": "sie", "n": "es"},
    "dative": {"m": "ihm", "f": "ihr", "n": "ihm"},
}
# Endings of ein, sein, ihr, mein by case and by the gender of the noun they stand before.
ENDING: dict[Case, dict[Gender, str]] = {
    "nominative": {"m": "", "f": "e", "n": ""},
    "accusative": {"m": "en", "f": "e", "n": ""},
    "dative": {"m": "em", "f": "er", "n": "em"},
}
POSSESSIVE: dict[Gender, str] = {"m": "sein", "f": "ihr", "n": "sein"}


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun in both languages. `oblique` is the accusative and dative of weak nouns (den Elefanten)."""

    english: str
    german: str
    gender: Gender
    oblique: str | None = None

    def form(self, case: Case) -> str:
        """The German noun in a case."""
        return self.german if case == "nominative" or self.oblique is None else self.oblique

    def the(self, case: Case) -> str:
        """The German noun with its definite article."""
        return f"{DEFINITE[case][self.gender]} {self.form(case)}"

    def a(self, case: Case) -> str:
        """The German noun with its indefinite article."""
        return f"ein{ENDING[case][self.gender]} {self.form(case)}"


@dataclass(frozen=True, slots=True)
class Predicate:
    """What is said of a subject. German needs it in two orders: `verb ... rest` (kam spät an) in main clauses,
    `final` (spät ankam) at the end of subordinate ones."""

    english: str
    verb: str
    rest: str
    final: str


def predicate(english: str, verb: str, rest: str, final: str | None = None) -> Predicate:
    """A predicate. `final` need only be given where it is not simply the rest followed by the verb."""
    return Predicate(english, verb, rest, final if final is not None else f"{rest} {verb}".strip())


def with_words(said: Predicate, **words: str) -> Predicate:
    """Fill the named places of a predicate, alike in both languages."""
    return Predicate(*(part.format(**words) for part in (said.english, said.verb, said.rest, said.final)))


def english_a(noun: str) -> str:
    """The noun with a or an."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def sentence(words: str, end: str = ".") -> str:
    """Words as a sentence: single blanks, a capital at its start, punctuation at its end."""
    text = " ".join(words.split())
    start = 1 if text.startswith('"') else 0
    return f"{text[:start]}{text[start].upper()}{text[start + 1 :]}{end}"


# Nouns of a corpus, each with its translation and the gender of that, learned from the corpus itself.

# An English noun is what stands, perhaps behind an adjective, between a determiner and a word that ends its phrase.
HEAD = re.compile(
    r"\b(?:the|an?|this|that|our|my|your|his|her|their|its|every|each|no) (?:[a-z]+ )?([a-z]{3,})\b"
    r"(?=(?: (?:of|is|has|was|to|in|on|which|that|for|and|will|should|must|can|by|from|with|at)\b|[.,;:!?]|$))",
    re.IGNORECASE,
)
# A German one has a capital inside a sentence; its article tells the gender where it is not a plural's or a dative's.
CAPITAL = re.compile(r"(?<=[a-zäöüß,] )[A-ZÄÖÜ][a-zäöüß-]{2,}\b")
ARTICLE = re.compile(
    r"\b(das|die|den|eine|einen|dieses|diese|diesen|unsere|unseren) (?:[a-zäöüß]+ )?([A-ZÄÖÜ][a-zäöüß-]{2,})\b"
)
GENDER: dict[str, Gender] = {
    **dict.fromkeys(("den", "einen", "diesen", "unseren"), "m"),
    **dict.fromkeys(("die", "eine", "diese", "unsere"), "f"),
    **dict.fromkeys(("das", "dieses"), "n"),
}
PLURAL = re.compile(r"[^su]s$|ies$")

ENGLISH_TIMES, TOGETHER_TIMES, ARTICLE_TIMES = 15, 8, 8
ASSOCIATION, COVERAGE, AGREEMENT = 0.15, 0.25, 0.8


@cache
def people() -> frozenset[str]:
    """Nouns that "it" does not stand for, whatever German calls them."""
    return frozenset(files(__package__).joinpath("people.txt").read_text("utf-8").split())


def english_nouns(sentence: str) -> set[str]:
    """The nouns of an English sentence, in small letters."""
    return {noun.lower() for noun in HEAD.findall(sentence)}


def learn_nouns(documents: Iterable[Document]) -> dict[str, Noun]:
    """English nouns that are translated by one German noun often enough, and whose articles agree on its gender."""
    english: Counter[str] = Counter()
    german: Counter[str] = Counter()
    together: defaultdict[str, Counter[str]] = defaultdict(Counter)
    genders: defaultdict[str, Counter[Gender]] = defaultdict(Counter)
    for document in documents:
        for sentence in document.sentences:
            target = sentence.target or ""
            nouns, capitals = english_nouns(sentence.source), set(CAPITAL.findall(target))
            english.update(nouns)
            german.update(capitals)
            for noun in nouns:
                together[noun].update(capitals)
            for article, noun in ARTICLE.findall(target):
                genders[noun][GENDER[article]] += 1
    found = {}
    for noun in sorted(english):
        if english[noun] < ENGLISH_TIMES or noun in people() or PLURAL.search(noun):
            continue
        translation = _translation(noun, english, german, together[noun])
        gender = _gender(genders[translation]) if translation else None
        if translation and gender:
            found[noun] = Noun(noun, translation, gender)
    return found


def _translation(noun: str, english: Counter[str], german: Counter[str], together: Counter[str]) -> str | None:
    """The German noun that goes with it most (Dice's coefficient), if it clearly does."""
    candidates = [
        (2 * times / (english[noun] + german[other]), other)
        for other, times in together.items()
        if times >= max(TOGETHER_TIMES, COVERAGE * english[noun])
    ]
    association, best = max(candidates, default=(0.0, ""))
    return best if association >= ASSOCIATION else None


def _gender(counts: Counter[Gender]) -> Gender | None:
    total = counts.total()
    if total < ARTICLE_TIMES:
        return None
    best = max(GENDERS, key=lambda gender: counts[gender])
    return best if counts[best] >= AGREEMENT * total else None
