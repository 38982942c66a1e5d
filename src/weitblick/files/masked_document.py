"""A document whose carried spans a model never sees: masked before it translates, put back afterwards."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from weitblick.documents.document import Document, Sentence
from weitblick.files.masking import Mask, Reading, in_small_letters, inner_text, insert_words, is_in_capitals
from weitblick.text.carried import Alphabet, Span, corpus_spans, lost_numbers, sentence_spans
from weitblick.translation.alignment import Alignment, align_by_place
from weitblick.translation.results import TranslatedDocument

BY_RULE = "by_rule"
"""In the metadata of a sentence that a rule has translated (a number, a date): no model is asked."""
OPEN_END = re.compile(r"\.{3}$|…$")

Align = Callable[[Sequence[tuple[str, str]]], list[Alignment]]
"""(source, target) texts to alignments: `Translator.align`."""
Translate = Callable[[Document], Document]


def align_by_places(pairs: Sequence[tuple[str, str]]) -> list[Alignment]:
    """Alignments without a model."""
    return [align_by_place(*pair) for pair in pairs]


class MaskedDocument:
    """A `document` as people read it, and the mask of each of its sentences."""

    def __init__(self, document: Document, masks: Sequence[Mask]) -> None:
        self.document, self.masks = document, masks
        self._settled = {  # sentences that have their translation: a human's, or a rule's
            number
            for number, one in enumerate(document.sentences)
            if one.status == "locked" or one.metadata.get(BY_RULE)
        }

    @classmethod
    def of_sentences(cls, document: Document, language: str, alphabet: Alphabet | None = None) -> MaskedDocument:
        """A document that comes from no file. `language`: of its sources."""
        reading = Reading.of(language, alphabet)
        spans = [sentence_spans(source, alphabet) for source in document.sources]
        return cls(document, _masks(document, spans, reading))

    @classmethod
    def of_corpus(cls, document: Document, alphabet: Alphabet) -> MaskedDocument:
        """A document of a corpus, whose sentences go to the model as they stand: only what the model cannot read at
        all (emoji, words outside its vocabulary) is carried."""
        spans = [corpus_spans(source, alphabet) for source in document.sources]
        return cls(document, _masks(document, spans, Reading.as_is(alphabet)))

    @property
    def carries_nothing(self) -> bool:
        """Whether no sentence has a carried span."""
        return not any(mask.shown for mask in self.masks)

    # What a model reads

    def masked(self) -> Document:
        """The document as a model should read it, with names for what it must not touch; see `unmasked`."""
        return replace(self.document, sentences=tuple(map(self._masked, range(len(self.masks)))))

    def _masked(self, number: int) -> Sentence:
        mask, sentence = self.masks[number], self.document.sentences[number]
        if sentence.metadata.get(BY_RULE):
            return replace(sentence, status="locked")
        given = self.mask_target(number, sentence.target) if sentence.target and mask.shown else sentence.target
        return replace(sentence, source=self._source(mask), target=given)

    @staticmethod
    def _source(mask: Mask) -> str:
        return mask.mask(in_small_letters(mask.source) if mask.reading.familiar else mask.source)

    def mask_target(self, number: int, target: str) -> str:
        """A translation of one sentence, as a model should read it."""
        mask = self.masks[number]
        inner = mask.find(" ".join(target.split("\n")))
        return mask.mask(in_small_letters(inner) if mask.reading.familiar else inner)

    def names(self, number: int) -> dict[str, str]:
        """What the names in a masked sentence stand for, as people read it."""
        return self.masks[number].named

    # What it answers

    def retried(self, translated: Document, translate: Translate) -> Document:
        """A translation of `masked()` in which sentences that have lost spans have had a second chance."""
        targets = {number: sentence.target or "" for number, sentence in enumerate(translated.sentences)}
        found = self.retry(targets, translate)
        sentences = [
            replace(sentence, target=found[number]) if found[number] != (sentence.target or "") else sentence
            for number, sentence in enumerate(translated.sentences)
        ]
        return replace(translated, sentences=tuple(sentences))

    def retry(self, targets: Mapping[int, str], translate: Translate) -> dict[int, str]:
        """Masked translations by the number of their sentence; those that have lost spans are translated once more,
        with other names for them, and the better one is kept. Each is translated on its own: those that lose something
        stand anywhere in the document, and are no context of each other."""
        broken = {number: lost for number, target in targets.items() if (lost := self._lost(number, target))}
        found = dict(targets)
        for number, lost in broken.items():
            mask = self.masks[number].again()
            sentence = replace(self.document.sentences[number], source=self._source(mask))
            (answer,) = translate(replace(self.document, sentences=(sentence,))).sentences
            inner = mask.unmask(answer.target or "")
            if len(mask.missing(inner)) < lost:
                found[number] = self.masks[number].mask(inner)
        return found

    def _lost(self, number: int, target: str) -> int:
        mask = self.masks[number]
        return 0 if number in self._settled else len(mask.missing(mask.unmask(target)))

    def unmasked(self, translated: Document, align: Align = align_by_places) -> tuple[Document, list[str]]:
        """A translation of `masked()` as one of `document`, and notes about what had to be put back or was lost."""
        free = [number for number in range(len(self.masks)) if number not in self._settled]
        shown, notes = self.unmask({n: translated.sentences[n].target or "" for n in free}, align)
        sentences = [
            replace(sentence, metadata={**sentence.metadata, **given.metadata})
            for sentence, given in zip(self.document.sentences, translated.sentences, strict=True)
        ]
        for number, target in shown.items():
            sentences[number] = replace(sentences[number], target=target)
        return replace(self.document, sentences=tuple(sentences)), notes

    def unmask(self, targets: Mapping[int, str], align: Align = align_by_places) -> tuple[dict[int, str], list[str]]:
        """As `unmasked`, for some sentences by their number."""
        inners = {number: self._inner(number, target) for number, target in targets.items()}
        notes = self.put_back(inners, align)
        for number, inner in inners.items():
            lost = lost_numbers(self.masks[number].source, inner)
            notes += [f"sentence {number + 1}: the number {value} is not in the translation" for value in lost]
        return {number: self.masks[number].show(inner) for number, inner in inners.items()}, notes

    def rest(self, number: int, begun: str, whole: str) -> str:
        """What a model's answer for one sentence says behind its beginning, as people read it."""
        mask = self.masks[number]
        first, every = mask.unmask(begun), mask.unmask(whole)
        if mask.reading.familiar and (ended := _ended(mask.source, every)).startswith(first):
            every = ended
        if not every.startswith(first):
            return ""
        shown = mask.show(every[len(first) :])
        return shown.upper() if mask.reading.familiar and is_in_capitals(mask.source) else shown

    def _inner(self, number: int, target: str) -> str:
        mask = self.masks[number]
        inner = mask.unmask(target)
        return _like(mask.source, inner) if mask.reading.familiar else inner

    def put_back(self, inners: dict[int, str], align: Align) -> list[str]:
        """Puts the spans that are missing in inner targets where their neighbours went; gives a note for each."""
        broken = [number for number in inners if self.masks[number].missing(inners[number])]
        notes = []
        for number, alignment in zip(broken, self.alignments(broken, inners, align), strict=True):
            mask = self.masks[number]
            missing = mask.missing(inners[number])
            inners[number] = insert_words(mask.source, inners[number], missing, alignment)
            lost = ", ".join(mask.shown[span] for span in missing)
            notes.append(f"sentence {number + 1}: {lost} was lost and put back: check its place")
        return notes

    def alignments(self, chosen: Sequence[int], inners: Mapping[int, str], align: Align) -> list[Alignment]:
        """The alignments of some sentences with their inner targets, counted in inner texts."""
        masks = [self.masks[number] for number in chosen]
        pairs = [(mask.mask(mask.source), mask.mask(inners[n])) for n, mask in zip(chosen, masks, strict=True)]
        return [
            mask.inner_alignment(mask.source, inners[number], found)
            for number, mask, found in zip(chosen, masks, align(pairs) if pairs else [], strict=True)
        ]

    def unmasked_translations(
        self, translated: TranslatedDocument, align: Align, translate: Translate
    ) -> tuple[TranslatedDocument, list[str]]:
        """A translation of `masked()` with all its n best as one of `document`, and notes about the best."""
        best, notes = self.unmasked(self.retried(translated.document, translate), align)
        translations = []
        for number, found in enumerate(translated.translations):
            shown = [replace(one, text=self.unmask({number: one.text}, align)[0][number]) for one in found[1:]]
            first = [replace(one, text=best.sentences[number].target or "") for one in found[:1]]
            translations.append(tuple(first + shown))
        return TranslatedDocument(best, tuple(translations)), notes


def _masks(document: Document, spans: Sequence[Sequence[Span]], reading: Reading) -> list[Mask]:
    return [Mask.of(*inner_text(source, own), reading) for source, own in zip(document.sources, spans, strict=True)]


@dataclass(frozen=True)
class MaskedPair:
    """A sentence and its translation that belong to no file, masked; names: what each name stands for."""

    source: str
    target: str
    names: Mapping[str, str]


def mask_pair(source: str, target: str, language: str, alphabet: Alphabet | None = None) -> MaskedPair:
    """A pair of a memory as a model should read it. `language`: of the source."""
    masked = MaskedDocument.of_sentences(Document("1", (Sentence(source),)), language, alphabet)
    return MaskedPair(masked.masked().sources[0], masked.mask_target(0, target), masked.names(0))


def translate_corpus(
    documents: Iterable[Document],
    alphabet: Alphabet,
    translations: Callable[[Iterable[Document]], Iterator[TranslatedDocument]],
    align: Align,
    translate: Translate,
) -> Iterator[TranslatedDocument]:
    """The documents of a corpus translated by `translations`, in order, with what the model cannot read carried.

    `translate` gives sentences that have lost something a second chance.
    """
    waiting: deque[MaskedDocument] = deque()

    def masked() -> Iterator[Document]:
        for document in documents:
            one = MaskedDocument.of_corpus(document, alphabet)
            waiting.append(one)
            yield document if one.carries_nothing else one.masked()

    for translated in translations(masked()):
        one = waiting.popleft()
        yield translated if one.carries_nothing else one.unmasked_translations(translated, align, translate)[0]


def _like(source: str, target: str) -> str:
    """A translation with the signs of its source: capital letters, square brackets, no full stop where none was."""
    if "[" in source and "(" not in source and target.count("(") == source.count("["):
        target = target.replace("(", "[").replace(")", "]")
    target = _ended(source, target)
    return target.upper() if is_in_capitals(source) else target


def _ended(source: str, target: str) -> str:
    """A heading or a cell has no full stop because a model that has only seen sentences puts one there."""
    if not target.endswith(".") or target.endswith(".."):
        return target
    if dots := OPEN_END.search(source):
        return target[:-1] + dots[0]
    if source.endswith(tuple(".!?…。！？;,-–—")):
        return target
    return target[:-1] + ":" if source.endswith(":") else target[:-1] or target
