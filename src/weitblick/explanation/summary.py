"""A document's explanation in a few numbers."""

from __future__ import annotations

from statistics import fmean
from typing import TypedDict

from weitblick.explanation.influence import influence
from weitblick.explanation.schema import Explanation


class DocumentFigures(TypedDict):
    """Counts, and means over query words: the gate's share of context and the sentences attended (over heads, too)."""

    sentences: int
    source_words: int
    target_words: int
    sentences_changed: int
    words_influenced: int
    choices_changed: int
    context_share: float | None
    sentences_attended: float | None


def summarise(explanation: Explanation) -> DocumentFigures:
    shares = [share for sentence in explanation.sentences for share in sentence.context_share]
    attended = [
        float(count)
        for sentence in explanation.sentences
        if sentence.attention
        for count in sentence.attention.attended.flat
    ]
    found = influence(explanation)
    return {
        "sentences": len(explanation.sentences),
        "source_words": sum(len(sentence.source) for sentence in explanation.sentences),
        "target_words": sum(len(sentence.target) for sentence in explanation.sentences),
        "sentences_changed": sum(sentence.differs for sentence in explanation.sentences),
        "words_influenced": len(found),
        "choices_changed": sum(entry.changed for entry in found),
        "context_share": fmean(shares) if shares else None,
        "sentences_attended": fmean(attended) if attended else None,
    }
