"""Context is learned: a document whose pronoun can only be translated from another sentence, in seconds."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from tests.plain_formulas import token_log_probabilities
from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ContextStageSection, DropoutSection, ModelSection
from weitblick.model.batch import Batch, pack_pairs
from weitblick.model.context_module import ContextOptions
from weitblick.model.document_model import DocumentModel
from weitblick.model.loss import smoothed_cross_entropy
from weitblick.training.update import Optimiser

NOUNS, FILLERS, IT, PRONOUNS = range(4, 10), range(10, 18), 18, (19, 20, 21)
VOCABULARY = 22
SENTENCES, DOCUMENTS = 4, 24
NEAR_CHANCE = 0.65  # a third, on 24 documents
MODEL = ModelSection(
    dimension=32,
    feed_forward=64,
    encoder_layers=1,
    decoder_layers=1,
    heads=2,
    norm="pre",
    tied_embeddings="none",
    dropout=DropoutSection(embedding=0, attention=0, residual=0),
)
CASES = {
    "sparse-soft": {"kind": "hierarchical"},
    "sparse-sparse": {"kind": "hierarchical", "word_attention": "sparse"},
    "word": {"kind": "word"},
}


@cache  # the same for every model
def documents(seed: int, online: bool) -> Batch:
    """Sentences of fillers; one names a noun, a later one (offline: any other) has a pronoun of the noun's gender."""
    random = np.random.default_rng(seed)
    sources, targets = [], []
    for _ in range(DOCUMENTS):
        noun, (named, pronoun) = random.choice(NOUNS), random.choice(SENTENCES, 2, replace=False)
        if online and named > pronoun:
            named, pronoun = pronoun, named
        for place in range(SENTENCES):
            words = [int(w) for w in random.choice(FILLERS, 2)]
            middle = {named: int(noun), pronoun: IT}.get(place, words[0])
            sources.append([words[0], middle, words[1]])
            targets.append([words[0], PRONOUNS[noun % 3] if place == pronoun else middle, words[1]])
    owner = np.repeat(range(DOCUMENTS), SENTENCES)
    return Batch(pack_pairs(sources, targets, owner.tolist(), list(range(SENTENCES)) * DOCUMENTS))


def accuracy(model: DocumentModel, online: bool, context: bool = True) -> float:
    """How often the right pronoun is the most probable of the three."""
    batch = documents(10_000, online)
    labels = batch.current.labels
    use = torch.full((batch.current.sentences,), context)
    with torch.no_grad():
        states = model.eval()(batch, ContextOptions(use=use)).states
        scores = torch.stack(
            [token_log_probabilities(states, *model.sentence.output(), torch.full_like(labels, p)) for p in PRONOUNS]
        )
    asked = (labels >= PRONOUNS[0]) & (labels <= PRONOUNS[-1])
    return float((scores.argmax(0)[asked] + PRONOUNS[0] == labels[asked]).float().mean())


def trained(online: bool, updates: int, **options) -> DocumentModel:
    torch.manual_seed(1)
    model = build(MODEL, ContextSection(**options, gate_start=1.0, dropout=0), VOCABULARY, VOCABULARY)
    stage = ContextStageSection(learning_rate=5e-3, clip=1.0, betas=(0.9, 0.98), schedule="linear", updates=updates)
    optimiser = Optimiser(model, stage)
    for update in range(1, updates + 1):
        optimiser.prepare(update)
        batch = documents(update, online)
        output = model.train()(batch)
        loss, _ = smoothed_cross_entropy(output.states, *model.sentence.output(), batch.current.labels, 0.0)
        loss.backward()
        optimiser.step(1 / len(batch.current.labels))
        optimiser.zero()
        if update % 10 == 0 and accuracy(model, online) == 1.0:
            break
    return model


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
@pytest.mark.parametrize("direction", ["offline", "online"])
@pytest.mark.parametrize("case", CASES)
def test_what_can_read_the_document_learns_to(case: str, direction: str, integration: str) -> None:
    online = direction == "online"
    model = trained(online, 400, direction=direction, integration=integration, **CASES[case])
    assert accuracy(model, online) >= 0.95
    assert accuracy(model, online, context=False) < NEAR_CHANCE


def test_what_cannot_read_it_does_not() -> None:
    assert accuracy(trained(False, 100, kind="none"), False) < NEAR_CHANCE
