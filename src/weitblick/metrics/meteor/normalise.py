"""METEOR's own tokenisation (`-norm` of Meteor 1.5): punctuation apart, quotes and dashes unified, lower case.

Matches of the patterns consume their neighbours on purpose (`a-b-c` loses only its first dash): that is how the
reference implementation counts words, and the numbers of the literature were made with it.
"""

from __future__ import annotations

import re
from functools import cache

# Latin and Cyrillic letters; everything else that is no digit is punctuation to METEOR
LETTERS = "A-Za-zŠŽšžŸÀ-ÖØ-öø-žЀ-ӿԀ-ԧꙀ-ꙮ꙾-ꚗᴀ-ᵿ"
WORD = "0-9" + LETTERS
ASCII_SPACE = " \t\n\x0b\f\r"

_OTHER = re.compile(rf"([^{WORD}{ASCII_SPACE}.'`,\-‘’])")
_DOTS = re.compile(r"\.{2,}")
_COMMAS = tuple(re.compile(pattern) for pattern in (r"([^0-9]),([^0-9])", r"([0-9]),([^0-9])", r"([^0-9]),([0-9])"))
_SINGLE_QUOTES = re.compile("[`‘’]")
_DOUBLE_QUOTES = re.compile("[“”]|''")
_INNER_DASH = re.compile(rf"([{WORD}.])-([{WORD}])")
_SPACES = re.compile("[ \u2000-\u200a\u202f\u205f\u3000\u00a0]+")
_LETTER = re.compile(f"[{LETTERS}]")
_ENGLISH_APOSTROPHES = (
    (re.compile(rf"([^{LETTERS}])'([^{LETTERS}])"), r"\1 ' \2"),
    (re.compile(rf"([^{LETTERS}0-9])'([{LETTERS}])"), r"\1 ' \2"),
    (re.compile(rf"([{LETTERS}])'([^{LETTERS}])"), r"\1 ' \2"),
    (re.compile(rf"([{LETTERS}])'([{LETTERS}])"), r"\1 '\2"),
    (re.compile(r"([0-9])'(s)"), r"\1 '\2"),
)


def normalise(line: str, language: str) -> list[str]:
    """The words METEOR compares."""
    text = _OTHER.sub(r" \1 ", f" {line} ")
    # runs of dots are one word: kept from the rules for single dots by a character no text holds
    text = _DOTS.sub(lambda run: " " + "\ufdd0" * len(run[0]) + " ", text)
    for pattern in _COMMAS:
        text = pattern.sub(r"\1 , \2", text)
    text = _DOUBLE_QUOTES.sub(' " ', _SINGLE_QUOTES.sub("'", text))
    text = _INNER_DASH.sub(r"\1 \2", text.replace("–", "-").replace("--", "-"))
    if language == "en":
        for pattern, replacement in _ENGLISH_APOSTROPHES:
            text = pattern.sub(replacement, text)
    else:
        text = text.replace("'", " ' ")
    words = re.split(f"[{ASCII_SPACE}]+", text.strip(ASCII_SPACE))
    text = " ".join(
        _split_full_stop(word, words[i + 1] if i + 1 < len(words) else "", language) for i, word in enumerate(words)
    )
    return _SPACES.sub(" ", text.replace("\ufdd0", ".")).lower().split()


def _split_full_stop(word: str, following: str, language: str) -> str:
    """A final dot is a word of its own unless it belongs to an abbreviation; `U.S.` is written `US`."""
    if len(word) < 2 or not word.endswith("."):
        return word
    stem = word[:-1]
    if "." in stem and _LETTER.search(stem):
        return word.replace(".", "")
    always, before_numbers = _abbreviations(language)
    if stem in always or "a" <= following[:1] <= "z" or (stem in before_numbers and following[:1].isdecimal()):
        return word
    return f"{stem} ."


@cache
def _abbreviations(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Moses' non-breaking prefixes: those that never end a sentence, and those that do not before a number."""
    from sacremoses.corpus import NonbreakingPrefixes

    entries = [entry.split() for entry in NonbreakingPrefixes().words(language)]
    numeric = {entry[0] for entry in entries if "#NUMERIC_ONLY#" in entry}
    return frozenset(entry[0] for entry in entries if entry) - numeric, frozenset(numeric)
