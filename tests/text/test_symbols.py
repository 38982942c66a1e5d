"""Symbols and wished words are one piece wherever they stand, and everything comes back exactly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from text_corpus import SOURCES, TARGETS

from weitblick.common.recipe import TextSection
from weitblick.text.base import SYMBOLS, UNK, TextPipeline, load_pipeline
from weitblick.text.pipeline import learn_pipeline

WORDS = ["ihrem", "Eurem", "Deines"]


def section(joint: bool = True, **changes: object) -> TextSection:
    values = {"symbols": list(SYMBOLS), "words": WORDS, "split_digits": True, **changes}
    return TextSection(kind="sentencepiece", merges=480, joint_vocabulary=joint, **values)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=[True, False], ids=["joint", "separate"])
def pipeline(request: pytest.FixtureRequest) -> TextPipeline:
    return learn_pipeline((SOURCES, TARGETS), section(request.param))


parts = st.one_of(
    st.sampled_from(SYMBOLS), st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=8), st.just(" ")
)


@settings(max_examples=300, deadline=None)
@given(text=st.lists(parts, max_size=12).map("".join))
def test_symbols_are_single_everywhere_and_text_comes_back(pipeline: TextPipeline, text: str) -> None:
    expected = " ".join(text.split())
    for side in ("source", "target"):
        (ids,) = pipeline.encode([text], side)  # type: ignore[arg-type]
        assert UNK not in ids
        assert pipeline.decode([ids], side) == [expected]  # type: ignore[arg-type]
        found = [piece for piece in pipeline.pieces(ids, side) if piece in SYMBOLS]  # type: ignore[arg-type]
        assert found == re.findall("|".join(map(re.escape, SYMBOLS)), expected)


def test_symbols_come_last_and_the_size_is_what_was_asked_for(pipeline: TextPipeline) -> None:
    for vocabulary in (pipeline.source_vocabulary, pipeline.target_vocabulary):
        assert tuple(vocabulary.tokens[-len(SYMBOLS) :]) == SYMBOLS
    if pipeline.joint_vocabulary:
        assert len(pipeline.target_vocabulary) == 480


def test_learned_pieces_are_those_without_symbols() -> None:
    with_symbols = learn_pipeline((SOURCES, TARGETS), section())
    without = learn_pipeline((SOURCES, TARGETS), section(symbols=[]).model_copy(update={"merges": 480 - len(SYMBOLS)}))
    assert with_symbols.target_vocabulary.tokens[: -len(SYMBOLS)] == without.target_vocabulary.tokens


def test_symbols_of_the_training_text_do_not_shape_other_pieces() -> None:
    masked = [*SOURCES, *["⟦1⟧xyzzy"] * 50], [*TARGETS, *["⟦1⟧xyzzy"] * 50]
    assert "xyzzy" not in learn_pipeline(masked, section()).target_vocabulary
    assert all(symbol in learn_pipeline(masked, section()).target_vocabulary for symbol in SYMBOLS)


def test_wished_words_are_one_piece(pipeline: TextPipeline) -> None:
    assert len(pipeline.single_pieces(WORDS, "test")) == len(WORDS)
    assert pipeline.pieces(pipeline.encode(["mit ihrem Haus"], "target")[0], "target").count("▁ihrem") == 1


def test_digits_are_single(pipeline: TextPipeline) -> None:
    pieces = pipeline.pieces(pipeline.encode(["2004 12 1,250.50"], "source")[0], "source")
    assert all(sum(letter.isdigit() for letter in piece) <= 1 for piece in pieces if not piece.startswith("<0x"))


def test_a_saved_pipeline_has_its_symbols(pipeline: TextPipeline, tmp_path: Path) -> None:
    pipeline.save(tmp_path)
    text = ["⟦formal⟧ See (⟦12⟧) of ⟦#1⟧."]
    assert load_pipeline(tmp_path).encode(text, "source") == pipeline.encode(text, "source")


@pytest.mark.parametrize("symbols", [["a b"], [""], ["⟦1⟧", "⟦1⟧"], ["▁x"]])
def test_impossible_symbols_are_refused(symbols: list[str]) -> None:
    with pytest.raises(ValidationError):
        section(symbols=symbols)


def test_moses_has_no_symbols() -> None:
    with pytest.raises(ValidationError, match="sentencepiece"):
        TextSection(kind="moses", symbols=["⟦1⟧"])
