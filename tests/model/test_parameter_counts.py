"""The sizes of the paper's models, part by part, and every recipe that we ship builds a model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.common.recipe_files import load_recipe
from weitblick.evaluation.complexity import measure_size, paper_candidates, read_candidate

RECIPES = Path(__file__).parents[2] / "recipes"


def test_totals_of_the_paper() -> None:
    sizes = {size.model: size.parameters / 1e6 for size in map(measure_size, paper_candidates(None, None))}
    assert round(sizes["Transformer"], 1) == 50.0
    assert round(sizes["Attention, sentence"], 1) == round(sizes["Attention, word"], 1) == 53.7
    assert round(sizes["H-Attention, sparse-soft"], 1) == round(sizes["H-Attention, sparse-sparse"], 1) == 54.2
    assert round(sizes["Zhang:18"], 1) == 59.5
    assert round(sizes["HAN (Miculicich:18)"], 1) == 54.8


def test_parts_of_the_paper() -> None:
    sizes = {size.model: size.parts for size in map(measure_size, paper_candidates(None, None))}
    assert sizes["Transformer"]["encoder"] + sizes["Transformer"]["decoder"] == 29_401_088
    assert sizes["Transformer"]["source embedding"] == 19_270 * 512
    assert sizes["Transformer"]["target embedding"] == 21_000 * 512
    assert sizes["Attention, word"]["context"] == 3_674_624
    assert sizes["H-Attention, sparse-soft"]["context"] == 4_198_912
    assert sizes["Zhang:18"]["context"] == 9_445_888
    assert 5_000 <= sizes["HAN (Miculicich:18)"]["context"] - 4_721_152 <= 10_000


def test_weights_of_rnnsearch_by_hand() -> None:
    """Encoder, then decoder: first states, attention, two units with inputs, readout (d = 512, keys from 2 d)."""
    d = 512
    with torch.device("meta"):
        model = build(ModelSection(architecture="rnnsearch"), ContextSection(), 19_270, 21_000).sentence
    encoder = 2 * (3 * d * d + 3 * d * d + 6 * d)
    attention = (2 * d * d + d) + d * d + d * d + d
    units = 2 * (3 * d * d + 3 * d) + (2 * d * 3 * d) + (3 * d * d + 3 * d) + (3 * d * d + 3 * d)
    decoder = (2 * d * d + 2 * d) + attention + units + (d * d + d) + 2 * d * d + d * d
    assert sum(p.numel() for p in model.encoder.parameters()) == encoder
    assert sum(p.numel() for p in model.decoder.parameters()) == decoder


def test_frozen_states_are_counted_apart() -> None:
    row = RECIPES / "paper" / "rows" / "h-attention-sparse-soft-encoder-offline.yaml"
    frozen, live = measure_size(read_candidate(row)), measure_size(read_candidate(row, ["context.states=live"]))
    assert frozen.parameters == live.parameters
    assert (frozen.frozen, live.frozen) == (50_040_328, 0)


@pytest.mark.parametrize("path", sorted(RECIPES.rglob("*.yaml")), ids=lambda path: str(path.relative_to(RECIPES)))
def test_every_recipe_builds_a_model(path: Path) -> None:
    size = measure_size(read_candidate(path))
    recipe = load_recipe(path)
    assert ("context" in size.parts) == (recipe.stage != "sentence" and recipe.context.kind != "none")
    assert size.parameters == sum(size.parts.values()) > 1e5


def test_rows_of_the_paper_are_complete() -> None:
    """Every combination of its tables: each attention in each place and direction, the online baselines."""
    rows = [load_recipe(path) for path in sorted((RECIPES / "paper" / "rows").glob("*.yaml"))]
    contexts = [r.context for r in rows if r.stage != "sentence"]
    words = {id(c): c.word_attention if c.kind == "hierarchical" else "" for c in contexts}
    found = {(c.kind, words[id(c)], c.integration, c.direction) for c in contexts}
    kinds = [("sentence", ""), ("word", ""), ("hierarchical", "soft"), ("hierarchical", "sparse")]
    wanted = {(*k, i, d) for k in kinds for i in ("encoder", "decoder") for d in ("offline", "online")}
    wanted |= {(k, "", i, "online") for k in ("zhang", "han") for i in ("encoder", "decoder")}
    assert found == wanted
    assert {r.model.architecture for r in rows if r.stage == "sentence"} == {"transformer", "rnnsearch"}
    for recipe in rows:
        assert (recipe.text.kind, recipe.text.merges, recipe.text.joint_vocabulary) == ("moses", 30000, False)
        assert (recipe.sentence_stage.batch_tokens, recipe.context_stage.batch_documents) == (1000, 1)
        assert recipe.sentence_stage.dropout == (0.2 if recipe.model.architecture == "rnnsearch" else 0.1)
        assert (recipe.context_stage.dropout, recipe.context_stage.learning_rate) == (0.2, 1e-4)
        if recipe.context.kind == "sentence":
            assert recipe.context.sentence_attention == "soft"


@pytest.mark.parametrize("corpus", ["ted", "news", "europarl"])
def test_a_row_on_any_corpus(corpus: str) -> None:
    row = RECIPES / "paper" / "rows" / "han-encoder-online.yaml"
    recipe = load_recipe(row, [f"base={RECIPES / 'paper' / f'{corpus}.yaml'}"])
    assert recipe.context.kind == "han"
    assert recipe.data.dir == f"data/{corpus}"
    assert recipe.context_stage.dropout == 0.2
