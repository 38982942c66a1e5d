"""From units to documents. A unit is a sentence whose translation is tested and the sentence that decides it; a
document is several units, laid out at their distances and interleaved, with filler between them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from weitblick.documents.contrast import FURTHEST, ContrastItem
from weitblick.documents.discourse.german import Predicate, sentence
from weitblick.documents.document import Document, Sentence

T = TypeVar("T")

SLOT = "{}"  # where the tested word of a target sentence goes


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence pair. The target of a tested one has a slot for the tested word."""

    source: str
    target: str

    def fill(self, word: str) -> str:
        return sentence(self.target.replace(SLOT, word), end="")


def line(source: str, target: str) -> Line:
    """A pair of declarative sentences from their words. The slot is capitalised only once it is filled."""
    return Line(sentence(source), " ".join(target.split()) + ".")


def main_clause(subject: tuple[str, str], said: Predicate, opening: tuple[str, str] | None = None) -> Line:
    """A main clause from pairs of English and German. After an opening German puts the verb before the subject."""
    if opening is None:
        return line(f"{subject[0]} {said.english}", f"{subject[1]} {said.verb} {said.rest}")
    return line(f"{opening[0]} {subject[0]} {said.english}", f"{opening[1]} {said.verb} {subject[1]} {said.rest}")


@dataclass(frozen=True, slots=True)
class Dependency:
    """`cue` decides `tested`: it stands `distance` sentences before it (after it if negative), or is part of it (None).

    `answer` is the right filling of the slot, `others` the wrong ones; `label` names the answer in reports.
    """

    phenomenon: str
    distance: int
    cue: Line | None
    tested: Line
    answer: str
    others: tuple[str, ...]
    label: str
    unseen: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A document before its words are filled in: its lines, each with the unit that it tests."""

    lines: tuple[tuple[Line, Dependency | None], ...]
    tested: tuple[tuple[int, Dependency], ...]  # with the index of their tested sentence

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(line.source for line, _ in self.lines)


class Deck(Generic[T]):
    """Draws in shuffled rounds, so that every card comes equally often however few are drawn."""

    def __init__(self, rng: random.Random, cards: Iterable[T]) -> None:
        self.rng, self.cards = rng, list(cards)
        self.pile: list[T] = []

    def draw(self, accept: Callable[[T], bool] = lambda card: True) -> T:
        """The next acceptable card; those passed over stay on the pile. Some card must be acceptable."""
        while True:
            for index in range(len(self.pile) - 1, -1, -1):
                if accept(self.pile[index]):
                    return self.pile.pop(index)
            fresh = self.cards.copy()
            self.rng.shuffle(fresh)
            self.pile = fresh + self.pile


def further(rng: random.Random, group: int) -> int:
    """A distance of the group, which `FURTHEST` stands for itself and all beyond it (either sign)."""
    if abs(group) < FURTHEST:
        return group
    return (FURTHEST + rng.randrange(3)) * (1 if group > 0 else -1)


def lay_out(
    rng: random.Random, units: list[Dependency], singles: list[Line], filler: Callable[[], Line], spare: int
) -> Draft:
    """Place every unit at its distance and every single sentence anywhere; filler takes the places left and `spare`."""
    needed = sum(1 if unit.cue is None else 2 for unit in units) + len(singles) + spare
    length = max([needed, *(abs(unit.distance) + 1 for unit in units)])
    while (placed := _place(rng, units, length)) is None:
        length += 1
    lines: list[tuple[Line, Dependency | None] | None] = [None] * length
    for start, unit in placed:
        lines[start] = (unit.tested, unit)
        if unit.cue is not None:
            lines[start - unit.distance] = (unit.cue, None)
    empty = [index for index, entry in enumerate(lines) if entry is None]
    for index, single in zip(rng.sample(empty, len(singles)), singles, strict=True):
        lines[index] = (single, None)
    complete = tuple(entry if entry is not None else (filler(), None) for entry in lines)
    return Draft(complete, tuple(sorted(placed, key=lambda entry: entry[0])))


def _place(rng: random.Random, units: list[Dependency], length: int) -> list[tuple[int, Dependency]] | None:
    """Places of the tested sentences, or None if this order of choices leads nowhere."""
    free = set(range(length))
    placed = []
    for unit in sorted(units, key=lambda unit: -abs(unit.distance)):
        places = [index for index in sorted(free) if index - unit.distance in free]
        if not places:
            return None
        place = rng.choice(places)
        free -= {place, place - unit.distance}
        placed.append((place, unit))
    return placed


def realise(draft: Draft, name: str) -> tuple[Document, list[ContrastItem]]:
    """The document and one contrastive item for each of its units."""
    sentences = tuple(
        Sentence(line.source, line.fill(unit.answer if unit else ""), id=f"{name}.{index}")
        for index, (line, unit) in enumerate(draft.lines)
    )
    sources = tuple(sentence.source for sentence in sentences)
    targets = tuple(sentence.target or "" for sentence in sentences)
    items = [
        ContrastItem(
            id=f"{name}.{index}",
            source=sources,
            target=targets,
            sentence=index,
            reference=targets[index],
            contrastive=tuple(unit.tested.fill(word) for word in unit.others),
            distance=abs(unit.distance),
            phenomenon=unit.phenomenon,
            direction="future" if unit.distance < 0 else "past",
            pronoun=unit.label,
            unseen_antecedent=unit.unseen,
        )
        for index, unit in draft.tested
    ]
    return Document(name, sentences), items
