"""Approved pairs from files: any corpus format that holds both sides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from weitblick.documents.corpora import Corpus
from weitblick.documents.corpora.tmx import ANY_LANGUAGE, SOURCE_LANGUAGE, same_language
from weitblick.documents.document import Document
from weitblick.errors import UserError


def read_pairs(path: str | Path, languages: tuple[str, str]) -> Iterator[tuple[str, str, str]]:
    """(source, target, origin) of every pair of a file. Drafts are not approved, and stay out."""
    name, found = Path(path).name, False
    for document, lines in Corpus([path], languages=languages).located():
        _check_direction(path, document, languages)
        for sentence, line in zip(document.sentences, lines, strict=True):
            if sentence.status == "draft" or not sentence.source.strip():
                continue
            if not (sentence.target or "").strip():
                if sentence.target is None and not found:
                    raise UserError(
                        "has no target side, and a memory is made of pairs",
                        where=path,
                        line=line,
                        remedy="give a file that holds both sides: TMX, JSONL or TSV",
                    )
                continue
            found = True
            yield sentence.source, sentence.target or "", f"{name}:{line}"
    if not found:
        raise UserError("holds no approved pair", where=path, remedy="give a file with at least one pair")


def _check_direction(path: str | Path, document: Document, languages: tuple[str, str]) -> None:
    """A file that says what it was translated from must say the same as the model."""
    declared = str(document.metadata.get(SOURCE_LANGUAGE, ANY_LANGUAGE))
    if declared != ANY_LANGUAGE and not same_language(declared, languages[0]):
        wanted = "-".join(languages)
        raise UserError(
            f"is a memory of translations from {declared}, not from {languages[0]}",
            where=path,
            remedy=f"if it holds both ways, turn it: weitblick data convert {path} -o NEW.tmx --languages {wanted}",
        )
