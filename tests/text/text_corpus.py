"""A small corpus, and pipelines learned from it."""

from __future__ import annotations

from weitblick.common.recipe import TextSection
from weitblick.text.base import TextPipeline
from weitblick.text.pipeline import learn_pipeline

SOURCES = [
    "The committee met on Monday, and the chairman's report was read.",
    'Mr. Smith didn\'t agree: he said that "the figures (from 2004) are wrong".',
    "It costs 1,250.50 euros per year, i.e. 12 % more than before!",
    "Where is the well-known house? It is near the old bank.",
    "We must act now; they will not wait... or will they?",
    "The old house is near the river, and the report is wrong.",
] * 3
TARGETS = [
    "Der Ausschuss trat am Montag zusammen, und der Bericht des Vorsitzenden wurde verlesen.",
    "Herr Smith war nicht einverstanden: er sagte, dass die Zahlen (von 2004) falsch sind.",
    "Es kostet 1.250,50 Euro im Jahr, d. h. 12 % mehr als vorher!",
    "Wo ist das bekannte Haus? Es ist in der Nähe der alten Bank.",
    "Wir müssen jetzt handeln; sie werden nicht warten... oder doch?",
    "Das alte Haus ist nahe am Fluss, und der Bericht ist falsch.",
] * 3


def learn(kind: str, joint: bool, merges: int = 400, longest_sentence: int = 40) -> TextPipeline:
    section = TextSection(
        kind=kind,  # type: ignore[arg-type]
        merges=merges,
        joint_vocabulary=joint,
        longest_sentence=longest_sentence,
    )
    return learn_pipeline((SOURCES, TARGETS), section)
