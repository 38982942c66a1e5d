"""Translating documents with a trained model.

translator = Translator.load("runs/h-attention/best")
document = translator.translate(["The cat slept.", "It was tired."])
print(document.targets)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from weitblick.checkpoints.folder import CONFIG, load_model
from weitblick.checkpoints.installed import default_model
from weitblick.common.errors import UserError
from weitblick.common.files import recovered_folder
from weitblick.common.process import resolve_device
from weitblick.documents.document import Document, Sentence
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import TextPipeline
from weitblick.text.units import Unit, Warn, split_documents
from weitblick.translation.driver import translate_units
from weitblick.translation.options import TranslationKeywords, TranslationOptions
from weitblick.translation.results import TranslatedDocument, Translation, join_documents

if TYPE_CHECKING:
    from weitblick.memory.approvals import Approvals
    from weitblick.memory.pointer import MemoryPointer
    from weitblick.memory.reading_pointer import Approved
    from weitblick.translation.address import Address
    from weitblick.translation.alignment import Alignment
    from weitblick.translation.streaming import Stream
    from weitblick.translation.term_search import TermSearch

WINDOW_WORDS = 8000
"""Words of source text that are read ahead so that sentences of many documents can be batched by their length."""

STRETCH_WORDS = 20_000
"""Words of a document that are translated at once: their states take some 300 MB. A longer one, of more than 70 pages,
is translated in stretches."""
CONTEXT_SENTENCES = 30
"""Sentences before a stretch (and behind it, if the model reads ahead) that it reads as context."""

Text = Document | Sequence[str] | str


class TranslationWarning(UserWarning):
    """Something about the input that the user should know, as an over-long sentence."""


def _warn(message: str) -> None:
    warnings.warn(message, TranslationWarning, stacklevel=2)


class Translator:
    """A model and its text pipeline, ready to translate documents of any length."""

    def __init__(self, model: DocumentModel, pipeline: TextPipeline, *, warn: Warn = _warn) -> None:
        self.model, self.pipeline, self.warn = model, pipeline, warn
        self.folder: Path | None = None
        """Where it was loaded from, if it was."""
        self.borrows = True
        """Whether a model without a pointer to approved translations gets one when it meets some (see `approvals`)."""

    @classmethod
    def load(
        cls, path: str | Path | None = None, device: str = "auto", quantize: bool = False, *, warn: Warn = _warn
    ) -> Translator:
        """The model in a folder that `weitblick train` wrote; without a path, the one that comes with Weitblick.

        `quantize` computes with 8-bit integers on the CPU: faster on most processors (a warning says where not), and a
        little less exact.
        """
        folder = default_model() if path is None else recovered_folder(path)
        if not (folder / CONFIG).exists() and (folder / "best" / CONFIG).exists():
            raise UserError("is the folder of a run, not of a model", where=folder, remedy=f"name {folder / 'best'}")
        loaded = load_model(folder, resolve_device(device))
        model = loaded.model
        if quantize:
            from weitblick.fast import quantized

            model = quantized.quantize_linears(loaded.model)
            gain = quantized.gain(loaded.model, model)
            if gain < quantized.WORTH:
                warn(f"8-bit layers run at {gain:.2f} of the speed of float32 on this processor: leave --int8 out")
        translator = cls(model, loaded.pipeline, warn=warn)
        translator.folder = folder
        return translator

    def translate(self, text: Text, **keywords: Unpack[TranslationKeywords]) -> Document:
        """The document with targets. Text may be a document, a list of sentences, or a sentence a line."""
        return next(self.translate_documents([as_document(text)], **keywords))

    def translate_documents(
        self, documents: Iterable[Document], **keywords: Unpack[TranslationKeywords]
    ) -> Iterator[Document]:
        """Each document with targets, in order. Documents are read some at a time and translated together."""
        for translated in self.translations(documents, **keywords):
            yield translated.document

    def translations(
        self, documents: Iterable[Document], **keywords: Unpack[TranslationKeywords]
    ) -> Iterator[TranslatedDocument]:
        """As `translate_documents`, together with scores and the n best translations of every sentence."""
        options = TranslationOptions(**keywords)
        for window in windows(documents):
            yield from self.translate_window(window, options)

    def stream(self, **keywords: Unpack[TranslationKeywords]) -> Stream:
        """A document that comes sentence by sentence, for online models: `stream.translate(sentence)`."""
        from weitblick.translation.streaming import Stream

        options = TranslationOptions(**keywords)
        able = options.memory is not None or self.model.pointer is not None
        if options.memory is not None:
            self.approvals.ready()  # not while somebody waits for a sentence
        return Stream(self.model, self.pipeline, options, self.warn, self.approvals if able else None)

    def align(self, pairs: Sequence[tuple[str, str]]) -> list[Alignment]:
        """For each (source, translation): which words of the translation come from which of the source."""
        from weitblick.translation.alignment import align

        return align(self.model.sentence, self.pipeline, pairs)

    def translate_window(self, documents: Sequence[Document], options: TranslationOptions) -> list[TranslatedDocument]:
        """Some documents, all at once; one that is too long for that, in stretches."""
        stretches = [_stretches(document) for document in documents]
        if all(len(own) == 1 for own in stretches):
            return self._translate_whole(documents, options)
        return [
            self._translate_stretches(document, own, options)
            if len(own) > 1
            else self._translate_whole([document], options)[0]
            for document, own in zip(documents, stretches, strict=True)
        ]

    def _translate_whole(self, documents: Sequence[Document], options: TranslationOptions) -> list[TranslatedDocument]:
        units = split_documents(documents, self.pipeline, self.warn)
        pointer, terms, address = self.pointer_for(units, options), self.term_search(options), self.address(options)
        found = translate_units(self.model, units, options, pointer, term_search=terms, address=address)
        return join_documents(documents, units, found, self.pipeline)

    def _translate_stretches(
        self, document: Document, stretches: Sequence[range], options: TranslationOptions
    ) -> TranslatedDocument:
        """One long document, a stretch of sentences after the other; each reads the sentences around it, those before
        it with the translations that were found."""
        ahead = 0 if self.model.online else CONTEXT_SENTENCES
        self.warn(
            f"document {document.id} is long: it is translated in {len(stretches)} stretches, each with "
            f"{CONTEXT_SENTENCES} sentences {'around' if ahead else 'before'} it as context"
        )
        found: list[tuple[Translation, ...]] = []
        sentences = list(document.sentences)
        for stretch in stretches:
            first = max(0, stretch.start - CONTEXT_SENTENCES)
            read = replace(document, sentences=tuple(sentences[first : stretch.stop + ahead]))
            (translated,) = self._translate_whole([read], options)
            own = slice(stretch.start - first, stretch.stop - first)
            found += translated.translations[own]
            latest = translated.document.sentences[own][-CONTEXT_SENTENCES:]
            sentences[stretch.stop - len(latest) : stretch.stop] = map(_as_draft, latest)
        return TranslatedDocument.of(document, found)

    def pointer_for(self, units: Sequence[Unit], options: TranslationOptions) -> Approved | None:
        """What these units may point at: the memory's pairs, and the locked sentences of their documents. For the sake
        of these alone a model without a pointer borrows none."""
        if options.memory is None and (self.model.pointer is None or not any(unit.locked for unit in units)):
            return None
        return self.approvals.pointer_for(units, options.memory, locked=options.context)

    def term_search(self, options: TranslationOptions) -> TermSearch | None:
        """What follows the terms of some options; None if they have none."""
        if options.terms is None:
            return None
        from weitblick.translation.term_search import TermSearch

        return TermSearch(options.terms, self.pipeline)

    def address(self, options: TranslationOptions) -> Address | None:
        """What asks for a form of address; None if the model knows none."""
        from weitblick.translation.address import Address

        return Address.of(self.pipeline, options.formality)

    @cached_property
    def approvals(self) -> Approvals:
        """Keeps the keys of approved translations. A model without a pointer takes over the shipped one's, which is
        said once and stays in this process."""
        from weitblick.memory.approvals import Approvals

        return Approvals(self.model, self.pipeline, self._borrow if self.borrows else None)

    def _borrow(self) -> MemoryPointer | None:
        from weitblick.translation.borrowed_pointer import borrow_pointer

        borrowed = borrow_pointer(self.model, self.pipeline) if self.borrows else None
        if borrowed is not None:
            self.warn("the model has no pointer to approved translations: it takes over the shipped model's")
        return borrowed


def _stretches(document: Document) -> list[range]:
    """The sentences of a document in runs of about `STRETCH_WORDS`; the last may be a quarter longer."""
    sizes = [source.count(" ") + 1 for source in document.sources]
    found, start, size, left = [], 0, 0, sum(sizes)
    for number, words in enumerate(sizes, 1):
        size, left = size + words, left - words
        if size >= STRETCH_WORDS and left > STRETCH_WORDS // 4:
            found.append(range(start, number))
            start, size = number, 0
    return [*found, range(start, len(sizes))]


def _as_draft(sentence: Sentence) -> Sentence:
    return sentence if sentence.status == "locked" or not sentence.target else replace(sentence, status="draft")


def as_document(text: Text) -> Document:
    if isinstance(text, Document):
        return text
    sentences = text.splitlines() if isinstance(text, str) else text
    return Document("1", tuple(Sentence(sentence) for sentence in sentences))


def windows(documents: Iterable[Document], words: int = WINDOW_WORDS) -> Iterator[list[Document]]:
    """Documents in groups of about so many words, at least one document each."""
    window: list[Document] = []
    size = 0
    for document in documents:
        window.append(document)
        size += sum(source.count(" ") + 1 for source in document.sources)
        if size >= words:
            yield window
            window, size = [], 0
    if window:
        yield window
