"""States kept from a search are those of a pass of the decoder; what is kept between jobs is bounded."""

from __future__ import annotations

import pytest
import torch
from tiny_models import SOURCES, tiny_pipeline, tiny_translation_model

from weitblick.documents.document import Document, Sentence
from weitblick.model.context import Sources
from weitblick.translation.beam import SearchOptions, beam_search
from weitblick.translation.kept_states import BestStates, KeptStates
from weitblick.translation.translator import Translator

VARIANT = {"kind": "word", "integration": "decoder", "direction": "online"}


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("architecture", ["transformer", "rnnsearch"])
def test_states_of_the_best_hypotheses(beam: int, architecture: str) -> None:
    model = tiny_translation_model({"kind": "none"}, architecture=architecture)
    ids = tiny_pipeline().encode_source(SOURCES)
    sources = Sources(ids, [0] * len(ids), list(range(len(ids))))
    everything = sources.pack(range(len(ids)))
    best = BestStates()
    with torch.no_grad():
        memory = sources.encode(model.sentence)
        found = beam_search(model, memory, everything.layout, None, SearchOptions(beam), None, best)
        target = sources.pack_targets(range(len(ids)), [hypotheses[0].ids for hypotheses in found])
        expected = model.sentence.decode(target.tokens, target.layout, memory, everything.layout)
    states = best.states
    assert states is not None
    assert len(set(target.layout.lengths.tolist())) > 1
    torch.testing.assert_close(states.final, expected.final, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(states.attended, expected.attended, rtol=1e-4, atol=1e-4)


def test_drafts_take_a_pass_and_what_is_found_none(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = Translator(tiny_translation_model(VARIANT), tiny_pipeline())
    sentences = [Sentence(source) for source in SOURCES]
    sentences[1] = Sentence(SOURCES[1], "ein Haus", "locked")
    passed: list[int] = []
    decode = type(translator.model.sentence).decode

    def counting(self, tokens, layout, *how):  # type: ignore[no-untyped-def]
        passed.append(layout.sentences)
        return decode(self, tokens, layout, *how)

    monkeypatch.setattr(type(translator.model.sentence), "decode", counting)
    translator.translate(Document("d", tuple(sentences)), beam=2)
    assert sum(passed) == 1


def test_the_oldest_goes_first_and_what_was_asked_for_is_young() -> None:
    kept = KeptStates(tokens=6)
    for name in "abc":
        kept.put(name, torch.zeros(2, 4))
    assert kept.get("a") is not None
    kept.put("d", torch.zeros(2, 4))
    assert kept.get("b") is None
    assert all(kept.get(name) is not None for name in "acd")


def test_a_part_of_a_batch_does_not_hold_the_batch() -> None:
    kept = KeptStates(tokens=10)
    kept.put("part", torch.zeros(1000, 4)[:2])
    found = kept.get("part")
    assert found is not None
    assert found.untyped_storage().nbytes() == 2 * 4 * 4
