"""Texts with XML tags of any names. They are read as HTML is, under names that say what each is there: an element
beside text stands within a sentence, any other around sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from weitblick.formats.file import Align
from weitblick.formats.translation import Translate
from weitblick.server.texts import MarkedTexts

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
    def __init__(self, texts: Iterable[str], language: str, *, before: str = "", together: bool = True) -> None:
        given = list(texts)
        self._names = [XmlNames() for _ in given]
        renamed = [names.rename(text) for names, text in zip(self._names, given, strict=True)]
        super().__init__(renamed, language, before=before, together=together)

    def join(self, documents: Sequence[Sequence[str]], align: Align, translate: Translate) -> list[str]:
        joined = super().join(documents, align, translate)
        return [names.restore(text) for names, text in zip(self._names, joined, strict=True)]
