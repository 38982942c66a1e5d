"""What the `data` commands share: languages, sides, corpora that are read twice, names of outputs, printing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from weitblick.documents import Corpus, Document, read_documents, write_documents
from weitblick.documents.corpora import format_named
from weitblick.errors import UserError
from weitblick.files import STANDARD, text_writer

Read = Callable[[], Iterator[Document]]


def print_text(text: str) -> None:
    with text_writer(STANDARD) as stream:
        stream.write(text + "\n")


def print_json(value: dict[str, Any]) -> None:
    print_text(json.dumps(value, ensure_ascii=False))


def parse_languages(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    codes = text.split("-")
    if len(codes) != 2 or not all(codes):
        raise UserError(f"--languages {text} is not SOURCE-TARGET", remedy="write it like en-de")
    return codes[0], codes[1]


def languages_of(inputs: Sequence[str]) -> tuple[str, str] | None:
    """What the names of two files say: dev.en and dev.de."""
    names = [_ending(path).split(".")[1] if _ending(path) else "" for path in inputs]
    if len(names) != 2 or not all(name.isalpha() and 2 <= len(name) <= 3 for name in names):
        return None
    return names[0], names[1]


def only_side(documents: Iterable[Document], side: str) -> Iterator[Document]:
    """Both sides, or one of them as the source of documents without targets."""
    if side not in ("source", "target", "both"):
        raise UserError(f"--side {side} is unknown", remedy="use source, target or both")
    if side == "both":
        return iter(documents)
    return (_one_side(document, side) for document in documents)


def _one_side(document: Document, side: str) -> Document:
    missing = next((n for n, s in enumerate(document.sentences, 1) if side == "target" and s.target is None), None)
    if missing is not None:
        raise UserError(f"sentence {missing} of document {document.id!r} has no target", remedy="use --side source")
    sentences = (
        replace(s, source=(s.target or "") if side == "target" else s.source, target=None, status=None)
        for s in document.sentences
    )
    return replace(document, sentences=tuple(sentences))


@contextmanager
def rereadable(
    paths: Sequence[str], format: str | None, languages: tuple[str, str] | None
) -> Iterator[tuple[Read, str]]:
    """A function that reads the corpus from its start each time, and its format. A pipe is copied to disk first."""
    corpus = Corpus(paths, format, languages=languages)
    if all(path != STANDARD and (Path(path).is_file() or Path(path).is_dir()) for path in paths):
        name = corpus.format.name
        yield (lambda: read_documents(paths, name, languages=languages)), name
        return
    with tempfile.TemporaryDirectory(prefix="weitblick.") as folder:
        copy = Path(folder) / "copy.jsonl"
        write_documents(corpus, [copy])
        yield (lambda: read_documents([copy])), corpus.format.name


def endings(inputs: Sequence[str], to_format: str, languages: tuple[str, str] | None, has_target: bool) -> list[str]:
    """How the files of a part of a corpus end: like those of the input where they can, else by language or side."""
    wanted = format_named(to_format)
    sides = 1 if wanted.both_sides or not has_target else 2
    ids = [".docids"] if to_format == "docids" else []
    own = [_ending(path) for path in inputs]
    if (
        len(own) == sides + len(ids) == len(set(own))
        and all(own)
        and (own == [f".{to_format}"] or not wanted.both_sides)
    ):
        return own
    if wanted.both_sides:
        return [f".{to_format}"]
    names = languages or ("source", "target")
    return [f".{name}" for name in names[:sides]] + ids


def _ending(path: str) -> str:
    name = Path(path).name
    compression = next((ending for ending in (".gz", ".xz") if name.endswith(ending)), "")
    return Path(name.removesuffix(compression)).suffix + compression
