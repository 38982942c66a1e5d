"""The model that comes with the package: it loads, translates without being named, and its output is kept."""

import json
from pathlib import Path

from weitblick.translation.translator import DEFAULT_MODEL, Translator

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


def test_it_is_small_and_complete():
    assert sum(path.stat().st_size for path in DEFAULT_MODEL.rglob("*") if path.is_file()) < 30_000_000
    card = (DEFAULT_MODEL / "README.md").read_text(encoding="utf-8")
    assert "European Parliament" in card
    assert "limits" in card


def test_its_translations_are_kept():
    translator = Translator.load()
    for document in GOLDEN:
        for name, context in (("with", True), ("without", False)):
            assert translator.translate(document["source"], context=context).targets == document[name]


def test_context_decides_a_pronoun():
    """The same sentence, after nouns of another gender."""
    translator = Translator.load()
    hat, newspaper = (
        translator.translate([first, "It was old."]).targets[1]
        for first in ("Hans bought the hat.", "Anna found the newspaper.")
    )
    assert hat.startswith("Er ")
    assert newspaper.startswith("Sie ")
