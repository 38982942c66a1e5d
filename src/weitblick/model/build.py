"""Any row of the paper's tables, from its configuration."""

from __future__ import annotations

from weitblick.config.recipe import ContextSection, ModelSection
from weitblick.model.document_model import DocumentModel
from weitblick.model.sentence_model import SentenceModel
from weitblick.model.transformer import Transformer


def build_sentence_model(model: ModelSection, source_size: int, target_size: int) -> SentenceModel:
    return Transformer(model, source_size, target_size)


def build(model: ModelSection, context: ContextSection, source_size: int, target_size: int) -> DocumentModel:
    """The model that a configuration describes, freshly initialised."""
    sentence = build_sentence_model(model, source_size, target_size)
    if context.kind == "none":
        return DocumentModel(sentence, None, context)
    from weitblick.model.context_layer import ContextLayer

    frozen = build_sentence_model(model, source_size, target_size) if context.states == "frozen" else None
    return DocumentModel(sentence, ContextLayer(context, model), context, frozen)
