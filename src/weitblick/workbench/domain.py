"""Whether the model is unsure of a document, as it is of texts of another kind than it was made for."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Generator
from functools import cached_property
from typing import TYPE_CHECKING

from weitblick.translation.confidence import FEWEST, judged_sentences, read_calibration, scored_words

if TYPE_CHECKING:
    from weitblick.workbench.workbench import Workbench

MOST_KNOWN = 256
TOGETHER = 4
"""Sentences that are judged in one step."""


class DomainJudge:
    """Judges documents, each once. In the engine's thread only."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._known: OrderedDict[str, float | None] = OrderedDict()

    @cached_property
    def unsure_below(self) -> float | None:
        """What was measured for the model; None: nothing was, and nothing is said."""
        return read_calibration(self._workbench.service.engine.translator.folder)

    def steps(self, document: str) -> Generator[None, None, dict[str, float | bool | None]]:
        """Steps to how sure the model is of a document."""
        limit = self.unsure_below
        if limit is not None and document not in self._known:
            self._known[document] = yield from self._judged(document)
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
        figure = self._known.get(document)
        unsure = figure is not None and limit is not None and figure < limit
        return {"unsure": unsure, "mean_log_probability": figure, "unsure_below": limit}

    def _judged(self, document: str) -> Generator[None, None, float | None]:
        workbench = self._workbench
        mask = workbench.masks.of(document)
        chosen = judged_sentences([mask.source(row.position) for row in workbench.store.segments(document)])
        if len(chosen) < FEWEST:
            return None
        total, words = [], 0
        for start in range(0, len(chosen), TOGETHER):
            some = scored_words(workbench.service.engine.translator, chosen[start : start + TOGETHER])
            total += [log_probability for log_probability, _ in some]
            words += sum(length for _, length in some)
            yield
        return math.fsum(total) / words if words else None
