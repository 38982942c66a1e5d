"""Contrastive suites: a document, one of its sentences, its reference translation and wrong variants of that.

Read are JSON lines (ours, ContraPro's with one context sentence, any user's) and ContraPro's original JSON, whose
documents are files of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from weitblick.errors import UserError
from weitblick.files import STANDARD, check_format_version, read_lines

FORMAT_VERSION = 1
FURTHEST = 4  # distances from here on are one group
DISTANCES = ("0", "1", "2", "3", ">3")
REQUIRED = "source, sentence, reference and contrastive"


@dataclass(frozen=True, slots=True)
class SuiteItem:
    """`sentence` is the index of the tested sentence; what is not known about an item is None."""

    id: str
    sources: tuple[str, ...]
    targets: tuple[str | None, ...] | None
    sentence: int
    reference: str
    contrastive: tuple[str, ...]
    distance: int | None = None
    phenomenon: str | None = None
    direction: str | None = None
    pronoun: str | None = None
    unseen_antecedent: bool | None = None
    where: str = ""
    line: int | None = None

    @property
    def distance_group(self) -> str | None:
        if self.distance is None:
            return None
        return str(self.distance) if self.distance < FURTHEST else DISTANCES[-1]

    @property
    def chance(self) -> float:
        """Accuracy of guessing among the reference and its variants."""
        return 1 / (1 + len(self.contrastive))


def read_suite(
    path: str | Path,
    *,
    documents: str | Path | None = None,
    languages: tuple[str, str] = ("en", "de"),
    context_sentences: int | None = None,
    limit: int | None = None,
) -> list[SuiteItem]:
    """All items of a suite, or the first `limit`; `-` is standard input.

    documents: folder of ContraPro's document files, `documents` beside the suite if not given; languages: how these
    files end; context_sentences: so many sentences before and after the tested one are kept, all if not given.
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
        items: Iterator[SuiteItem] = _contrapro(text, path, folder, languages)
    else:
        items = _json_lines((*opening, *lines) if opening else (), path)
    chosen = list(islice(items, limit))
    if not chosen:
        raise UserError("holds no items", where=path, remedy="name a contrastive suite")
    if context_sentences is not None:
        chosen = [crop(item, context_sentences) for item in chosen]
    return chosen


def crop(item: SuiteItem, sentences: int) -> SuiteItem:
    """The item with at most so many sentences before and after the tested one."""
    first = max(0, item.sentence - sentences)
    kept = slice(first, item.sentence + sentences + 1)
    targets = None if item.targets is None else item.targets[kept]
    return replace(item, sources=item.sources[kept], targets=targets, sentence=item.sentence - first)


@dataclass(frozen=True)
class _Fields:
    """One item as it was read; every complaint names where it stands and the field."""

    values: Mapping[str, Any]
    where: str
    line: int | None = None
    item: str = ""

    def wrong(self, field: str, what: str, remedy: str | None = None) -> UserError:
        return UserError(f"{self.item}field {field!r} {what}", where=self.where, line=self.line, remedy=remedy)

    def has(self, field: str) -> bool:
        return self.values.get(field) is not None

    def text(self, field: str) -> str:
        value = self._required(field)
        if not isinstance(value, str):
            raise self.wrong(field, f"is {_short(value)}, not text")
        return value

    def optional_text(self, field: str) -> str | None:
        return self.text(field) if self.has(field) else None

    def words(self, field: str) -> str:
        """Text that may not be blank."""
        if not self.text(field).strip():
            raise self.wrong(field, "is empty")
        return self.text(field)

    def texts(self, field: str) -> tuple[str, ...]:
        value = self._required(field)
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise self.wrong(field, f"is {_short(value)}, not a list of texts")
        if not value:
            raise self.wrong(field, "is an empty list")
        return tuple(value)

    def number(self, field: str) -> int:
        value = self._required(field)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong(field, f"is {_short(value)}, not a number from 0")
        return value

    def optional_number(self, field: str) -> int | None:
        return self.number(field) if self.has(field) else None

    def _required(self, field: str) -> Any:
        if not self.has(field):
            raise self.wrong(field, "is missing", f"an item needs {REQUIRED}" if field in REQUIRED else None)
        return self.values[field]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _json_lines(lines: Iterator[str] | Sequence[str], path: str | Path) -> Iterator[SuiteItem]:
    name = "standard input" if str(path) == STANDARD else str(path)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(
                f"not JSON ({error.msg})", where=name, line=number, remedy="write one JSON object a line"
            ) from None
        if not isinstance(values, dict):
            raise UserError(f"is {_short(values)}, not a JSON object with {REQUIRED}", where=name, line=number)
        fields = _Fields(values, name, number)
        yield _one_context_sentence(fields) if "src" in values and "source" not in values else _item(fields)


def _item(fields: _Fields) -> SuiteItem:
    """An item of our form: only source, sentence, reference and contrastive are required."""
    if "format_version" in fields.values:
        check_format_version(fields.values, FORMAT_VERSION, fields.where)
    sources = fields.texts("source")
    sentence = fields.number("sentence")
    if sentence >= len(sources):
        raise fields.wrong("sentence", f"is {sentence}, but 'source' has {len(sources)} sentences (the first is 0)")
    unseen = fields.values.get("unseen_antecedent")
    return SuiteItem(
        id=str(fields.values.get("id", fields.line)),
        sources=sources,
        targets=_targets(fields, len(sources)),
        sentence=sentence,
        reference=fields.words("reference"),
        contrastive=fields.texts("contrastive"),
        distance=fields.optional_number("distance"),
        phenomenon=fields.optional_text("phenomenon"),
        direction=fields.optional_text("direction"),
        pronoun=fields.optional_text("pronoun"),
        unseen_antecedent=unseen if isinstance(unseen, bool) else None,
        where=fields.where,
        line=fields.line,
    )


def _targets(fields: _Fields, sentences: int) -> tuple[str | None, ...] | None:
    """Target sentences; null where one is not known."""
    value = fields.values.get("target")
    if value is None:
        return None
    if not isinstance(value, list) or not all(entry is None or isinstance(entry, str) for entry in value):
        raise fields.wrong("target", f"is {_short(value)}, not a list of texts")
    if len(value) != sentences:
        raise fields.wrong("target", f"has {len(value)} sentences, but 'source' has {sentences}")
    return tuple(value)


def _one_context_sentence(fields: _Fields) -> SuiteItem:
    """ContraPro as JSON lines: the sentence and the one before it, which may be missing."""
    pair = fields.optional_text("src_context") or "", fields.optional_text("ref_context") or ""
    before = [pair] if any(text.strip() for text in pair) else []
    reference = fields.words("ref")
    return SuiteItem(
        id=str(fields.values.get("id", fields.line)),
        sources=(*(source for source, _ in before), fields.text("src")),
        targets=(*(target or None for _, target in before), reference),
        sentence=len(before),
        reference=reference,
        contrastive=fields.texts("contrastive"),
        distance=fields.optional_number("ante_distance"),
        phenomenon="pronoun",
        pronoun=_lower(fields.optional_text("ref_pronoun")),
        where=fields.where,
        line=fields.line,
    )


def _lower(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _contrapro(text: str, path: str | Path, folder: Path, languages: tuple[str, str]) -> Iterator[SuiteItem]:
    """ContraPro's own JSON: a list of items that name a document file and a line of it, counted from 1."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"not JSON ({error.msg})", where=path, line=error.lineno, remedy="mend the file") from None
    files = _DocumentFiles(folder, languages)
    for number, entry in enumerate(values, 1):
        fields = _Fields(entry if isinstance(entry, dict) else {}, str(path), item=f"item {number}: ")
        yield _contrapro_item(fields, files, number)


def _contrapro_item(fields: _Fields, files: _DocumentFiles, number: int) -> SuiteItem:
    source_field = "src segment" if fields.has("src segment") else "source"
    source, reference = fields.text(source_field), fields.words("ref segment")
    segment = fields.number("segment id") - 1
    sources, targets = files.read(fields)
    if not 0 <= segment < len(sources):
        raise fields.wrong("segment id", f"is {segment + 1}, but the document has {len(sources)} lines")
    if _letters(sources[segment]) != _letters(source):
        raise fields.wrong(
            source_field,
            f"is {_short(source)}, but line {segment + 1} of the document is {_short(sources[segment])}",
            "use the document files that belong to the suite",
        )
    errors = fields.values.get("errors")
    if not isinstance(errors, list) or not errors:
        raise fields.wrong("errors", "is missing" if not errors else f"is {_short(errors)}, not a list")
    wrong = tuple(
        _Fields(error if isinstance(error, dict) else {}, fields.where, item=f"item {number}: ").words("contrastive")
        for error in errors
    )
    return SuiteItem(
        id=str(number),
        sources=sources,
        targets=targets,
        sentence=segment,
        reference=reference,
        contrastive=wrong,
        distance=fields.optional_number("ante distance"),
        phenomenon="pronoun",
        pronoun=_lower(fields.optional_text("ref pronoun")),
        where=fields.where,
    )


def _letters(text: str) -> str:
    """Texts that differ in spaces and quotation marks alone are the same."""
    return "".join(character for character in text if character.isalnum())


class _DocumentFiles:
    """ContraPro's documents: `FOLDER/.../NAME.en` and `NAME.de`, found by the name of the German file; each read
    once."""

    def __init__(self, folder: Path, languages: tuple[str, str]) -> None:
        self.folder, self.languages = folder, languages
        self._paths: dict[str, Path] | None = None
        self._known: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def read(self, fields: _Fields) -> tuple[tuple[str, ...], tuple[str, ...]]:
        name = fields.text("document id")
        if name not in self._known:
            target = self._find(name, fields)
            source = target.with_suffix(f".{self.languages[0]}")
            pair = tuple(read_lines(source)), tuple(read_lines(target))
            if len(pair[0]) != len(pair[1]):
                raise UserError(f"has {len(pair[0])} lines where {target} has {len(pair[1])}", where=source)
            self._known[name] = pair
        return self._known[name]

    def _find(self, name: str, fields: _Fields) -> Path:
        ending = f".{self.languages[1]}"
        if self._paths is None:
            if not self.folder.is_dir():
                raise UserError(
                    "no such folder, and the documents of this suite are files of their own",
                    where=self.folder,
                    remedy="name it with --document-folder",
                )
            self._paths = {path.name: path for path in sorted(self.folder.rglob(f"*{ending}"))}
        base = Path(name).name
        for candidate in (base, base + ending):
            if candidate in self._paths:
                return self._paths[candidate]
        raise fields.wrong("document id", f"is {name!r}, and {self.folder} has no such file", "name --document-folder")
