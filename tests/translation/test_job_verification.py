"""A job listens while it reads first translations as context, and settles the same ones as a pass of its own would."""

from __future__ import annotations

import pytest
import torch
from tiny_models import SOURCES, tiny_pipeline, tiny_translation_model

from weitblick.context.module import Bank
from weitblick.documents.document import Document, Sentence
from weitblick.translation import job, verification
from weitblick.translation.job import DocumentJob
from weitblick.translation.kept import KeptStates
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator

VARIANT = {"kind": "word", "integration": "decoder", "direction": "online", "values": "words"}
DOCUMENT = Document("d", tuple(Sentence(source) for source in SOURCES * 3))


def translate(translator: Translator, kept: KeptStates | None = None) -> list[str]:
    found = {}
    for step in DocumentJob(translator, DOCUMENT, TranslationOptions(), kept=kept).steps():
        found |= step
    return [found[index][0].text for index in range(len(DOCUMENT.sentences))]


@pytest.mark.parametrize("words", [list(range(4, 100)), [20, 30, 40]], ids=["all", "three"])
@pytest.mark.parametrize("part_tokens", [40, 4096], ids=["parts", "whole"])
def test_what_is_heard_is_what_a_pass_tells(
    words: list[int], part_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weitblick.model.sources.PART_TOKENS", part_tokens)
    heard: list[list[int]] = []
    passed: list[list[int]] = []

    class Listening(verification.Verification):
        def changed(self, bank: Bank | None) -> set[int]:
            found = super().changed(bank)
            heard.append([self.readers.positions[number] for number in sorted(found)])
            return found

    def passing(*arguments):  # type: ignore[no-untyped-def]
        for part in verification.changed_by_context(*arguments):
            passed.append(part)
            yield part

    own = tiny_translation_model(VARIANT)
    own.decide_between(words)
    with torch.no_grad():
        own.sentence.output_bias[words] += 3.0  # expected somewhere
    translator = Translator(own, tiny_pipeline())
    monkeypatch.setattr(job, "Verification", Listening)
    monkeypatch.setattr(job, "changed_by_context", passing)
    kept = KeptStates()
    told = translate(translator, kept)
    assert heard
    assert not passed
    assert translate(translator, kept) == told  # with all that the first has left
    heard = heard[: len(heard) // 2]
    verify = job._Passes._verify
    monkeypatch.setattr(job._Passes, "_verify", lambda passes, targets, _: verify(passes, targets, None))
    assert translate(translator) == told
    assert sorted(number for part in passed for number in part) == sorted(number for part in heard for number in part)
    assert any(passed)
