"""Approved pairs from files: any corpus format that holds both sides, or a file for each side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from weitblick.documents.corpora import Corpus
from weitblick.documents.corpora.tmx import ANY_LANGUAGE, SOURCE_LANGUAGE, same_language
from weitblick.documents.document import Document
from weitblick.errors import UserError
from weitblick.files import STANDARD
from weitblick.memory.matches import LocatedPair
from weitblick.memory.tables import is_table, table_rows

COMPRESSED = (".gz", ".xz")
NO_MEMORIES = {
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), "XLIFF"),
    **dict.fromkeys((".po", ".pot"), "a gettext catalogue"),
    **dict.fromkeys((".xls", ".xlsx", ".ods"), "a spreadsheet"),
    **dict.fromkeys((".docx", ".odt"), "a document"),
    **dict.fromkeys((".sdltm", ".mtm"), "the memory of another program"),
}
INSTEAD = "give TMX, which most tools write, or a table of two columns (TSV, CSV)"
BOTH_SIDES = "give a file that holds both sides (TMX, JSONL, TSV), or one for each side, as a.{} and a.{}"


def together(paths: Sequence[str | Path], languages: tuple[str, str]) -> list[list[Path]]:
    """Files that are read together: a.en and a.de, named one after the other, are the two sides of one."""
    groups: list[list[Path]] = []
    for path in map(Path, paths):
        alone = groups[-1][0] if groups and len(groups[-1]) == 1 else None
        if alone is not None and (_ending(alone), _ending(path)) == languages:
            groups[-1].append(path)
        else:
            groups.append([path])
    return groups


def read_pairs(path: str | Path | Sequence[str | Path], languages: tuple[str, str]) -> Iterator[LocatedPair]:
    """The pairs of a file, or of the two sides that two files hold. Drafts are not approved, and stay out."""
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(side) for side in path]
    _refuse_others(paths[0])
    table = len(paths) == 1 and is_table(paths[0])
    rows = table_rows(paths[0], languages) if table else _approved(paths, languages)
    found = False
    lacking: int | None = None  # the first line without a target: there may be more such in a file of many languages
    for source, target, line in rows:
        if target is None:
            lacking = lacking or line
        elif source.strip() and target.strip():
            found = True
            yield source.strip(), target.strip(), f"{paths[0].name}:{line}"
    if not found and lacking is not None:
        raise UserError(
            f"has no target side ({languages[1]}), and a memory is made of pairs",
            where=paths[0],
            line=lacking,
            remedy=BOTH_SIDES.format(*languages),
        )
    if not found:
        raise UserError("holds no approved pair", where=paths[0], remedy="give a file with at least one pair")


def _approved(paths: Sequence[Path], languages: tuple[str, str]) -> Iterator[tuple[str, str | None, int]]:
    for document, lines in Corpus(paths, languages=languages).located():
        _check_direction(paths[0], document, languages)
        for sentence, line in zip(document.sentences, lines, strict=True):
            if sentence.status != "draft" and sentence.source.strip():
                yield sentence.source, sentence.target, line


def _refuse_others(path: Path) -> None:
    """What people may take for a memory, but no reader here knows."""
    if str(path) == STANDARD:
        raise UserError("standard input is not read as a memory", where="--memory", remedy="name a file or a folder")
    if path.is_dir():
        raise UserError("is a folder without a memory", where=path, remedy="make one: weitblick memory add FOLDER FILE")
    if (kind := NO_MEMORIES.get(path.suffix.lower())) is not None:
        raise UserError(f"is {kind}, which is not read as a memory", where=path, remedy=INSTEAD)


def _ending(path: Path) -> str:
    return Path(path.stem if path.suffix in COMPRESSED else path).suffix.removeprefix(".").lower()


def _check_direction(path: Path, document: Document, languages: tuple[str, str]) -> None:
    """A file that says what it was translated from must say the same as the model."""
    declared = str(document.metadata.get(SOURCE_LANGUAGE, ANY_LANGUAGE))
    if declared != ANY_LANGUAGE and not same_language(declared, languages[0]):
        turning = f"--source-language {languages[0]} --target-language {languages[1]}"
        raise UserError(
            f"is a memory of translations from {declared}, not from {languages[0]}",
            where=path,
            remedy=f"if it serves both ways, turn it: weitblick data convert {path} -o NEW.tmx {turning}",
        )
