"""A sentence and its translation that belong to no file, as a model should read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weitblick.formats.blocks import Pieces
from weitblick.formats.placeholders import Words, calm, conjunction, number_words


@dataclass(frozen=True)
class VeiledPair:
    """With K1, K2, ... for what no model should touch; names: what each of these stands for."""

    source: str
    target: str
    names: Mapping[str, str]


def veiled_pair(source: str, target: str, language: str) -> VeiledPair:
    """`language`: of the source."""
    pieces = Pieces()
    pieces.text(source)
    text, codes = pieces.content()
    words = Words.of(number_words(text), [code.shown for code in codes if code.kind == "word"], conjunction(language))
    return VeiledPair(calm(words.veil(words.source)), calm(words.veil(words.find(target))), words.named)
