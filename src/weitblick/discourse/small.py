"""The preset `small`: `it` becomes er, sie or es by the gender of its antecedent, which the predicate selects.

A document introduces three or four things, each of another class, once each. Each is later taken up once by `it`
with a predicate of its class, so the predicate alone tells which of the things is meant, and nothing in the sentence
tells its gender. Few words and short sentences: a small model learns it in minutes.
"""

from __future__ import annotations

import random
from functools import partial

from weitblick.discourse.draft import SLOT, Deck, Dependency, Draft, Line, further, lay_out, line, main_clause
from weitblick.discourse.german import GENDERS, PRONOUN, Gender, Noun, Predicate, english_a, predicate, with_words

PHENOMENON = "pronoun-nominative"

NOUNS: dict[str, tuple[Noun, ...]] = {
    "food": (
        Noun("cake", "Kuchen", "m"),
        Noun("salad", "Salat", "m"),
        Noun("fish", "Fisch", "m"),
        Noun("soup", "Suppe", "f"),
        Noun("pizza", "Pizza", "f"),
        Noun("sausage", "Wurst", "f"),
        Noun("egg", "Ei", "n"),
        Noun("steak", "Steak", "n"),
        Noun("omelette", "Omelett", "n"),
    ),
    "vehicle": (
        Noun("bus", "Bus", "m"),
        Noun("train", "Zug", "m"),
        Noun("truck", "Lastwagen", "m"),
        Noun("ferry", "Fähre", "f"),
        Noun("tram", "Straßenbahn", "f"),
        Noun("carriage", "Kutsche", "f"),
        Noun("car", "Auto", "n"),
        Noun("ship", "Schiff", "n"),
        Noun("taxi", "Taxi", "n"),
    ),
    "text": (
        Noun("letter", "Brief", "m"),
        Noun("novel", "Roman", "m"),
        Noun("report", "Bericht", "m"),
        Noun("newspaper", "Zeitung", "f"),
        Noun("story", "Geschichte", "f"),
        Noun("message", "Nachricht", "f"),
        Noun("book", "Buch", "n"),
        Noun("poem", "Gedicht", "n"),
        Noun("diary", "Tagebuch", "n"),
    ),
    "clothing": (
        Noun("coat", "Mantel", "m"),
        Noun("hat", "Hut", "m"),
        Noun("scarf", "Schal", "m"),
        Noun("jacket", "Jacke", "f"),
        Noun("cap", "Mütze", "f"),
        Noun("blouse", "Bluse", "f"),
        Noun("dress", "Kleid", "n"),
        Noun("shirt", "Hemd", "n"),
        Noun("headscarf", "Kopftuch", "n"),
    ),
}

PREDICATES: dict[str, tuple[Predicate, ...]] = {
    "food": (
        predicate("tasted good", "schmeckte", "gut"),
        predicate("was too salty", "war", "zu salzig"),
        predicate("was served warm", "wurde", "warm serviert"),
        predicate("was eaten at once", "wurde", "sofort gegessen"),
    ),
    "vehicle": (
        predicate("arrived late", "kam", "spät an", "spät ankam"),
        predicate("left at noon", "fuhr", "mittags ab", "mittags abfuhr"),
        predicate("went too fast", "fuhr", "zu schnell"),
        predicate("stopped at the bridge", "hielt", "an der Brücke"),
    ),
    "text": (
        predicate("was hard to read", "war", "schwer zu lesen"),
        predicate("was written in Latin", "war", "auf Latein geschrieben"),
        predicate("contained many errors", "enthielt", "viele Fehler"),
        predicate("was translated at once", "wurde", "sofort übersetzt"),
    ),
    "clothing": (
        predicate("did not fit", "passte", "nicht"),
        predicate("was too tight", "war", "zu eng"),
        predicate("was made of wool", "war", "aus Wolle"),
        predicate("was sewn by hand", "wurde", "von Hand genäht"),
    ),
}

NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hans")
ADVERBS = (("yesterday", "gestern"), ("sadly", "leider"), ("apparently", "anscheinend"), ("this time", "diesmal"))
INTRODUCTIONS = (
    ("bought", "kaufte"),
    ("found", "fand"),
    ("saw", "sah"),
    ("sold", "verkaufte"),
    ("described", "beschrieb"),
    ("forgot", "vergaß"),
    ("wanted", "wollte"),
    ("drew", "zeichnete"),
)
FILLERS = (
    predicate("was tired", "war", "müde"),
    predicate("laughed loudly", "lachte", "laut"),
    predicate("went home", "ging", "nach Hause"),
    predicate("slept badly", "schlief", "schlecht"),
    predicate("called {other}", "rief", "{other} an"),
    predicate("waited for {other}", "wartete", "auf {other}"),
    predicate("sang with {other}", "sang", "mit {other}"),
    predicate("thanked {other}", "dankte", "{other}"),
)
FACTIVES = (("noticed", "bemerkte"), ("knew", "wusste"))
CONJUNCTIONS = (("because", "weil"), ("although", "obwohl"))


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
        things = [(kind, said, gender) for kind, all in PREDICATES.items() for said in all for gender in GENDERS]
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
        noun = self.rng.choice([noun for noun in NOUNS[kind] if noun.gender == gender])
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
        verb = self.rng.choice(INTRODUCTIONS)
        name = self.rng.choice(NAMES)
        return main_clause((name, name), predicate(f"{verb[0]} {english}", verb[1], german), self._opening())

    def _opening(self) -> tuple[str, str] | None:
        return self.rng.choice(ADVERBS) if self.rng.random() < 0.25 else None

    def _take_up(self, said: Predicate) -> Line:
        if self.rng.random() < 0.25:
            name, (english, german) = self.rng.choice(NAMES), self.rng.choice(FACTIVES)
            return line(f"{name} {english} that it {said.english}", f"{name} {german}, dass {SLOT} {said.final}")
        return main_clause(("it", SLOT), said, self._opening())

    def _same(self, noun: Noun, said: Predicate) -> Line:
        """Antecedent and pronoun in one sentence."""
        name, verb = self.rng.choice(NAMES), self.rng.choice(INTRODUCTIONS)
        because, weil = self.rng.choice(CONJUNCTIONS)
        source = f"{name} {verb[0]} the {noun.english} {because} it {said.english}"
        return line(source, f"{name} {verb[1]} {noun.the('accusative')}, {weil} {SLOT} {said.final}")

    def _filler(self) -> Line:
        name, other = self.rng.sample(NAMES, 2)
        said = self.rng.choice(FILLERS)
        return main_clause((name, name), with_words(said, other=other), self._opening())
