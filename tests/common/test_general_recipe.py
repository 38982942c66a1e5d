"""The general recipe asks for every symbol that the package knows: a vocabulary cannot be given more later."""

from __future__ import annotations

from pathlib import Path

import pytest

from weitblick.common.recipe_files import load_recipe
from weitblick.text.base import SYMBOLS

FOLDER = Path(__file__).parents[2] / "recipes" / "general"


def test_all_symbols_are_pieces_in_their_order() -> None:
    assert tuple(load_recipe(FOLDER / "sentence.yaml").text.symbols) == SYMBOLS


def test_words_that_context_decides_between_are_asked_for_in_both_cases() -> None:
    words = load_recipe(FOLDER / "sentence.yaml").text.words
    assert len(set(words)) == len(words)
    assert {word.capitalize() for word in words} <= set(words)
    assert {"er", "sie", "es", "ihn", "ihm", "ihr", "du", "euch", "Sie", "Ihnen", "dieser", "seinem"} <= set(words)


@pytest.mark.parametrize("name", ["continued", "falling"])
def test_going_on_trains_as_the_start_did(name: str) -> None:
    start, later = (load_recipe(FOLDER / f"{one}.yaml").sentence_stage for one in ("sentence", name))
    for key in ("batch_tokens", "learning_rate", "betas", "clip"):
        assert getattr(start, key) == getattr(later, key)
