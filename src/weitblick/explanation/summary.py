"""A document's explanation in a few numbers."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from weitblick.explanation.influence import influence
from weitblick.explanation.schema import Explanation


def summarise(explanation: Explanation) -> dict[str, Any]:
    """Counts, and means over query words: the gate's share of context and the sentences attended (over heads, too)."""
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
