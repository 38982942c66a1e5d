"""Split a corpus into train, dev and test: by document, so that no document's context leaks, and by seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from weitblick.documents.corpora import format_named
from weitblick.documents.document import Document
from weitblick.errors import UserError
from weitblick.files import text_writers

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
