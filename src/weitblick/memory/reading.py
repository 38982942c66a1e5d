"""Approved pairs from files: any corpus format that holds both sides, or a file for each side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from weitblick.documents.corpora import Corpus, guess_format
from weitblick.documents.corpora.reading import LineSource
from weitblick.documents.corpora.tmx import ANY_LANGUAGE, SOURCE_LANGUAGE, same_language
from weitblick.documents.document import Document
from weitblick.errors import UserError
from weitblick.memory.matches import LocatedPair

COMPRESSED = (".gz", ".xz")
TITLES = ("source", "target")
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
    two_columns = len(paths) == 1 and _has_two_columns(paths[0])
    corpus = Corpus(paths, "news-commentary" if two_columns else None, languages=languages)
    titles = {TITLES, languages} if two_columns else set()
    found = False
    for document, lines in corpus.located():
        _check_direction(paths[0], document, languages)
        for sentence, line in zip(document.sentences, lines, strict=True):
            if sentence.status == "draft" or not sentence.source.strip():
                continue
            target = (sentence.target or "").strip()
            if not target and sentence.target is None and not found:
                raise UserError(
                    f"has no target side ({languages[1]}), and a memory is made of pairs",
                    where=paths[0],
                    line=line,
                    remedy=BOTH_SIDES.format(*languages),
                )
            if target and (line > 1 or (sentence.source.lower(), target.lower()) not in titles):
                found = True
                yield sentence.source, target, f"{paths[0].name}:{line}"
    if not found:
        raise UserError("holds no approved pair", where=paths[0], remedy="give a file with at least one pair")


def _has_two_columns(path: Path) -> bool:
    """Whether a table is one of source and target alone; with three, the first is the document."""
    if not path.is_file() or guess_format([path]) not in ("tsv", "text"):
        return False
    first = LineSource(path).peek()
    return first.count("\t") == 1 and first.lower().split("\t") != ["id", "source"]


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
