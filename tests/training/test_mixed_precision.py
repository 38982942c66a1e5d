"""Every row of the paper's tables takes an update in mixed precision, with about the loss of float32."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from weitblick.checkpoints.folder import build
from weitblick.common.process import World
from weitblick.common.recipe import Recipe
from weitblick.common.recipe_files import load_recipe
from weitblick.text.base import EOS
from weitblick.training.run import _set_dropout
from weitblick.training.store import CorpusStore, StoreWriter
from weitblick.training.update import HALF, Optimiser, StageTask, Updater

RECIPES = Path(__file__).parents[2] / "recipes"
VOCABULARY = 40
TINY = ["model.dimension=16", "model.feed_forward=32", "model.encoder_layers=1", "model.decoder_layers=1"]
# No bias of the gate, as in the paper: it would make float32 of what comes in half precision.
SIZES = [*TINY, "model.heads=2", "context.gate_start=0", "context.heads=2"]


def variants() -> list[tuple[str, ...]]:
    """Each recipe with what to change in it: rows as they are, those of our own sizes in every place and direction."""
    rows: list[tuple[str, ...]] = [(str(path),) for path in sorted((RECIPES / "paper/rows").glob("*.yaml"))]
    for path in sorted([*(RECIPES / "small").glob("*.yaml"), *(RECIPES / "tiny").glob("*.yaml")]):
        kind = load_recipe(path).context.kind
        if path.stem == "base":
            continue
        if kind == "none":
            rows.append((str(path),))
            continue
        places = [f"context.integration={place}" for place in ("encoder", "decoder")]
        directions = ["online"] if kind in ("zhang", "han") else ["offline", "online"]
        rows += [(str(path), place, f"context.direction={direction}") for place in places for direction in directions]
    return rows


def name_of(row: tuple[str, ...]) -> str:
    return "-".join([Path(row[0]).parts[-2], Path(row[0]).stem, *(change.split("=")[1] for change in row[1:])])


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> CorpusStore:
    """Documents of 1 to 5 sentences, one of them without words."""
    random = np.random.default_rng(1)

    def sentence(words: int) -> list[int]:
        return [*random.integers(4, VOCABULARY, words).tolist(), EOS]

    folder = tmp_path_factory.mktemp("stores") / "train"
    with StoreWriter(folder, VOCABULARY) as writer:
        for document in range(5):
            lengths = [[4, 7, 0, 5, 3][(document + s) % 5] for s in range(document + 1)]
            writer.add(str(document), [sentence(n) for n in lengths], [sentence(n) for n in lengths])
    return CorpusStore(folder)


def loss_of_update(recipe: Recipe, store: CorpusStore, folder: Path) -> tuple[float, float]:
    """The mean loss of the first update, and how far weights were moved: in float16 perhaps only by one of the next,
    for an update whose gradient overflows is left out, and the scale falls."""
    torch.manual_seed(1)
    model = build(recipe.model, recipe.context, VOCABULARY, VOCABULARY).train()
    second = model.context is not None
    section = recipe.context_stage if second else recipe.sentence_stage
    _set_dropout(model, section)
    task = StageTask("test", folder, section, [store], store, 1, documents=second)
    optimiser = Optimiser(model, section)
    before = [p.detach().clone() for p in optimiser.parameters]
    updater = Updater(task, model, optimiser, World(0, 1, torch.device("cpu")))
    sums, moved = updater(task.plans(1), 1), 0.0
    for update in range(2, 6):
        moved = max(float((p.detach() - old).abs().max()) for p, old in zip(optimiser.parameters, before, strict=True))
        if moved:
            break
        updater(task.plans(1), update)
    return sums.loss / sums.tokens, moved


@pytest.mark.parametrize("row", variants(), ids=name_of)
def test_a_row_takes_an_update_in_half_precision(row: tuple[str, ...], store, tmp_path, monkeypatch) -> None:
    recipe = load_recipe(row[0], [*SIZES, *row[1:]])
    exact, _ = loss_of_update(recipe, store, tmp_path)
    for half in HALF.values():
        monkeypatch.setattr("weitblick.training.update.half_precision", lambda precision, device, half=half: half)
        loss, moved = loss_of_update(recipe, store, tmp_path)
        assert math.isclose(loss, exact, rel_tol=0.01)
        assert loss != exact
        assert 0 < moved < math.inf
