"""Weitblick's Transformer of random weights, of the shape that the peers have."""

from __future__ import annotations

from typing import Any

import torch

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, DropoutSection, ModelSection
from weitblick.model.document_model import DocumentModel


def ours(size: dict[str, Any], *, dropout: float = 0.0) -> DocumentModel:
    torch.manual_seed(1)
    section = ModelSection(
        dimension=size["dimension"],
        feed_forward=size["feed_forward"],
        encoder_layers=size["layers"],
        decoder_layers=size["layers"],
        heads=size["heads"],
        attention_biases=True,  # as the peers have them
        tied_embeddings="all",
        dropout=DropoutSection(embedding=dropout, attention=dropout, residual=dropout),
    )
    return build(section, ContextSection(), size["vocabulary"], size["vocabulary"])
