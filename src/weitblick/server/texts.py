"""Texts of a request as documents of sentences, and their translations put together again.

Whatever stands between sentences (white space, line ends) comes back as it was, and so do the tags of HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from weitblick.documents.corpora.prose import Splitter, sentence_splitter, split_exactly
from weitblick.documents.document import Document, Sentence
from weitblick.formats import TranslatableFile
from weitblick.formats.file import Align
from weitblick.formats.translation import Translate
from weitblick.server.files import read_upload, write_translation


class Place(NamedTuple):
    document: int
    sentence: int


class Texts:
    """Some texts: `together` one document, or a document each. `before` is context of all of them and no part of the
    result."""

    def __init__(self, texts: Iterable[str], language: str, *, before: str = "", together: bool = True) -> None:
        self._split = sentence_splitter(language)
        self._before = [text for text, _ in self._plain(before) if text]
        self._documents: list[list[str]] = [[]]
        self._texts: list[list[str | Place]] = []  # of each text: sentences, and what stands between them
        for text in texts:
            self._texts.append(list(self._sentences(text)))
            if not together:
                self._documents.append([])

    @property
    def documents(self) -> list[Document]:
        """Those with sentences."""
        before = tuple(Sentence(text) for text in self._before)
        return [
            Document(str(number), before + tuple(Sentence(text) for text in sentences))
            for number, sentences in enumerate(self._documents, 1)
            if sentences
        ]

    def join(self, documents: Sequence[Sequence[str]], align: Align, translate: Translate) -> list[str]:
        """The texts again, with the targets of all sentences of each of `documents` in their places."""
        given = iter(documents)
        targets = [list(next(given))[len(self._before) :] if sentences else [] for sentences in self._documents]

        def shown(part: str | Place) -> str:
            return part if isinstance(part, str) else targets[part.document][part.sentence]

        return ["".join(map(shown, parts)) for parts in self._texts]

    def _sentences(self, text: str) -> Iterator[str | Place]:
        for sentence, space in self._plain(text):
            if sentence:
                self._documents[-1].append(sentence)
                yield Place(len(self._documents) - 1, len(self._documents[-1]) - 1)
            yield space

    def _plain(self, text: str) -> Iterator[tuple[str, str]]:
        """Sentences and the white space behind them, line by line: a line end always ends a sentence."""
        for line in text.splitlines(keepends=True):
            yield from sentences_of(line, self._split)


class MarkedTexts:
    """As `Texts`, of HTML: read and written as a file of it would be, so that tags stand where their words went."""

    def __init__(self, texts: Iterable[str], language: str, *, before: str = "", together: bool = True) -> None:
        self._files = [read_upload("text.html", text.encode(), language) for text in texts]
        self._before = Texts([before], language).documents
        self._together = together

    @property
    def documents(self) -> list[Document]:
        """Those with sentences."""
        before = self._before[0].sentences if self._before else ()
        parts = [file.veiled().sentences for file in self._files]
        if self._together:
            parts = [tuple(sentence for part in parts for sentence in part)]
        return [Document(str(number), before + part) for number, part in enumerate(parts, 1) if part]

    def join(self, documents: Sequence[Sequence[str]], align: Align, translate: Translate) -> list[str]:
        """The texts again; `align` says where the words of tags went, and sentences that have lost something that must
        stay are translated once more."""
        before = len(self._before[0].sentences) if self._before else 0
        targets = iter([target for document in documents for target in document[before:]])
        return [self._written(file, targets, align, translate) for file in self._files]

    def _written(self, file: TranslatableFile, targets: Iterator[str], align: Align, translate: Translate) -> str:
        veiled = file.veiled()
        sentences = tuple(replace(sentence, target=next(targets)) for sentence in veiled.sentences)
        translated = file.translated_again(replace(veiled, sentences=sentences), translate)
        whole, _ = file.unveiled(translated, align)
        return write_translation(file, whole, align).decode()


def sentences_of(line: str, split: Splitter) -> Iterator[tuple[str, str]]:
    content = line.rstrip("\r\n")
    if not content.strip():
        yield "", line
        return
    *first, (last, space) = split_exactly(content, split)
    yield from first
    yield last, space + line[len(content) :]
