"""A translator simulated with references: who sees what, and what the measures count."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from weitblick.common.errors import UserError
from weitblick.documents.document import Document, Sentence
from weitblick.evaluation.postedit_measures import ContentWords, Repetition, recall, repetitions, sticking
from weitblick.evaluation.postedit_systems import Simulation, chosen_systems
from weitblick.memory.store import Memory
from weitblick.translation.options import TranslationOptions


def documents(count: int = 9, length: int = 4) -> list[Document]:
    return [
        Document(str(d), tuple(Sentence(f"source {d} {s} word{s}", f"target {d} {s}") for s in range(length)))
        for d in range(count)
    ]


def simulation(before: int = 2, memory: Memory | None = None) -> Simulation:
    translator = SimpleNamespace(pipeline=SimpleNamespace(encode_source=lambda texts: [text.split() for text in texts]))
    return Simulation(translator, documents(), TranslationOptions(), before=before, memory=memory)  # type: ignore[arg-type]


def seen(name: str, document: int, sentence: int, **options) -> set[str]:
    ours = simulation(**options)
    return {c.origin.target for c in ours._candidates(name, ours.references, document, 100)[sentence]}


def test_a_sentence_sees_what_was_approved_before_it():
    assert seen("approved", 4, 0) == set()
    assert seen("approved", 4, 2) == {"target 4 0", "target 4 1"}
    assert seen("project", 4, 1) == {f"target {d} {s}" for d in (2, 3) for s in range(4)} | {"target 4 0"}


def test_a_random_memory_is_as_large_and_of_other_documents():
    strangers = seen("random", 4, 3)
    for sentence in range(4):
        assert len(seen("random", 4, sentence)) == len(seen("project", 4, sentence))
    assert not any(text.startswith(("target 2 ", "target 3 ", "target 4 ")) for text in strangers)


def test_only_what_a_document_has_approved_itself_is_its_own():
    ours = simulation()
    owned = {
        name: {c.origin.target for c in ours._candidates(name, ours.references, 4, 100)[2] if c.own}
        for name in ("approved", "project", "random")
    }
    assert owned == {"approved": {"target 4 0", "target 4 1"}, "project": {"target 4 0", "target 4 1"}, "random": set()}


def test_a_memory_feeds_all_systems():
    memory = Memory()
    memory.add("source word2", "from the memory")
    for name in ("approved", "project", "random"):
        assert "from the memory" in seen(name, 4, 2, memory=memory)


def test_systems_are_named():
    assert chosen_systems("random,approved") == ["none", "approved", "random"]
    with pytest.raises(UserError, match="unknown system 'all'"):
        chosen_systems("all")


def test_recall_tells_approved_words_from_first_occurrences():
    references = [["Die Quote steigt", "Die Quote sinkt"]]
    found = recall(references, [["Die Menge steigt", "Die Quote fällt"]], ContentWords("de"))
    assert (found.approved_words, found.first_words) == (1, 3)
    assert found.approved == 1.0
    assert found.first == pytest.approx(1 / 3)  # steigt, but neither the first Quote nor sinkt


def test_a_correction_sticks_or_harms():
    links = [[[("quota", "Quote")], [("quota", "Quote")], [("quota", "Kontingent")]]]
    cases = list(repetitions(links))
    assert cases == [
        Repetition(0, 1, frozenset({"Quote"}), True),
        Repetition(0, 2, frozenset({"Kontingent"}), False),
    ]
    none = [["Menge", "Menge", "Kontingent"]]
    ours = [["Menge", "die Quote", "die Quote"]]
    found = sticking(cases, none, ours)
    assert (found.right, found.cases, found.harmed, found.varied) == (1, 1, 1, 1)
    assert sticking(cases, none, none).right == 0
