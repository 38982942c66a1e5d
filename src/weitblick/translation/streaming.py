"""Translating as the sentences come: each at once, with the sentences before it as context.

The past is kept projected, so that each sentence is read by the encoder and the context module once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field, ValidationError
from torch import Tensor

from weitblick.common.errors import UserError
from weitblick.common.files import check_format_version, read_json, write_json
from weitblick.common.recipe import Section
from weitblick.documents.document import Document, Sentence
from weitblick.memory.approvals import HOW_TO_TRAIN, NO_POINTER, Approvals
from weitblick.memory.reading_pointer import Approved
from weitblick.model.context import Context, Sources
from weitblick.model.context_module import Projected
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import TextPipeline
from weitblick.text.units import Unit, Warn, split_documents
from weitblick.translation.address import Address
from weitblick.translation.beam import Hypothesis
from weitblick.translation.driver import Passes
from weitblick.translation.options import TranslationOptions
from weitblick.translation.results import Translation, join_documents


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


STREAM_VERSION = 2
Id = Annotated[int, Field(ge=0, lt=2**31)]


class StreamState(Section):
    """A stream on disk: sentences so far (position, text), those that are context (position, source and target ids),
    and what was confirmed, by number; fingerprint: of the text pipeline whose ids they are."""

    format_version: int = STREAM_VERSION
    fingerprint: str
    position: Id
    sentences: list[tuple[Id, str]]
    past: list[tuple[Id, list[Id], list[Id]]]
    confirmed: dict[Id, str]

    def mismatch(self, pipeline: TextPipeline) -> str | None:
        """Why no stream with this pipeline has saved it; None if one may have."""
        sizes = len(pipeline.source_vocabulary), len(pipeline.target_vocabulary)
        for _, source, target in self.past:
            if not source or max(source) >= sizes[0] or max(target, default=0) >= sizes[1]:
                return "holds words that this model does not know"
            if len(source) > pipeline.longest_sentence:
                return f"holds a sentence of {len(source)} words, but the model reads {pipeline.longest_sentence}"
        if self.fingerprint != pipeline.fingerprint():
            return "is a stream of a model with another vocabulary"
        for places in ([position for position, _ in self.sentences], [position for position, _, _ in self.past]):
            if any(one >= next_one for one, next_one in pairwise([*places, self.position])):
                return "holds sentences that do not stand one behind the other"
        for number, text in self.confirmed.items():
            if number >= len(self.sentences) or not text.strip():
                return f"confirms sentence {number} of {len(self.sentences)} as {text!r}"
        return None


class Stream:
    """A document that is still being spoken or written.

    The final translations of the previous sentences are their part of the context, or those that a human confirmed. A
    sentence that has been translated is never changed.
    """

    def __init__(
        self,
        model: DocumentModel,
        pipeline: TextPipeline,
        options: TranslationOptions,
        warn: Warn,
        approvals: Approvals | None = None,
    ) -> None:
        if options.context and model.context is not None and not model.online:
            raise UserError(
                "the model reads the sentences that follow, too (context.direction: offline)",
                remedy="stream with an online model, or without context (--no-context)",
            )
        self.model, self.pipeline, self.options, self.warn = model, pipeline, options, warn
        self.with_context = options.context and model.context is not None
        self.past = History(model)
        self.approvals = approvals
        # What was said before is not known to be all of the document: only a form that is asked for is kept to.
        self.address = None if options.formality == "auto" else Address.of(pipeline, options.formality)
        self.sentences: list[tuple[int, str]] = []  # position and text of each so far
        self.confirmed: dict[int, Unit] = {}
        self.position = 0

    @property
    def count(self) -> int:
        return len(self.sentences)

    def end_document(self) -> None:
        """What follows is another document: it starts without context. What was confirmed belongs to the one before."""
        self.past.clear()
        self.sentences, self.confirmed = [], {}
        self.position = 0

    def confirm(self, number: int, text: str) -> None:
        """A human's translation of a sentence so far, by its number from 0: the sentences that follow are translated
        alike. Given again it takes the place of the one before."""
        if not 0 <= number < self.count:
            raise IndexError(f"sentence {number} of {self.count} so far cannot be confirmed")
        read = self._check_confirming()
        position, sentence = self.sentences[number]
        if not sentence.strip():
            return  # nothing that could be translated alike
        if not text.strip():
            raise ValueError(f"the translation of sentence {number} is empty, and nothing can be translated alike")
        source, target = self.pipeline.encode_source([sentence])[0], self.pipeline.encode_target([text])[0]
        longest = self.pipeline.longest_sentence
        self.confirmed[number] = Unit(
            0, position, number, sentence, source[:longest], target[:longest], locked=True, target=text
        )
        if read and len(source) <= longest:  # of a sentence in parts, the parts stay as they were translated
            self.past.replace(PastSentence(position, source, target[:longest]))

    def _check_confirming(self) -> bool:
        """Refuses where nothing could be done with what is confirmed; gives whether it is read as context."""
        read = self.with_context and self.model.reads_translations
        if self.approvals is None and not read:
            raise UserError(NO_POINTER, remedy=HOW_TO_TRAIN)
        return read

    def save(self, path: str | Path) -> None:
        """Writes where the stream stands; `load` goes on from there to the same translations."""
        past = [(sentence.position, list(sentence.source), list(sentence.target)) for sentence in self.past.sentences]
        confirmed = {number: unit.target or "" for number, unit in self.confirmed.items()}
        state = StreamState(
            fingerprint=self.pipeline.fingerprint(),
            position=self.position,
            sentences=self.sentences,
            past=past,
            confirmed=confirmed,
        )
        write_json(path, state.model_dump())

    def load(self, path: str | Path) -> None:
        """Goes on with the document of a stream that `save` wrote, of this model. What is refused changes nothing."""
        value = read_json(path)
        check_format_version(value, STREAM_VERSION, path)
        try:
            state = StreamState.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise UserError(f"{place}: {first['msg']}", where=path, remedy="use a file that a stream saved") from None
        if (mismatch := state.mismatch(self.pipeline)) is not None:
            raise UserError(mismatch, where=path, remedy="use a file that a stream of the same model saved")
        if state.confirmed:
            self._check_confirming()
        self.end_document()
        self.position, self.sentences = state.position, list(state.sentences)
        for position, source, target in state.past if self.with_context else ():
            self.past.add(PastSentence(position, source, target))
        for number, text in state.confirmed.items():
            self.confirm(number, text)

    def translate(self, sentence: str) -> str:
        """The translation of the next sentence."""
        translations = self.translations(sentence)
        return translations[0].text if translations else (sentence if sentence.strip() else "")

    @torch.no_grad()
    def translations(self, sentence: str) -> tuple[Translation, ...]:
        """The n best translations of the next sentence; none for a sentence without words."""
        document = Document("stream", (Sentence(sentence),))
        units = split_documents([document], self.pipeline, self._numbered)
        first = self.position
        found = [self._translate(unit) for unit in units]
        self.position += not units
        self.sentences.append((first, sentence))
        return join_documents([document], units, found, self.pipeline)[0].translations[0]

    def _numbered(self, message: str) -> None:
        self.warn(message.replace("sentence 1 of document stream", f"sentence {self.count + 1}"))

    def _translate(self, unit: Unit) -> list[Hypothesis]:
        unit = replace(unit, document=0, position=self.position)
        past = (self.past.context() if self.with_context else None) or Context()
        terms = None
        if self.options.terms is not None:
            from weitblick.translation.term_search import TermSearch

            terms = TermSearch(self.options.terms, self.pipeline)
        pointer = self._pointer(unit)
        passes = Passes(
            self.model, [unit], self.options, pointer=pointer, past=past, term_search=terms, address=self.address
        )
        (hypotheses,) = passes.translate()
        if self.with_context:
            source = unit.source if self.address is None else self.address.source(unit)
            self.past.add(PastSentence(self.position, source, hypotheses[0].ids), passes.encoder_states)
        self.position += 1
        return hypotheses

    def _pointer(self, unit: Unit) -> Approved | None:
        """To the pairs of the memory and to what was confirmed so far."""
        if self.approvals is None:
            return None
        confirmed = [self.confirmed[number] for number in sorted(self.confirmed)]
        return self.approvals.pointer_for([*confirmed, unit], self.options.memory)
