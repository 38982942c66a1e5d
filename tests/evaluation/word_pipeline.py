"""A text pipeline of whole words, for tests that compute by hand."""

from __future__ import annotations

from collections.abc import Sequence

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.model.document_model import DocumentModel

FIRST_WORD = 4


class WordPipeline:
    """Every word has its own id; unknown words are UNK (3)."""

    def __init__(self, words: Sequence[str]) -> None:
        self.ids = {word: number for number, word in enumerate(words, FIRST_WORD)}
        self.size = FIRST_WORD + len(words)

    def encode_source(self, sentences: Sequence[str]) -> list[list[int]]:
        return [[self.ids.get(word, 3) for word in sentence.split()] for sentence in sentences]

    encode_target = encode_source


def small_model(size: int, **context: object) -> DocumentModel:
    import torch

    torch.manual_seed(2)
    section = ModelSection(
        dimension=16, feed_forward=32, encoder_layers=1, decoder_layers=1, heads=2, tied_embeddings="none"
    )
    return build(section, ContextSection(**{"kind": "hierarchical", **context}), size, size).eval()
