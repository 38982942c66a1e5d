"""Sentence patterns around the words: how things are mentioned, taken up again, and their parts spoken of."""

from __future__ import annotations

from dataclasses import dataclass

from weitblick.discourse.german import Case

Pair = tuple[str, str]  # the same in English and German

ADVERBS: tuple[Pair, ...] = (
    ("yesterday", "gestern"),
    ("sadly", "leider"),
    ("apparently", "anscheinend"),
    ("this time", "diesmal"),
    ("on Monday", "am Montag"),
    ("in the end", "am Ende"),
    ("surprisingly", "überraschenderweise"),
    ("once again", "wieder einmal"),
    ("in those days", "damals"),
    ("of course", "natürlich"),
)
# Clauses about a person that open a sentence; the main clause follows with its verb first.
SCENES: tuple[Pair, ...] = (
    ("when {name} came home,", "als {name} nach Hause kam,"),
    ("while {name} was sleeping,", "während {name} schlief,"),
    ("before {name} could answer,", "bevor {name} antworten konnte,"),
    ("after {name} had left,", "nachdem {name} gegangen war,"),
)
FACTIVES: tuple[Pair, ...] = (
    ("noticed that", "bemerkte, dass"),
    ("knew that", "wusste, dass"),
    ("was glad that", "war froh, dass"),
    ("forgot that", "vergaß, dass"),
    ("had heard that", "hatte gehört, dass"),
)
CONJUNCTIONS: tuple[Pair, ...] = (("because", "weil"), ("although", "obwohl"))


@dataclass(frozen=True, slots=True)
class Frame:
    """A predicate of a person with a place `{np}` for a noun phrase, which German wants in `case`."""

    english: str
    verb: str
    rest: str
    case: Case = "accusative"


# Whatever can be said of any thing: none of these tells anything about its class, sense or gender.
MENTIONS = (
    Frame("described {np}", "beschrieb", "{np}"),
    Frame("mentioned {np}", "erwähnte", "{np}"),
    Frame("remembered {np}", "erinnerte", "sich an {np}"),
    Frame("talked about {np}", "sprach", "über {np}"),
    Frame("dreamed of {np}", "träumte", "von {np}", "dative"),
    Frame("thought of {np}", "dachte", "an {np}"),
    Frame("asked about {np}", "fragte", "nach {np}", "dative"),
    Frame("noticed {np}", "bemerkte", "{np}"),
    Frame("photographed {np}", "fotografierte", "{np}"),
    Frame("drew {np}", "zeichnete", "{np}"),
)
# And of any thing that can be met with, though not of every sense of an ambiguous noun.
ENCOUNTERS = (
    Frame("saw {np}", "sah", "{np}"),
    Frame("found {np}", "fand", "{np}"),
    Frame("looked for {np}", "suchte", "{np}"),
    Frame("bought {np}", "kaufte", "{np}"),
    Frame("sold {np}", "verkaufte", "{np}"),
    Frame("admired {np}", "bewunderte", "{np}"),
    Frame("discovered {np}", "entdeckte", "{np}"),
    Frame("inherited {np}", "erbte", "{np}"),
    Frame("showed {other} {np}", "zeigte", "{other} {np}"),
    Frame("walked past {np}", "ging", "an {np} vorbei", "dative"),
)

# `its` part of a thing, as the object of a person's predicate or as the subject of its own.
PART_OBJECTS = (
    Frame("liked {np} very much", "mochte", "{np} sehr"),
    Frame("praised {np}", "lobte", "{np}"),
    Frame("examined {np} closely", "prüfte", "{np} genau"),
    Frame("complained about {np}", "beschwerte", "sich über {np}"),
    Frame("was satisfied with {np}", "war", "mit {np} zufrieden", "dative"),
    Frame("knew nothing of {np}", "wusste", "nichts von {np}", "dative"),
)
PART_SUBJECTS: tuple[tuple[str, str, str], ...] = (
    ("surprised {name}", "überraschte", "{name}"),
    ("disappointed {name}", "enttäuschte", "{name}"),
    ("was better than expected", "war", "besser als erwartet"),
    ("was of no importance", "war", "nicht von Bedeutung"),
)
