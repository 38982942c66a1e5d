"""The sentences that a stream has translated, each projected once, as context of the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weitblick.context.module import Projected
from weitblick.model.context import Context
from weitblick.model.document_model import DocumentModel
from weitblick.model.sources import Sources


@dataclass(frozen=True)
class PastSentence:
    """Where it stands, and the ids of its source and of its translation."""

    position: int
    source: Sequence[int]
    target: Sequence[int]


class History:
    """Sentences so far. What one offers is computed when it is added, and again only if its translation changes.

    Projected sentences are joined in runs that double in length, so that a sentence is copied a few times in all, not
    once for every sentence that follows.
    """

    def __init__(self, model: DocumentModel) -> None:
        self.model = model
        self.device = next(model.parameters()).device
        self.sentences: list[PastSentence] = []
        self._projected: list[Projected] = []  # of each sentence
        self._runs: list[Projected] = []

    def clear(self) -> None:
        self.sentences, self._projected, self._runs = [], [], []

    def context(self) -> Context | None:
        return self.model.context_from(self._runs)

    @torch.no_grad()
    def add(self, sentence: PastSentence, states: Tensor | None = None) -> None:
        """states [T, d]: the sentence model's own of its source, if they are there."""
        self.sentences.append(sentence)
        self._projected.append(self._project(sentence, states))
        most = None if self.model.context is None else self.model.context.sentences
        if most is not None:  # baselines read a few only; those before are not kept
            self.sentences, self._projected = self.sentences[-most:], self._projected[-most:]
            self._runs = self._projected
            return
        self._runs.append(self._projected[-1])
        while len(self._runs) > 1 and self._runs[-2].layout.sentences <= self._runs[-1].layout.sentences:
            self._runs[-2:] = [Projected.join(self._runs[-2:])]

    @torch.no_grad()
    def replace(self, sentence: PastSentence) -> None:
        """Another translation of the sentence at this position; nothing if it is not kept any more."""
        for index, old in enumerate(self.sentences):
            if old.position == sentence.position:
                self.sentences[index] = sentence
                self._projected[index] = self._project(sentence)
                if self._runs is not self._projected:
                    self._runs = [Projected.join(self._projected)]

    def _project(self, sentence: PastSentence, states: Tensor | None = None) -> Projected:
        sources = Sources([sentence.source], [0], [sentence.position], self.device)
        own = sources.encode(self.model.sentence) if states is None else states
        return self.model.project(sources, own, [sentence.target])
