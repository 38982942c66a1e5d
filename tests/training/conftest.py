"""A corpus and a recipe small enough to train in seconds."""

from pathlib import Path

import pytest

from weitblick.documents.discourse.generator import generate, write_corpus

RECIPE = """
text: {kind: sentencepiece, merges: 300, joint_vocabulary: true}
threads: 1
model: {dimension: 32, feed_forward: 64, encoder_layers: 1, decoder_layers: 1, heads: 2, norm: pre,
        tied_embeddings: all, dropout: {embedding: 0.1, attention: 0.1, residual: 0.1}}
context: {kind: hierarchical, gate_start: 1.0}
sentence_stage: {updates: 12, batch_tokens: 300, learning_rate: 2e-3, validate_every: 5, save_every: 4, average: 2}
context_stage: {updates: 12, batch_tokens: 300, learning_rate: 2e-3, validate_every: 5, save_every: 4, average: 2,
                source_word_dropout: 0.1, hold_sentence_model: 3}
"""


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    made = generate("small", 60, seed=5)
    write_corpus(made, folder)
    for side in ("en", "de"):  # a short dev set keeps validation quick
        path = folder / f"dev.{side}"
        path.write_text("\n\n".join(path.read_text(encoding="utf-8").split("\n\n")[:12]) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def recipe_file(tmp_path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE, encoding="utf-8")
    return path
