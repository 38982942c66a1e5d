"""The preset `rich`: documents of units of five phenomena over past and future distances, mixed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weitblick.documents.discourse.draft import SLOT, Deck, Dependency, Draft, Line, further, lay_out, line, main_clause
from weitblick.documents.discourse.german import (
    ENDING,
    GENDERS,
    POSSESSIVE,
    PRONOUN,
    Case,
    Gender,
    Noun,
    Predicate,
    english_a,
    predicate,
    sentence,
    with_words,
)
from weitblick.documents.discourse.lexicon import Frame, Pair, Register, Sense, rich_words

WORDS = rich_words()

NOMINATIVE, ACCUSATIVE, POSSESSIVES = "pronoun-nominative", "pronoun-accusative", "possessive"
AMBIGUOUS_NOUN, ADDRESS = "ambiguous-noun", "address"

# Groups of signed distances, the past ones twice: references to the future are the rarer kind.
PAST, FUTURE = (1, 2, 3, 4), (-1, -2, -3, -4)
ELSEWHERE = (*PAST, *PAST, *FUTURE)
ANYWHERE = (0, 0, *ELSEWHERE)


@dataclass(frozen=True, slots=True)
class Reference:
    """What a thing of a document is to be: the antecedent of which kind of reference, how far away, of what gender."""

    phenomenon: str
    group: int
    gender: Gender
    unseen: bool


def _references(unseen: Sequence[bool]) -> list[Reference]:
    """All kinds, so that every answer is equally frequent: her possessive stands against his and its, so twice."""
    genders: dict[str, tuple[Gender, ...]] = {
        NOMINATIVE: GENDERS * 2,
        ACCUSATIVE: GENDERS * 2,
        POSSESSIVES: ("m", "f", "n", "f"),
    }
    return [
        Reference(phenomenon, group, gender, new)
        for phenomenon, choices in genders.items()
        for group in ANYWHERE
        for gender in choices
        for new in unseen
    ]


class RichPreset:
    """Draws documents. In training, held-out nouns are mentioned but never taken up."""

    dev_documents = 200
    test_documents = 1000

    def __init__(self, rng: random.Random, training: bool) -> None:
        self.rng = rng
        self.references = Deck(rng, _references((False,) if training else (False, True)))
        words = [(word, right) for word in WORDS.ambiguous for right in (0, 1)]
        self.words: Deck[tuple[tuple[Sense, Sense], int]] = Deck(rng, words)
        self.word_groups = Deck(rng, ELSEWHERE)
        registers: list[tuple[Register, int]] = [("du", group) for group in ELSEWHERE]
        self.registers = Deck(rng, registers + [("Sie", group) for group in ELSEWHERE])

    def draft(self) -> Draft:
        units: list[Dependency] = []
        kinds = set(WORDS.kinds)
        if self.rng.random() < 0.5:
            word, right = self.words.draw()
            units.append(self._ambiguous(word[right].noun, word[1 - right].noun, WORDS.topics[word[right].topic].cues))
            kinds -= {WORDS.topics[sense.topic].near for sense in word}
        if self.rng.random() < 0.4:
            units.append(self._address(*self.registers.draw()))
        things, mentions = self.rng.choice((2, 3)), self.rng.randrange(3)
        chosen = self.rng.sample(sorted(kinds), things + mentions)  # never two things of a kind
        units += [self._taken_up(kind, self.references.draw()) for kind in chosen[:things]]
        singles = [self._mention(kind) for kind in chosen[things:]]
        return lay_out(self.rng, units, singles, self._meanwhile, spare=self.rng.randrange(3))

    # Things and what refers to them

    def _taken_up(self, kind: str, reference: Reference) -> Dependency:
        pool = WORDS.kinds[kind].held_out if reference.unseen else WORDS.kinds[kind].nouns
        noun = self.rng.choice([noun for noun in pool if noun.gender == reference.gender])
        distance = further(self.rng, reference.group)
        cue = None if distance == 0 else self._introduce(noun)
        build: dict[str, Callable[[str, Noun, bool], tuple[Line, str, tuple[str, ...], str]]] = {
            NOMINATIVE: self._subject,
            ACCUSATIVE: self._object,
            POSSESSIVES: self._part,
        }
        tested, answer, others, label = build[reference.phenomenon](kind, noun, distance == 0)
        return Dependency(reference.phenomenon, distance, cue, tested, answer, others, label, reference.unseen)

    def _subject(self, kind: str, noun: Noun, same: bool) -> tuple[Line, str, tuple[str, ...], str]:
        said, name = self.rng.choice(WORDS.kinds[kind].said), self.rng.choice(WORDS.names)
        if same:
            opening = self._clause(noun)
            because, weil = self.rng.choice(WORDS.conjunctions)
            tested = line(f"{opening[0]} {because} it {said.english}", f"{opening[1]}, {weil} {SLOT} {said.final}")
        elif self.rng.random() < 0.3:
            knew, wusste = self.rng.choice(WORDS.factives)
            tested = line(f"{name} {knew} it {said.english}", f"{name} {wusste} {SLOT} {said.final}")
        else:
            tested = main_clause(("it", SLOT), said, self._opening())
        return (tested, *_pronouns("nominative", noun.gender))

    def _object(self, kind: str, noun: Noun, same: bool) -> tuple[Line, str, tuple[str, ...], str]:
        done, name = self.rng.choice(WORDS.kinds[kind].done), self.rng.choice(WORDS.names)
        english = done.english.format("it")
        if same:
            opening = self._clause(noun)
            tested = line(f"{opening[0]} and {english}", f"{opening[1]} und {done.verb} {done.rest}")
        else:
            tested = main_clause((name, name), predicate(english, done.verb, done.rest), self._opening())
        return (tested, *_pronouns("accusative", noun.gender))

    def _part(self, kind: str, noun: Noun, same: bool) -> tuple[Line, str, tuple[str, ...], str]:
        part, name = self.rng.choice(WORDS.kinds[kind].parts), self.rng.choice(WORDS.names)
        case: Case = "nominative"
        if same or self.rng.random() < 0.4:
            said = with_words(predicate(*self.rng.choice(WORDS.part_subjects)), name=name)
            subject = (f"its {part.english}", f"{SLOT} {part.form(case)}")
            tested = main_clause(subject, said, None if same else self._adverb())
            if same:
                opening = self._clause(noun)
                source = f"{opening[0]}, but {subject[0]} {said.english}"
                tested = line(source, f"{opening[1]}, aber {subject[1]} {said.verb} {said.rest}")
        else:
            frame = self.rng.choice(WORDS.part_objects)
            case = frame.case
            said = _fill(frame, (f"its {part.english}", f"{SLOT} {part.form(case)}"))
            tested = main_clause((name, name), said, self._adverb())
        right = POSSESSIVE[noun.gender]
        wrong = "ihr" if right == "sein" else "sein"
        ending = ENDING[case][part.gender]
        return tested, right + ending, (wrong + ending,), right

    def _introduce(self, noun: Noun) -> Line:
        return self._encounter(noun, self.rng.choice(WORDS.mentions + WORDS.encounters), self._opening())

    def _encounter(self, noun: Noun, frame: Frame, opening: Pair | None) -> Line:
        name, other = self.rng.sample(WORDS.names, 2)
        if self.rng.random() < 0.5:
            phrase = (f"the {noun.english}", noun.the(frame.case))
        else:
            phrase = (english_a(noun.english), noun.a(frame.case))
        return main_clause((name, name), _fill(frame, phrase, other), opening)

    def _clause(self, noun: Noun) -> Pair:
        """The introduction of a thing as the first clause of a sentence."""
        name, other = self.rng.sample(WORDS.names, 2)
        frame = self.rng.choice(WORDS.mentions + WORDS.encounters)
        said = _fill(frame, (f"the {noun.english}", noun.the(frame.case)), other)
        return f"{name} {said.english}", f"{name} {said.verb} {said.rest}"

    def _mention(self, kind: str) -> Line:
        """A thing that nothing refers to; half of the time in a sentence that shows its class."""
        things = WORDS.kinds[kind]
        noun = self.rng.choice(things.held_out if self.rng.random() < 0.6 else things.nouns)
        pattern, name = self.rng.random(), self.rng.choice(WORDS.names)
        if pattern < 0.5:
            return self._introduce(noun)
        if pattern < 0.75:
            subject = (f"the {noun.english}", noun.the("nominative"))
            return main_clause(subject, self.rng.choice(things.said), self._opening())
        done = self.rng.choice(things.done)
        english, rest = done.english.format(f"the {noun.english}"), done.rest.format(noun.the("accusative"))
        return main_clause((name, name), predicate(english, done.verb, rest), self._opening())

    # Topics and registers

    def _ambiguous(self, right: Noun, wrong: Noun, cues: Sequence[Predicate]) -> Dependency:
        name, someone = self.rng.choice(WORDS.names), self.rng.choice(WORDS.names)
        frame = self.rng.choice(WORDS.mentions)
        tested = main_clause((name, name), _fill(frame, (f"the {right.english}", SLOT)), self._opening())
        cue = main_clause((someone, someone), self.rng.choice(cues), self._opening())
        distance = further(self.rng, self.word_groups.draw())
        answers = right.the(frame.case), (wrong.the(frame.case),)
        return Dependency(AMBIGUOUS_NOUN, distance, cue, tested, *answers, label=right.german)

    def _address(self, register: Register, group: int) -> Dependency:
        name, said = self.rng.choice(WORDS.names), self.rng.choice(WORDS.utterances)
        who = self.rng.choice(WORDS.acquaintances[register])
        english, verb, rest, case = self.rng.choice(WORDS.meetings)
        meeting = predicate(english.format(who=who.english), verb, rest.format(who=who.german(case)))
        cue = main_clause((name, name), meeting, self._opening())
        if said.is_question:
            tested = Line(sentence(f'"{said.english}" asked {name}'), f'"{SLOT}", fragte {name}.')
        else:
            tested = Line(sentence(f'"{said.english}," said {name}'), f'"{SLOT}", sagte {name}.')
        other: Register = "Sie" if register == "du" else "du"
        answers = said.german(register), (said.german(other),)
        return Dependency(ADDRESS, further(self.rng, group), cue, tested, *answers, label=register)

    # Around them

    def _adverb(self) -> Pair | None:
        return self.rng.choice(WORDS.adverbs) if self.rng.random() < 0.3 else None

    def _opening(self) -> Pair | None:
        if self.rng.random() < 0.15:
            name = self.rng.choice(WORDS.names)
            english, german = self.rng.choice(WORDS.scenes)
            return english.format(name=name), german.format(name=name)
        return self._adverb()

    def _meanwhile(self) -> Line:
        name, other = self.rng.sample(WORDS.names, 2)
        return main_clause((name, name), with_words(self.rng.choice(WORDS.meanwhile), other=other), self._adverb())


def _fill(frame: Frame, phrase: Pair, other: str = "") -> Predicate:
    english = frame.english.format(np=phrase[0], other=other)
    return predicate(english, frame.verb, frame.rest.format(np=phrase[1], other=other))


def _pronouns(case: Case, gender: Gender) -> tuple[str, tuple[str, ...], str]:
    """The right pronoun, the wrong ones, and the name of the right one."""
    pronouns = PRONOUN[case]
    return pronouns[gender], tuple(word for other, word in pronouns.items() if other != gender), pronouns[gender]
