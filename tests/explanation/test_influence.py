"""Where context mattered: found, ranked, and traced back to the context words."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_explanation import build

from weitblick.explanation.attention import AttendedSentence, Attention, AttentionRow
from weitblick.explanation.figure import most_influenced
from weitblick.explanation.influence import carriers_of, differences, influence, summarise
from weitblick.explanation.schema import Explanation, ModelInfo, SentenceExplanation, WordScore, words_of


def small(integration: str = "encoder", kind: str = "hierarchical") -> Explanation:
    """Two sentences. In the second, "it" looks at "dome" with most of its weight, "shines" at "old"."""
    first = words_of(["the", "old", "dome"])
    source, target = words_of(["it", "shines"]), words_of(["sie", "leuchtet"])

    def looks_at(*weights: float) -> AttentionRow:
        return AttentionRow((AttendedSentence(0, 1.0, np.array(weights)),), 1)

    rows = [looks_at(0.1, 0.1, 0.8), looks_at(0.0, 1.0, 0.0)]
    if kind == "sentence":
        rows = [looks_at(), looks_at()]
    attended = SentenceExplanation(
        source,
        target,
        words_of(["es", "leuchtet"]),
        source,
        (WordScore(-0.1, -2.1, 1.2, "es"), WordScore(-0.3, -0.31, 0.01)),
        (((0, 0.9), (1, 0.1)), ((1, 1.0),)),
        (0.5, 0.1),
        Attention.of(2, 1, rows),
    )
    plain = SentenceExplanation(first, first, first, first, (WordScore(-1, -1.5, 0.3),) * 3, (((0, 1.0),),) * 3)
    model = ModelInfo("m", kind, integration, "offline", 1)  # type: ignore[arg-type]
    return Explanation("d", "en", "de", model, (plain, attended))


def test_changed_choices_come_first_then_the_greatest_effect() -> None:
    found = influence(small())
    assert (found[0].sentence, found[0].word, found[0].changed) == (1, 0, True)
    assert found[0].gain == pytest.approx(2.0)
    assert [entry.effect for entry in found[1:]] == sorted((entry.effect for entry in found[1:]), reverse=True)
    assert (1, 1) not in [(entry.sentence, entry.word) for entry in found]  # an effect too small to speak of
    assert influence(small(), least=0.005)[-1].word == 1


def test_carriers_follow_the_source_words_that_a_target_word_reads() -> None:
    carriers = carriers_of(small(), 1, 0)
    assert (carriers[0].sentence, carriers[0].word) == (0, 2)  # dome
    # Of "it" 0.9 * 0.5 came through, of "shines" 0.1 * 0.1; 0.8 of the former went to "dome".
    assert carriers[0].weight == pytest.approx(0.8 * 0.45 / 0.46, abs=0.01)
    assert sum(carrier.weight for carrier in carriers) == pytest.approx(1.0)
    assert [carrier.word for carrier in carriers_of(small(), 1, 1)] == [1]


def test_carriers_of_decoder_integration_are_the_words_own() -> None:
    assert [carrier.word for carrier in carriers_of(small("decoder"), 1, 1)] == [1]


def test_carriers_of_sentence_attention_are_whole_sentences() -> None:
    carriers = carriers_of(small(kind="sentence"), 1, 0)
    assert [(carrier.sentence, carrier.word) for carrier in carriers] == [(0, None)]


def test_most_influenced_is_the_query_word_behind_the_first_influence() -> None:
    assert most_influenced(small()) == (1, 0)
    assert most_influenced(build(kind="none")) is None


def test_differences_mark_what_the_other_side_does_not_have() -> None:
    removed, added = differences(
        words_of(["das", "alte", "Haus", "ist", "es"]), words_of(["die", "alte", "Sternwarte", "ist"])
    )
    assert (removed, added) == ([0, 2, 4], [0, 2])
    same = words_of(["gleich"])
    assert differences(same, same) == ([], [])


def test_a_model_without_context_changes_nothing() -> None:
    explanation = build(kind="none")
    assert [entry for entry in influence(explanation) if entry.changed] == []
    assert carriers_of(explanation, 0, 0) == ()
    assert summarise(explanation)["sentences_attended"] is None


def test_the_summary_counts() -> None:
    summary = summarise(small())
    assert (summary["sentences"], summary["source_words"], summary["sentences_changed"]) == (2, 5, 1)
    assert (summary["choices_changed"], summary["sentences_attended"]) == (1, 1.0)
    assert summary["context_share"] == pytest.approx(0.3)
