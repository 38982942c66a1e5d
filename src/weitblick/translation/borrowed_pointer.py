"""The shipped model's pointer for a model that has none (`memory.transfer`)."""

from __future__ import annotations

from functools import cache

from weitblick.checkpoints.folder import load_model
from weitblick.checkpoints.installed import DEFAULT_MODEL
from weitblick.memory.pointer import MemoryPointer
from weitblick.memory.transfer import TrainedPointer, trained_pointer, transferred_pointer
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import TextPipeline


@cache
def shipped_pointer() -> TrainedPointer | None:
    """That of the model that comes with Weitblick; None where there is no such model, or it has none."""
    if not DEFAULT_MODEL.is_dir():
        return None
    loaded = load_model(DEFAULT_MODEL)
    pointer = loaded.model.pointer
    return None if pointer is None else trained_pointer(loaded.model.sentence.eval(), loaded.pipeline, pointer)


def borrow_pointer(model: DocumentModel, pipeline: TextPipeline) -> MemoryPointer | None:
    """The shipped pointer for another model; None where nothing is shipped."""
    trained = shipped_pointer()
    return None if trained is None else transferred_pointer(model.sentence, pipeline, trained)
