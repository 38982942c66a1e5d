"""What PowerPoint and Excel files share: parts that are read once, their relations, and how text is spelled there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from weitblick.common.errors import UserError
from weitblick.files.blocks import Block, Code, Pieces
from weitblick.files.encoding import Encoding, decode, xml_declared
from weitblick.files.markup import check_xml, escape, tokens_of
from weitblick.files.office import Package
from weitblick.files.translatable_file import Content

ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
NEEDS_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
LINE = re.compile(r"_x005[Ff]_|((?:_x000[Dd]_)?(?:\r?\n|\r|_x000[Aa]_)|_x000[BbDd]_|\t)")  # a tab parts texts, too

Texts = Mapping[str, str]
Save = Callable[[Texts], tuple[Texts, Mapping[str, bytes]]]
"""From the parts that blocks have changed to all parts that change: texts, and parts that are files themselves."""


@dataclass(frozen=True)
class Relation:
    """What a part refers to: the id that it uses, the last word of the relation's type, and the other part's name."""

    id: str
    kind: str
    target: str


class Parts:
    """The XML parts of a package, each read, checked and decoded when it is first asked for."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.texts: dict[str, str] = {}
        self._encodings: dict[str, Encoding] = {}

    def text(self, name: str) -> str:
        """The text of a part."""
        if name not in self.texts:
            raw, path = self.package.read(name), self.package.path
            check_xml(raw, f"{path}({name})")
            self.texts[name], self._encodings[name] = decode(raw, path, xml_declared(raw))
        return self.texts[name]

    def relations(self, name: str = "") -> list[Relation]:
        """What a part (the package itself if none is named) refers to inside the package, in the order of the file."""
        folder, file = posixpath.split(name)
        rels = posixpath.join(folder, "_rels", f"{file}.rels")
        if rels not in self.package:
            return []
        found = []
        for token in tokens_of(self.text(rels)):
            attributes = token.attributes if token.name.rpartition(":")[2] == "Relationship" else {}
            if "Target" in attributes and attributes.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, unquote(attributes["Target"]))).lstrip("/")
                if target in self.package:
                    kind = attributes.get("Type", "").rpartition("/")[2]
                    found.append(Relation(attributes.get("Id", ""), kind, target))
        return found

    def related(self, name: str, *kinds: str) -> list[Relation]:
        """What a part refers to by relations of these kinds, in the order in which it uses them."""
        text = self.text(name)
        found = [relation for relation in self.relations(name) if relation.kind in kinds]
        places = {one.id: place if (place := text.find(f'"{one.id}"')) >= 0 else len(text) for one in found}
        return sorted(found, key=lambda one: places[one.id])

    def main(self, root: str, what: str, ending: str) -> str:
        """The name of the part that all others hang on; its root element shows whether this is the right program."""
        path = self.package.path
        if "[Content_Types].xml" not in self.package:
            raise UserError(f"is a zip file, but no {what}", where=path, remedy=f"save it as {ending}")
        main = next((one.target for one in self.relations() if one.kind == "officeDocument"), None)
        if main is None or main.endswith(".bin") or root_name(self.text(main)) != root:
            raise UserError(f"is an Office file, but no {what}", where=path, remedy=f"save it as {ending}")
        return main

    def content(
        self,
        blocks: Sequence[Block],
        complete: Save,
        notes: Sequence[str] = (),
        review: Callable[[Sequence[tuple[Block, str]]], list[str]] | None = None,
    ) -> Content:
        """The content of a file with these blocks; `complete` adds what must change with them elsewhere."""

        def save(new: Texts) -> bytes:
            return self.replaced(*complete(new)) if new else self.package.replaced({})

        return Content(self.texts, blocks, save, notes, review)

    def replaced(self, texts: Texts, data: Mapping[str, bytes]) -> bytes:
        """The package with changed parts; those that are as they were are not written anew."""
        changed = {name: text for name, text in texts.items() if text != self.texts[name]}
        encoded = {name: self._encodings[name].encode(text) for name, text in changed.items()}
        return self.package.replaced({**encoded, **data})


def root_name(text: str) -> str:
    """The name of the root element, without its prefix."""
    return next((t.name.rpartition(":")[2] for t in tokens_of(text[:4096]) if t.kind in ("open", "empty")), "")


# Text as these files spell it: what XML has no room for is written _x000B_, and so is an underscore that would read so.


def escaped(text: str, style: str | None = None) -> str:
    """Text as an element of these files holds it."""
    return escape(NEEDS_ESCAPE.sub("_x005F_", text))


def escaped_attribute(text: str, style: str | None = None) -> str:
    """Text as an attribute of these files holds it."""
    return escaped(text).replace('"', "&quot;").replace("\n", "_x000a_").replace("\t", "_x0009_")


def unescaped(text: str) -> str:
    """What a text of these files says: the escapes of line ends and underscores resolved."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text).replace("\r\n", "\n") if "_x" in text else text


def lines_of(text: str, write: Callable[[str], str] = str) -> list[str | Code]:
    """The lines of a text, and codes for what parts them; `write` puts a line end into the file as it is spelled."""
    found: list[str | Code] = []
    position = 0
    for one in LINE.finditer(text):
        if one[1] is None:  # an underscore, whatever stands behind it
            continue
        found += [unescaped(text[position : one.start()]), Code("break", write(one[0].replace("\r", "&#13;")))]
        position = one.end()
    return [one for one in [*found, unescaped(text[position:])] if one != ""]


def pieces_of(text: str, write: Callable[[str], str] = str) -> Pieces:
    """A text without formatting, its lines parted by codes."""
    pieces = Pieces()
    for one in lines_of(text, write):
        pieces.text(one) if isinstance(one, str) else pieces.code(one)
    return pieces
