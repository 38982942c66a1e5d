"""Corpora as the stage-1 model translates them, which stage 2 reads as target context."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch

from weitblick.common.files import make_folder, recovered_folder
from weitblick.common.locks import waiting_lock
from weitblick.common.process import World
from weitblick.model.document_model import DocumentModel
from weitblick.text.units import Unit
from weitblick.training.store import CorpusStore, StoreWriter
from weitblick.translation.driver import translate_units
from weitblick.translation.options import TranslationOptions

log = logging.getLogger("weitblick")

GREEDY = TranslationOptions(beam=1, context=False)
WINDOW_DOCUMENTS = 100
TELL_EVERY = 5  # windows
NEARLY_ALL = 0.8  # of a corpus: the rest is then translated too, so that runs with other seeds share the result


def translated_store(
    model: DocumentModel, store: CorpusStore, documents: Sequence[int], cache: Path, world: World
) -> CorpusStore:
    """Returns a store of the same documents whose targets are the model's own greedy translations.

    Only `documents` are translated, the others have empty targets. The store is kept in the folder `cache` under a name
    that depends on the weights, the corpus and the documents, so that all runs from one stage-1 model share it: it is
    made once, each process translating its share, while other runs that need it wait.
    """
    wanted = np.unique(np.asarray(documents, dtype=np.int64))
    if not len(wanted):
        return store  # nobody reads a translation of it
    if len(wanted) >= NEARLY_ALL * len(store):
        wanted = np.arange(len(store))
    folder = cache / _cache_name(model, store, wanted)
    with waiting_lock(make_folder(cache) / f".{folder.name}.lock") if world.first else nullcontext():
        if world.first:
            recovered_folder(folder)
        missing = bool(world.sum(torch.tensor([float(world.first and not folder.exists())])))
        if missing:
            if world.first:
                log.info(
                    "translating %d of %d documents of %s with the stage-1 model, as target context (once; kept in %s)",
                    *(len(wanted), len(store), store.folder.name, folder),
                )
            _translate_shares(model, store, wanted, folder, world)
        elif world.first:
            log.info("target context: the translations in %s", folder)
        world.barrier()
    return CorpusStore(folder)


def _cache_name(model: DocumentModel, store: CorpusStore, documents: np.ndarray) -> str:
    """A name for translations by these weights of these documents of this corpus."""
    digest = hashlib.sha256(repr(sorted(store.facts.files.items())).encode())
    for name, weight in sorted(model.sentence.state_dict().items()):
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    digest.update(documents.tobytes())
    return f"{store.folder.name}-{digest.hexdigest()[:16]}"


def _translate_shares(model: DocumentModel, store: CorpusStore, wanted: np.ndarray, folder: Path, world: World) -> None:
    """Each process translates a run of the corpus's documents; the first one puts them together."""
    if world.size == 1:
        _translate(model, store, range(len(store)), wanted, folder, world)
        return
    shares = [folder.with_name(f"{folder.name}.{rank}") for rank in range(world.size)]
    bounds = [len(store) * rank // world.size for rank in range(world.size + 1)]
    _translate(model, store, range(bounds[world.rank], bounds[world.rank + 1]), wanted, shares[world.rank], world)
    world.barrier()
    if world.first:
        _put_together([CorpusStore(share) for share in shares if share.exists()], folder, _vocabulary(model))
        for share in shares:
            shutil.rmtree(share, ignore_errors=True)


def _vocabulary(model: DocumentModel) -> int:
    return max(len(model.sentence.source_table.weight), len(model.sentence.target_table.weight))


def _translate(
    model: DocumentModel, store: CorpusStore, documents: range, wanted: np.ndarray, folder: Path, world: World
) -> None:
    if not len(documents) or folder.exists():
        return
    model.eval().to(world.device)
    chosen = set(wanted.tolist())
    with StoreWriter(folder, _vocabulary(model)) as writer:
        for count, start in enumerate(range(documents.start, documents.stop, WINDOW_DOCUMENTS)):
            numbers = range(start, min(start + WINDOW_DOCUMENTS, documents.stop))
            _translate_window(model, store, numbers, chosen, writer)
            if world.first and count % TELL_EVERY == TELL_EVERY - 1:
                log.info("translated %d of %d documents", numbers.stop - documents.start, len(documents))


def _translate_window(
    model: DocumentModel, store: CorpusStore, numbers: range, chosen: set[int], writer: StoreWriter
) -> None:
    units = [
        Unit(index, position, position, "", [int(i) for i in store.sentence("source", sentence)])
        for index, number in enumerate(number for number in numbers if number in chosen)
        for position, sentence in enumerate(store.document(number))
    ]
    found = iter(translate_units(model, units, GREEDY) if units else [])
    for number in numbers:
        sources = [store.sentence("source", sentence) for sentence in store.document(number)]
        targets: list[Sequence[int]] = [next(found)[0].ids if number in chosen else [] for _ in sources]
        writer.add(str(number), sources, targets)


def _put_together(shares: Sequence[CorpusStore], folder: Path, vocabulary: int) -> None:
    with StoreWriter(folder, vocabulary) as writer:
        for share in shares:
            for number in range(len(share)):
                sentences = share.document(number)
                sources = [share.sentence("source", sentence) for sentence in sentences]
                writer.add(str(number), sources, [share.sentence("target", sentence) for sentence in sentences])
