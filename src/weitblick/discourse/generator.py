"""Whole corpora: splits that share no document, and a contrastive suite balanced over all that should not matter."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any, Protocol

from weitblick.discourse.corpus import DiscourseCorpus
from weitblick.discourse.draft import Draft, realise
from weitblick.discourse.rich import RichPreset
from weitblick.discourse.small import SmallPreset
from weitblick.documents.contrast import ContrastItem
from weitblick.documents.document import Document
from weitblick.errors import UserError


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
