"""A study does what is missing, once, and its tables say what its models did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from study_samples import refuse, reproduce, study_file

from weitblick.checkpoints.folder import load_model
from weitblick.common.errors import UserError
from weitblick.evaluation import study_work as work


def test_a_study_ends_in_the_four_tables(finished: tuple[Path, dict[str, Any]]) -> None:
    folder, report = finished
    tables = report["tables"]
    assert list(tables) == ["table1", "table2", "table3", "table4"]
    assert set(tables["table1"]["rows"]) == {"transformer", "h-attention-encoder-offline"}
    assert set(tables["table2"]["rows"]) == {"transformer", "h-attention-decoder-online"}
    bleu = tables["table1"]["rows"]["h-attention-encoder-offline"]["talks"]["bleu"]
    assert {"score", "interval", "p_randomisation", "p_bootstrap", "mark"} <= set(bleu)
    accuracy = tables["table3"]["rows"]["h-attention-encoder-offline"][0]
    assert accuracy["own"]["items"] == accuracy["random"]["items"] == 10
    sizes = {row: found["parameters"] for row, found in tables["table4"]["rows"].items()}
    assert sizes["h-attention-encoder-offline"] > sizes["transformer"]
    text = (folder / "out" / "tables.md").read_text(encoding="utf-8")
    assert "*Integration into the encoder*" in text
    assert (folder / "out" / "tables.tex").read_text(encoding="utf-8").count(r"\begin{table}") == 4


def test_rows_share_stage_1(finished: tuple[Path, dict[str, Any]]) -> None:
    steps = [path.name.split(".")[0] for path in (finished[0] / "out" / "steps").iterdir()]
    assert steps.count("stage-1") == 1
    assert steps.count("stage-2") == 2


def test_a_finished_study_does_nothing_again(
    finished: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, report = finished
    for name in ("train_model", "translate_corpus", "score_systems", "contrast_suite", "measure_models"):
        monkeypatch.setattr(work, name, refuse)
    assert reproduce(folder / "study.yaml", "-o", folder / "out") == report


def test_a_study_goes_on_after_being_killed(
    tmp_path: Path, corpus: Path, finished: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in every kind of step, in turn; the tables are those of an uninterrupted study."""
    path = study_file(tmp_path, corpus)
    trained: list[str] = []
    train = work.train_model
    monkeypatch.setattr(
        work, "train_model", lambda recipe, quiet: trained.append(recipe.output) or train(recipe, quiet)
    )
    for name in ("contrast_suite", "translate_corpus", "score_systems"):
        with monkeypatch.context() as patch:
            patch.setattr(work, name, _killed)
            with pytest.raises(ConnectionAbortedError):
                reproduce(path, "-o", tmp_path / "out")
        assert not (tmp_path / "out" / "tables.json").exists()
    assert reproduce(path, "-o", tmp_path / "out") == finished[1]
    assert len(trained) == len(set(trained)) == 3


def _killed(*_: object) -> None:
    raise ConnectionAbortedError


def test_a_continued_row_is_stage_2_without_context(larger: Path) -> None:
    out = larger / "out"
    trained = sorted(path.name for path in (out / "steps").glob("stage-*.json"))
    assert [name.split(".")[2] for name in trained].count("continued") == 2
    (manifest,) = out.glob("runs/talks.continued.seed1.*/manifest.json")
    recipe = json.loads(manifest.read_text(encoding="utf-8"))["recipe"]
    assert (recipe["stage"], recipe["context"]["kind"]) == ("context", "none")
    given, row = (
        load_model(next(out.glob(f"runs/talks.{name}.*/best"))).model.sentence.output_bias
        for name in ("transformer", "continued")
    )
    assert not torch.equal(given, row)


def test_a_given_stage_1_is_the_baseline_of_all_seeds(larger: Path, finished: tuple[Path, dict[str, Any]]) -> None:
    original = load_model(next((finished[0] / "out" / "runs").glob("talks.transformer.*")) / "best").model
    taken = load_model(next((larger / "out" / "runs").glob("talks.transformer.given.*")) / "best").model
    for name, weight in original.sentence.state_dict().items():
        assert torch.equal(weight, taken.sentence.state_dict()[name])
    assert len(list((larger / "out" / "steps").glob("translate.talks.transformer.*"))) == 1


def test_some_rows_and_seeds_are_steps_of_the_whole_study(larger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("train_model", "translate_corpus", "contrast_suite", "measure_use"):
        monkeypatch.setattr(work, name, refuse)
    before = (larger / "out" / "tables.json").read_text(encoding="utf-8")
    some = ["--rows", "h-attention-decoder-online", "--seeds", "2"]
    report = reproduce(larger / "study.yaml", "-o", larger / "out", *some)
    assert set(report["tables"]["table2"]["rows"]) == {"transformer", "h-attention-decoder-online"}
    assert report["seeds"] == [2]
    assert reproduce(larger / "study.yaml", "-o", larger / "out") == json.loads(before)


def test_the_folder_of_another_study_is_refused(finished: tuple[Path, dict[str, Any]], corpus: Path) -> None:
    folder, _ = finished
    with pytest.raises(UserError) as caught:
        reproduce(folder / "study.yaml", "name=other", "-o", folder / "out")
    assert "holds the study 'toy', not 'other'" in str(caught.value)
