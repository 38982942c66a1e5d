"""Files to be judged: a reference, its documents, and translations aligned with it sentence by sentence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weitblick.common.errors import UserError
from weitblick.common.files import read_lines


@dataclass(frozen=True)
class JudgedText:
    """A file's sentences in order, with the number of sentences of each of its documents."""

    path: Path
    sentences: list[str]
    lengths: list[int]


@dataclass(frozen=True)
class AlignedTexts:
    """One or more references and, for each file of translations, the translation of every reference sentence.

    `lengths` tells how many sentences each document has; `hypotheses` keeps the order in which files were given.
    """

    references: list[list[str]]
    lengths: list[int]
    hypotheses: dict[Path, list[str]]
    sources: list[str] | None = None


def read_text(path: str | Path) -> JudgedText:
    """The sentences of one file in any of our formats: the targets where it has targets, otherwise its only side."""
    from weitblick.documents.corpora.formats import read_documents

    sentences: list[str] = []
    lengths: list[int] = []
    for document in read_documents([path]):
        if not document.sentences:
            continue
        sentences.extend(s.source if s.target is None else s.target for s in document.sentences)
        lengths.append(len(document.sentences))
    if not any(sentence.strip() for sentence in sentences):
        raise UserError("has no text", where=path, remedy="give a file with one sentence a line")
    return JudgedText(Path(path), sentences, lengths)


def read_translations(
    references: Sequence[str | Path], hypotheses: Sequence[str | Path], source: str | Path | None = None
) -> AlignedTexts:
    """Read and align. The documents are the first reference's; where it has only one, those of the first file with
    more."""
    gold = read_text(references[0])
    more = [_align(gold, path) for path in references[1:]]
    others = [read_text(path) for path in ([] if source is None else [source])]
    aligned = {Path(path): _align(gold, path) for path in hypotheses}
    sources = None
    for other in others:
        _check_same_length(gold, other)
        sources = other.sentences
    lengths = gold.lengths
    for text in (*more, *others, *aligned.values()):
        if len(lengths) == 1 and len(text.lengths) > 1:
            lengths = text.lengths
    translated = {path: text.sentences for path, text in aligned.items()}
    return AlignedTexts([text.sentences for text in (gold, *more)], lengths, translated, sources)


def _align(gold: JudgedText, path: str | Path) -> JudgedText:
    text = read_text(path)
    if len(text.sentences) != len(gold.sentences):
        lines = _lines_with_empty_translations(gold, path)
        if lines is None:
            _check_same_length(gold, text)
        else:
            text = JudgedText(text.path, lines, gold.lengths)
    _check_same_documents(gold, text)
    empty = [number for number, sentence in enumerate(text.sentences, 1) if not sentence.strip()]
    if empty:
        warnings.warn(
            f"{path}: {len(empty)} of {len(text.sentences)} translations are empty (first: sentence {empty[0]})",
            stacklevel=2,
        )
    return text


def _lines_with_empty_translations(gold: JudgedText, path: str | Path) -> list[str] | None:
    """An empty translation looks like the end of a document. Line by line against the reference it can be told."""
    ours, theirs = list(_trimmed(path)), list(_trimmed(gold.path))
    if len(ours) != len(theirs) or any(our and not their for our, their in zip(ours, theirs, strict=True)):
        return None
    kept = [our for our, their in zip(ours, theirs, strict=True) if their]
    return kept if len(kept) == len(gold.sentences) else None


def _trimmed(path: str | Path) -> Iterator[str]:
    return (line.strip() for line in read_lines(path))


def _check_same_length(gold: JudgedText, text: JudgedText) -> None:
    ours, theirs = len(text.sentences), len(gold.sentences)
    if ours == theirs:
        return
    place = f"sentence {min(ours, theirs) + 1} is in only one of them"
    for number, (our, their) in enumerate(zip(text.lengths, gold.lengths, strict=False), 1):
        if our != their and len(text.lengths) > 1:
            place = f"document {number} is the first to differ: {our} against {their}"
            break
    raise UserError(
        f"has {ours} sentences where {gold.path} has {theirs} ({place})",
        where=text.path,
        remedy="give one line per reference line",
    )


def _check_same_documents(gold: JudgedText, text: JudgedText) -> None:
    if len(gold.lengths) == 1 or len(text.lengths) == 1 or gold.lengths == text.lengths:
        return
    pairs = zip(text.lengths, gold.lengths, strict=False)
    number, our, their = next((n, a, b) for n, (a, b) in enumerate(pairs, 1) if a != b)
    raise UserError(
        f"document {number} has {our} sentences, but {their} in {gold.path}",
        where=text.path,
        remedy="put the blank lines between documents where the reference has them",
    )
