"""Shortlists: what they learn, that a sentence has its own, and that one of all words changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import SOURCES, TARGETS, tiny_pipeline, tiny_translation_model

from weitblick.common.errors import UserError
from weitblick.documents.document import Document, Sentence
from weitblick.fast.best_words import best_in_strips
from weitblick.fast.shortlist import ABSENT, Shortlist
from weitblick.model.modifiers import Allowed, Pointed
from weitblick.model.output import Softmax, Wanted, WordDistribution
from weitblick.text.base import EOS
from weitblick.translation.translator import Translator

ENCODER = {"kind": "hierarchical", "integration": "encoder"}
QUICK: dict[str, Any] = {"beam": 2, "length_penalty": 0.0}
DOCUMENTS = [
    Document("a", tuple(Sentence(source) for source in SOURCES)),
    Document("b", tuple(Sentence(source) for source in SOURCES[1:3])),
]


def learned(**sizes: int) -> Shortlist:
    return Shortlist.learn(zip(SOURCES * 3, TARGETS * 3, strict=True), tiny_pipeline(), **sizes)


def translator() -> Translator:
    return Translator(tiny_translation_model(ENCODER, end=2.5), tiny_pipeline())


def targets(shortlist: Shortlist | None, documents: list[Document]) -> list[tuple[str | None, ...]]:
    return [tuple(d.targets) for d in translator().translate_documents(documents, shortlist=shortlist, **QUICK)]


def test_words_that_stand_together_are_found() -> None:
    pipeline = tiny_pipeline()
    pairs = [("The house", "Das Haus"), ("The bank", "Die Bank"), ("It costs", "Es kostet")] * 2
    found = Shortlist.learn(pairs, pipeline, common=1, each=3)
    source, target = pipeline.encode_source(["It costs"])[0], pipeline.encode_target(["Es kostet"])[0]
    assert set(found.words(source)) & set(target)
    assert (found.table[0] == ABSENT).all()  # padding stands nowhere
    assert EOS in found.common


def test_a_list_of_all_words_changes_nothing() -> None:
    everything = learned()
    size = len(tiny_pipeline().target_vocabulary)
    everything = Shortlist(np.arange(size), everything.table, everything.fingerprint)
    assert targets(everything, DOCUMENTS) == targets(None, DOCUMENTS)


def test_only_words_of_the_list_are_said_and_batches_do_not_matter() -> None:
    few = learned(common=5, each=3)
    together = targets(few, DOCUMENTS)
    assert together != targets(None, DOCUMENTS)
    assert [targets(few, [one])[0] for one in DOCUMENTS] == together
    pipeline = tiny_pipeline()
    (found,) = translator().translations(DOCUMENTS[1:], shortlist=few, **QUICK)
    for source, translations in zip(SOURCES[1:3], found.translations, strict=True):
        said = pipeline.encode_target([translations[0].text])[0]
        allowed = set(few.words(pipeline.encode_source([source])[0]).tolist())
        assert {pipeline.target_vocabulary.tokens[i] for i in said} <= {
            pipeline.target_vocabulary.tokens[i] for i in allowed
        }


def test_the_best_allowed_words_are_those_of_the_whole_without_the_rest() -> None:
    random = torch.Generator().manual_seed(1)
    states, weight, bias = (torch.randn(size, generator=random) for size in ((6, 8), (50, 8), (50,)))
    ids = torch.cat([torch.arange(4), torch.randperm(46, generator=random)[:25].sort().values + 4])
    mask = torch.zeros(29, 3)
    mask[10:20, 1] = -torch.inf
    allowed = Allowed(ids, weight[ids], bias[ids], mask)
    with torch.no_grad():
        found = WordDistribution(Softmax(states, weight, bias)).best(4, 2, allowed=allowed)
    for row in range(6):
        own = ids if row // 2 != 1 else torch.cat([ids[:10], ids[20:]])
        exact = best_in_strips(states[row : row + 1], weight[own], bias[own], Wanted(4, 2))
        assert torch.equal(found.ids[row], own[exact.ids[0]])
        torch.testing.assert_close(found.log_probabilities[row], exact.log_probabilities[0])
        torch.testing.assert_close(found.end[row], exact.end[0])


def test_where_others_point_the_rest_choose_as_before() -> None:
    random = torch.Generator().manual_seed(2)
    states, weight, bias = (torch.randn(size, generator=random) for size in ((4, 8), (50, 8), (50,)))
    ids = torch.arange(20)
    mask = torch.zeros(20, 2)
    mask[10:15, 0] = -torch.inf
    allowed = Allowed(ids, weight[ids], bias[ids], mask)
    pointed = Pointed(torch.tensor([0.0, 0.0, 0.9, 0.0]), torch.full((4, 1), 33), torch.ones(4, 1))
    plain = WordDistribution(Softmax(states, weight, bias)).best(4, 2, allowed=allowed)
    found = WordDistribution(Softmax(states, weight, bias), (pointed,)).best(4, 2, allowed=allowed)
    assert found.ids[2, 0] == 33
    for row in (0, 1, 3):
        assert torch.equal(found.ids[row], plain.ids[row])
        torch.testing.assert_close(found.log_probabilities[row], plain.log_probabilities[row])


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    one = learned()
    one.save(tmp_path / "s")
    two = Shortlist.load(tmp_path / "s", tiny_pipeline())
    assert np.array_equal(one.table, two.table)
    assert np.array_equal(one.common, two.common)


def test_what_is_no_shortlist_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no")
    Shortlist(np.arange(4), np.zeros((2, 1), dtype=int), "other").save(tmp_path / "other")
    Shortlist(np.arange(4), np.zeros((2, 1), dtype=int), tiny_pipeline().fingerprint()).save(tmp_path / "small")
    for name, message in (
        ("none", "no such file"),
        ("text", "is no shortlist"),
        ("other", "another vocabulary"),
        ("small", "words that the model does not have"),
    ):
        with pytest.raises(UserError, match=message):
            Shortlist.load(tmp_path / name, tiny_pipeline())
    with pytest.raises(UserError, match="no sentence pairs"):
        Shortlist.learn([], tiny_pipeline())
