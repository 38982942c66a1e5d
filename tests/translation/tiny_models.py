"""Small random models that end their sentences, in every context variant, and a pipeline to go with them."""

from __future__ import annotations

from functools import lru_cache

import torch

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ModelSection, TextSection
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import EOS, TextPipeline
from weitblick.text.pipeline import learn_pipeline

SECTION = ModelSection(dimension=16, heads=2, feed_forward=24, encoder_layers=2, decoder_layers=2)
SOURCES = [
    "The committee met on Monday, and the report was read.",
    "Mr. Smith did not agree: he said that the figures are wrong.",
    "It costs 12 % more than before!",
    "Where is the house? It is near the old bank.",
]
TARGETS = [
    "Der Ausschuss trat am Montag zusammen, und der Bericht wurde verlesen.",
    "Herr Smith war nicht einverstanden: er sagte, dass die Zahlen falsch sind.",
    "Es kostet 12 % mehr als vorher!",
    "Wo ist das Haus? Es ist in der Nähe der alten Bank.",
]

OURS = [
    {"kind": kind, "integration": integration, "direction": direction, "states": states}
    for kind in ("sentence", "word", "hierarchical")
    for integration in ("encoder", "decoder")
    for direction in ("offline", "online")
    for states in ("live", "frozen")
]
WORDS = [
    {"kind": kind, "integration": "decoder", "direction": direction, "states": states, "values": "words"}
    for kind, direction, states in (
        ("hierarchical", "offline", "live"),
        ("hierarchical", "online", "frozen"),
        ("word", "online", "live"),
        ("sentence", "offline", "live"),
    )
]
ORDERED = [
    {"kind": "hierarchical", "integration": "encoder", "direction": "offline", "order": "true"},
    {"kind": "hierarchical", "integration": "decoder", "direction": "online", "values": "words", "order": "true"},
    {"kind": "word", "integration": "decoder", "direction": "offline", "values": "words", "order": "true"},
    {"kind": "sentence", "integration": "decoder", "direction": "online", "order": "true"},
]
BASELINES = [
    {"kind": kind, "integration": integration, "direction": "online"}
    for kind in ("zhang", "han")
    for integration in ("encoder", "decoder")
]
VARIANTS: list[dict[str, str]] = [{"kind": "none"}, *OURS, *WORDS, *ORDERED, *BASELINES]


def name(variant: dict[str, str]) -> str:
    return "-".join(variant.values())


def tiny_model(
    variant: dict[str, str], source_size: int = 30, target_size: int = 30, end: float = 1.0, seed: int = 5, **model
) -> DocumentModel:
    """`end` raises the score of EOS, so that sentences end well before their limit."""
    torch.manual_seed(seed)
    section = SECTION.model_copy(update=model)
    built = build(section, ContextSection(**variant), source_size, target_size).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for sentence_model in filter(None, (built.sentence, built.frozen)):
            sentence_model.output_bias.normal_(0, 0.5)
            sentence_model.output_bias[EOS] = end
            # States that depend clearly on words, where fresh weights give states that are nearly alike.
            sentence_model.source_table.weight.mul_(2)
            sentence_model.target_table.weight.mul_(1.5)
        if built.context is not None:
            for name in built.context.zero_started():
                built.context.get_parameter(name).normal_(0, 0.5)
    return built


@lru_cache(maxsize=1)
def tiny_pipeline() -> TextPipeline:
    section = TextSection(kind="sentencepiece", merges=120, longest_sentence=40)
    return learn_pipeline((SOURCES * 3, TARGETS * 3), section, workers=1)


def tiny_translation_model(variant: dict[str, str], **options) -> DocumentModel:
    pipeline = tiny_pipeline()
    return tiny_model(variant, len(pipeline.source_vocabulary), len(pipeline.target_vocabulary), **options)


def random_ids(lengths: list[int], size: int = 30, seed: int = 0) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, size, (length,), generator=generator).tolist() for length in lengths]
