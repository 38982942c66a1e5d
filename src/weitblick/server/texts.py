"""Texts of a request as documents of sentences, and their translations put together again.

Whatever stands between sentences (white space, line ends, tags of HTML) comes back as it was.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from weitblick.documents.corpora.prose import Splitter, sentence_splitter, split_exactly
from weitblick.documents.document import Document, Sentence

TAG = re.compile(r"<!--.*?-->|<(script|style|code|pre)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)


class Place(NamedTuple):
    document: int
    sentence: int


class Texts:
    """Some texts: `together` one document, or a document each. `before` is context of all of them and no part of the
    result; in `markup` tags stay as they are."""

    def __init__(
        self, texts: Iterable[str], language: str, *, before: str = "", markup: bool = False, together: bool = True
    ) -> None:
        self._split = sentence_splitter(language)
        self._markup = markup
        self._before = [text for text, _ in self._plain(before) if text]
        self._documents: list[list[str]] = [[]]
        self._texts: list[list[str | Place]] = []  # of each text: sentences, and what stands between them
        for text in texts:
            self._texts.append(list(self._parts(text)))
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

    @property
    def context_sentences(self) -> int:
        """How many sentences at the beginning of each document are context only."""
        return len(self._before)

    def join(self, documents: Sequence[Sequence[str]]) -> list[str]:
        """The texts again, with the targets of all sentences of each of `documents` in their places."""
        given = iter(documents)
        targets = [list(next(given))[len(self._before) :] if sentences else [] for sentences in self._documents]

        def shown(part: str | Place) -> str:
            if isinstance(part, str):
                return part
            target = targets[part.document][part.sentence]
            return html.escape(target, quote=False) if self._markup else target

        return ["".join(map(shown, parts)) for parts in self._texts]

    def _parts(self, text: str) -> Iterator[str | Place]:
        if not self._markup:
            yield from self._sentences(text)
            return
        position = 0
        for tag in TAG.finditer(text):
            yield from self._sentences(html.unescape(text[position : tag.start()]))
            yield tag.group()
            position = tag.end()
        yield from self._sentences(html.unescape(text[position:]))

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


def sentences_of(line: str, split: Splitter) -> Iterator[tuple[str, str]]:
    content = line.rstrip("\r\n")
    if not content.strip():
        yield "", line
        return
    *first, (last, space) = split_exactly(content, split)
    yield from first
    yield last, space + line[len(content) :]
