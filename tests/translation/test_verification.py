"""Sentences that context would not change are not searched again, and nothing else comes of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from tiny_models import SOURCES, tiny_pipeline, tiny_translation_model

from weitblick.documents.document import Document, Sentence
from weitblick.model.context_module import Bank
from weitblick.model.document_model import DocumentModel
from weitblick.model.modifiers import WordChoice
from weitblick.model.output import Softmax, WordDistribution
from weitblick.translation import driver, searching, verification
from weitblick.translation.document_job import DocumentJob
from weitblick.translation.kept_states import KeptStates
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator

VARIANT = {"kind": "word", "integration": "decoder", "direction": "online", "values": "words"}
DOCUMENT = Document("d", tuple(Sentence(source) for source in SOURCES * 3))


def model(words: list[int]) -> DocumentModel:
    built = tiny_translation_model(VARIANT)
    built.decide_between([words])
    return built


def everything_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "worth_verifying", lambda model, options: False)


def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counts: list[int] = []
    search = searching.beam_search

    def counting(model, memory, source, *how):  # type: ignore[no-untyped-def]
        counts.append(source.sentences)
        return search(model, memory, source, *how)

    monkeypatch.setattr(searching, "beam_search", counting)
    return counts


@pytest.mark.parametrize("words", [range(4, 100), [5], [20, 30, 40]], ids=["all", "one", "three"])
def test_greedy_translations_are_those_of_a_whole_second_pass(
    words: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator(model(list(words)), tiny_pipeline())
    verified = next(translator.translations([DOCUMENT], beam=1))
    everything_again(monkeypatch)
    whole = next(translator.translations([DOCUMENT], beam=1))
    assert verified.document.targets == whole.document.targets


def test_progress_counts_every_sentence_in_both_passes_also_what_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    counts = searched(monkeypatch)
    with searching.reporting(done.append):
        next(Translator(model([5]), tiny_pipeline()).translations([DOCUMENT], beam=2))
    assert sum(counts) < sum(done) == 2 * sum(counts[:1])  # one batch holds the whole document


def test_only_what_changes_is_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    one = model([5])
    with torch.no_grad():
        one.sentence.output_bias[5] = -20.0  # never expected: context is read nowhere
    counts = searched(monkeypatch)
    translator = Translator(one, tiny_pipeline())
    without = translator.translate(DOCUMENT, context=False)
    once = sum(counts)
    counts.clear()
    assert translator.translate(DOCUMENT).targets == without.targets
    assert sum(counts) == once
    counts.clear()
    translator.translate(DOCUMENT, n_best=2, beam=2)
    assert sum(counts) == 2 * once


def test_a_word_that_only_loses_is_reason_enough() -> None:
    """A translation that a beam found need not hold the most probable word of each step."""
    weight, bias = torch.eye(8), torch.zeros(8)
    states = torch.zeros(3, 8)
    states[:, 5], states[:, 6] = 2.0, 1.5
    softmax = Softmax(states, weight, bias)
    scores = torch.tensor([[3.0, 0.0], [2.0, 1.5]])
    after = WordDistribution(
        softmax, (WordChoice(torch.tensor([5, 6]), torch.ones(1, 2, dtype=torch.bool), torch.tensor([0, 2]), scores),)
    )
    labels = torch.tensor([6, 6, 6])
    before = WordDistribution(softmax)
    assert verification._steps_that_differ(before, after, labels, greedy=False).tolist() == [0]
    assert verification._steps_that_differ(before, after, labels, greedy=True).tolist() == []


@pytest.mark.parametrize(
    ("before", "after", "near"),
    [
        ([-1.0, -1.5], [-1.0, -1.45], False),  # gains too little
        ([-1.0, -1.5], [-1.0, -1.2], True),
        ([-1.0, -1.1], [-1.4, -1.1], True),  # the translation's own word loses
        ([-1.0, -2.3], [-1.0, -2.0], False),  # gains less than half of what it is still behind
        ([-1.0, -3.4], [-1.0, -2.4], True),
        ([-1.0, -9.0], [-1.0, -2.6], False),  # is still too far behind
        ([-1.5, -1.0], [-1.5, -0.8], True),  # was before and gains
        ([-1.5, -1.0], [-1.0, -1.2], False),
    ],
)
def test_a_beam_searches_again_where_a_word_is_brought_near(
    before: list[float], after: list[float], near: bool
) -> None:
    then, now = torch.tensor([[-30.0, *before]]), torch.tensor([[-30.0, *after]])
    assert verification.caught_up(then, now, torch.tensor([1])).tolist() == [near]


def in_steps(translator: Translator, kept: KeptStates) -> list[str | None]:
    found = {}
    for step in DocumentJob(translator, DOCUMENT, TranslationOptions(), kept=kept).steps():
        found |= step
    return [found[index][0].text for index in range(len(DOCUMENT.sentences))]


@pytest.mark.parametrize("words", [list(range(4, 100)), [20, 30, 40]], ids=["all", "three"])
@pytest.mark.parametrize("part_tokens", [40, 4096], ids=["parts", "whole"])
def test_what_the_states_of_a_search_tell_is_what_a_pass_over_all_words_tells(
    words: list[int], part_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a document at once, in steps, and in steps with all that an earlier job has left."""
    monkeypatch.setattr("weitblick.model.context.PART_TOKENS", part_tokens)
    monkeypatch.setattr(verification, "STEPS_AT_A_TIME", part_tokens)
    told: list[set[int]] = []
    passed: list[set[int]] = []

    class Noting(verification.Verification):
        def changed(self, bank: Bank | None) -> Iterator[list[int]]:
            parts = list(super().changed(bank))
            told.append({index for part in parts for index in part})
            return iter(parts)

    def passing(*arguments):  # type: ignore[no-untyped-def]
        parts = list(verification.changed_by_context(*arguments))
        passed.append({index for part in parts for index in part})
        return parts

    own = model(words)
    with torch.no_grad():
        own.sentence.output_bias[words] += 3.0  # expected somewhere
    translator = Translator(own, tiny_pipeline())
    monkeypatch.setattr(driver, "Verification", Noting)
    monkeypatch.setattr(driver, "changed_by_context", passing)
    with_search = translator.translate(DOCUMENT).targets
    kept = KeptStates()
    assert in_steps(translator, kept) == with_search
    assert in_steps(translator, kept) == with_search
    assert not passed
    monkeypatch.setattr(driver, "Verification", lambda *how: None)
    assert translator.translate(DOCUMENT).targets == with_search
    assert told == passed * 3
    assert told[0]
