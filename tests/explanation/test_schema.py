"""Explanations as data: what is packed comes back, what is damaged is refused, long documents stay small."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_explanation import build

from weitblick.common.errors import UserError
from weitblick.explanation.attention import AttendedSentence, Attention, AttentionRow, visible
from weitblick.explanation.schema import text_of
from weitblick.explanation.storage import load_explanation, save_explanation, to_json


def simplex(size: int) -> st.SearchStrategy[np.ndarray]:
    return st.lists(st.floats(0.01, 1.0), min_size=size, max_size=size).map(lambda w: np.array(w) / sum(w))


@st.composite
def rows(draw: st.DrawFn) -> tuple[int, int, list[AttentionRow]]:
    queries, heads = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    made = []
    for _ in range(queries * heads):
        sentences = draw(st.lists(st.integers(0, 400), unique=True, max_size=5))
        masses = draw(simplex(len(sentences))) if sentences else []
        widths = [draw(st.integers(0, 6)) for _ in sentences]
        entries = [
            AttendedSentence(sentence, float(mass), draw(simplex(width)) if width else np.zeros(0))
            for sentence, mass, width in zip(sentences, masses, widths, strict=True)
        ]
        made.append(visible(entries))
    return queries, heads, made


@settings(deadline=None, max_examples=60)
@given(rows())
def test_packed_attention_comes_back_within_its_precision_and_in_decreasing_mass(
    case: tuple[int, int, list[AttentionRow]],
) -> None:
    queries, heads, given_rows = case
    attention = Attention.from_text(queries, heads, Attention.of(queries, heads, given_rows).to_text())
    for index, row in enumerate(given_rows):
        found = attention.row(index // heads, index % heads)
        assert found.attended == row.attended
        assert [entry.sentence for entry in found.entries] == [entry.sentence for entry in row.entries]
        masses = [entry.mass for entry in found.entries]
        assert masses == sorted(masses, reverse=True)
        for entry, original in zip(found.entries, row.entries, strict=True):
            assert entry.mass == pytest.approx(original.mass, abs=1e-5)
            np.testing.assert_allclose(entry.words, original.words, atol=1 / 255)


def test_the_average_of_heads_is_a_distribution_with_words_weighed_by_each_heads_mass() -> None:
    one = AttentionRow((AttendedSentence(3, 1.0, np.array([1.0, 0.0])),), 1)
    other = AttentionRow(
        (AttendedSentence(3, 0.25, np.array([0.0, 1.0])), AttendedSentence(5, 0.75, np.array([1.0]))), 2
    )
    average = Attention.of(1, 2, [one, other]).average(0)
    assert [entry.sentence for entry in average.entries] == [3, 5]
    assert [entry.mass for entry in average.entries] == pytest.approx([0.625, 0.375], abs=1e-4)
    np.testing.assert_allclose(average.entries[0].words, [0.8, 0.2], atol=1e-2)
    assert average.attended == 1.5


def test_a_row_lists_the_heaviest_sentences_and_keeps_the_mass_of_the_others() -> None:
    entries = [AttendedSentence(index, 1 / 100, np.zeros(0)) for index in range(100)]
    row = visible(entries, most=10)
    assert (len(row.entries), row.attended) == (10, 100)
    assert sum(entry.mass for entry in row.entries) + row.rest == pytest.approx(1.0)
    assert len(visible([AttendedSentence(0, 0.001, np.zeros(0))]).entries) == 1


@pytest.mark.parametrize("kind", ["hierarchical", "none"])
@pytest.mark.parametrize("integration", ["encoder", "decoder"])
def test_json_round_trip(kind: str, integration: str, tmp_path) -> None:
    explanation = build(kind=kind, integration=integration)
    save_explanation(tmp_path / "explanation.json", explanation)
    loaded = load_explanation(tmp_path / "explanation.json")
    assert loaded.model == explanation.model
    for sentence, original in zip(loaded.sentences, explanation.sentences, strict=True):
        assert sentence.source == original.source
        assert sentence.target_without == original.target_without
        assert sentence.context_words == original.context_words
        assert sentence.attention == original.attention
        assert [score.gain for score in sentence.scores] == pytest.approx([s.gain for s in original.scores], abs=2e-4)
        assert [score.choice_without for score in sentence.scores] == [s.choice_without for s in original.scores]
    save_explanation(tmp_path / "again.json", loaded)
    assert load_explanation(tmp_path / "again.json") == loaded


def test_words_read_as_the_sentence_they_came_from() -> None:
    text = "„Sie werden ein neues Lager brauchen“, sagte der Mechaniker, „und Sie werden Geduld brauchen.“"
    assert text_of(build().sentences[5].target) == text


def test_an_explanation_of_another_version_or_a_damaged_one_is_refused_by_name(tmp_path) -> None:
    value = to_json(build(2))
    path = tmp_path / "old.json"
    for change, message in [
        ({"format_version": 99}, "format_version is 99"),
        ({"model": {"name": "x"}}, "kind"),
        ({"model": {**value["model"], "heads": "many"}}, "heads"),
        ({"sentences": [{**value["sentences"][0], "context_share": ["a lot"]}]}, "context_share"),
        ({"sentences": [{**value["sentences"][0], "scores": [[1, 2]]}]}, "scores"),
        ({"sentences": [{**value["sentences"][0], "attention": "!!"}]}, "not an explanation"),
        ({"sentences": [{**value["sentences"][0], "attention": "eJwDAAAAAAE="}]}, "not an explanation"),
    ]:
        path.write_text(json.dumps({**value, **change}), encoding="utf-8")
        with pytest.raises(UserError, match=message) as caught:
            load_explanation(path)
        assert str(path) in str(caught.value)


def test_a_long_document_stays_in_a_few_megabytes() -> None:
    explanation = build(150, heads=4)
    words = sum(len(sentence.source) for sentence in explanation.sentences)
    size = len(json.dumps(to_json(explanation)))
    assert size / (words * 4) < 120  # bytes for a word and head: 7,500 words and 8 heads stay below 8 MB
