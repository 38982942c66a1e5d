"""The model that comes with the package: it loads, translates without being named, and its output is kept."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from weitblick.checkpoints.installed import DEFAULT_MODEL
from weitblick.explanation.explain import explain
from weitblick.memory.store import Memory
from weitblick.memory.terms import Term, Terms
from weitblick.model.context_module import Bank
from weitblick.text.address import form_of_address
from weitblick.translation import driver
from weitblick.translation.options import Formality
from weitblick.translation.translator import Translator, as_document
from weitblick.translation.verification import Verification, changed_by_context

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


def test_it_is_small_and_complete():
    assert sum(path.stat().st_size for path in DEFAULT_MODEL.rglob("*") if path.is_file()) < 30_000_000
    card = (DEFAULT_MODEL / "README.md").read_text(encoding="utf-8")
    assert "European Parliament" in card
    assert "limits" in card


def test_its_translations_are_kept():
    translator = Translator.load()
    for document in GOLDEN:
        for name, context in (("with", True), ("without", False)):
            assert translator.translate(document["source"], context=context).targets == document[name]


@pytest.mark.parametrize(("noun", "pronoun"), [("proposal", "Er"), ("strategy", "Sie"), ("programme", "Es")])
def test_context_decides_a_pronoun(noun: str, pronoun: str) -> None:
    """The same sentence, after nouns of each gender."""
    translated = Translator.load().translate([f"We welcome this {noun}.", "It is balanced."]).targets
    assert translated[1] == f"{pronoun} ist ausgewogen."


QUOTA = ("The cod quota is too low.", "Die Dorschquote ist zu niedrig.")
CHAIN = ("The food chain must be safe.", "Die Nahrungskette muss sicher sein.")


@pytest.mark.parametrize(
    ("pair", "again", "fetched"),
    [
        (QUOTA, "We must raise the cod quota.", "Dorschquote"),
        (CHAIN, "We control the whole food chain.", "Nahrungskette"),
    ],
)
def test_a_correction_is_followed(pair: tuple[str, str], again: str, fetched: str) -> None:
    """What one approved pair says is said again, and a sentence that has nothing to do with it stays as it was."""
    translator = Translator.load()
    memory = Memory()
    memory.add(*pair)
    other = "I would like to thank the rapporteur for her work."
    before, after = (translator.translate([again, other], memory=m, context=False).targets for m in (None, memory))
    assert fetched not in str(before[0])
    assert fetched in str(after[0])
    assert before[1] == after[1]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("Parliament has approved the budget.", "It was a necessary step."),
        ("The minister has signed the treaty.", "It was a mistake."),
        ("The House adopted the motion.", "It is a victory for democracy."),
        ("The committee has adopted the report.", "It was a difficult decision."),
    ],
)
def test_what_stands_for_no_noun_stays_es(before: str, said: str) -> None:
    translated = Translator.load().translate([before, said]).targets[1]
    assert translated.startswith(("Es ", "Das "))


@pytest.mark.parametrize("beam", [1, 4])
def test_beside_a_memory_what_a_search_tells_is_what_a_pass_tells(beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory()
    memory.add(*QUOTA)
    document = ["We welcome this strategy.", "It is balanced.", "We must raise the cod quota.", "It is too low.", "No."]
    translator = Translator.load()
    told: list[set[int]] = []
    passed: list[set[int]] = []

    class Noting(Verification):
        def changed(self, bank: Bank | None) -> Iterator[list[int]]:
            parts = list(super().changed(bank))
            told.append({index for part in parts for index in part})
            return iter(parts)

    def passing(*arguments):  # type: ignore[no-untyped-def]
        parts = list(changed_by_context(*arguments))
        passed.append({index for part in parts for index in part})
        return parts

    monkeypatch.setattr(driver, "Verification", Noting)
    monkeypatch.setattr(driver, "changed_by_context", passing)
    with_search = translator.translate(document, memory=memory, beam=beam).targets
    monkeypatch.setattr(driver, "Verification", lambda *how: None)
    assert translator.translate(document, memory=memory, beam=beam).targets == with_search
    assert told == passed
    assert 1 in told[0]
    assert 4 not in told[0]


def test_an_explanation_shows_the_context_that_was_read_beside_a_memory() -> None:
    """First translations follow the memory, and these are what later sentences read."""
    memory = Memory()
    memory.add(*QUOTA)
    explained = explain(Translator.load(), as_document([QUOTA[0], "It must rise."]), memory=memory)
    first = explained.sentences[0]
    assert "Dorschquote" in [word.text for word in first.target]
    assert first.context_words == first.target


@pytest.mark.parametrize("formality", ["formal", "informal"])
def test_a_form_of_address_that_is_asked_for_is_said(formality: Formality) -> None:
    sources = ["You can open the file now.", "Are you tired?", "It is raining."]
    targets = [str(target) for target in Translator.load().translate(sources, formality=formality).targets]
    assert [form_of_address(*pair) for pair in zip(sources, targets, strict=True)] == [formality, formality, None]


def test_a_document_keeps_to_one_form_of_address() -> None:
    sources = ["I love you.", "Are you tired?", "Click Save.", "You can open the file now."]
    targets = [str(target) for target in Translator.load().translate(sources).targets]
    assert len({*map(form_of_address, sources, targets)} - {None}) == 1


def test_a_term_is_said_where_its_source_words_were_left_though_a_compound_has_it() -> None:
    """What was approved says Dorschquote for the quota; the cod itself must not stay English for that."""
    translator, memory = Translator.load(), Memory()
    memory.add(*QUOTA)
    source, terms = ["The quota for cod is too low."], Terms([Term("cod", "Dorsch", "g:1")])
    (without,) = translator.translate(source, memory=memory).targets
    assert without is not None
    assert "Dorschquote" in without
    assert "cod" in without.split()
    (said,) = translator.translate(source, memory=memory, terms=terms).targets
    assert said is not None
    assert "Dorsch" in said.split()
    assert "cod" not in said.split()
