"""Contrastive suites from files: JSON lines (ours, ContraPro's with one context sentence, any user's) and ContraPro's
original JSON, whose documents are files of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from weitblick.common.errors import UserError, parse_json, parse_value, short
from weitblick.common.files import STANDARD, decode_json, read_lines
from weitblick.documents.contrast import ContrastItem


def read_suite(
    path: str | Path,
    *,
    documents: str | Path | None = None,
    context_sentences: int | None = None,
    limit: int | None = None,
) -> list[ContrastItem]:
    """All items of a suite, or the first `limit`; `-` is standard input.

    documents: folder of ContraPro's document files, `documents` beside the suite if not given; context_sentences: so
    many sentences before and after the tested one are kept, all if not given.
    """
    lines = read_lines(path)
    opening: list[str] = []
    for line in lines:
        opening.append(line)
        if line.strip():
            break
    if opening and opening[-1].lstrip().startswith("["):
        text = "\n".join([*opening, *lines])
        folder = Path(documents) if documents is not None else Path(path).parent / "documents"
        items: Iterator[ContrastItem] = _contrapro(text, path, _DocumentFiles(folder))
    else:
        items = _json_lines((*opening, *lines) if opening else (), path)
    chosen = list(islice(items, limit))
    if not chosen:
        raise UserError("holds no items", where=path, remedy="name a contrastive suite")
    return chosen if context_sentences is None else [item.crop(context_sentences) for item in chosen]


def _json_lines(lines: Sequence[str], path: str | Path) -> Iterator[ContrastItem]:
    name = "standard input" if str(path) == STANDARD else str(path)
    for number, line in enumerate(lines, 1):
        if line.strip():
            contrapro = '"src"' in line and not SOURCE_KEY.search(line)  # a noun may be "source", too
            yield (
                _OneContextSentence.item(line, name, number)
                if contrapro
                else ContrastItem.from_line(line, name, number)
            )


SOURCE_KEY = re.compile(r'"source"\s*:')


class _OneContextSentence(BaseModel):
    """ContraPro as JSON lines: the sentence and the one before it, which may be missing."""

    model_config = ConfigDict(strict=True)

    id: str | int | None = None
    src: str
    ref: str
    contrastive: list[str]
    src_context: str | None = None
    ref_context: str | None = None
    ref_pronoun: str | None = None
    ante_distance: int | None = Field(None, ge=0)

    @classmethod
    def item(cls, text: str, where: str, line: int) -> ContrastItem:
        found = parse_json(cls, text, where, line=line)
        pair = found.src_context or "", found.ref_context or ""
        before = [pair] if any(part.strip() for part in pair) else []
        values = {
            "id": found.id if found.id is not None else line,
            "source": (*(source for source, _ in before), found.src),
            "target": (*(target or None for _, target in before), found.ref),
            "sentence": len(before),
            "reference": found.ref,
            "contrastive": tuple(found.contrastive),
            "distance": found.ante_distance,
            "phenomenon": "pronoun",
            "pronoun": _lower(found.ref_pronoun),
        }
        return parse_value(ContrastItem, values, where, line=line).at(where, line)


def _lower(text: str | None) -> str | None:
    return None if text is None else text.lower()


class _Variant(BaseModel):
    model_config = ConfigDict(strict=True)

    contrastive: str


class _ContraPro(BaseModel):
    """An item of ContraPro's own JSON: it names a document file and a line of it, counted from 1."""

    model_config = ConfigDict(strict=True)

    document: str = Field(alias="document id")
    segment: int = Field(alias="segment id", ge=1)
    source: str | None = Field(None, alias="src segment")
    sentence: str | None = Field(None, alias="source")  # the same in some copies
    reference: str = Field(alias="ref segment")
    pronoun: str | None = Field(None, alias="ref pronoun")
    distance: int | None = Field(None, alias="ante distance", ge=0)
    errors: list[_Variant] = Field(min_length=1)


def _contrapro(text: str, path: str | Path, files: _DocumentFiles) -> Iterator[ContrastItem]:
    for number, entry in enumerate(decode_json(text, path), 1):
        item = f"item {number}: "
        values = parse_value(_ContraPro, entry, path, item=item)
        yield _contrapro_item(values, files, number, str(path))


def _contrapro_item(values: _ContraPro, files: _DocumentFiles, number: int, where: str) -> ContrastItem:
    def wrong(field: str, what: str, remedy: str | None = None) -> UserError:
        return UserError(f"item {number}: field {field!r} {what}", where=where, remedy=remedy)

    found = files.read(values.document)
    if found is None:
        raise wrong(
            "document id", f"is {values.document!r}, and {files.folder} has no such file", "name --document-folder"
        )
    sources, targets = found
    if values.segment > len(sources):
        raise wrong("segment id", f"is {values.segment}, but the document has {len(sources)} lines")
    source = values.source if values.source is not None else values.sentence
    standing = sources[values.segment - 1]
    if source is None or _letters(standing) != _letters(source):
        raise wrong(
            "src segment",
            f"is {short(source)}, but line {values.segment} of the document is {short(standing)}",
            "use the document files that belong to the suite",
        )
    item = {
        "id": number,
        "source": sources,
        "target": targets,
        "sentence": values.segment - 1,
        "reference": values.reference,
        "contrastive": tuple(error.contrastive for error in values.errors),
        "distance": values.distance,
        "phenomenon": "pronoun",
        "pronoun": _lower(values.pronoun),
    }
    return parse_value(ContrastItem, item, where, item=f"item {number}: ").at(where)


def _letters(text: str) -> str:
    """Texts that differ in spaces and quotation marks alone are the same."""
    return "".join(character for character in text if character.isalnum())


class _DocumentFiles:
    """ContraPro's documents: `FOLDER/.../NAME.en` and `NAME.de`, found by the name of the German file; each read
    once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._paths: dict[str, Path] | None = None
        self._known: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def read(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The sentences of both sides; None where there is no such document."""
        if name not in self._known:
            target = self._find(name)
            if target is None:
                return None
            source = target.with_suffix(".en")
            pair = tuple(read_lines(source)), tuple(read_lines(target))
            if len(pair[0]) != len(pair[1]):
                raise UserError(f"has {len(pair[0])} lines where {target} has {len(pair[1])}", where=source)
            self._known[name] = pair
        return self._known[name]

    def _find(self, name: str) -> Path | None:
        if self._paths is None:
            if not self.folder.is_dir():
                raise UserError(
                    "no such folder, and the documents of this suite are files of their own",
                    where=self.folder,
                    remedy="name it with --document-folder",
                )
            self._paths = {path.name: path for path in sorted(self.folder.rglob("*.de"))}
        base = Path(name).name
        return self._paths.get(base) or self._paths.get(f"{base}.de")
