"""Baselines through the whole system: trained in both stages, stored, loaded, translating."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from weitblick.checkpoints.folder import load_model
from weitblick.common.recipe_files import load_recipe
from weitblick.documents.discourse.generator import generate, write_corpus
from weitblick.training.run import train
from weitblick.translation.translator import Translator

RECIPE = """
threads: 1
text: {kind: sentencepiece, merges: 300, joint_vocabulary: true}
model: {dimension: 16, feed_forward: 32, encoder_layers: 1, decoder_layers: 1, heads: 2, tied_embeddings: all}
sentence_stage: {updates: 4, batch_tokens: 300, learning_rate: 2e-3, validate_every: 4, save_every: 4}
context_stage: {updates: 4, batch_tokens: 300, learning_rate: 2e-3, validate_every: 4, save_every: 4}
"""
DOCUMENT = ["The box is on the table.", "", "It is red.", "We see it.", "The lamp is new."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("baselines")
    write_corpus(generate("small", 30, seed=5), folder / "corpus")
    for side in ("en", "de"):
        path = folder / "corpus" / f"dev.{side}"
        path.write_text("\n\n".join(path.read_text(encoding="utf-8").split("\n\n")[:3]) + "\n", encoding="utf-8")
    (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    return folder


def run(folder: Path, name: str, *overrides: str) -> Path:
    fixed = [f"data.dir={folder / 'corpus'}", f"output={folder / name}"]
    return train(load_recipe(folder / "recipe.yaml", [*fixed, *overrides]), quiet=True)


@pytest.fixture(scope="module")
def stage1(folder: Path) -> Path:
    return run(folder, "stage1", "stage=sentence")


@pytest.mark.parametrize(
    ("kind", "states", "integration"),
    [
        ("zhang", "live", "encoder"),
        ("zhang", "frozen", "decoder"),
        ("han", "live", "decoder"),
        ("han", "frozen", "encoder"),
    ],
)
def test_trained_stored_and_translating(folder: Path, stage1: Path, kind: str, states: str, integration: str) -> None:
    best = run(
        folder,
        f"{kind}-{states}-{integration}",
        f"stage1={stage1}",
        f"context.kind={kind}",
        f"context.states={states}",
        f"context.integration={integration}",
    )
    model, before = load_model(best).model, load_model(stage1).model
    same = [
        torch.equal(p, q)
        for p, q in zip(model.sentence.parameters(), before.sentence.parameters(), strict=True)
        if p.numel() > 16
    ]
    assert all(same) if kind == "zhang" else not any(same)
    assert (model.frozen is not None) == (kind == "han" and states == "frozen")
    assert (load_model(best).context_section.sentences, model.section.direction) == (
        {"zhang": 2, "han": 3}[kind],
        "online",
    )
    translated = Translator.load(best).translate(DOCUMENT, beam=2)
    assert [bool(target) for target in translated.targets] == [bool(source) for source in DOCUMENT]


@pytest.mark.parametrize("kind", ["none", "han"])
def test_rnnsearch_trains_and_translates(folder: Path, kind: str) -> None:
    stage = "sentence" if kind == "none" else "both"
    best = run(folder, f"rnn-{kind}", "model.architecture=rnnsearch", f"context.kind={kind}", f"stage={stage}")
    translated = Translator.load(best).translate(DOCUMENT, beam=3)
    assert [bool(target) for target in translated.targets] == [bool(source) for source in DOCUMENT]
    alone = Translator.load(best).translate(DOCUMENT[:1], beam=3)
    assert alone.targets[0] == translated.targets[0]  # online, the first sentence has no context either way
