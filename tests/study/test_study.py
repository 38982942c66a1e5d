"""A study does what is missing, once, and its tables say what its models did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.discourse import generate, write_corpus
from weitblick.errors import UserError
from weitblick.study import work
from weitblick.study.cost import estimate_plan
from weitblick.study.plan import plan_study
from weitblick.study.steps import Ledger, Step, run_steps
from weitblick.study.study import load_study
from weitblick.study.tables import Cell, Table, TableLine, latex, markdown

RECIPE = """
text: {kind: sentencepiece, merges: 150, joint_vocabulary: true}
model: {dimension: 16, feed_forward: 32, encoder_layers: 1, decoder_layers: 1, heads: 2, tied_embeddings: all}
context: {kind: hierarchical}
sentence_stage: {updates: 3, batch_tokens: 200, validate_every: 3}
context_stage: {updates: 2, batch_tokens: 200, validate_every: 2}
"""
STUDY = """
name: toy
corpora: {talks: {dir: CORPUS, suites: {pronouns: CORPUS/contrast.jsonl}}}
metrics: [bleu, chrf]
beam: 1
trials: 50
speed_rounds: 0
threads: 1
rows:
  - {name: Transformer, recipe: recipe.yaml, overrides: [stage=sentence]}
  - {name: H-Attention, recipe: recipe.yaml}
  - {name: H-Attention, recipe: recipe.yaml, overrides: [context.integration=decoder, context.direction=online]}
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few documents: most of a study's time is in its parts, which have tests of their own."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(generate("small", 12, 1), folder)
    for split in ("dev", "test"):
        for side in ("en", "de"):
            path = folder / f"{split}.{side}"
            documents = path.read_text(encoding="utf-8").split("\n\n")
            path.write_text("\n\n".join(documents[:3]) + "\n", encoding="utf-8")
    suite = folder / "contrast.jsonl"
    suite.write_text("".join(f"{line}\n" for line in suite.read_text(encoding="utf-8").splitlines()[:10]))
    return folder


def study_file(folder: Path, corpus: Path, text: str = STUDY) -> Path:
    (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    path = folder / "study.yaml"
    path.write_text(text.replace("CORPUS", str(corpus)), encoding="utf-8")
    return path


def reproduce(*arguments: str | Path) -> dict[str, Any]:
    threads = torch.get_num_threads()
    try:
        command = ["reproduce", *map(str, arguments), "--json", "--quiet"]
        result = CliRunner().invoke(app, command, catch_exceptions=False)
    finally:
        torch.set_num_threads(threads)
    assert result.exit_code == 0
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("study")
    return folder, reproduce(study_file(folder, corpus), "-o", folder / "out")


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
    for name in ("train_model", "translate_test", "score_systems", "contrast_suite", "measure_models"):
        monkeypatch.setattr(work, name, _refuse)
    assert reproduce(folder / "study.yaml", "-o", folder / "out") == report


def _refuse(*_: object) -> None:
    raise AssertionError("done twice")


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
    for name in ("translate_test", "score_systems", "contrast_suite"):
        with monkeypatch.context() as patch:
            patch.setattr(work, name, _killed)
            with pytest.raises(ConnectionAbortedError):
                reproduce(path, "-o", tmp_path / "out")
        assert not (tmp_path / "out" / "tables.json").exists()
    assert reproduce(path, "-o", tmp_path / "out") == finished[1]
    assert len(trained) == len(set(trained)) == 3


def _killed(*_: object) -> None:
    raise ConnectionAbortedError


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


def test_a_step_whose_output_is_gone_is_done_again(tmp_path: Path) -> None:
    output, ledger, done = tmp_path / "output", Ledger(tmp_path), []

    def work_once() -> int:
        output.write_text("x")
        done.append(1)
        return len(done)

    step = Step("kind", "name", {"a": 1}, work_once, outputs=(output,))
    for _ in range(2):
        run_steps([step], ledger, lambda _: None)
    assert (len(done), ledger.result(step)) == (1, 1)
    output.unlink()
    run_steps([step], ledger, lambda _: None)
    assert ledger.result(step) == 2
    assert not ledger.done(Step("kind", "name", {"a": 2}, work_once, outputs=(output,)))
    assert not ledger.done(Step("kind", "name", {"a": 1}, work_once, [step], outputs=(output,)))


def test_a_dry_run_estimates_and_writes_nothing(tmp_path: Path) -> None:
    text = STUDY.replace("{dir: CORPUS, suites: {pronouns: CORPUS/contrast.jsonl}}", "{discourse: {documents: 20}}")
    study, rows = load_study(study_file(tmp_path, tmp_path, text))
    plan = plan_study(study, rows, tmp_path / "out")
    planned = estimate_plan(plan.steps, Ledger(tmp_path / "out"), lambda _: None)
    seconds = {(entry.step.kind): entry.seconds for entry in planned}
    assert [entry.step.kind for entry in planned][:4] == ["corpus", "stage 1", "stage 2", "stage 2"]
    assert all(seconds[kind] for kind in ("stage 1", "stage 2", "translate", "contrast"))
    assert not any(entry.done for entry in planned)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("recipe.yaml, overrides", "recipe.yaml, overides"), "unknown key 'overides'; did you mean 'overrides'?"),
        (("trials: 50", "trails: 50"), "unknown key 'trails'; did you mean 'trials'?"),
        (("bleu, chrf", "bleu, blue"), "unknown metric 'blue'"),
        (("name: toy", "name: toy\nbaseline: Nobody"), "baseline = 'Nobody' is no row"),
        (("H-Attention, recipe: recipe.yaml}", "Transformer, recipe: recipe.yaml, overrides: [stage=sentence]}"),
         "two rows are 'transformer'"),
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


def test_tables_are_escaped_and_marked() -> None:
    lines = [
        TableLine("A & B_1", [Cell("24.55", "‡", True), Cell("")]),
        TableLine("Online"),
        TableLine("items", [Cell("3"), Cell("4")]),
    ]
    table = Table("table1", "50% of >3", ["BLEU", ">3"], lines)
    text = latex([table])
    assert r"A \& B\_1 & \textbf{24.55}$^\ddagger$ &  \\" in text
    assert r"50\% of \textgreater{}3" in text
    assert "| A & B_1 | **24.55**‡ |  |" in markdown([table], "x")
    assert "| *Online* |  |  |" in markdown([table], "x")


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
