"""Forms of address: which one a translation shows. English says *you* to everybody, German *Sie* or *du* and *ihr*."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from weitblick.text.base import FORMAL, INFORMAL

Form = Literal["formal", "informal"]
SYMBOLS_OF_FORMS: dict[Form, str] = {"formal": FORMAL, "informal": INFORMAL}
ADDRESSED = re.compile(r"\b(?:you|your|yours|yourself|yourselves)\b", re.IGNORECASE)
OTHERS = re.compile(r"\b(?:she|her|hers|they|them|their|theirs)\b", re.IGNORECASE)
"""Of an English source: *Sie* at the beginning of its translation may be one of these."""


@dataclass(frozen=True)
class FormWords:
    """How a language shows a form of address. informal: words that are never anything else; formal: words that are it
    in the translation of a sentence that addresses somebody; first: the same, at the beginning of a sentence, where
    other words have a capital, too; imperative: requests, which need no *you* in the source; words: of each form, all
    of its words, wherever they stand."""

    informal: re.Pattern[str]
    formal: re.Pattern[str]
    first: re.Pattern[str]
    imperative: re.Pattern[str]
    words: Mapping[Form, re.Pattern[str]]


_INFORMAL = r"(?:du|dich|dir|dein(?:e[mnrs]?)?|euch|euer|eure[mnrs]?)"
_FORMAL = r"(?:Sie|Ihnen|Ihr(?:e[mnrs]?)?)"


FORM_WORDS = {
    "de": FormWords(
        informal=re.compile(rf"\b{_INFORMAL}\b", re.IGNORECASE),
        formal=re.compile(rf"(?<=[\w,;] ){_FORMAL}\b"),
        first=re.compile(r"^\W*(?:Sie|Ihnen|Ihre[mnrs]?)\b"),
        imperative=re.compile(r"^\W*[A-ZÄÖÜ]\w+n Sie\b"),
        words={"formal": re.compile(_FORMAL), "informal": re.compile(_INFORMAL, re.IGNORECASE)},
    )
}
"""By the target language; of others nothing is known."""


def forms_of_address(source: str, target: str, language: str = "de") -> frozenset[Form]:
    """The forms of address that the translation of an English sentence shows."""
    words = FORM_WORDS.get(language)
    if words is None:
        return frozenset()
    formal = words.imperative.search(target) is not None and "?" not in target
    if ADDRESSED.search(source):
        formal = formal or words.formal.search(target) is not None
        formal = formal or (not OTHERS.search(source) and words.first.search(target) is not None)
    shown: list[Form] = ["formal"] if formal else []
    return frozenset([*shown, "informal"] if words.informal.search(target) else shown)


def form_of_address(source: str, target: str, language: str = "de") -> Form | None:
    """The only form of address that a translation shows; None if it shows none, or both."""
    shown = forms_of_address(source, target, language)
    return next(iter(shown)) if len(shown) == 1 else None
