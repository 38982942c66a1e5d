"""Approved translations of like sentences become drafts by the shipped model, or are left alone."""

from __future__ import annotations

import pytest

from weitblick.translation.match_repair import NearMatch, repair_matches
from weitblick.translation.translator import Translator

PLAIN = [
    (
        "The contract may be terminated with a notice period of three months.",
        "Der Vertrag kann mit einer Frist von drei Monaten gekündigt werden.",
        "The contract may be terminated with a notice period of six months.",
        "Der Vertrag kann mit einer Frist von sechs Monaten gekündigt werden.",
    ),
    (
        "The old house near the church was sold last year.",
        "Das alte Haus bei der Kirche wurde letztes Jahr verkauft.",
        "The old bridge near the church was sold last year.",
        "Die alte Brücke bei der Kirche wurde letztes Jahr verkauft.",
    ),
    (
        "Press the green button to start the engine.",
        "Drücken Sie die grüne Taste, um den Motor zu starten.",
        "Press the red button to start the engine.",
        "Drücken Sie die rote Taste, um den Motor zu starten.",
    ),
    (
        "Remove the cover and clean the filter.",
        "Entfernen Sie den Deckel und reinigen Sie den Filter.",
        "Remove the cover and replace the filter.",
        "Entfernen Sie den Deckel und ersetzen Sie den Filter.",
    ),
    (
        "The meeting will take place on Monday in Brussels.",
        "Die Sitzung findet am Montag in Brüssel statt.",
        "The meeting will take place on Friday in Strasbourg.",
        "Die Sitzung findet am Freitag in Straßburg statt.",
    ),
]
UNSURE = [
    (  # a word is missing, not another one
        "This is not the right answer to the crisis.",
        "Das ist nicht die richtige Antwort auf die Krise.",
        "This is the right answer to the crisis.",
    ),
    (  # one word of the translation stands for two of the source
        "The cod quota is too low.",
        "Die Dorschquote ist zu niedrig.",
        "The herring quota is too low.",
    ),
    (  # a word that the model does not know
        "Check the switch before you start the machine.",
        "Prüfen Sie den Schalter, bevor Sie die Maschine starten.",
        "Check the fuse before you start the machine.",
    ),
    (  # too much is different
        "We met them yesterday in the old town hall.",
        "Wir haben sie gestern im alten Rathaus getroffen.",
        "They sold it today at the new train station.",
    ),
]


@pytest.fixture(scope="module")
def repaired() -> dict[str, str | None]:
    """What becomes of all matches, by source, all of them at once."""
    translator = Translator.load(device="cpu")
    cases = [(here, source, target) for source, target, here, *_ in (*PLAIN, *UNSURE)]
    drafts = translator.translate([here for here, _, _ in cases], context=False).targets
    matches = [NearMatch(here, draft or "", *pair) for (here, *pair), draft in zip(cases, drafts, strict=True)]
    return dict(zip((here for here, _, _ in cases), repair_matches(translator, matches), strict=True))


@pytest.mark.parametrize(("source", "target", "here", "wanted"), PLAIN, ids=lambda text: text[:20])
def test_words_that_differ_are_translated_anew(
    repaired: dict[str, str | None], source: str, target: str, here: str, wanted: str
) -> None:
    assert repaired[here] == wanted


@pytest.mark.parametrize(("source", "target", "here"), UNSURE, ids=lambda text: text[:20])
def test_what_is_not_sure_is_left_alone(repaired: dict[str, str | None], source: str, target: str, here: str) -> None:
    assert repaired[here] is None
