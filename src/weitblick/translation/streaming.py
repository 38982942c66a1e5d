"""Translating as the sentences come: each at once, with the sentences before it as context."""

from __future__ import annotations

from collections import deque

import torch

from weitblick.context.module import Projected
from weitblick.documents.document import Document, Sentence
from weitblick.errors import UserError
from weitblick.model.document_model import DocumentModel
from weitblick.model.sources import Sources
from weitblick.text.base import TextPipeline
from weitblick.translation.beam import Hypothesis, beam_search
from weitblick.translation.options import TranslationOptions
from weitblick.translation.units import Translation, Unit, Warn, join_documents, split_documents


class Stream:
    """A document that is still being spoken or written.

    The final translations of the previous sentences are their part of the context. A sentence that has been translated
    is never changed.
    """

    def __init__(self, model: DocumentModel, pipeline: TextPipeline, options: TranslationOptions, warn: Warn) -> None:
        if options.context and model.context is not None and not model.online:
            raise UserError(
                "the model reads the sentences that follow, too (context.direction: offline)",
                remedy="stream with an online model, or without context (--no-context)",
            )
        self.model, self.pipeline, self.options, self.warn = model, pipeline, options, warn
        self.search = options.of(model.sentence.generation).search
        self.device = next(model.parameters()).device
        self.with_context = options.context and model.context is not None
        # Each past sentence is projected once. Baselines read a few only; those before are not kept.
        self.past: deque[Projected] = deque(maxlen=model.context.sentences if model.context is not None else None)
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

    def _translate(self, unit: Unit) -> list[Hypothesis]:
        sources = Sources([unit.source], [0], [self.position], self.device)
        states = sources.encode(self.model.sentence)
        context = self.model.context_from(self.past) if self.with_context else None
        memory, _ = self.model.encode(sources.pack([0]), context, states=states)
        (hypotheses,) = beam_search(self.model, memory, sources.layout(), context, self.search)
        if self.with_context:
            self.past.append(self.model.project(sources, states, [hypotheses[0].ids]))
        self.position += 1
        return hypotheses
