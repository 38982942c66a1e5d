"""Where context may decide between words: in sentences that have a word it decides for (*it*), and never over a pronoun
that the source itself tells (*she* is *sie*, whatever the sentences before are about)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from weitblick.model.document_model import DocumentModel

WORD = re.compile(r"\w+")


class Told(NamedTuple):
    """Words of a source (in small letters) that tell some words of its translation (ids) by themselves."""

    source: frozenset[str]
    target: frozenset[int]


class DecisionBounds:
    """The bounds of one model. asked: the source words that context decides for."""

    def __init__(self, asked: frozenset[str], told: Sequence[Told]) -> None:
        self.asked, self.told = asked, told

    @classmethod
    def of(cls, model: DocumentModel) -> DecisionBounds | None:
        """None if the model's context may decide anywhere."""
        section = model.section
        if model.choice_words is None or not section.decides_for:
            return None
        ids = dict(zip(section.decided_words, model.choice_words.tolist(), strict=True))
        told = [
            Told(frozenset(map(str.lower, one.source)), frozenset(ids[word] for word in one.target))
            for one in section.told_by_source
        ]
        return cls(frozenset(map(str.lower, section.decides_for)), told)

    def may_decide(self, source: str) -> bool:
        """Whether a source has a word that context decides for."""
        return not self.asked.isdisjoint(WORD.findall(source.lower()))

    def keeps_told(self, source: str, before: Sequence[int], after: Sequence[int]) -> bool:
        """Whether a translation with context has kept the pronouns that its source tells: none of those that the
        translation before had is lost, and no more have come than the source has words to decide for."""
        words = Counter(WORD.findall(source.lower()))
        asked = sum(words[word] for word in self.asked)
        for told in self.told:
            needed = sum(words[word] for word in told.source)
            then, now = (sum(id in told.target for id in ids) for ids in (before, after))
            if now < min(then, needed) or now > max(then, needed + asked):
                return False
        return True
