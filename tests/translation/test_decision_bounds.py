"""Context decides what *it* is, and leaves pronouns alone that the source tells."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from tiny_models import SOURCES, tiny_pipeline, tiny_translation_model

from weitblick.common.recipe import ContextSection
from weitblick.documents.document import Document, Sentence
from weitblick.translation.decision_bounds import DecisionBounds, Told
from weitblick.translation.translator import Translator

ER, SIE, ES = 10, 11, 12
BOUNDS = DecisionBounds(
    frozenset({"it", "its"}),
    [Told(frozenset({"he"}), frozenset({ER})), Told(frozenset({"she", "they", "you"}), frozenset({SIE}))],
)
DECIDES = {"kind": "hierarchical", "integration": "decoder", "direction": "online", "decides": ["Er", "Sie", "Es"]}


def test_context_decides_only_in_sentences_with_a_word_that_it_decides_for() -> None:
    assert BOUNDS.may_decide("I think IT is late.")
    assert BOUNDS.may_decide("Its price is high.")
    assert not BOUNDS.may_decide("She left with little.")
    assert not BOUNDS.may_decide("")


@pytest.mark.parametrize(
    ("source", "before", "after", "kept"),
    [
        ("She said that it is late.", [SIE, 5, ES], [ER, 5, ER], False),  # she became he
        ("She said that it is late.", [SIE, 5, ES], [SIE, 5, ER], True),
        ("He said that it is late.", [ER, 5, ES], [ES, 5, ES], False),  # he is lost
        ("He saw it.", [ER, 5, ES], [ER, 5, SIE], True),
        ("It is late.", [ES, 5], [ER, 5], True),
        ("It is late.", [ES, 5], [ER, 5, ER], False),  # more than there are words to decide for
        ("They like it.", [5, ES], [5, ES], True),  # what was not said before is not asked for
    ],
)
def test_pronouns_that_the_source_tells_stay(source: str, before: list[int], after: list[int], kept: bool) -> None:
    assert BOUNDS.keeps_told(source, before, after) is kept


@pytest.mark.parametrize(("asked", "changes"), [(["report", "costs", "is", "near"], True), (["nothing"], False)])
def test_a_model_reads_context_where_it_may_decide_and_nowhere_else(asked: list[str], changes: bool) -> None:
    variant = {"kind": "word", "integration": "decoder", "direction": "online", "values": "words"}
    model = tiny_translation_model(variant)
    model.decide_between([list(range(4, 100))])
    model.section = model.section.model_copy(
        update={"decides": [[str(id) for id in range(4, 100)]], "decides_for": asked}
    )
    translator = Translator(model, tiny_pipeline())
    document = Document("d", tuple(Sentence(source) for source in SOURCES))
    alone = next(translator.translate_documents([document], beam=2, context=False)).targets
    assert (next(translator.translate_documents([document], beam=2)).targets != alone) is changes


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "hierarchical", "integration": "decoder", "decides_for": ["it"]},
        {**DECIDES, "told_by_source": [{"source": ["she"], "target": ["Sie"]}]},
        {**DECIDES, "decides_for": ["it"], "told_by_source": [{"source": ["she"], "target": ["sie"]}]},
    ],
)
def test_bounds_that_cannot_be_meant_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ContextSection(**wrong)


def test_she_stays_she_with_the_model_that_is_shipped() -> None:
    sentences = (
        "The minister presented the plan.",
        "She also said that it does not go far enough.",
        "He wished us luck.",
    )
    translator = Translator.load()
    with_context, alone = (translator.translate(list(sentences), context=context).targets for context in (True, False))
    assert with_context[1].startswith("Sie ")
    assert with_context[2] == alone[2]
