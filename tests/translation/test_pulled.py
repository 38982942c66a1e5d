"""Jobs that search again only the drafts that approved translations pull at."""

from __future__ import annotations

import pytest
import torch
from tiny_models import SOURCES, TARGETS, tiny_pipeline, tiny_translation_model

from weitblick.config.recipe import MemorySection
from weitblick.documents.document import Document, Sentence
from weitblick.memory import Memory
from weitblick.model.pointer import MemoryPointer
from weitblick.translation.job import DocumentJob, NewPair
from weitblick.translation.kept import KeptStates
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator

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


def found(translator: Translator, document: Document, memory: Memory, **more: object) -> dict[int, str | None]:
    job = DocumentJob(translator, document, TranslationOptions(beam=1, memory=memory), **more)  # type: ignore[arg-type]
    return {index: texts[0].text if texts else None for step in job.steps() for index, texts in step.items()}


def test_nothing_approved_searches_nothing(translator: Translator) -> None:
    assert found(translator, drafts(translator), Memory(), pulled_only=True) == dict.fromkeys(range(5))


def test_what_is_searched_changes_and_what_is_left_would_not(translator: Translator) -> None:
    """With greedy search the drafts together with what was found are a whole translation anew."""
    document, memory = drafts(translator), Memory()
    for source, target in zip(SOURCES, TARGETS, strict=True):
        memory.add(source, target)
    some = found(translator, document, memory, pulled_only=True)
    anew = found(translator, document, memory)
    assert any(some.values())
    assert {n: text or document.targets[n] for n, text in some.items()} == anew


def test_of_what_is_new_only_its_own_words_count_where_it_is_concerned(translator: Translator) -> None:
    document, memory = drafts(translator), Memory()
    new = [NewPair(source, target) for source, target in zip(SOURCES, TARGETS, strict=True)]
    for pair in new:
        memory.add(pair.source, pair.target)
    everything = found(translator, document, memory, pulled_only=True)
    told = found(translator, document, memory, pulled_only=True, new=new)
    assert any(told.values())
    assert all(text in (None, everything[n]) for n, text in told.items())
    some = found(translator, document, memory, pulled_only=True, new=new, concerned=[3, 1])
    assert some == {n: told[n] if n in (1, 3) else None for n in range(5)}


def test_kept_states_give_the_same(translator: Translator) -> None:
    document, kept = drafts(translator), KeptStates()
    first = found(translator, document, Memory(), kept=kept)
    assert found(translator, document, Memory(), kept=kept) == first == found(translator, document, Memory())
    kept.tokens = 0
    kept.put("other", torch.zeros(1, 1))
    assert kept.get("other") is None
