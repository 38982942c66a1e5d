"""Decoder rows read the stage-1 model's translations in training and in validation, made once for all runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weitblick.checkpoints.folder import load_model
from weitblick.common.process import join_world
from weitblick.common.recipe_files import load_recipe
from weitblick.training import translated_store as translating
from weitblick.training.run import TRANSLATIONS, train
from weitblick.training.store import CorpusStore
from weitblick.training.update import StageTask
from weitblick.training.validation import validate

DECODER = ("context.integration=decoder", "context_stage.target_context=translation", "context_stage.average=1")


@pytest.fixture(scope="module")
def stage1(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A recipe file and a sentence model trained with it."""
    from tests.training.conftest import RECIPE

    folder = tmp_path_factory.mktemp("stage1")
    (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    overrides = [f"data.dir={corpus}", f"output={folder / 'run'}", "stage=sentence"]
    return folder / "recipe.yaml", train(load_recipe(folder / "recipe.yaml", overrides), quiet=True)


def train_row(stage1: tuple[Path, Path], corpus: Path, output: Path, *overrides: str) -> Path:
    recipe, model = stage1
    given = [f"data.dir={corpus}", f"output={output}", "stage=context", f"stage1={model}", *DECODER, *overrides]
    return train(load_recipe(recipe, given), quiet=True)


def stores(folder: Path, name: str) -> list[CorpusStore]:
    return [CorpusStore(path) for path in sorted((folder / TRANSLATIONS).glob(f"{name}-*"))]


def test_dev_is_scored_with_translations_as_training_reads_them(
    stage1: tuple[Path, Path], corpus: Path, tmp_path: Path
) -> None:
    model = load_model(train_row(stage1, corpus, tmp_path / "run", "context_stage.result=last")).model
    log = (tmp_path / "run" / "context" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    logged = [entry["dev_loss"] for entry in map(json.loads, log) if entry["kind"] == "dev"][-1]
    dev, (translated,) = CorpusStore(tmp_path / "run" / "data" / "dev"), stores(tmp_path, "dev")
    section = load_recipe(stage1[0], ["context_stage.updates=12"]).context_stage
    world = join_world("cpu")

    def loss(context: CorpusStore | None) -> float:
        task = StageTask("stage 2", tmp_path, section, [dev], dev, 1, documents=True, dev_translated=context)
        return validate(model, dev, task.dev_plans(), 1, world, translated=context).loss

    assert loss(translated) == pytest.approx(logged, abs=1e-5)
    assert loss(None) != pytest.approx(logged, abs=1e-5)


def test_only_documents_that_updates_read_are_translated(
    stage1: tuple[Path, Path], corpus: Path, tmp_path: Path
) -> None:
    train_row(stage1, corpus, tmp_path / "run", "context_stage.updates=2")
    (translated,) = stores(tmp_path, "train")
    lengths = np.add.reduceat(translated.lengths("target"), np.asarray(translated.documents)[:-1])
    section = load_recipe(stage1[0], ["context_stage.updates=2"]).context_stage
    original = CorpusStore(tmp_path / "run" / "data" / "train")
    task = StageTask("", tmp_path, section, [original], original, 1, documents=True, translated_share=1.0)
    (read,) = task.documents_translated(1)
    assert 0 < len(read) < len(original)
    assert {number for number, length in enumerate(lengths) if length} <= read


def test_runs_from_one_stage_1_share_the_translations(
    stage1: tuple[Path, Path], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_row(stage1, corpus, tmp_path / "first")
    made = {path.name for path in (tmp_path / TRANSLATIONS).iterdir()}
    monkeypatch.setattr(translating, "translate_units", _refuse)
    train_row(stage1, corpus, tmp_path / "second", "context.kind=word")
    assert {path.name for path in (tmp_path / TRANSLATIONS).iterdir()} == made


def _refuse(*_: Any) -> None:
    raise AssertionError("translated twice")


@pytest.mark.parametrize("row", sorted((Path(__file__).parents[2] / "recipes" / "paper" / "rows").glob("*decoder*")))
def test_the_decoder_rows_of_the_paper_read_translations(row: Path) -> None:
    assert load_recipe(row).context_stage.target_context == "translation"
