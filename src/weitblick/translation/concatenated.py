"""Translation by a model that reads the sentences before as part of the current one (see `model.concatenation`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weitblick.model.concatenation import TARGET_SEPARATOR, Concatenation
from weitblick.text.units import Unit
from weitblick.translation.beam import Hypothesis


def concatenated_units(
    concatenation: Concatenation, units: Sequence[Unit], reads: Sequence[int] | None = None
) -> list[Unit]:
    """The units with their sources behind those before them: of their own document or, as a control, of that which
    `reads` names for it."""
    of_document: dict[int, list[Unit]] = {}
    for unit in units:
        of_document.setdefault(unit.document, []).append(unit)
    joined = []
    for unit in units:
        read = unit.document if reads is None else reads[unit.document]
        before = [other.source for other in of_document.get(read, []) if other.position < unit.position]
        joined.append(replace(unit, source=concatenation.source(before, unit.source)))
    return joined


def current_only(hypotheses: Sequence[Hypothesis], separators: int) -> list[Hypothesis]:
    """The hypotheses cut to the current sentence. Those that lack separators, or say nothing behind the last one, are
    left out: nobody knows which of their words translate it."""
    kept = []
    for hypothesis in hypotheses:
        ids = Concatenation.cut(hypothesis.ids)
        if ids and hypothesis.ids.count(TARGET_SEPARATOR) >= separators:
            words = hypothesis.word_log_probabilities[-(len(ids) + 1) :]
            kept.append(Hypothesis(ids, hypothesis.score, sum(words), words))
    return kept


def without_separators(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The hypotheses without separators; one of nothing else stays as it is: a sentence is never left untranslated."""
    return [replace(h, ids=[word for word in h.ids if word != TARGET_SEPARATOR] or h.ids) for h in hypotheses]
