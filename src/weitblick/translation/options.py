"""What can be asked of a translation, with the defaults of the command and of the Python interface."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

from weitblick.batches.batch import IdLists
from weitblick.config.recipe import GenerationSection
from weitblick.errors import UserError
from weitblick.memory import Memory
from weitblick.model.document_model import DocumentModel
from weitblick.sentence.candidates import Allowed
from weitblick.sentence.sentence_model import SentenceModel
from weitblick.translation.beam import SearchOptions
from weitblick.translation.shortlist import Shortlist


class TranslationKeywords(TypedDict, total=False):
    """The keywords of `Translator`'s methods: any field of `TranslationOptions`."""

    beam: int | None
    length_penalty: float | None
    n_best: int
    context: bool
    passes: int
    batch_tokens: int
    memory: Memory | None
    shortlist: Shortlist | None


@dataclass(frozen=True)
class TranslationOptions:
    """beam: hypotheses per sentence, 1 is greedy; length_penalty: exponent of the length that scores are divided by
    (both None: the model's own); n_best: translations to give of each sentence; context: false translates every
    sentence on its own; passes: over a document, where translations are context of each other; batch_tokens: source
    tokens times beam at a time; memory: approved translations that decide how the rest is translated; shortlist: the
    words to choose from."""

    beam: int | None = None
    length_penalty: float | None = None
    n_best: int = 1
    context: bool = True
    passes: int = 2
    batch_tokens: int = 4096
    memory: Memory | None = None
    shortlist: Shortlist | None = None

    def __post_init__(self) -> None:
        if self.passes < 1:
            raise UserError(f"{self.passes} passes translate nothing", remedy="use 1 or more")
        if self.batch_tokens < 1:
            raise UserError(f"batches of {self.batch_tokens} tokens hold no sentence", remedy="use 1 or more")
        _ = self.of(GenerationSection(beam=max(1, self.n_best))).search  # checks the rest

    def of(self, generation: GenerationSection) -> TranslationOptions:
        """With what is not asked for as a model wishes it."""
        beam = generation.beam if self.beam is None else self.beam
        penalty = generation.length_penalty if self.length_penalty is None else self.length_penalty
        if (beam, penalty) == (self.beam, self.length_penalty):
            return self
        return replace(self, beam=beam, length_penalty=penalty)

    def passes_of(self, model: DocumentModel) -> int:
        """How often a model goes over a document: more than once only where it reads translations."""
        return self.passes if self.context and model.reads_translations else 1

    def allowed(self, sources: IdLists, model: SentenceModel) -> Allowed | None:
        """What a batch of sentences may use; None: every word."""
        if self.shortlist is None:
            return None
        return self.shortlist.allow(sources, model, model.generation.forbidden)

    @property
    def search(self) -> SearchOptions:
        asked = self.of(GenerationSection())
        assert asked.beam is not None
        assert asked.length_penalty is not None
        return SearchOptions(asked.beam, asked.length_penalty, self.n_best)

    @property
    def first_search(self) -> SearchOptions:
        """Of passes before the last: only the best translation counts."""
        return replace(self.search, n_best=1)
