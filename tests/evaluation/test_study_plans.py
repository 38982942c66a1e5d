"""What a study would do: its steps, their order and time, and mistakes in its file before any work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from study_samples import STUDY, reproduce, study_file

from weitblick.common.errors import UserError
from weitblick.evaluation.study import load_study
from weitblick.evaluation.study_cost import estimate_plan
from weitblick.evaluation.study_plan import plan_study
from weitblick.evaluation.study_steps import Ledger


def test_what_a_change_does_not_touch_is_kept(finished: tuple[Path, dict[str, Any]], corpus: Path) -> None:
    folder, _ = finished

    def missing(*overrides: str) -> set[str]:
        study, rows = load_study(folder / "study.yaml", overrides)
        plan = plan_study(study, rows, folder / "out")
        ledger = Ledger(folder / "out")
        return {step.kind for step in plan.steps if not ledger.done(step)}

    assert missing() == set()
    assert missing("threads=2") == set()
    assert missing("trials=60") == {"score"}
    assert missing("beam=2") == {"translate", "score"}
    assert missing("overrides=[context_stage.updates=5]") == {
        "stage 2",
        "translate",
        "score",
        "contrast",
        "complexity",
    }
    assert "stage 1" in missing("seeds=[1, 2]")
    assert "corpus" in missing(f"corpora.talks.test=[{corpus}/dev.en, {corpus}/dev.de]")


def test_the_first_seed_of_all_rows_comes_first(larger: Path) -> None:
    study, rows = load_study(larger / "study.yaml")
    plan = plan_study(study, rows, larger / "out")
    order = [(step.kind, step.name.removeprefix("talks.")) for step in plan.steps]
    trained = [name for kind, name in order if kind == "stage 2"]
    attention = ["h-attention-encoder-offline", "h-attention-decoder-online"]
    assert trained == [
        *(f"{row}.seed1" for row in (*attention, "continued")),
        *(f"{row}.seed2" for row in (*attention, "continued")),
    ]
    first_test = next(place for place, (kind, _) in enumerate(order) if kind == "translate")
    assert order.index(("stage 2", "continued.seed1")) < first_test < order.index(("stage 2", f"{attention[0]}.seed2"))


def test_without_its_corpus_a_study_tells_no_time(tmp_path: Path) -> None:
    study, rows = load_study(study_file(tmp_path, tmp_path / "nowhere"))
    plan = plan_study(study, rows, tmp_path / "out")
    planned = estimate_plan(plan.steps, Ledger(tmp_path / "out"), "cpu", lambda _: None)
    assert all(entry.seconds is None for entry in planned)
    assert any(entry.step.timed for entry in planned)


def test_a_dry_run_estimates_and_writes_nothing(tmp_path: Path) -> None:
    text = STUDY.replace("{dir: CORPUS, suites: {pronouns: CORPUS/contrast.jsonl}}", "{discourse: {documents: 20}}")
    study, rows = load_study(study_file(tmp_path, tmp_path, text))
    plan = plan_study(study, rows, tmp_path / "out")
    planned = estimate_plan(plan.steps, Ledger(tmp_path / "out"), "cpu", lambda _: None)
    seconds = {(entry.step.kind): entry.seconds for entry in planned}
    kinds = [entry.step.kind for entry in planned]
    assert kinds[:5] == ["corpus", "stage 1", "contrast", "stage 2", "contrast"]
    assert all(seconds[kind] for kind in ("stage 1", "stage 2", "translate", "contrast"))
    assert not any(entry.done for entry in planned)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [(("--rows", "H-Atention"), "no row 'H-Atention'; did you mean 'H-Attention'?"), (("--seeds", "7"), "no seed 7")],
)
def test_rows_and_seeds_that_are_not_there_are_named(
    tmp_path: Path, corpus: Path, option: tuple[str, str], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        reproduce(study_file(tmp_path, corpus), "-o", tmp_path / "out", *option)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("recipe.yaml, overrides", "recipe.yaml, overides"), "unknown key 'overides'; did you mean 'overrides'?"),
        (("trials: 50", "trails: 50"), "unknown key 'trails'; did you mean 'trials'?"),
        (("bleu, chrf", "bleu, blue"), "unknown metric 'blue'"),
        (("name: toy", "name: toy\nbaseline: Nobody"), "baseline = 'Nobody' is no row"),
        (("H-Attention, recipe: recipe.yaml}",
          "Transformer, recipe: recipe.yaml, overrides: [stage=sentence, context.kind=none]}"),
         "two rows are 'transformer'"),
        (("stage=sentence, context.kind=none", "context.kind=none"), "has no context, but stage = both"),
        (("stage=sentence, context.kind=none", "stage=sentence"), "trains stage 1 alone, but has context.kind"),
        (("H-Attention, recipe: recipe.yaml}", "H-Attention, recipe: recipe.yaml, continued: true}"),
         "continued: true, but context.kind = hierarchical"),
        (("stage=sentence, context.kind=none]", "stage=sentence, context.kind=none], continued: true"),
         "continued: true, but stage = sentence"),
        (("H-Attention, recipe: recipe.yaml}", "H-Attention, recipe: recipe.yaml, overrides: [stage=decision]}"),
         "stage = decision is no part of a study"),
        (("name: toy", "name: toy\nfirst: [Nobody]"), "first: 'Nobody' is no row"),
        (("CORPUS/contrast.jsonl}", "CORPUS/contrast.jsonl}, suite_items: {other: 3}"), "suite_items: other = 3"),
        (("name: toy", "name: toy\nstage1: {transformer: nowhere}"), "nowhere/model.safetensors: no such file"),
        (("{dir: CORPUS", "{dirr: CORPUS"), "corpus talks: unknown key 'dirr'; did you mean 'dir'?"),
        (("{dir: CORPUS, suites: {pronouns: CORPUS/contrast.jsonl}}", "{}"), "needs discourse, or dir"),
        (("recipe: recipe.yaml}", "recipe: none.yaml}"), "none.yaml: no such file"),
        (("dir: CORPUS", "dir: /nowhere"), "/nowhere/train.en: no such file"),
    ],
)  # fmt: skip
def test_a_bad_study_is_explained_before_any_work(
    tmp_path: Path, corpus: Path, change: tuple[str, str], message: str
) -> None:
    path = study_file(tmp_path, corpus, STUDY.replace(*change, 1))
    with pytest.raises(UserError) as caught:
        reproduce(path, "-o", tmp_path / "out")
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["tiny", "paper-ted", "paper-news", "paper-europarl"])
def test_the_studies_that_come_with_weitblick_are_valid(name: str, tmp_path: Path) -> None:
    study, rows = load_study(Path(__file__).parents[2] / "studies" / f"{name}.yaml")
    plan = plan_study(study, rows, tmp_path)
    stage1 = [step for step in plan.steps if step.kind == "stage 1"]
    if name == "tiny":
        assert len(stage1) == 1
        return
    # RNNSearch and one Transformer, for each seed; every row of the paper, offline and online, encoder and decoder
    assert len(stage1) == 2 * len(study.seeds)
    assert len(rows) == 22
    settings = {(row.integration, row.direction) for row in rows if not row.sentence_level}
    assert len(settings) == 4
    assert rows[0].recipe.context_stage.validate_every == (4000 if name == "paper-europarl" else 1000)


def test_the_small_study_has_every_row_of_the_paper_and_the_controls(tmp_path: Path) -> None:
    studies = Path(__file__).parents[2] / "studies"
    _, paper = load_study(studies / "paper-ted.yaml")
    study, rows = load_study(studies / "europarl-small.yaml")
    ids = {row.id for row in rows}
    assert {row.id for row in paper} <= ids
    assert {
        "transformer-trained-on",
        "concatenation-2-to-1-encoder-online",
        "concatenation-2-to-2-decoder-online",
    } <= ids
    plan = plan_study(study, rows, tmp_path)
    stages = [row.recipe.context_stage for row in rows]
    assert all(stage == stages[0] for stage in stages), "the same updates and optimiser for every row"
    given = [step.name for step in plan.steps if step.kind == "stage 1" and "given" in step.name]
    assert given == ["europarl.transformer.given"]
    assert sum(step.kind == "stage 2" for step in plan.steps) == 2 * (len(rows) - 2)
