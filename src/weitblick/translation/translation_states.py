"""What first translations offer as context, kept from the searches that found them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from weitblick.batches.batch import IdLists, Packed
from weitblick.model.context import Context
from weitblick.model.document_model import DocumentModel
from weitblick.model.sources import Sources
from weitblick.sentence.sentence_model import DecoderStates


class Listener(Protocol):
    """Who wants to know the decoder's states of first translations."""

    def hear(self, sentences: Sequence[int], target: Packed, states: DecoderStates) -> None: ...


class TranslationStates:
    """Keys and values of the translations of some sentences. A search tells those of what it finds (`hear`); what no
    search found here, as drafts and approved translations, takes a pass of the decoder."""

    def __init__(
        self, model: DocumentModel, sources: Sources, memory: Tensor, listener: Listener | None = None
    ) -> None:
        """memory [T, d]: the sentence model's own states of the sources; listener: hears all that is heard here."""
        self.model, self.sources, self.memory, self.listener = model, sources, memory, listener
        self._words: dict[int, list[int]] = {}  # of the translation that is known of a sentence
        self._offered: dict[int, tuple[Tensor, Tensor]] = {}

    def hear(self, sentences: Sequence[int], translations: IdLists, states: DecoderStates) -> None:
        """The provider's states at all steps of the translations of these sentences [T, d]."""
        target = self.sources.choose(sentences).pack_targets(range(len(sentences)), translations)
        keys, values = (rows.split(target.layout.host_lengths) for rows in self.model.offered_by(target, states))
        for place, index in enumerate(sentences):
            self._words[index], self._offered[index] = list(translations[place]), (keys[place], values[place])
        if self.listener is not None:
            self.listener.hear(sentences, target, states)

    def offered(self, targets: IdLists) -> list[tuple[Tensor, Tensor]]:
        """Keys and values [W + 1, d] of each of these translations of all sentences."""
        self._pass_over([i for i, target in enumerate(targets) if self._words.get(i) != list(target)], targets)
        return [self._offered[index] for index in range(len(targets))]

    def context(self, targets: IdLists, approved: Tensor | None) -> Context:
        """What these translations of all sentences offer."""
        assert self.model.context is not None
        keys, values = (torch.cat(column) for column in zip(*self.offered(targets), strict=True))
        layout = self.sources.layout([len(target) + 1 for target in targets])
        return Context(layout, self.model.context.prepare(keys, values, layout), approved)

    def _pass_over(self, missing: list[int], targets: IdLists) -> None:
        if not missing:
            return
        sources, provider = self.sources.choose(missing), self.model.provider
        if provider is self.model.sentence:
            memory = self.memory.index_select(0, self.sources.rows(missing))
        else:
            memory = sources.encode(provider)
        begun = 0
        for source, target, rows in sources.pairs([targets[index] for index in missing]):
            states = provider.decode(target.tokens, target.layout, memory.index_select(0, rows), source.layout)
            part = missing[begun : begun + target.layout.sentences]
            self.hear(part, [targets[index] for index in part], states)
            begun += len(part)
