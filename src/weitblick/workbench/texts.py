"""The texts of a request as documents of sentences, and their translations put together again.

Plain text, HTML and XML are read as files are: addresses, placeholders, emoji and tags are carried through, and white
space and line ends come back as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from weitblick.documents.document import Document, Sentence
from weitblick.files.masked_document import Align, Translate
from weitblick.files.text import lines_content
from weitblick.files.translatable_file import TranslatableFile
from weitblick.text.base import without_surrogates
from weitblick.text.carried import Alphabet
from weitblick.workbench.transfer import read_upload


class Texts:
    """Plain texts: `together` one document, or a document each. `before` is context of all of them and no part of the
    result."""

    def __init__(
        self,
        texts: Iterable[str],
        language: str,
        *,
        alphabet: Alphabet | None = None,
        before: str = "",
        together: bool = True,
    ) -> None:
        self._files = [self._read(without_surrogates(text), language, alphabet) for text in texts]
        self._before = read_plain(without_surrogates(before), language, alphabet).masked().sentences
        self._together = together
        self._approved: Mapping[str, str] = {}

    @staticmethod
    def _read(text: str, language: str, alphabet: Alphabet | None) -> TranslatableFile:
        return read_plain(text, language, alphabet)

    def documents(self, approved: Mapping[str, str] | None = None) -> list[Document]:
        """The documents that have sentences, as a model reads them. Sentences that are `approved` word for word keep
        that translation."""
        self._approved = approved or {}
        parts = [self._sentences(file) for file in self._files]
        if self._together:
            parts = [tuple(sentence for part in parts for sentence in part)]
        return [Document(str(number), self._before + part) for number, part in enumerate(parts, 1) if part]

    def _sentences(self, file: TranslatableFile) -> tuple[Sentence, ...]:
        return tuple(
            replace(masked, target=file.mask_target(number, self._approved[own.source]), status="locked")
            if own.source in self._approved
            else masked
            for number, (own, masked) in enumerate(zip(file.document.sentences, file.masked().sentences, strict=True))
        )

    def join(self, documents: Sequence[Sequence[str]], align: Align, translate: Translate) -> list[str]:
        """The texts again, with the targets of all sentences of each of `documents` in their places. `align` says where
        the words of tags went; sentences that have lost something carried are translated once more."""
        targets = iter([target for document in documents for target in document[len(self._before) :]])
        return [self._written(file, targets, align, translate) for file in self._files]

    def _written(self, file: TranslatableFile, targets: Iterator[str], align: Align, translate: Translate) -> str:
        masked = file.masked()
        sentences = tuple(replace(sentence, target=next(targets)) for sentence in masked.sentences)
        whole, _ = file.unmasked(file.retried(replace(masked, sentences=sentences), translate), align)
        sentences = tuple(replace(one, target=self._approved.get(one.source, one.target)) for one in whole.sentences)
        return file.rendered(replace(whole, sentences=sentences), align)[0].decode()


def read_plain(text: str, language: str, alphabet: Alphabet | None = None) -> TranslatableFile:
    """A plain text of a request; a line end always ends a sentence."""
    return TranslatableFile(Path("text"), "text", lines_content(text), language, alphabet)


class MarkedTexts(Texts):
    """As `Texts`, of HTML: tags stand where their words went."""

    @staticmethod
    def _read(text: str, language: str, alphabet: Alphabet | None) -> TranslatableFile:
        return read_upload("text.html", text.encode(), language, alphabet)


# XML has tags of any names. They are read as HTML is, under names that say what each is there: an element beside text
# stands within a sentence, any other around sentences.

TAG = re.compile(
    r"<!--(?:(?!<!--).)*?-->|<!\[CDATA\[(?:(?!<!\[CDATA\[).)*?\]\]>|<[?!][^<>]*>"
    r"|<(?P<closing>/?)(?P<name>[^\W\d][\w:.-]*)(?P<rest>(?:\s[^<>]*?)?)(?P<empty>/?)>",
    re.DOTALL,
)
NO_TRANSLATION = re.compile(r"""\stranslate\s*=\s*["']no["']""")
RENAMED = re.compile(r'<(?:span|wbr|div|hr) data-tag="(\d+)"[^>]*>|</(?:span|div)>')


@dataclass(eq=False)
class _Element:
    """beside_text: whether the element around it holds text of its own."""

    number: int
    opening: str
    name: str
    empty: bool
    around: _Element | None
    has_text: bool = False

    @property
    def beside_text(self) -> bool:
        return self.around is not None and self.around.has_text


@dataclass
class XmlNames:
    """A text whose elements have names of HTML, and their own again."""

    elements: list[_Element] = field(default_factory=list)

    def rename(self, text: str) -> str:
        """The text under other names; as it is if its tags are not those of XML."""
        tags = list(TAG.finditer(text))
        owners = self._read(text, tags)
        if owners is None:
            self.elements = []
            return text
        parts, end = [], 0
        for tag, owner in zip(tags, owners, strict=True):
            parts += [text[end : tag.start()], tag.group() if owner is None else self._renamed(owner, tag)]
            end = tag.end()
        return "".join([*parts, text[end:]])

    def _read(self, text: str, tags: Sequence[re.Match[str]]) -> list[int | None] | None:
        """Of each tag the number of its element, None for comments and the like; None if they do not nest."""
        root = _Element(-1, "", "", False, None)
        inside, owners, end = [root], list[int | None](), 0
        for tag in tags:
            inside[-1].has_text |= bool(text[end : tag.start()].strip())
            end = tag.end()
            if tag["name"] is None:
                owners.append(None)
            elif tag["closing"]:
                if inside[-1].name != tag["name"] or len(inside) == 1:
                    return None
                owners.append(inside.pop().number)
            else:
                element = _Element(len(self.elements), tag.group(), tag["name"], bool(tag["empty"]), inside[-1])
                owners.append(element.number)
                self.elements.append(element)
                inside += [] if element.empty else [element]
        root.has_text |= bool(text[end:].strip())
        return owners if len(inside) == 1 else None

    def _renamed(self, number: int, tag: re.Match[str]) -> str:
        element = self.elements[number]
        names = ("span", "wbr") if element.beside_text else ("div", "hr")
        if tag["closing"]:
            return f"</{names[0]}>"
        kept = ' translate="no"' if NO_TRANSLATION.search(element.opening) else ""
        name, end = (names[1], "/>") if element.empty else (names[0], ">")
        return f'<{name} data-tag="{number}"{kept}{end}'

    def restore(self, text: str) -> str:
        open_elements: list[_Element] = []

        def own(found: re.Match[str]) -> str:
            if found[1] is None:
                return f"</{open_elements.pop().name}>" if open_elements else found.group()
            element = self.elements[int(found[1])]
            open_elements.extend([] if element.empty else [element])
            return element.opening

        return RENAMED.sub(own, text) if self.elements else text


class XmlTexts(MarkedTexts):
    """As `Texts`, of XML."""

    def __init__(
        self,
        texts: Iterable[str],
        language: str,
        *,
        alphabet: Alphabet | None = None,
        before: str = "",
        together: bool = True,
    ) -> None:
        given = list(texts)
        self._names = [XmlNames() for _ in given]
        renamed = [names.rename(text) for names, text in zip(self._names, given, strict=True)]
        super().__init__(renamed, language, alphabet=alphabet, before=before, together=together)

    def join(self, documents: Sequence[Sequence[str]], align: Align, translate: Translate) -> list[str]:
        joined = super().join(documents, align, translate)
        return [names.restore(text) for names, text in zip(self._names, joined, strict=True)]
