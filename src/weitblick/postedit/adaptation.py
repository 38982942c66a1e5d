"""The field's standard for learning from approved sentences: one step of gradient descent on all weights for each."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from weitblick.batches.batch import pack_pairs
from weitblick.documents.document import Document, Sentence
from weitblick.translation.job import DocumentJob
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator

LEARNING_RATE = 0.03
"""Plain gradient descent on the mean negative log-likelihood of an approved sentence."""


class Adaptation:
    """A translator that learns from what is approved, and starts anew with each document."""

    def __init__(self, translator: Translator, options: TranslationOptions, rate: float = LEARNING_RATE) -> None:
        self.original, self.rate = translator, rate
        # Translations as context would all have to be made anew after each step.
        self.options = replace(options, context=options.context and not translator.model.reads_translations)

    def translate(self, document: Document, before: Sequence[tuple[str, str]] = ()) -> Iterator[str]:
        """The sentences each after the references of those before it; `before`: what is approved by then."""
        model = copy.deepcopy(self.original.model)
        translator = Translator(model, self.original.pipeline, warn=self.original.warn)
        for source, target in before:
            self._learn(translator, source, target)
        plain = replace(document, sentences=tuple(Sentence(s.source) for s in document.sentences))
        for index, sentence in enumerate(document.sentences):
            yield self._sentence(translator, plain, index)
            self._learn(translator, sentence.source, sentence.target or "")

    def _sentence(self, translator: Translator, document: Document, index: int) -> str:
        """One sentence, with the rest of its document as context."""
        for finished in DocumentJob(translator, document, self.options, [index]).steps():
            if found := finished.get(index):
                return found[0].text
        return document.sentences[index].source.strip()

    def _learn(self, translator: Translator, source: str, target: str) -> None:
        pipeline, model = translator.pipeline, translator.model
        longest = pipeline.longest_sentence
        ids = pipeline.encode_source([source])[0][:longest], pipeline.encode_target([target])[0][:longest]
        if not all(ids):
            return
        device = next(model.parameters()).device
        pairs = pack_pairs([ids[0]], [ids[1]]).to(device)
        with torch.enable_grad():
            memory = model.sentence.encode(pairs.source.tokens, pairs.source.layout)
            words = model.decode(pairs.target, memory, pairs.source.layout).words
            loss, _ = words.loss(pairs.labels, 0.0)
            parameters = list(model.sentence.parameters())
            gradients = torch.autograd.grad(loss / len(pairs.labels), parameters, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                if gradient is not None:
                    parameter.sub_(self.rate * gradient)
