"""The explanation of a document in whose sentences a model reads names (K1) for what is carried: in words that people
read, and of the translation that `translate` gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from weitblick.documents.document import Document
from weitblick.explanation.schema import DocumentTranslations, Explanation, SentenceExplanation, Word, Words
from weitblick.files.masked_document import MaskedDocument
from weitblick.text.units import Unit
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator


def explain_masked(
    translator: Translator,
    masked: MaskedDocument,
    units: Sequence[Unit],
    given: DocumentTranslations,
    beam: int | None,
    explained: Callable[[DocumentTranslations], Explanation],
) -> Explanation:
    """What `explained` says of the translations of a masked document, with its names as what they stand for."""
    positions: list[list[int]] = [[] for _ in masked.document.sentences]  # several of an over-long sentence
    for unit in units:
        positions[unit.sentence].append(unit.position)
    finished = _finished(translator, masked, given, positions, beam)
    explanation = explained(_with_targets(translator, masked, given, positions, finished))
    sentences = list(explanation.sentences)
    for number, places in enumerate(positions):
        for place in places:
            sentences[place] = with_names(sentences[place], masked.names(number))
        if len(places) == 1:
            own, shown = sentences[places[0]], finished.sentences[number]
            source, target = respelled(own.source, shown.source), respelled(own.target, shown.target or "")
            sentences[places[0]] = replace(own, source=source, target=target)
    return replace(explanation, sentences=tuple(sentences))


def _finished(
    translator: Translator,
    masked: MaskedDocument,
    given: DocumentTranslations,
    positions: Sequence[Sequence[int]],
    beam: int | None,
) -> Document:
    """The document with its translations as people read them, mended as `translate` mends them."""
    texts = translator.pipeline.decode_target(given.targets)
    read = masked.masked()
    sentences = tuple(
        sentence
        if sentence.status == "locked"
        else replace(sentence, target=" ".join(texts[place] for place in places) or sentence.source)
        for sentence, places in zip(read.sentences, positions, strict=True)
    )

    def again(document: Document) -> Document:
        return translator.translate_window([document], TranslationOptions(beam=beam))[0].document

    return masked.unmasked(masked.retried(replace(read, sentences=sentences), again), translator.align)[0]


def _with_targets(
    translator: Translator,
    masked: MaskedDocument,
    given: DocumentTranslations,
    positions: Sequence[Sequence[int]],
    finished: Document,
) -> DocumentTranslations:
    """The translations as they are after mending, where that has changed them."""
    pipeline = translator.pipeline
    texts, targets = pipeline.decode_target(given.targets), list(given.targets)
    for number, places in enumerate(positions):
        if len(places) != 1 or masked.document.sentences[number].status == "locked":
            continue
        text = masked.mask_target(number, finished.sentences[number].target or "")
        if text != texts[places[0]]:
            targets[places[0]] = pipeline.encode_target([text])[0][: pipeline.longest_sentence]
    return replace(given, targets=targets)


def with_names(sentence: SentenceExplanation, names: Mapping[str, str]) -> SentenceExplanation:
    """A sentence with what its names stand for."""
    if not names:
        return sentence

    def words(given: Words) -> Words:
        return tuple(replace(word, text=named(word.text, names)) for word in given)

    scores = tuple(
        score if score.choice_without is None else replace(score, choice_without=named(score.choice_without, names))
        for score in sentence.scores
    )
    sides = (sentence.source, sentence.target, sentence.target_without, sentence.context_words)
    source, target, without, context = map(words, sides)
    return replace(sentence, source=source, target=target, target_without=without, context_words=context, scores=scores)


def named(word: str, names: Mapping[str, str]) -> str:
    """A word, or what it stands for if it is a name; signs may cling to that."""
    if not names:
        return word
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<!\w)({pattern})(?!\w)", lambda found: names[found[1]], word)


def respelled(words: Words, text: str) -> Words:
    """The words of a text, spelled and spaced as there: a model reads other quotes, and no capital letters. Words that
    are not those of the text stay as they are."""
    found: list[Word] = []
    place = 0
    for word in words:
        start = place + len(text[place:]) - len(text[place:].lstrip())
        piece = text[start : start + len(word.text)]
        signs = not any(map(str.isalnum, word.text + piece))
        if len(piece) != len(word.text) or (piece.casefold() != word.text.casefold() and not signs):
            return words
        found.append(replace(word, text=piece, space=bool(found) and start > place))
        place = start + len(piece)
    return words if text[place:].strip() else tuple(found)
