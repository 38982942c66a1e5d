"""What the generator makes: three corpora and a contrastive suite taken from the last of them; and their files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypedDict

from weitblick.documents.contrast import ContrastItem
from weitblick.documents.document import Document
from weitblick.files import make_folder, text_writer

FORMAT_VERSION = 1
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class DiscourseCorpus:
    preset: str
    seed: int
    train: list[Document]
    dev: list[Document]
    test: list[Document]
    contrast: list[ContrastItem]

    def split(self, name: str) -> list[Document]:
        return {"train": self.train, "dev": self.dev, "test": self.test}[name]


class PhenomenonDescription(TypedDict):
    """Its chance level, and how many items it has of which kind."""

    items: int
    chance: float
    by_direction: dict[str, int]
    by_distance: dict[str, int]
    by_pronoun: dict[str, int]
    unseen_antecedent: int


class CorpusDescription(TypedDict):
    """What discourse.json says: sizes by split, and the phenomena of the contrastive suite."""

    format_version: int
    preset: str
    seed: int
    documents: dict[str, int]
    sentences: dict[str, int]
    items: int
    phenomena: dict[str, PhenomenonDescription]


def describe(corpus: DiscourseCorpus) -> CorpusDescription:
    phenomena: dict[str, PhenomenonDescription] = {}
    for name in sorted({item.phenomenon or "" for item in corpus.contrast}):
        items = [item for item in corpus.contrast if item.phenomenon == name]
        phenomena[name] = {
            "items": len(items),
            "chance": round(sum(item.chance for item in items) / len(items), 4),
            "by_direction": _counts(item.direction for item in items),
            "by_distance": _counts(item.distance_group for item in items),
            "by_pronoun": _counts(item.pronoun for item in items),
            "unseen_antecedent": sum(bool(item.unseen_antecedent) for item in items),
        }
    return {
        "format_version": FORMAT_VERSION,
        "preset": corpus.preset,
        "seed": corpus.seed,
        "documents": {name: len(corpus.split(name)) for name in SPLITS},
        "sentences": {name: sum(len(document.sentences) for document in corpus.split(name)) for name in SPLITS},
        "items": len(corpus.contrast),
        "phenomena": phenomena,
    }


def _counts(values: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(value for value in values if value is not None).items()))


def write_corpus(corpus: DiscourseCorpus, folder: str | Path) -> CorpusDescription:
    """Write DIR/{train,dev,test}.{en,de}, DIR/contrast.jsonl and DIR/discourse.json; returns what the last one says.

    All files are complete before the first takes its place, and other files of the folder are left alone.
    """
    folder = make_folder(folder)
    description = describe(corpus)
    with ExitStack() as stack:

        def writer(name: str) -> IO[str]:
            return stack.enter_context(text_writer(folder / name))

        streams = {name: writer(name) for split in SPLITS for name in (f"{split}.en", f"{split}.de")}
        for split in SPLITS:
            _write_split(corpus.split(split), streams[f"{split}.en"], streams[f"{split}.de"])
        streams["contrast.jsonl"] = writer("contrast.jsonl")
        streams["contrast.jsonl"].writelines(item.to_line() for item in corpus.contrast)
        streams["discourse.json"] = writer("discourse.json")
        streams["discourse.json"].write(json.dumps(description, ensure_ascii=False, indent=2) + "\n")
        for stream in streams.values():
            stream.flush()  # a full disk shows here, before any file has taken its place
    return description


def _write_split(documents: list[Document], source: IO[str], target: IO[str]) -> None:
    for number, document in enumerate(documents):
        boundary = "\n" if number else ""
        source.write(boundary + "".join(f"{sentence.source}\n" for sentence in document.sentences))
        target.write(boundary + "".join(f"{sentence.target}\n" for sentence in document.sentences))
