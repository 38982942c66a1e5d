"""The preset `small`: `it` becomes er, sie or es by the gender of its antecedent, which the predicate selects.

A document introduces three or four things, each of another class, once each. Each is later taken up once by `it`
with a predicate of its class, so the predicate alone tells which of the things is meant, and nothing in the sentence
tells its gender. Few words and short sentences: a small model learns it in minutes.
"""

from __future__ import annotations

import random
from functools import partial

from weitblick.documents.discourse.draft import SLOT, Deck, Dependency, Draft, Line, further, lay_out, line, main_clause
from weitblick.documents.discourse.german import (
    GENDERS,
    PRONOUN,
    Gender,
    Noun,
    Predicate,
    english_a,
    predicate,
    with_words,
)
from weitblick.documents.discourse.lexicon import small_words

PHENOMENON = "pronoun-nominative"

WORDS = small_words()

Thing = tuple[str, Predicate, Gender]  # class, what will be said of it, gender


def _joins(drawn: list[Thing], count: int, thing: Thing) -> bool:
    """Only one thing of a class in a document, and not all of them of one gender: else any would do."""
    alike = len(drawn) == count - 1 and {gender for _, _, gender in drawn} == {thing[2]}
    return not alike and all(kind != thing[0] for kind, _, _ in drawn)


class SmallPreset:
    """Draws documents. Predicates come with every gender equally often, so that no sentence betrays its pronoun."""

    dev_documents = 150
    test_documents = 300

    def __init__(self, rng: random.Random, training: bool) -> None:
        self.rng = rng
        things = [(kind, said, gender) for kind, all in WORDS.predicates.items() for said in all for gender in GENDERS]
        self.things: Deck[Thing] = Deck(rng, things)
        self.distances = Deck(rng, (0, 1, 2, 3, 4))

    def draft(self) -> Draft:
        drawn: list[Thing] = []
        count = self.rng.choice((3, 4))
        while len(drawn) < count:
            drawn.append(self.things.draw(partial(_joins, drawn, count)))
        units = [self._unit(*thing) for thing in drawn]
        return lay_out(self.rng, units, [], self._filler, spare=self.rng.randrange(3))

    def _unit(self, kind: str, said: Predicate, gender: Gender) -> Dependency:
        noun = self.rng.choice([noun for noun in WORDS.nouns[kind] if noun.gender == gender])
        distance = further(self.rng, self.distances.draw())
        cue, tested = (None, self._same(noun, said)) if distance == 0 else (self._introduce(noun), self._take_up(said))
        pronouns = PRONOUN["nominative"]
        others = tuple(word for other, word in pronouns.items() if other != gender)
        return Dependency(PHENOMENON, distance, cue, tested, pronouns[gender], others, label=pronouns[gender])

    def _thing(self, noun: Noun) -> tuple[str, str]:
        if self.rng.random() < 0.5:
            return f"the {noun.english}", noun.the("accusative")
        return english_a(noun.english), noun.a("accusative")

    def _introduce(self, noun: Noun) -> Line:
        english, german = self._thing(noun)
        verb = self.rng.choice(WORDS.introductions)
        name = self.rng.choice(WORDS.names)
        return main_clause((name, name), predicate(f"{verb[0]} {english}", verb[1], german), self._opening())

    def _opening(self) -> tuple[str, str] | None:
        return self.rng.choice(WORDS.adverbs) if self.rng.random() < 0.25 else None

    def _take_up(self, said: Predicate) -> Line:
        if self.rng.random() < 0.25:
            name, (english, german) = self.rng.choice(WORDS.names), self.rng.choice(WORDS.factives)
            return line(f"{name} {english} that it {said.english}", f"{name} {german}, dass {SLOT} {said.final}")
        return main_clause(("it", SLOT), said, self._opening())

    def _same(self, noun: Noun, said: Predicate) -> Line:
        """Antecedent and pronoun in one sentence."""
        name, verb = self.rng.choice(WORDS.names), self.rng.choice(WORDS.introductions)
        because, weil = self.rng.choice(WORDS.conjunctions)
        source = f"{name} {verb[0]} the {noun.english} {because} it {said.english}"
        return line(source, f"{name} {verb[1]} {noun.the('accusative')}, {weil} {SLOT} {said.final}")

    def _filler(self) -> Line:
        name, other = self.rng.sample(WORDS.names, 2)
        said = self.rng.choice(WORDS.fillers)
        return main_clause((name, name), with_words(said, other=other), self._opening())
