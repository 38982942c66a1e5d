"""Translating as the sentences come: each at once, with the sentences before it as context."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor

from weitblick.batches.layout import Layout
from weitblick.context.module import Bank
from weitblick.documents.document import Document, Sentence
from weitblick.errors import UserError
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import TextPipeline
from weitblick.translation.beam import beam_search
from weitblick.translation.context import Sources, read_sources, target_states
from weitblick.translation.options import TranslationOptions
from weitblick.translation.units import Translation, Unit, Warn, join_documents, split_documents


@dataclass(frozen=True)
class _Past:
    """A sentence that has been translated: its states as context, and its source ids."""

    position: int
    source: list[int]
    keys: Tensor
    values: Tensor


class Stream:
    """A document that is still being spoken or written.

    The final translations of the previous sentences are their part of the context. A sentence that has been translated
    is never changed.
    """

    def __init__(self, model: DocumentModel, pipeline: TextPipeline, options: TranslationOptions, warn: Warn) -> None:
        if options.context and model.context is not None and model.section.direction == "offline":
            raise UserError(
                "the model reads the sentences that follow, too (context.direction: offline)",
                remedy="stream with an online model, or without context (--no-context)",
            )
        self.model, self.pipeline, self.options, self.warn = model, pipeline, options, warn
        self.device = next(model.parameters()).device
        self.with_context = options.context and model.context is not None
        # Baselines read a few sentences only; those before are not kept.
        self.past: deque[_Past] = deque(maxlen=getattr(model.context, "sentences", None))
        self.position = 0
        self.count = 0

    def end_document(self) -> None:
        """What follows is another document: it starts without context."""
        self.past.clear()
        self.position = self.count = 0

    def translate(self, sentence: str) -> str:
        """The translation of the next sentence."""
        translations = self.translations(sentence)
        return translations[0].text if translations else (sentence if sentence.strip() else "")

    @torch.no_grad()
    def translations(self, sentence: str) -> tuple[Translation, ...]:
        """The n best translations of the next sentence; none for a sentence without words."""
        document = Document("stream", (Sentence(sentence),))
        units = split_documents([document], self.pipeline, self._numbered)
        found = [self._translate(unit) for unit in units]
        self.position += not units
        self.count += 1
        return join_documents([document], units, found, self.pipeline)[0].translations[0]

    def _numbered(self, message: str) -> None:
        self.warn(message.replace("sentence 1 of document stream", f"sentence {self.count + 1}"))

    def _translate(self, unit: Unit):  # type: ignore[no-untyped-def]
        sources = Sources([unit.source], [0], [self.position], self.device)
        memory = sources.encode(self.model.sentence)
        bank = self._bank() if self.with_context and self.past else None
        states = read_sources(self.model, sources, [0], memory, bank)
        (hypotheses,) = beam_search(self.model, states, sources.layout(), bank, self.options.search)
        if self.with_context:
            self.past.append(self._remember(unit, sources, memory, hypotheses[0].ids))
        self.position += 1
        return hypotheses

    def _remember(self, unit: Unit, sources: Sources, memory: Tensor, translation: list[int]) -> _Past:
        if self.model.reads_target:
            keys, values, _ = target_states(self.model, sources, memory, [translation])
        else:
            keys = values = memory if self.model.frozen is None else sources.encode(self.model.frozen)
        return _Past(self.position, unit.source, keys, values)

    def _bank(self) -> Bank:
        assert self.model.context is not None
        positions = [past.position for past in self.past]
        documents = [0] * len(positions)
        if self.model.context.own_encoder:
            sources = Sources([past.source for past in self.past], documents, positions, self.device)
            return self.model.bank(sources.pack(range(len(sources))), None)
        keys = torch.cat([past.keys for past in self.past])
        values = torch.cat([past.values for past in self.past]) if self.model.reads_target else keys
        lengths = [len(past.keys) for past in self.past]
        return self.model.context.prepare(keys, values, Layout.of(lengths, documents, positions, self.device))
