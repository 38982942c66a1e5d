"""Any row of the paper's tables, from its configuration."""

from __future__ import annotations

from weitblick.config.recipe import ContextSection, MemorySection, ModelSection
from weitblick.context.han import HierarchicalNetwork
from weitblick.context.layer import ContextLayer
from weitblick.context.module import ContextModule
from weitblick.context.zhang import ZhangContext
from weitblick.model.document_model import DocumentModel
from weitblick.model.pointer import MemoryPointer
from weitblick.sentence.rnnsearch import RNNSearch
from weitblick.sentence.sentence_model import SentenceModel
from weitblick.sentence.transformer import Transformer

SENTENCE_MODELS: dict[str, type[SentenceModel]] = {"transformer": Transformer, "rnnsearch": RNNSearch}
CONTEXT_MODULES: dict[str, type[ContextModule]] = {
    "sentence": ContextLayer,
    "word": ContextLayer,
    "hierarchical": ContextLayer,
    "han": HierarchicalNetwork,
    "zhang": ZhangContext,
}


def build_sentence_model(model: ModelSection, source_size: int, target_size: int) -> SentenceModel:
    return SENTENCE_MODELS[model.architecture](model, source_size, target_size)


def build(
    model: ModelSection,
    context: ContextSection,
    source_size: int,
    target_size: int,
    memory: MemorySection | None = None,
) -> DocumentModel:
    """The model that a configuration describes, freshly initialised."""
    sentence = build_sentence_model(model, source_size, target_size)
    pointer = MemoryPointer(memory, sentence.dimension) if memory is not None and memory.kind != "none" else None
    if context.kind == "none":
        return DocumentModel(sentence, None, context, pointer=pointer)
    # The module is as wide as the states it reads.
    width = sentence.memory_dimension if context.integration == "encoder" else sentence.dimension
    module = CONTEXT_MODULES[context.kind](context, model.model_copy(update={"dimension": width}))
    # What a module with its own encoder reads, the embedding, never changes in stage 2: no copy is needed.
    keep = context.states == "frozen" and not module.own_encoder
    frozen = build_sentence_model(model, source_size, target_size) if keep else None
    return DocumentModel(sentence, module, context, frozen, pointer)
