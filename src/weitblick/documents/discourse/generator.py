"""Generated corpora: splits that share no document, a balanced contrastive suite, and the files that hold them."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from weitblick.common.errors import UserError
from weitblick.common.files import make_folder, text_writer
from weitblick.documents.contrast import ContrastItem
from weitblick.documents.discourse.draft import Draft, realise
from weitblick.documents.discourse.rich import RichPreset
from weitblick.documents.discourse.small import SmallPreset
from weitblick.documents.document import Document


class Preset(Protocol):
    """Draws drafts of documents; `training` ones leave out what the test keeps for itself."""

    dev_documents: int
    test_documents: int

    def __init__(self, rng: random.Random, training: bool) -> None: ...

    def draft(self) -> Draft: ...


OPEN_ANSWERS = {"ambiguous-noun"}
PRESETS: dict[str, type[Preset]] = {"small": SmallPreset, "rich": RichPreset}


def generate(preset: str, documents: int, seed: int) -> DiscourseCorpus:
    """A corpus with so many training documents.

    Every split has its own stream of random numbers and the test comes first, so dev, test and suite are the same
    whatever the number of training documents.
    """
    if preset not in PRESETS:
        raise UserError(f"unknown preset {preset!r}", where="--preset", remedy=f"choose one of {', '.join(PRESETS)}")
    if documents < 1:
        raise UserError(f"{documents} training documents", where="--documents", remedy="ask for at least 1")
    kind = PRESETS[preset]
    taken: set[tuple[str, ...]] = set()
    test, items = _split(preset, "test", kind.test_documents, seed, taken)
    dev, _ = _split(preset, "dev", kind.dev_documents, seed, taken)
    train, _ = _split(preset, "train", documents, seed, taken)
    return DiscourseCorpus(preset, seed, train, dev, test, balance(items, random.Random(f"{preset} {seed} contrast")))


def _split(
    preset: str, name: str, count: int, seed: int, taken: set[tuple[str, ...]]
) -> tuple[list[Document], list[ContrastItem]]:
    # A string seeds the generator through a hash that is the same in every process and version of Python.
    drafts = PRESETS[preset](random.Random(f"{preset} {seed} {name}"), training=name != "test")
    documents: list[Document] = []
    items: list[ContrastItem] = []
    while len(documents) < count:
        draft = drafts.draft()
        if draft.sources in taken:
            continue
        taken.add(draft.sources)
        document, tested = realise(draft, f"{name}-{len(documents) + 1:05d}")
        documents.append(document)
        items += tested
    return documents, items


def balance(items: list[ContrastItem], rng: random.Random) -> list[ContrastItem]:
    """Equally many items for every distance and answer within each phenomenon, direction and kind of antecedent.

    Answers that are words of an open class are too many for that; each comes as often as its rival by its making.
    """
    cells: dict[tuple[Any, ...], dict[tuple[Any, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, item in enumerate(items):
        group = (item.phenomenon, item.direction, item.unseen_antecedent)
        answer = "" if item.phenomenon in OPEN_ANSWERS else item.pronoun
        cells[group][item.distance_group, answer].append(index)
    kept: list[int] = []
    for alternatives in cells.values():
        fewest = min(len(indices) for indices in alternatives.values())
        for indices in alternatives.values():
            kept += rng.sample(indices, fewest)
    return [items[index] for index in sorted(kept)]


# What the generator makes: three corpora and a contrastive suite taken from the last of them; and their files.

FORMAT_VERSION = 1
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class DiscourseCorpus:
    """The three splits of a generated corpus, and the contrastive suite taken from its test."""

    preset: str
    seed: int
    train: list[Document]
    dev: list[Document]
    test: list[Document]
    contrast: list[ContrastItem]

    def split(self, name: str) -> list[Document]:
        return {"train": self.train, "dev": self.dev, "test": self.test}[name]


def describe(corpus: DiscourseCorpus) -> dict[str, Any]:
    """What discourse.json says: sizes by split, and of each phenomenon of the suite its chance level and its items."""
    phenomena: dict[str, Any] = {}
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


def write_corpus(corpus: DiscourseCorpus, folder: str | Path) -> dict[str, Any]:
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
