"""One query word and some heads: what a figure or a table shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weitblick.errors import UserError
from weitblick.explanation.attention import AttentionRow
from weitblick.explanation.influence import influence
from weitblick.explanation.schema import Explanation, Word, Words


@dataclass(frozen=True, slots=True)
class Choice:
    """`rows` holds one row for each chosen head, or the average alone; `names` says which ("Head 3", "All heads")."""

    sentence: int
    word: int
    query: Word
    names: tuple[str, ...]
    rows: tuple[AttentionRow, ...]


def choose(
    explanation: Explanation, sentence: int, word: int, heads: Sequence[int] = (), most: int = 5, least: float = 0.0
) -> Choice:
    """A query word by its place (0-based), with the given heads (0-based) or their average.

    Of each row at most the `most` heaviest sentences stay, and none lighter than `least`.
    """
    _check_place(explanation, sentence, word)
    attention = explanation.sentences[sentence].attention
    if attention is None:
        raise UserError(
            f"sentence {sentence + 1} of {explanation.document} attended to nothing, so there is nothing to draw",
            remedy="choose another sentence, or a model with a context layer",
        )
    for head in heads:
        if not 0 <= head < attention.heads:
            raise UserError(f"no head {head + 1}", remedy=f"choose heads from 1 to {attention.heads}")
    rows = [attention.row(word, head) for head in heads] if heads else [attention.average(word)]
    names = [f"Head {head + 1}" for head in heads] if heads else ["All heads"]
    return Choice(
        sentence,
        word,
        explanation.query_words(sentence)[word],
        tuple(names),
        tuple(_heaviest(row, most, least) for row in rows),
    )


def _heaviest(row: AttentionRow, most: int, least: float) -> AttentionRow:
    kept = tuple(entry for entry in row.entries[:most] if entry.mass >= least)
    return AttentionRow(kept, row.attended, row.rest + sum(entry.mass for entry in row.entries[len(kept) :]))


def _check_place(explanation: Explanation, sentence: int, word: int) -> None:
    count = len(explanation.sentences)
    if not 0 <= sentence < count:
        raise UserError(
            f"no sentence {sentence + 1} in {explanation.document}",
            remedy=f"choose from 1 to {count}" if count else "the document is empty",
        )
    words = explanation.query_words(sentence)
    if not 0 <= word < len(words):
        side = "source" if explanation.model.integration == "encoder" else "target"
        raise UserError(
            f"no {side} word {word + 1} in sentence {sentence + 1} of {explanation.document}",
            remedy=f"choose from 1 to {len(words)}: {numbered(words)}" if words else "the sentence is empty",
        )


def numbered(words: Words) -> str:
    return " ".join(f"{index + 1}:{word.text}" for index, word in enumerate(words))


def place(other: int, current: int, minus: str = "−") -> str:
    """The paper's name of a context sentence: j-2, j+1."""
    return f"j{minus if other < current else '+'}{abs(other - current)}"


def most_influenced(explanation: Explanation, only: int | None = None) -> tuple[int, int] | None:
    """The query word behind the target word that context changed most, of the whole document or of sentence `only`
    (from 1); None if there is none."""
    for entry in influence(explanation):
        sentence = explanation.sentences[entry.sentence]
        if sentence.attention is None or only not in (None, entry.sentence + 1):
            continue
        if explanation.model.integration == "decoder":
            return entry.sentence, entry.word
        if entry.word < len(sentence.alignment) and sentence.alignment[entry.word]:
            return entry.sentence, sentence.alignment[entry.word][0][0]
    return None
