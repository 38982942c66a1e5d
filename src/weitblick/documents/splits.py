"""Parts of a corpus: train, dev and test by document, sentences that match, documents held out, samples."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from weitblick.common.errors import UserError
from weitblick.common.files import text_writers
from weitblick.documents.corpora.formats import format_named
from weitblick.documents.document import Document, Sentence

PARTS = ("train", "dev", "test")


def sizes(total: int, dev: float, test: float, train: float | None = None) -> tuple[int, int, int]:
    """Documents of each part. A size below 1 is a share of all, from 1 on a count; train is the rest if not given."""
    wanted = {"dev": dev, "test": test, **({} if train is None else {"train": train})}
    counts: dict[str, int] = {}
    for name, size in wanted.items():
        if size < 0 or (size >= 1 and size != int(size)):
            raise UserError(f"--{name} {size:g} is neither a share below 1 nor a count", remedy="give 0.1 or 100")
        counts[name] = round(size * total) if size < 1 else int(size)
        if size and not counts[name]:
            raise UserError(f"{total} documents are too few for a {name} share of {size:g}", remedy="give a count")
    counts.setdefault("train", total - counts["dev"] - counts["test"])
    if counts["train"] < 0 or sum(counts.values()) > total + (train is not None and train < 1):
        raise UserError(
            f"{' + '.join(f'{counts[name]} {name}' for name in PARTS)} documents are more than the {total} there are",
            remedy="make the parts smaller",
        )
    # Shares are rounded one by one, which can ask for one document more than there is.
    counts["train"] = min(counts["train"], total - counts["dev"] - counts["test"])
    return counts["train"], counts["dev"], counts["test"]


def assign(total: int, counts: tuple[int, int, int], seed: int) -> list[int | None]:
    """The part (0 train, 1 dev, 2 test) of each document; None if it is left out."""
    order = list(range(total))
    random.Random(seed).shuffle(order)
    parts: list[int | None] = [None] * total
    train, dev, test = counts
    # Held-out documents are drawn first: a smaller train then leaves dev and test as they are.
    for part, chosen in ((2, order[:test]), (1, order[test : test + dev]), (0, order[test + dev : test + dev + train])):
        for index in chosen:
            parts[index] = part
    return parts


def write_split(
    read: Callable[[], Iterable[Document]],
    parts: list[int | None],
    outputs: Sequence[Sequence[str | Path]],
    format: str,
) -> None:
    """Write the parts, each to its outputs, reading the corpus once for each. All files appear together, or none."""
    chosen = format_named(format)
    if chosen.write is None:
        raise UserError(f"format {format} is read only", remedy="choose another with --to")
    written = [part for part in range(len(PARTS)) if part in parts]
    paths = [path for part in written for path in outputs[part]]
    with text_writers(paths) as streams:
        width = len(outputs[0])
        for position, part in enumerate(written):
            window = slice(position * width, (position + 1) * width)
            chosen.write(_only(read(), parts, part), streams[window], paths[window])


def _only(documents: Iterable[Document], parts: list[int | None], part: int) -> Iterator[Document]:
    return (document for document, its in zip(documents, parts, strict=True) if its == part)


# Cut out of a corpus what is rich in discourse: sentences that match, each with the sentences around it.


@dataclass(frozen=True)
class Pattern:
    """Regular expressions that a sentence pair must match, or must not; None asks for nothing."""

    source: re.Pattern[str] | None = None
    target: re.Pattern[str] | None = None
    not_source: re.Pattern[str] | None = None
    not_target: re.Pattern[str] | None = None

    def matches(self, sentence: Sentence) -> bool:
        target = sentence.target or ""
        wanted = ((self.source, sentence.source), (self.target, target))
        unwanted = ((self.not_source, sentence.source), (self.not_target, target))
        return all(p is None or p.search(text) for p, text in wanted) and not any(
            p is not None and p.search(text) for p, text in unwanted
        )


def select(documents: Iterable[Document], pattern: Pattern, before: int, after: int) -> Iterator[Document]:
    """A document for each stretch of sentences that match, with so many before and after; stretches that touch are
    one."""
    for document in documents:
        hits = (index for index, sentence in enumerate(document.sentences) if pattern.matches(sentence))
        for number, (first, last) in enumerate(_stretches(hits, before, after), 1):
            yield replace(document, id=f"{document.id}.{number}", sentences=document.sentences[first : last + 1])


def _stretches(hits: Iterable[int], before: int, after: int) -> Iterator[tuple[int, int]]:
    current: tuple[int, int] | None = None
    for hit in hits:
        first, last = max(0, hit - before), hit + after
        if current and first <= current[1] + 1:
            current = current[0], last
            continue
        if current:
            yield current
        current = first, last
    if current:
        yield current


# Text that training never reads: chosen by a hash of the text itself, so that it is the same on every machine.

Unit = Literal["document", "sentence"]


def share_of(document: Document) -> float:
    """A number from 0 to 1 that depends on the text alone: the same documents are held out of every corpus."""
    digest = hashlib.sha256("\n".join(document.sources).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def fraction(text: str, key: str = "") -> float:
    """A number in [0, 1) that depends on the text alone, not on case and spaces; another for another key."""
    plain = f"{key}\n{' '.join(text.casefold().split())}"
    digest = hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def part_of(documents: Iterable[Document], share: float, unit: Unit, *, held_out: bool) -> Iterator[Document]:
    """The documents that are held out, or those that are not: whole ones, the same that suites of pronouns are made of,
    or, in a corpus of unrelated sentences, these by their source."""
    for document in documents:
        if unit == "document":
            if (share_of(document) < share) == held_out:
                yield document
            continue
        kept = tuple(s for s in document.sentences if (fraction(s.source) < share) == held_out)
        if kept:
            yield replace(document, sentences=kept)


def sample(documents: Iterable[Document], count: int, key: str) -> list[Sentence]:
    """So many sentences with different sources, the same ones whatever their order."""
    first: dict[str, Sentence] = {}
    for document in documents:
        for sentence in document.sentences:
            first.setdefault(sentence.source, sentence)
    return [first[source] for source in sorted(first, key=lambda source: fraction(source, key))[:count]]
