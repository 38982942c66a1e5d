"""Given translations of a document, read by the sentence model once for all that an explanation asks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from weitblick.batches.batch import IdLists
from weitblick.model.context import Context
from weitblick.model.document_model import DocumentModel
from weitblick.model.sources import Sources
from weitblick.sentence.sentence_model import DecoderStates
from weitblick.translation.translation_states import TranslationStates


class ForcedDecoding:
    """The sentence model's own states of all sources and, where no context changes them, of the chosen targets. Most
    translations stand as they were before context was read, so what they offer as context needs no other pass."""

    def __init__(self, model: DocumentModel, sources: Sources, targets: IdLists, chosen: Sequence[int]) -> None:
        self.model, self.sources, self.targets = model, sources, targets
        self._memory = sources.encode(model.sentence)
        self._rows = {index: place for place, index in enumerate(chosen)}
        self._states: DecoderStates | None = None
        self._weights: list[Tensor] = []
        if chosen and (model.context is None or model.reads_translations):
            self._states = self._decode(chosen)

    def _decode(self, chosen: Sequence[int]) -> DecoderStates:
        sources, targets = self.sources.choose(chosen), [self.targets[index] for index in chosen]
        lengths = np.array([len(target) + 1 for target in targets])
        self._ends = np.cumsum(lengths)
        self._starts = self._ends - lengths
        memory = self.memory(chosen)
        parts = []
        for source, target, rows in sources.pairs(targets):
            given = target.tokens, target.layout, memory.index_select(0, rows), source.layout
            states, weights = self.model.sentence.decode_with_weights(*given)
            parts.append(states)
            self._weights += weights
        return DecoderStates(torch.cat([s.attended for s in parts]), torch.cat([s.final for s in parts]))

    def memory(self, part: Sequence[int]) -> Tensor:
        """[T, d] of the sources of some sentences."""
        return self._memory.index_select(0, self.sources.rows(part))

    def states(self, part: Sequence[int]) -> DecoderStates | None:
        """At all steps of the targets of a run of the chosen sentences; None: context may change them."""
        if self._states is None:
            return None
        rows = slice(self._starts[self._rows[part[0]]], self._ends[self._rows[part[-1]]])
        return DecoderStates(self._states.attended[rows], self._states.final[rows])

    def source_weights(self, part: Sequence[int]) -> list[Tensor] | None:
        """[Wt, Ws] of each of these chosen sentences, padded: the weights of its source words; None as of `states`."""
        return None if self._states is None else [self._weights[self._rows[index]] for index in part]

    def context(self, translations: IdLists) -> Context | None:
        """What these translations of all sentences offer, or else their sources."""
        if not self.model.reads_translations:
            return self.model.context_of(self.sources, self._memory)
        offered = TranslationStates(self.model, self.sources, self._memory)
        if self._states is not None and self.model.provider is self.model.sentence:
            chosen = list(self._rows)
            offered.hear(chosen, [self.targets[index] for index in chosen], self._states)
        return offered.context(translations, None)
