"""The little grammar that the generated German needs: articles, pronouns, possessives, clauses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
        return self.german if case == "nominative" or self.oblique is None else self.oblique

    def the(self, case: Case) -> str:
        return f"{DEFINITE[case][self.gender]} {self.form(case)}"

    def a(self, case: Case) -> str:
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
    """`final` need only be given where it is not simply the rest followed by the verb."""
    return Predicate(english, verb, rest, final if final is not None else f"{rest} {verb}".strip())


def with_words(said: Predicate, **words: str) -> Predicate:
    """Fill the named places of a predicate, alike in both languages."""
    return Predicate(*(part.format(**words) for part in (said.english, said.verb, said.rest, said.final)))


def english_a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def sentence(words: str, end: str = ".") -> str:
    """Words as a sentence: single blanks, a capital at its start, punctuation at its end."""
    text = " ".join(words.split())
    start = 1 if text.startswith('"') else 0
    return f"{text[:start]}{text[start].upper()}{text[start + 1 :]}{end}"
