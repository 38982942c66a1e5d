"""Where context mattered: the words that it changed, what carried the weight, and all of it in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from statistics import fmean
from typing import Any, TypedDict

from weitblick.explanation.schema import Explanation, SentenceExplanation, Words

LEAST_EFFECT = 0.1
MOST_CARRIERS = 5
"""Of probability: less than ten in a hundred no reader would call an effect, however many nats it is."""

WHOLE_SENTENCE = -1


@dataclass(frozen=True, slots=True)
class Carrier:
    """A context word and its share of what the gate let through to the target word.

    `word` is None where the model attends to whole sentences.
    """

    sentence: int
    word: int | None
    weight: float


@dataclass(frozen=True, slots=True)
class Influence:
    """A target word that context changed: `gain` in log-probability, `divergence` (KL) of the two predictions, both in
    nats, and `changed` if the model would have chosen another word without context."""

    sentence: int
    word: int
    gain: float
    divergence: float
    changed: bool
    carriers: tuple[Carrier, ...]

    @property
    def effect(self) -> float:
        return max(abs(self.gain), self.divergence)

    def to_json(self) -> dict[str, Any]:
        return {
            "sentence": self.sentence,
            "word": self.word,
            "gain": round(self.gain, 4),
            "divergence": round(self.divergence, 4),
            "changed": self.changed,
            "carriers": [[carrier.sentence, carrier.word, round(carrier.weight, 4)] for carrier in self.carriers],
        }


def influence(explanation: Explanation, least: float = LEAST_EFFECT) -> list[Influence]:
    """The target words that context changed. Changed choices come first, then the greatest effect, which is the
    greater of the change in log-probability and the divergence."""
    found = [
        Influence(index, word, score.gain, score.divergence, changed, carriers_of(explanation, index, word))
        for index, sentence in enumerate(explanation.sentences)
        for word, score in enumerate(sentence.scores)
        if (changed := score.choice_without is not None) or score.difference >= least
    ]
    return sorted(found, key=lambda entry: (not entry.changed, -entry.effect, entry.sentence, entry.word))


def carriers_of(explanation: Explanation, index: int, word: int) -> tuple[Carrier, ...]:
    """The context words that reached a target word, heaviest first.

    With decoder integration the target word itself attends to the context. With encoder integration the source words
    did, so their attention counts by how much the target word reads each of them and how far its gate was open.
    """
    sentence = explanation.sentences[index]
    if sentence.attention is None:
        return ()
    weights: dict[tuple[int, int], float] = {}
    for query, share in _queries(explanation, sentence, word):
        for entry in sentence.attention.average(query).entries:
            words = enumerate(entry.words) if len(entry.words) else [(WHOLE_SENTENCE, 1.0)]
            for place, weight in words:
                key = (entry.sentence, place)
                weights[key] = weights.get(key, 0.0) + share * entry.mass * float(weight)
    total = sum(weights.values())
    ranked = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:MOST_CARRIERS]
    return tuple(
        Carrier(place[0], None if place[1] == WHOLE_SENTENCE else place[1], weight / total)
        for place, weight in ranked
        if weight > 0
    )


def _queries(explanation: Explanation, sentence: SentenceExplanation, word: int) -> list[tuple[int, float]]:
    if explanation.model.integration == "decoder":
        return [(word, 1.0)]
    aligned = sentence.alignment[word] if word < len(sentence.alignment) else ()
    return [(source, weight * sentence.context_share[source]) for source, weight in aligned]


def differences(before: Words, after: Words) -> tuple[list[int], list[int]]:
    """Indices of the words of each side that the other does not have in their place."""
    matcher = SequenceMatcher(None, [word.text for word in before], [word.text for word in after], autojunk=False)
    removed: list[int] = []
    added: list[int] = []
    for operation, first, last, first_after, last_after in matcher.get_opcodes():
        if operation != "equal":
            removed.extend(range(first, last))
            added.extend(range(first_after, last_after))
    return removed, added


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
