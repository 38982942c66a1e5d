"""Streams: each past sentence is projected once, a stream goes on where it was saved, and confirmed text is context."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny_models import name, tiny_pipeline, tiny_translation_model

from weitblick.common.errors import UserError
from weitblick.text.units import Unit
from weitblick.translation.driver import translate_units
from weitblick.translation.options import TranslationOptions
from weitblick.translation.streaming import History, PastSentence, Stream
from weitblick.translation.translator import Translator

SENTENCES = ["The report was read.", "It costs more.", "Where is it?", "He said that."]
DECODER = {"kind": "hierarchical", "integration": "decoder", "direction": "online", "values": "words", "order": "true"}
ENCODER = {"kind": "hierarchical", "integration": "encoder", "direction": "online"}
HAN = {"kind": "han", "integration": "decoder", "direction": "online"}
every_variant = pytest.mark.parametrize("variant", [ENCODER, DECODER, HAN], ids=name)


def stream_of(variant: dict[str, str]) -> Stream:
    return Translator(tiny_translation_model(variant), tiny_pipeline()).stream(beam=2)


@pytest.mark.parametrize("variant", [DECODER, HAN], ids=name)
def test_a_stream_equals_a_document_whose_past_is_locked(variant: dict[str, str]) -> None:
    stream = stream_of(variant)
    past: list[Unit] = []
    for position, text in enumerate(SENTENCES):
        found = stream.translations(text)[0]
        source = stream.pipeline.encode_source([text])[0]
        units = [*past, Unit(0, position, position, text, source)]
        best = translate_units(stream.model, units, TranslationOptions(beam=2))[-1][0]
        if position:
            assert found.log_probability == pytest.approx(best.log_probability, abs=1e-4)
        past.append(Unit(0, position, position, text, source, list(stream.past.sentences[-1].target), locked=True))


@every_variant
def test_a_saved_stream_goes_on_to_the_same_translations(variant: dict[str, str], tmp_path: Path) -> None:
    whole, first, second = (stream_of(variant) for _ in range(3))
    lines = [*SENTENCES, "", *SENTENCES]
    expected = [whole.translations(line) for line in lines]
    assert [first.translations(line) for line in lines[:5]] == expected[:5]
    first.save(tmp_path / "stream.json")
    second.translations("It is old.")
    second.load(tmp_path / "stream.json")
    assert second.count == 5
    assert [second.translations(line) for line in lines[5:]] == expected[5:]


def test_what_is_no_saved_stream_is_refused_in_one_line(tmp_path: Path) -> None:
    stream, path = stream_of(ENCODER), tmp_path / "stream.json"
    stream.translate(SENTENCES[0])
    stream.save(path)
    good = json.loads(path.read_text())
    for change, message in (
        ({"format_version": 9}, "format_version"),
        ({"format_version": 1}, "format_version"),
        ({"fingerprint": None}, "fingerprint"),
        ({"past": [[0, [10**6], []]]}, "does not know"),
        ({"past": [[0, "words", []]]}, "past.0.1"),
        ({"position": -1}, "position"),
        ({"surplus": 1}, "surplus"),
        ({"position": 10**30}, "position"),
        ({"position": 0}, "one behind the other"),
        ({"past": [[10**30, [5], []]]}, "past.0.0"),
        ({"past": [[0, [5], []]] * 2}, "one behind the other"),
        ({"past": [[0, [5] * 40_000, []]]}, "40000 words"),
        ({"fingerprint": "of another"}, "another vocabulary"),
        ({"confirmed": {"7": "Text."}}, "confirms sentence 7 of 1"),
        ({"confirmed": {"0": " "}}, "confirms sentence 0 of 1"),
        ({"confirmed": {"0": "Text."}}, "approved"),  # which this model cannot use
    ):
        path.write_text(json.dumps({**good, **change}))
        other = stream_of(ENCODER)
        other.translate(SENTENCES[1])
        with pytest.raises(UserError, match=message):
            other.load(path)
        assert other.sentences == [(0, SENTENCES[1])]  # as it was


@torch.no_grad()
def test_a_past_sentence_is_projected_once_and_copied_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_translation_model(DECODER)
    history, plain = History(model), History(model)
    projected = []
    original = type(model).project
    monkeypatch.setattr(type(model), "project", lambda self, *given: projected.append(1) or original(self, *given))
    for position in range(37):
        history.add(PastSentence(position, [5, 6, 7 + position], [8, 9]))
    assert len(projected) == 37
    assert len(history._runs) <= 6
    history.replace(PastSentence(11, [5, 6, 18], [10, 11, 12]))
    assert len(projected) == 38
    for position in range(37):
        target = [10, 11, 12] if position == 11 else [8, 9]
        plain.add(PastSentence(position, [5, 6, 7 + position], target))
    ours, theirs = history.context(), plain.context()
    assert torch.equal(ours.layout.positions, theirs.layout.positions)
    for mine, other in zip(ours.bank.projected.rows.values(), theirs.bank.projected.rows.values(), strict=True):
        torch.testing.assert_close(mine, other)


def test_a_confirmed_translation_is_what_the_next_sentences_read() -> None:
    corrected, same, plain = (stream_of(DECODER) for _ in range(3))
    for stream in (corrected, same, plain):
        first = stream.translate(SENTENCES[0])
    corrected.confirm(0, "Es kostet mehr.")
    own = same.past.sentences[0].target
    if same.pipeline.encode_target([first])[0] == list(own):
        same.confirm(0, first)
    results = [stream.translations(SENTENCES[3])[0].log_probability for stream in (corrected, same, plain)]
    assert results[1] == pytest.approx(results[2], abs=1e-6)
    assert results[0] != pytest.approx(results[2], abs=1e-5)


def test_an_empty_translation_cannot_be_confirmed() -> None:
    stream = stream_of(DECODER)
    stream.translate("The report was read.")
    stream.translate("")
    with pytest.raises(ValueError, match="the translation of sentence 0 is empty"):
        stream.confirm(0, " ")
    stream.confirm(1, "")  # all rows may be confirmed in turn
    for number in (-1, 2):
        with pytest.raises(IndexError, match=f"sentence {number} of 2 so far"):
            stream.confirm(number, "Text.")
    assert stream.confirmed == {}


def test_a_model_that_reads_no_translations_cannot_use_confirmed_ones() -> None:
    stream = stream_of(ENCODER)
    stream.translate(SENTENCES[0])
    with pytest.raises(UserError, match="approved"):
        stream.confirm(0, "Etwas")
    with pytest.raises(IndexError):
        stream.confirm(1, "Etwas")
