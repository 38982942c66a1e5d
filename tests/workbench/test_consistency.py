"""Terms with several translations, and what is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from weitblick.translation.alignment import Alignment, align_by_place
from weitblick.workbench.consistency import inconsistencies
from weitblick.workbench.schema import Segment


def found(*rows: tuple[str, str], target: str = "de") -> dict[str, list[str]]:
    """Terms and their translations; words stand in the order of the source, as many as there."""

    def align(pairs: list[tuple[str, str]]) -> list[Alignment]:
        return [align_by_place(*pair) for pair in pairs]

    pipeline = SimpleNamespace(source_language="en", target_language=target)
    translator: Any = SimpleNamespace(align=align, pipeline=pipeline)
    segments = [Segment(n, source, text, "draft") for n, (source, text) in enumerate(rows)]
    terms = inconsistencies(translator, segments, [])
    return {term["source"]: [variant["target"] for variant in term["variants"]] for term in terms}


def test_a_term_with_two_translations() -> None:
    assert found(("agreement", "Abkommen"), ("agreement", "Abkommen"), ("agreements", "Vereinbarungen")) == {
        "agreement": ["Abkommen", "Vereinbarungen"]
    }


def test_forms_of_one_word_are_one_translation() -> None:
    assert found(("agreement", "Vereinbarung"), ("agreements", "Vereinbarungen")) == {}


def test_a_noun_and_a_verb_are_no_inconsistency_where_they_can_be_told() -> None:
    rows = (("reduce", "Verringerung"), ("reduce", "senken"))
    assert found(*rows) == {}
    assert found(*rows, ("reduces", "mindert")) == {"reduce": ["mindert", "senken"]}
    assert found(("report", "Rapport"), ("report", "constat"), target="fr") == {"report": ["Rapport", "constat"]}
