"""The shipped model's pointer for a model that has none, fitted on the model's own translations (`memory.transfer`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from weitblick.checkpoints.folder import load_model
from weitblick.checkpoints.installed import DEFAULT_MODEL
from weitblick.memory.pointer import MemoryPointer
from weitblick.memory.transfer import FEWEST, Pair, chosen_sentences, transferred_pointer
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import TextPipeline
from weitblick.text.units import Unit
from weitblick.translation.driver import translate_units
from weitblick.translation.options import TranslationOptions


@dataclass(frozen=True)
class Borrowed:
    """A pointer, and how many sentences its keys were fitted on."""

    pointer: MemoryPointer
    sentences: int


@cache
def shipped_pointer() -> MemoryPointer | None:
    """That of the model that comes with Weitblick; None where there is no such model, or it has none."""
    pointer: MemoryPointer | None = load_model(DEFAULT_MODEL).model.pointer if DEFAULT_MODEL.is_dir() else None
    return pointer


def borrow_pointer(
    model: DocumentModel, pipeline: TextPipeline, texts: Iterable[str], seed: int = 1
) -> Borrowed | None:
    """The shipped pointer for another model, from sentences of its source language, some of which (by the seed) it
    translates itself; None where these are too few, or where nothing is shipped."""
    chosen = chosen_sentences(texts, seed)
    if len(chosen) < FEWEST or (trained := shipped_pointer()) is None:
        return None
    pairs = own_translations(model, pipeline, chosen)
    return Borrowed(transferred_pointer(model.sentence, trained, pairs), len(pairs)) if pairs else None


def own_translations(model: DocumentModel, pipeline: TextPipeline, texts: Sequence[str]) -> list[Pair]:
    """Sentences and what the model makes of each by itself, greedily, as ids; without those that have no words."""
    sources = [ids[: pipeline.longest_sentence] for ids in pipeline.encode_source(texts)]
    units = [Unit(n, 0, 0, text, ids) for n, (text, ids) in enumerate(zip(texts, sources, strict=True)) if ids]
    found = translate_units(model, units, TranslationOptions(beam=1, context=False))
    return [(unit.source, own[0].ids) for unit, own in zip(units, found, strict=True) if own]
