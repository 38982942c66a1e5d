"""Nouns of a corpus, each with its translation and the gender of that, learned from the corpus itself."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from weitblick.discourse.german import GENDERS, Gender, Noun
from weitblick.documents.document import Document

# An English noun is what stands, perhaps behind an adjective, between a determiner and a word that ends its phrase.
HEAD = re.compile(
    r"\b(?:the|an?|this|that|our|my|your|his|her|their|its|every|each|no) (?:[a-z]+ )?([a-z]{3,})\b"
    r"(?=(?: (?:of|is|has|was|to|in|on|which|that|for|and|will|should|must|can|by|from|with|at)\b|[.,;:!?]|$))",
    re.IGNORECASE,
)
# A German one has a capital inside a sentence; its article tells the gender where it is not a plural's or a dative's.
CAPITAL = re.compile(r"(?<=[a-zäöüß,] )[A-ZÄÖÜ][a-zäöüß-]{2,}\b")
ARTICLE = re.compile(
    r"\b(das|die|den|eine|einen|dieses|diese|diesen|unsere|unseren) (?:[a-zäöüß]+ )?([A-ZÄÖÜ][a-zäöüß-]{2,})\b"
)
GENDER: dict[str, Gender] = {
    **dict.fromkeys(("den", "einen", "diesen", "unseren"), "m"),
    **dict.fromkeys(("die", "eine", "diese", "unsere"), "f"),
    **dict.fromkeys(("das", "dieses"), "n"),
}
PLURAL = re.compile(r"[^su]s$|ies$")

# "It" does not stand for these, whatever German calls them.
# fmt: off
PEOPLE = frozenset((
    "ambassador", "author", "boy", "candidate", "chairman", "chairwoman", "child", "citizen", "colleague",
    "commissioner", "consumer", "coordinator", "doctor", "draftsman", "employee", "employer", "farmer", "fisherman",
    "friend", "gentleman", "girl", "interpreter", "journalist", "judge", "king", "lady", "lawyer", "leader", "man",
    "member", "minister", "ombudsman", "patient", "person", "politician", "predecessor", "president", "prisoner",
    "producer", "queen", "rapporteur", "representative", "speaker", "spokesman", "successor", "victim", "voter",
    "woman", "worker",
))
# fmt: on

ENGLISH_TIMES, TOGETHER_TIMES, ARTICLE_TIMES = 15, 8, 8
ASSOCIATION, COVERAGE, AGREEMENT = 0.15, 0.25, 0.8


def english_nouns(sentence: str) -> set[str]:
    return {noun.lower() for noun in HEAD.findall(sentence)}


def learn_nouns(documents: Iterable[Document]) -> dict[str, Noun]:
    """English nouns that are translated by one German noun often enough, and whose articles agree on its gender."""
    english: Counter[str] = Counter()
    german: Counter[str] = Counter()
    together: defaultdict[str, Counter[str]] = defaultdict(Counter)
    genders: defaultdict[str, Counter[Gender]] = defaultdict(Counter)
    for document in documents:
        for sentence in document.sentences:
            target = sentence.target or ""
            nouns, capitals = english_nouns(sentence.source), set(CAPITAL.findall(target))
            english.update(nouns)
            german.update(capitals)
            for noun in nouns:
                together[noun].update(capitals)
            for article, noun in ARTICLE.findall(target):
                genders[noun][GENDER[article]] += 1
    found = {}
    for noun in sorted(english):
        if english[noun] < ENGLISH_TIMES or noun in PEOPLE or PLURAL.search(noun):
            continue
        translation = _translation(noun, english, german, together[noun])
        gender = _gender(genders[translation]) if translation else None
        if translation and gender:
            found[noun] = Noun(noun, translation, gender)
    return found


def _translation(noun: str, english: Counter[str], german: Counter[str], together: Counter[str]) -> str | None:
    """The German noun that goes with it most (Dice's coefficient), if it clearly does."""
    candidates = [
        (2 * times / (english[noun] + german[other]), other)
        for other, times in together.items()
        if times >= max(TOGETHER_TIMES, COVERAGE * english[noun])
    ]
    association, best = max(candidates, default=(0.0, ""))
    return best if association >= ASSOCIATION else None


def _gender(counts: Counter[Gender]) -> Gender | None:
    total = counts.total()
    if total < ARTICLE_TIMES:
        return None
    best = max(GENDERS, key=lambda gender: counts[gender])
    return best if counts[best] >= AGREEMENT * total else None
