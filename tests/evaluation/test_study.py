"""A study does what is missing, once, and its tables say what its models did."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from weitblick.checkpoints.folder import load_model
from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.documents.discourse.generator import generate, write_corpus
from weitblick.evaluation import study_work as work
from weitblick.evaluation.study import load_study
from weitblick.evaluation.study_cost import estimate_plan
from weitblick.evaluation.study_plan import plan_study
from weitblick.evaluation.study_steps import Ledger, Step, devices_of, leave_torchrun, run_steps
from weitblick.evaluation.study_tables import Cell, Table, TableLine, _marks, _note, latex, markdown

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
  - {name: Transformer, recipe: recipe.yaml, overrides: [stage=sentence, context.kind=none]}
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
    for name in ("train_model", "translate_corpus", "score_systems", "contrast_suite", "measure_models"):
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


JUDGED = """
judged_on: [dev, test]
context_use: true
seeds: [1, 2]
first: [H-Attention]
baselines: {Continued: "°"}
stage1: {transformer: MODEL}
"""
CONTINUED = """
  - {name: Continued, recipe: recipe.yaml, overrides: [context.kind=none], continued: true}
"""


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory, corpus: Path, finished: tuple[Path, dict[str, Any]]) -> Path:
    """The toy study on a stage 1 that is given, with a continued row, two seeds, and everything judged."""
    model = next((finished[0] / "out" / "runs").glob("talks.transformer.*")) / "best"
    text = STUDY.replace("name: toy", f"name: larger{JUDGED.replace('MODEL', str(model))}") + CONTINUED
    text = text.replace("contrast.jsonl}", "contrast.jsonl}, suite_items: {pronouns: 4}")
    folder = tmp_path_factory.mktemp("larger")
    reproduce(study_file(folder, corpus, text), "-o", folder / "out")
    return folder


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


def test_a_row_is_judged_with_controls_on_dev_and_a_sample_of_the_suite(larger: Path) -> None:
    tables = json.loads((larger / "out" / "tables.json").read_text(encoding="utf-8"))["tables"]
    row = "h-attention-decoder-online"
    assert set(tables["table2"]["rows"][row]) == {"talks", "talks dev"}
    against = tables["table2"]["rows"][row]["talks"]["bleu"]["against"]
    assert {"difference", "p_randomisation"} <= set(against["Continued"])
    assert tables["table3"]["rows"][row][0]["own"]["items"] == 4
    use = tables["table5"]["rows"]
    assert len(use[row]) == 2
    assert {"cxmi", "own_over_random", "support"} <= set(use[row][0])
    assert "cxmi" not in use["continued"][0]


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


def test_some_rows_and_seeds_are_steps_of_the_whole_study(larger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("train_model", "translate_corpus", "contrast_suite", "measure_use"):
        monkeypatch.setattr(work, name, _refuse)
    before = (larger / "out" / "tables.json").read_text(encoding="utf-8")
    some = ["--rows", "h-attention-decoder-online", "--seeds", "2"]
    report = reproduce(larger / "study.yaml", "-o", larger / "out", *some)
    assert set(report["tables"]["table2"]["rows"]) == {"transformer", "h-attention-decoder-online"}
    assert report["seeds"] == [2]
    assert reproduce(larger / "study.yaml", "-o", larger / "out") == json.loads(before)


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


def test_the_folder_of_another_study_is_refused(finished: tuple[Path, dict[str, Any]], corpus: Path) -> None:
    folder, _ = finished
    with pytest.raises(UserError) as caught:
        reproduce(folder / "study.yaml", "name=other", "-o", folder / "out")
    assert "holds the study 'toy', not 'other'" in str(caught.value)


def test_tables_of_what_is_finished_are_made_without_training(
    larger: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(larger, tmp_path / "part")
    for path in (tmp_path / "part" / "out" / "steps").glob("context-use.talks.continued.seed2.json"):
        path.unlink()
    for name in ("train_model", "translate_corpus", "contrast_suite", "measure_use"):
        monkeypatch.setattr(work, name, _refuse)
    both = reproduce(tmp_path / "part" / "study.yaml", "-o", tmp_path / "part" / "out", "--finished")
    assert "continued" not in both["tables"]["table1"]["rows"]
    one = reproduce(tmp_path / "part" / "study.yaml", "-o", tmp_path / "part" / "out", "--finished", "--seeds", "1")
    assert "continued" in one["tables"]["table1"]["rows"]
    with pytest.raises(UserError, match="no row is finished"):
        reproduce(tmp_path / "part" / "study.yaml", "-o", tmp_path / "new", "--finished")


def test_marks_name_every_baseline_that_a_row_is_better_than(tmp_path: Path, corpus: Path) -> None:
    text = STUDY.replace("name: toy", 'name: toy\nbaselines: {H-Attention: "★", Transformer: "♢"}')
    study, _ = load_study(study_file(tmp_path, corpus, text))
    better, equal = {"difference": 1.0, "p_randomisation": 0.01}, {"difference": 1.0, "p_randomisation": 0.2}
    worse = {"difference": -1.0, "p_randomisation": 0.01}
    found = {"mark": "‡", "against": {"H-Attention": better, "Transformer": better}}
    assert _marks(found, study) == "‡♣"
    assert _marks({**found, "against": {"H-Attention": better, "Transformer": equal}}, study) == "‡★"
    assert _marks({**found, "against": {"H-Attention": worse, "Transformer": better}}, study) == "‡♢"
    assert "tests by document" in _note(study)


def test_processes_share_the_steps_of_a_study(
    tmp_path: Path, corpus: Path, finished: tuple[Path, dict[str, Any]]
) -> None:
    """Two jobs of a process each: what they leave is what one process leaves."""
    path = study_file(tmp_path, corpus)
    command = [sys.executable, "-m", "weitblick", "reproduce", str(path), "-o", str(tmp_path / "out"), "--jobs", "2"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == finished[1]
    steps = [line.split("] ")[1].split(": done in")[0] for line in done.stderr.splitlines() if ": done in" in line]
    assert len(steps) == len(set(steps)) == len(list((tmp_path / "out" / "steps").glob("*.json")))


def test_jobs_that_are_killed_leave_what_the_next_ones_finish(
    tmp_path: Path, corpus: Path, finished: tuple[Path, dict[str, Any]]
) -> None:
    """Killed without a chance to tell its jobs, which go on, then asked to stop while others work on the folder."""
    path, out = study_file(tmp_path, corpus), tmp_path / "out"
    command = [sys.executable, "-m", "weitblick", "reproduce", str(path), "-o", str(out), "--jobs", "2", "--quiet"]
    for stop in (signal.SIGKILL, signal.SIGTERM):
        started = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        before = len(list(out.glob("steps/*.json")))
        while started.poll() is None and len(list(out.glob("steps/*.json"))) <= before:
            time.sleep(0.05)
        started.send_signal(stop)
        assert started.wait() in (-stop, 130)  # the second one may come before anybody listens
    assert not (out / "tables.json").exists()
    assert reproduce(path, "-o", out) == finished[1]


def test_a_claimed_step_is_left_to_whoever_has_it(tmp_path: Path) -> None:
    """Threads stand for processes: a lock belongs to an open file."""
    ledger, done = Ledger(tmp_path), []
    slow = Step("kind", "slow", {}, lambda: (time.sleep(0.5), done.append("slow"))[1])
    quick = Step("kind", "quick", {}, lambda: done.append("quick"))
    last = Step("kind", "last", {}, lambda: done.append("last"), [slow, quick])
    with ThreadPoolExecutor(2) as pool:
        for work_of_one in [pool.submit(run_steps, [slow, quick, last], ledger, lambda _: None) for _ in range(2)]:
            work_of_one.result()
    assert sorted(done) == ["last", "quick", "slow"]
    assert done[-1] == "last"


def test_a_job_that_fails_ends_the_others(tmp_path: Path, corpus: Path) -> None:
    text = STUDY.replace("contrast.jsonl", "broken.jsonl").replace("CORPUS", str(tmp_path / "corpus"))
    shutil.copytree(corpus, tmp_path / "corpus")
    (tmp_path / "corpus" / "broken.jsonl").write_text("{}\n", encoding="utf-8")
    path = study_file(tmp_path, corpus, text)
    command = [sys.executable, "-m", "weitblick", "reproduce", str(path), "-o", str(tmp_path / "out"), "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "broken.jsonl" in done.stderr
    assert not (tmp_path / "out" / "tables.json").exists()


def test_under_torchrun_one_process_works_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for rank, works in (("0", True), ("1", False)):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert leave_torchrun() is works
        assert "WORLD_SIZE" not in os.environ


def test_every_gpu_has_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices_of("cpu", None) == ["cpu"]
    assert devices_of("cpu", 3) == ["cpu"] * 3
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices_of("auto", None) == ["cuda:0", "cuda:1"]
    assert devices_of("cuda", 3) == ["cuda:0", "cuda:1", "cuda:0"]
    assert devices_of("cuda:1", None) == ["cuda:1"]


def test_without_its_corpus_a_study_tells_no_time(tmp_path: Path) -> None:
    study, rows = load_study(study_file(tmp_path, tmp_path / "nowhere"))
    plan = plan_study(study, rows, tmp_path / "out")
    planned = estimate_plan(plan.steps, Ledger(tmp_path / "out"), "cpu", lambda _: None)
    assert all(entry.seconds is None for entry in planned)
    assert any(entry.step.timed for entry in planned)


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
    planned = estimate_plan(plan.steps, Ledger(tmp_path / "out"), "cpu", lambda _: None)
    seconds = {(entry.step.kind): entry.seconds for entry in planned}
    kinds = [entry.step.kind for entry in planned]
    assert kinds[:5] == ["corpus", "stage 1", "contrast", "stage 2", "contrast"]
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
