"""`weitblick translate --stream`: each line of standard input is translated as it comes."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from weitblick.cli.console import scored_line
from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD, read_lines

if TYPE_CHECKING:
    from weitblick.memory.glossary import GlossaryCheck
    from weitblick.text.carried import Alphabet
    from weitblick.translation.options import TranslationOptions
    from weitblick.translation.results import Translation
    from weitblick.translation.streaming import Stream
    from weitblick.translation.translator import Translator

DOCUMENT_OPENING = "<d>"


def translate_stream(
    translator: Translator,
    files: list[str],
    output: str,
    options: TranslationOptions,
    scores: bool,
    check: GlossaryCheck | None,
) -> None:
    """Translates each line of standard input as it comes; a blank line or `<d>` begins another document."""
    from weitblick.documents.document import Document, Sentence
    from weitblick.text.carried import Alphabet

    if files != [STANDARD] or output != STANDARD or options.n_best > 1:
        raise UserError("--stream reads standard input and writes one line for each to standard output")
    stream = translator.stream(**vars(options))
    documents = 1
    alphabet = Alphabet(translator.pipeline)
    for line in read_lines(STANDARD):
        if not line.strip() or line.strip() == DOCUMENT_OPENING:
            documents += stream.count > 0
            stream.end_document()
            answer = line.strip()
        else:
            translations = _streamed(translator, stream, alphabet, line)
            text = translations[0].text if translations else line
            answer = scored_line(translations[0]) if scores and translations else text
            if check is not None:
                check(Document(str(documents), (Sentence(line, text),)), first=stream.count)
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


def _streamed(translator: Translator, stream: Stream, alphabet: Alphabet, line: str) -> tuple[Translation, ...]:
    """The translations of the next line of a stream, with what the model cannot read carried."""
    from weitblick.documents.document import Document, Sentence
    from weitblick.files.masked_document import MaskedDocument
    from weitblick.translation.results import TranslatedDocument

    masked = MaskedDocument.of_corpus(Document("stream", (Sentence(line),)), alphabet)
    if masked.carries_nothing:
        return stream.translations(line)
    (sentence,) = masked.masked().sentences
    found = stream.translations(sentence.source)
    document = Document("stream", (replace(sentence, target=found[0].text if found else sentence.source),))
    shown, _ = masked.unmasked_translations(TranslatedDocument(document, (found,)), translator.align, lambda lost: lost)
    return shown.translations[0]
