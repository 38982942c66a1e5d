"""Drafts change where what was approved is the reason, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from weitblick.translation.alignment import Alignment, word_spans
from weitblick.workbench.consistency import Vocabulary
from weitblick.workbench.retranslation import NewlyApproved, NewPair, by_shared_words

QUOTAS = NewPair("The quotas are to be reduced.", "Die Fangquoten sollen gesenkt werden.", 0, "Quoten sollen sinken.")
PRONOUNS = frozenset({"er", "sie", "es", "Er", "Sie", "Es"})


def merged(source: str, before: str, after: str, words: Mapping[str, str], new: NewPair = QUOTAS) -> str:
    """`words`: which source word each target word of note comes from; all others come from the first one."""
    spans = word_spans(source), word_spans(after)
    weights = np.zeros((len(spans[1]), len(spans[0])))
    sources = [source[start:end] for start, end in spans[0]]
    for row, (start, end) in enumerate(spans[1]):
        weights[row, sources.index(words.get(after[start:end], sources[0]))] = 1.0
    approved = NewlyApproved([new], Vocabulary("en"), Vocabulary("de"), PRONOUNS)
    return approved.merge(source, before, after, Alignment(*spans, weights))


def test_what_has_no_reason_stays_as_it_was() -> None:
    before, after = "Wir begrüßen das, und zwar sehr.", "Wir begrüßen dies sehr."
    assert merged("We welcome this very much.", before, after, {}) == before


def test_a_word_of_the_approved_translation_is_taken_and_nothing_else() -> None:
    source = "We think, by the way, that the quotas are too low in the north."
    before = "Wir meinen übrigens, dass die Quoten im Norden zu niedrig sind."
    after = "Wir glauben übrigens, dass die Fangquoten im Norden zu gering sind!"
    found = merged(source, before, after, {"Fangquoten": "quotas"})
    assert found == "Wir meinen übrigens, dass die Fangquoten im Norden zu niedrig sind."


def test_what_stands_beside_it_belongs_to_it() -> None:
    new = NewPair("The agreement is old.", "Die Vereinbarung ist alt.", 0, "Das Abkommen ist alt.")
    before, after = "Das neue Abkommen ist gut.", "Die neue Vereinbarung ist gut."
    assert merged("The new agreement is good.", before, after, {"Vereinbarung": "agreement"}, new) == after


def test_what_changed_places_with_it_goes_with_it() -> None:
    before = "Im Norden ist heute nach allem, was wir wissen, die Quote gering."
    after = "Gering sind heute nach allem, was wir wissen, die Fangquoten im Norden."
    source = "Low are today, as far as we know, the quotas in the north."
    found = merged(source, before, after, {"Fangquoten": "quotas", "Norden": "north", "Gering": "Low"})
    assert found.count("Norden") == 1
    assert found.lower().count("gering") == 1


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ("Wir werden die Netze flicken.", {"werden": "shall"}),  # a function word
        ("Wir flicken die Fangquoten.", {"Fangquoten": "nets"}),  # for a word that the approved source has not
    ],
)
def test_a_word_is_no_reason_by_itself(after: str, words: Mapping[str, str]) -> None:
    before = "Wir flicken die Netze."
    assert merged("We shall mend the nets.", before, after, words) == before


def test_a_pronoun_may_follow_its_noun_if_the_new_sentence_is_read_as_context() -> None:
    before, after = "Es ist zwar gut und teuer.", "Sie ist zwar gut, aber teuer."
    assert merged("It is good and dear, to be sure.", before, after, {}) == "Sie ist zwar gut und teuer."
    imported = NewPair(QUOTAS.source, QUOTAS.target)
    assert merged("It is good and dear, to be sure.", before, after, {}, imported) == before


def test_only_telling_words_call_for_a_new_search() -> None:
    pairs = [QUOTAS, NewPair("Is it?", "Ist es das?")]
    approved = NewlyApproved(pairs, Vocabulary("en"), Vocabulary("de"))
    assert approved.words() == ["Fangquoten sollen gesenkt", "Ist es das?"]  # of none, all


def test_drafts_that_have_words_of_what_is_new_come_first() -> None:
    drafts = ["Thank you very much.", "The committees met.", "The fishery report of the committee.", "Thank you."]
    found = by_shared_words(["The fishery committee"], dict(enumerate(drafts)), 3, Vocabulary("en"))
    assert found == [2, 1]
