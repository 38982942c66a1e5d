"""The words of the generated corpora, read once from the YAML files beside this module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from weitblick.documents.discourse.german import GENDERS, Case, Gender, Noun, Predicate, predicate

Register = Literal["du", "Sie"]
Pair = tuple[str, str]
"""The same in English and German."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of things. `held_out` nouns are antecedents in the test only; `done` predicates have `{}` where their
    object goes."""

    nouns: tuple[Noun, ...]
    held_out: tuple[Noun, ...]
    said: tuple[Predicate, ...]
    done: tuple[Predicate, ...]
    parts: tuple[Noun, ...]


@dataclass(frozen=True, slots=True)
class Acquaintance:
    """Somebody whom one meets."""

    english: str
    dative: str
    accusative: str

    def german(self, case: Case) -> str:
        return self.dative if case == "dative" else self.accusative


@dataclass(frozen=True, slots=True)
class Utterance:
    """What is said to somebody, with either address in German."""

    english: str
    du: str
    sie: str

    def german(self, register: Register) -> str:
        return self.du if register == "du" else self.sie

    @property
    def is_question(self) -> bool:
        return self.english.endswith("?")


@dataclass(frozen=True, slots=True)
class Topic:
    """`cues` say what someone did. Things of the class `near` would hint at the topic too: they are kept away."""

    cues: tuple[Predicate, ...]
    near: str | None = None


@dataclass(frozen=True, slots=True)
class Sense:
    """One of the two translations of an ambiguous noun, and the topic that asks for it."""

    topic: str
    noun: Noun


@dataclass(frozen=True, slots=True)
class Frame:
    """A predicate of a person with a place `{np}` for a noun phrase, which German wants in `case`."""

    english: str
    verb: str
    rest: str
    case: Case = "accusative"


@dataclass(frozen=True)
class SmallWords:
    """The words of the preset `small`."""

    nouns: dict[str, tuple[Noun, ...]]
    predicates: dict[str, tuple[Predicate, ...]]
    names: tuple[str, ...]
    adverbs: tuple[Pair, ...]
    introductions: tuple[Pair, ...]
    factives: tuple[Pair, ...]
    conjunctions: tuple[Pair, ...]
    fillers: tuple[Predicate, ...]


@dataclass(frozen=True)
class RichWords:
    """The words of the preset `rich`."""

    kinds: dict[str, Kind]
    names: tuple[str, ...]
    meanwhile: tuple[Predicate, ...]
    acquaintances: dict[Register, tuple[Acquaintance, ...]]
    meetings: tuple[tuple[str, str, str, Case], ...]
    utterances: tuple[Utterance, ...]
    topics: dict[str, Topic]
    ambiguous: tuple[tuple[Sense, Sense], ...]
    adverbs: tuple[Pair, ...]
    scenes: tuple[Pair, ...]
    factives: tuple[Pair, ...]
    conjunctions: tuple[Pair, ...]
    mentions: tuple[Frame, ...]
    encounters: tuple[Frame, ...]
    part_objects: tuple[Frame, ...]
    part_subjects: tuple[tuple[str, str, str], ...]


@cache
def small_words() -> SmallWords:
    """The words of the preset `small`, read once."""
    data = _read("small.yaml")
    kinds: Mapping[str, Any] = data.pop("kinds")
    return SmallWords(
        nouns={kind: tuple(noun for group in _genders(rows) for noun in group) for kind, rows in kinds.items()},
        predicates={kind: _predicates(rows["said"]) for kind, rows in kinds.items()},
        fillers=_predicates(data.pop("fillers")),
        **{name: _rows(rows) for name, rows in data.items()},
    )


@cache
def rich_words() -> RichWords:
    """The words of the preset `rich`, read once."""
    data = _read("rich.yaml")
    return RichWords(
        kinds={name: _kind(rows) for name, rows in data.pop("kinds").items()},
        meanwhile=_predicates(data.pop("meanwhile")),
        acquaintances={
            register: tuple(Acquaintance(*row) for row in rows) for register, rows in data.pop("acquaintances").items()
        },
        utterances=tuple(Utterance(*row) for row in data.pop("utterances")),
        topics={
            name: Topic(_predicates(topic["cues"]), topic.get("near")) for name, topic in data.pop("topics").items()
        },
        ambiguous=tuple((_sense(row[0], row[1]), _sense(row[0], row[2])) for row in data.pop("ambiguous")),
        mentions=_frames(data.pop("mentions")),
        encounters=_frames(data.pop("encounters")),
        part_objects=_frames(data.pop("part_objects")),
        **{name: _rows(rows) for name, rows in data.items()},
    )


def _read(name: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(files(__package__).joinpath(name).read_text("utf-8"))
    return data


def _rows(rows: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tuple(row) if isinstance(row, list) else row for row in rows)


def _predicates(rows: Iterable[Sequence[str]]) -> tuple[Predicate, ...]:
    return tuple(predicate(*row) for row in rows)


def _frames(rows: Iterable[Any]) -> tuple[Frame, ...]:
    return tuple(Frame(*row) for row in rows)


def _kind(rows: Mapping[str, Any]) -> Kind:
    """The last noun of each gender is held out."""
    nouns = _genders(rows)
    return Kind(
        nouns=tuple(noun for group in nouns for noun in group[:-1]),
        held_out=tuple(group[-1] for group in nouns),
        said=_predicates(rows["said"]),
        done=_predicates(rows["done"]),
        parts=tuple(noun for group in _genders(rows["parts"]) for noun in group),
    )


def _genders(listings: Mapping[str, str]) -> list[list[Noun]]:
    """The nouns of each gender, as in `washing machine Waschmaschine, cow Kuh`: German comes last."""
    return [[_noun(entry, gender) for entry in listings[gender].split(",")] for gender in GENDERS]


def _noun(entry: str, gender: Gender) -> Noun:
    english, _, german = entry.strip().rpartition(" ")
    nominative, _, oblique = german.partition("/")
    return Noun(english, nominative, gender, oblique or None)


def _sense(english: str, sense: str) -> Sense:
    topic, gender, german = sense.split()
    return Sense(topic, _noun(f"{english} {german}", GENDERS["mfn".index(gender)]))
