"""Recipes on several bases, and on another base than their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from weitblick.common.errors import UserError
from weitblick.common.recipe_files import load_recipe


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "low.yaml").write_text("seed: 1\nmodel: {dimension: 64, heads: 2}\n")
    (tmp_path / "high.yaml").write_text("seed: 2\nmodel: {heads: 4}\n")
    (tmp_path / "both.yaml").write_text("base: [low.yaml, high.yaml]\nmodel: {feed_forward: 99}\n")
    (tmp_path / "round.yaml").write_text("base: [low.yaml, round.yaml]\n")
    return tmp_path


def test_later_bases_lie_over_earlier_ones(folder: Path) -> None:
    recipe = load_recipe(folder / "both.yaml")
    assert (recipe.seed, recipe.model.dimension, recipe.model.heads, recipe.model.feed_forward) == (2, 64, 4, 99)


def test_another_base(folder: Path) -> None:
    recipe = load_recipe(folder / "both.yaml", [f"base={folder / 'high.yaml'}", "seed=7"])
    assert (recipe.seed, recipe.model.dimension, recipe.model.heads, recipe.model.feed_forward) == (7, 512, 4, 99)


def test_circles_and_missing_bases_are_named(folder: Path) -> None:
    with pytest.raises(UserError, match="circle"):
        load_recipe(folder / "round.yaml")
    with pytest.raises(UserError, match=r"absent\.yaml.*no such file"):
        load_recipe(folder / "both.yaml", ["base=absent.yaml"])


def test_baselines_know_their_reach_and_direction(folder: Path) -> None:
    path = folder / "low.yaml"
    for kind, reach in (("zhang", 2), ("han", 3)):
        context = load_recipe(path, [f"context.kind={kind}"]).context
        assert (context.sentences, context.direction) == (reach, "online")
        assert load_recipe(path, [f"context.kind={kind}", "context.sentences=5"]).context.sentences == 5
        with pytest.raises(UserError, match="previous sentences only") as error:
            load_recipe(path, [f"context.kind={kind}", "context.direction=offline"])
        assert len(str(error.value)) < 250
    with pytest.raises(UserError, match="layers of a transformer"):
        load_recipe(path, ["context.kind=zhang", "model.architecture=rnnsearch"])
