"""How text looks: forms of address, names, headings, capitals, numbering, quotation marks, emoji."""

from __future__ import annotations

import re
from importlib.resources import files
from random import Random
from typing import Any

import yaml

from weitblick.text.address import SYMBOLS_OF_FORMS, form_of_address

WORDS: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("augmentation.yaml").read_text("utf-8"))
"""Names, labels, units and templates."""


def with_form_of_address(source: str, target: str) -> tuple[str, str] | None:
    """The pair with the symbol of the form of address that its target shows; None if it shows none, or both."""
    form = form_of_address(source, target)
    return None if form is None else (f"{SYMBOLS_OF_FORMS[form]} {source}", target)


# Names: a corpus in which everybody is called Tom becomes one in which names are copied.

MEN, WOMEN, SYLLABLES = WORDS["men"], WORDS["women"], WORDS["syllables"]
STOCK = (("Tom", "Tom", MEN), ("John", "John|Johannes", MEN), ("Mary", "Mary|Maria", WOMEN), ("Bob", "Bob", MEN))
"""Names that corpora use again and again, what they are in German, and others."""
SIBILANTS = ("s", "x", "z", "ß")


def made_up_name(random: Random) -> str:
    """A surname that nobody has, so that it can only be copied."""
    return "".join(random.choice(SYLLABLES) for _ in range(random.choice((2, 2, 3)))).capitalize()


def rename(source: str, target: str, random: Random) -> tuple[str, str] | None:
    """The pair with other people in it; None if it has none of the names that corpora use again and again."""
    renamed = False
    for old, german, names in STOCK:
        ours = re.findall(rf"\b{old}\b", source)
        theirs = re.findall(rf"\b(?:{german})s?\b", target)
        if not ours or len(ours) != len(theirs):
            continue
        new = random.choice(names) if random.random() < 0.7 else made_up_name(random)
        if random.random() < 0.1:
            new = f"{new} {made_up_name(random)}"
        genitive = f"{new}’" if new.endswith(SIBILANTS) else f"{new}s"
        source = re.sub(rf"\b{old}\b", new, source)
        target = re.sub(rf"\b(?:{german})s\b", genitive, target)
        target = re.sub(rf"\b(?:{german})\b", new, target)
        renamed = True
    return (source, target) if renamed else None


# How text looks: headings and cells, capitals, numbering, quotation marks, dashes, emoji. English to German.

SMALL_WORDS, ROMAN, LABELS = frozenset(WORDS["small_words"]), WORDS["roman"], WORDS["labels"]
EMOJI = "😀😂😊😉😍😢😡👍👎🙏👏💪🎉🎂🎁❤️💔🔥⭐✨✅❌⚠️❗❓💡📌📅📞📧🔒🔑🚀🐛🐱🐶🌍☀️🌧️☕🍕🍎🚗✈️🏠📱💻🎵⚽🏆"
SINGLE_EMOJI = re.findall(r".\ufe0f?", EMOJI)
OPENING_QUOTES, CLOSING_QUOTES = ('"', "“", "”", "'"), ('"', "”", "”", "'")
MORE_EMOJI = [*range(0x1F300, 0x1F3FA), *range(0x1F400, 0x1F53D), *range(0x1F600, 0x1F64F), *range(0x1F680, 0x1F6C5)]
SENTENCE_END = re.compile(r"(?<!\.)[.]$")
OLD_SPELLING = re.compile(
    r"\b(?:[dD]aß|[mM]uß(?:t\w*)?|[mM]üß\w*|[wW]uß\w+|[gG]ewuß\w+|[bB]ewuß\w*|[lL]äß\w*|[lL]aß|[gG]ewiß|[hH]äß\w+|[hH]aß|[nN]aß"
    r"|\w*(?:prozeß|schuß|schluß|fluß|miß|laß|paß|riß)|Prozeß|Fluß|Schluß|Kuß|Kongreß|[pP]aß\w*|[eE]ßt|[fF]aß(?:t\w*)?|[gG]efaß\w*)\b"
)
QUOTED = re.compile(r'(?:"|»|“)([^"»«„“”]+)(?:"|«|”|“)')


def without_full_stop(source: str, target: str) -> tuple[str, str] | None:
    """A pair as in a heading or a cell; None where one side does not end with a single full stop."""
    if not SENTENCE_END.search(source) or not SENTENCE_END.search(target):
        return None
    return source[:-1], target[:-1]


def in_capitals(source: str, target: str) -> tuple[str, str] | None:
    """Both sides in capitals; None where symbols would suffer."""
    if "⟦" in source:
        return None
    return source.upper(), target.replace("ß", "SS").upper()


def in_title_case(source: str, target: str) -> tuple[str, str] | None:
    """The source as an English headline; a German one looks like any sentence."""
    bare = without_full_stop(source, target)
    if bare is None or "⟦" in source or len(source.split()) < 2:
        return None
    words = bare[0].split(" ")
    titled = [
        word if place and word in SMALL_WORDS else word[:1].upper() + word[1:] for place, word in enumerate(words)
    ]
    return " ".join(titled), bare[1]


def carelessly_typed(source: str, target: str, random: Random) -> tuple[str, str] | None:
    """The source as people type in haste: no capitals, or no full stop. The target is as it should be."""
    if "⟦" in source or any(word.isupper() and len(word) > 1 for word in source.split()):
        return None
    if random.random() < 0.6:
        return source.lower(), target
    bare = without_full_stop(source, target)
    return None if bare is None else (bare[0].lower(), bare[1])


def numbered(source: str, target: str, random: Random) -> tuple[str, str]:
    """The pair as an item of a list or below a numbered heading."""
    mark = _mark(random)
    if isinstance(mark, str):
        return f"{mark} {source}", f"{mark} {target}"
    return f"{mark[0]} {source}", f"{mark[1]} {target}"


def _mark(random: Random) -> str | tuple[str, str]:
    small, letter = random.randrange(1, 21), random.choice("abcdefghijk")
    number = ".".join(str(random.randrange(1, 13)) for _ in range(random.choice((2, 2, 3))))
    kind = random.randrange(13)
    if kind < 3:
        return f"{small}."
    if kind < 9:
        marks = (
            f"({letter})",
            f"{letter})",
            f"({small})",
            f"§ {random.randrange(1, 400)}",
            number,
            random.choice("-–•*"),
        )
        return marks[kind - 3]
    if kind == 9:
        return random.choice((f"{random.choice(ROMAN)}.", f"{small})", f"[{small}]", f"{letter.upper()}.", f"#{small}"))
    label = random.choice(LABELS)
    place = random.choice((str(small), number, letter.upper(), random.choice(ROMAN)))
    tail = random.choice((":", ":", ".", " –"))
    return f"{label[0]} {place}{tail}", f"{label[1]} {place}{tail}"


def quoted(source: str, target: str, random: Random) -> tuple[str, str] | None:
    """The pair as speech, in quotation marks of either language; None where it has some already."""
    if any(mark in source + target for mark in "\"“”„«»‘‚'"):
        return None
    kind = random.randrange(len(OPENING_QUOTES))
    return f"{OPENING_QUOTES[kind]}{source}{CLOSING_QUOTES[kind]}", f"„{target}“"


def other_signs(source: str, random: Random) -> str:
    """The source with other quotation marks, apostrophes or dashes of the same meaning."""
    if random.random() < 0.5:
        return source.replace("“", '"').replace("”", '"').replace("’", "'")
    curly = re.sub(r"(?<=\w)'(?=\w)", "’", source)
    curly = re.sub(r'(^|[\s(])"(?=\S)', r"\1“", curly).replace('"', "”")
    return re.sub(r"(?<= )[-–](?= )", random.choice(("–", "—")), curly)


def tidy_target(target: str) -> str:
    """German in today's spelling, with German quotation marks and dashes: corpora are of many hands."""
    target = OLD_SPELLING.sub(lambda word: word[0].replace("ß", "ss"), target)
    if "„" not in target:
        target = QUOTED.sub(r"„\1“", target)
    return target.replace(" - ", " – ").replace(" — ", " – ")


def with_emoji(source: str, target: str, random: Random) -> tuple[str, str]:
    emoji = "".join(_emoji(random) for _ in range(random.choice((1, 1, 1, 2, 3))))
    if random.random() < 0.2:
        return f"{emoji} {source}", f"{emoji} {target}"
    return f"{source} {emoji}", f"{target} {emoji}"


def _emoji(random: Random) -> str:
    return random.choice(SINGLE_EMOJI) if random.random() < 0.7 else chr(random.choice(MORE_EMOJI))
