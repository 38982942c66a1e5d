"""Drafts are translated again where what was approved is a reason to, and only there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from tiny_models import SOURCES, TARGETS, tiny_pipeline, tiny_translation_model

from weitblick.common.recipe import MemorySection
from weitblick.documents.document import Document, Sentence
from weitblick.memory.pointer import MemoryPointer
from weitblick.memory.store import Memory
from weitblick.memory.terms import Term
from weitblick.translation.document_job import DocumentJob, Finished
from weitblick.translation.kept_states import KeptStates
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator
from weitblick.workbench import retranslation
from weitblick.workbench.consistency import Vocabulary
from weitblick.workbench.retranslation import NewlyApproved, NewPair, drafts_to_retranslate, retranslation_steps

SENTENCES = ["The report was read.", "Mr. Smith is wrong.", "It costs more!", "Where is the house?", "It is near."]


@pytest.fixture
def translator() -> Translator:
    model = tiny_translation_model({"kind": "none"}, end=2.5)
    torch.manual_seed(3)
    model.pointer = MemoryPointer(MemorySection(kind="pointer", dimension=8, candidates=3), 16).eval()
    torch.nn.init.constant_(model.pointer.share[-1].bias, 0.0)
    return Translator(model, tiny_pipeline())


def drafts(translator: Translator) -> Document:
    plain = translator.translate(SENTENCES, beam=1)
    return Document("1", tuple(Sentence(source, plain.targets[n], "draft") for n, source in enumerate(SENTENCES)))


def text_of(steps: Iterator[Finished]) -> dict[int, str | None]:
    return {index: texts[0].text if texts else None for step in steps for index, texts in step.items()}


def anew(translator: Translator, document: Document, memory: Memory, kept: KeptStates | None = None) -> dict[int, Any]:
    return text_of(DocumentJob(translator, document, TranslationOptions(beam=1, memory=memory), kept=kept).steps())


def again(
    translator: Translator, document: Document, memory: Memory, new: Sequence[NewPair] = (), language: str = "xx"
) -> dict[int, str | None]:
    """With a language whose function words are unknown, any draft may share words with what is new."""
    job = DocumentJob(translator, document, TranslationOptions(beam=1, memory=memory))
    return text_of(retranslation_steps(job, NewlyApproved(new, Vocabulary(language), Vocabulary("de"))))


def test_nothing_approved_searches_nothing(translator: Translator) -> None:
    assert again(translator, drafts(translator), Memory()) == dict.fromkeys(range(5))


def test_what_is_searched_changes_and_what_is_left_would_not(translator: Translator) -> None:
    """With greedy search the drafts together with what was found are a whole translation anew."""
    document, memory = drafts(translator), Memory()
    for source, target in zip(SOURCES, TARGETS, strict=True):
        memory.add(source, target)
    some = again(translator, document, memory)
    assert any(some.values())
    assert {n: text or document.targets[n] for n, text in some.items()} == anew(translator, document, memory)


def test_of_what_is_new_only_its_own_words_count_where_it_shares_words(translator: Translator) -> None:
    document, memory = drafts(translator), Memory()
    new = [NewPair(source, target) for source, target in zip(SOURCES, TARGETS, strict=True)]
    for pair in new:
        memory.add(pair.source, pair.target)
    everything = again(translator, document, memory)
    told = again(translator, document, memory, new)
    assert any(told.values())
    assert all(text in (None, everything[n]) for n, text in told.items())
    some = again(translator, document, memory, new[:2], "en")
    assert some[2] is some[3] is some[4] is None  # no word of the report, of Mr. Smith and of figures that are wrong
    assert some[0] or some[1]


def test_every_draft_comes_once_with_its_reason(translator: Translator) -> None:
    document, memory = drafts(translator), Memory()
    new = [NewPair(SENTENCES[0], TARGETS[0])]  # all of its source words are in the draft's
    memory.add(SENTENCES[0], TARGETS[0])
    job = DocumentJob(translator, document, TranslationOptions(beam=1, memory=memory))
    assert all(step == {} for step in job.prepare())
    approved = NewlyApproved(new, Vocabulary("en"), Vocabulary("de"))
    found = [one for part in drafts_to_retranslate(job, approved) for one in part]
    assert sorted(one.sentence for one in found) == list(range(5))
    reasons = {one.sentence: one.reason for one in found}
    assert reasons == {0: "approved word", 1: None, 2: None, 3: None, 4: None}  # the others share no word with it


def test_corrections_are_offered_with_their_reason_and_not_applied(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = "Der Bericht wurde verlesen.", "Das Haus."
    sources = "The report was read.", "Where is the report?"
    document = Document("1", tuple(Sentence(*pair, "draft") for pair in zip(sources, texts, strict=True)))
    term = Term("report", "Ausschuss", "row 7", "correction", refused="Bericht")
    monkeypatch.setattr(retranslation, "terms_of_corrections", lambda *_: [term])
    monkeypatch.setattr(retranslation, "MOST_LOST", math.inf)
    approved = NewlyApproved(
        [NewPair("A report.", "Ein Ausschuss.", 6, "Ein Bericht.")], *map(Vocabulary, ("en", "de"))
    )
    job = DocumentJob(translator, document, TranslationOptions(beam=1))
    assert text_of(retranslation_steps(job, approved)) == {0: None, 1: None}
    (offered,) = retranslation.offered_corrections(job, approved)
    assert offered.sentence == 0
    assert "Ausschuss" in offered.text
    assert offered.reason == "because of the term report = Ausschuss, row 7"
    assert retranslation.offered_corrections(job, NewlyApproved([], *map(Vocabulary, ("en", "de")))) == []


def test_kept_states_give_the_same(translator: Translator) -> None:
    document, kept = drafts(translator), KeptStates()
    first = anew(translator, document, Memory(), kept)
    assert anew(translator, document, Memory(), kept) == first == anew(translator, document, Memory())
    kept.tokens = 0
    kept.put("other", torch.zeros(1, 1))
    assert kept.get("other") is None
