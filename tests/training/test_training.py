"""Training: resumed equals undisturbed, byte for byte; several processes equal one; mistakes are named."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.patience import PATIENCE
from weitblick.checkpoints.folder import build, load_model, read_weights
from weitblick.common import logs
from weitblick.common.errors import UserError
from weitblick.common.process import join_world
from weitblick.common.recipe import ContextSection, ModelSection, StageSection
from weitblick.common.recipe_files import load_recipe
from weitblick.model.context_module import ContextOptions
from weitblick.training.batching import document_plans, load_batch, load_documents
from weitblick.training.run import TRANSLATIONS, train
from weitblick.training.stage import StageRun
from weitblick.training.store import CorpusStore
from weitblick.training.update import Optimiser
from weitblick.training.validation import other_documents, validate


def run(recipe_file, corpus, output, *overrides):
    return train(load_recipe(recipe_file, [f"data.dir={corpus}", f"output={output}", *overrides]), quiet=True)


def start(recipe_file, corpus, output, *overrides, torchrun=0):
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={torchrun}"] if torchrun else []
    command = [sys.executable, *launcher, "-m", "weitblick", "train", str(recipe_file)]
    command += [f"data.dir={corpus}", f"output={output}", *overrides]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def losses(output: Path, stage="context", kind="dev", key="dev_loss"):
    lines = (output / stage / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [(e["update"], e[key]) for e in map(json.loads, lines) if e["kind"] == kind]


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    from tests.conftest import DRAW_CURVES
    from tests.training.conftest import RECIPE

    (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "draw_curves", DRAW_CURVES)
        run(folder / "recipe.yaml", corpus, folder / "run")
    return folder / "run"


def test_a_run_leaves_a_model_logs_curves_and_a_manifest(undisturbed):
    loaded = load_model(undisturbed / "best")
    assert loaded.context_section.kind == "hierarchical"
    assert (undisturbed / "context" / "curves.png").stat().st_size > 1000
    assert any((undisturbed / "context" / "tensorboard").iterdir())
    manifest = json.loads((undisturbed / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["format_version"] == 1
    assert manifest["data"]["train"]
    figures = [json.loads(line) for line in (undisturbed / "context" / "log.jsonl").read_text().splitlines()]
    dev = [f for f in figures if f["kind"] == "dev"]
    assert {"dev_perplexity_without_context", "dev_perplexity_random_context", "context_share", "support"} <= dev[
        -1
    ].keys()
    assert [d["update"] for d in dev] == sorted({d["update"] for d in dev})


def test_controls_read_the_context_of_another_document_even_in_one_batch(undisturbed):
    """All of dev in one batch gives what its documents give one by one, by hand."""
    model, store = load_model(undisturbed / "best").model, CorpusStore(undisturbed / "data" / "dev")
    together = document_plans([store], 1_000_000, 0, 0)
    assert len(together) == 1
    found = validate(model, store, together, 1, join_world("cpu"))
    partners = other_documents(store, 1)
    assert (partners != np.arange(len(store))).all()
    own = random = none = tokens = 0.0
    with torch.no_grad():
        for plan in document_plans([store], 1_000_000, 0, 0, batch_documents=1):
            batch = load_batch([store], plan)
            other = load_documents(store, [int(partners[plan.parts[0].document])])
            nobody = ContextOptions(use=torch.zeros(batch.current.sentences, dtype=torch.bool))
            labels = batch.current.labels
            own -= float(model(batch).words.log_probabilities(labels).sum())
            none -= float(model(batch, nobody).words.log_probabilities(labels).sum())
            context = model.offer(other.source, other.target)
            random -= float(model(batch, context=context).words.log_probabilities(labels).sum())
            tokens += len(labels)
    assert found.loss == pytest.approx(own / tokens, abs=1e-5)
    assert found.controls.loss_without == pytest.approx(none / tokens, abs=1e-5)
    assert found.controls.loss_random == pytest.approx(random / tokens, abs=1e-5)
    assert abs(random - own) / tokens > 1e-6


@pytest.mark.parametrize(("integration", "decoded"), [("encoder", 3), ("decoder", 2)])
def test_validation_runs_the_sentence_model_once_for_all_its_controls(integration, decoded, undisturbed, monkeypatch):
    """Once for dev, once for the other documents; what reads context in the encoder is decoded for each control."""
    store = CorpusStore(undisturbed / "data" / "dev")
    pipeline = load_model(undisturbed / "best").pipeline
    sizes = len(pipeline.source_vocabulary), len(pipeline.target_vocabulary)
    section = ContextSection(kind="sentence", integration=integration, gate_start=0.0)
    model = build(ModelSection(dimension=16, heads=2, feed_forward=16), section, *sizes).eval()
    plans = document_plans([store], 1_000_000, 0, 0)
    batch = load_batch([store], plans[0])
    nobody = ContextOptions(use=torch.zeros(batch.current.sentences, dtype=torch.bool))
    other = load_documents(store, [int(other_documents(store, 1)[part.document]) for part in plans[0].parts])
    with torch.no_grad():
        outputs = [model(batch), model(batch, nobody), model(batch, context=model.offer(other.source, other.target))]
    apart = [-float(output.words.log_probabilities(batch.current.labels).double().mean()) for output in outputs]
    calls = []
    for name in ("encode", "decode"):
        run = getattr(model.sentence, name)
        monkeypatch.setattr(
            model.sentence, name, lambda *given, run=run, name=name: (calls.append(name), run(*given))[1]
        )
    found = validate(model, store, plans, 1, join_world("cpu"))
    assert (calls.count("encode"), calls.count("decode")) == (2, decoded)
    assert [found.loss, found.controls.loss_without, found.controls.loss_random] == pytest.approx(apart, abs=1e-7)
    assert len(set(apart)) == 3


@pytest.mark.parametrize(("stage", "update"), [("sentence", 6), ("context", 7)])
def test_stopped_and_resumed_equals_undisturbed(undisturbed, recipe_file, corpus, tmp_path, monkeypatch, stage, update):
    class Killed(BaseException):
        pass

    step = StageRun._update

    def dying(self, plans):
        if self.task.folder.name == stage and self.progress.update == update:
            raise Killed
        return step(self, plans)

    monkeypatch.setattr(StageRun, "_update", dying)
    with pytest.raises(Killed):
        run(recipe_file, corpus, tmp_path / "run")
    monkeypatch.setattr(StageRun, "_update", step)
    run(recipe_file, corpus, tmp_path / "run")
    for name in ("best/model.safetensors", "sentence/model/model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (undisturbed / name).read_bytes()
    assert losses(tmp_path / "run") == losses(undisturbed)


@pytest.mark.slow
def test_killed_by_the_system_it_resumes_to_the_same_bytes(undisturbed, recipe_file, corpus, tmp_path):
    process = start(recipe_file, corpus, tmp_path / "run")
    deadline = time.monotonic() + PATIENCE
    while not list((tmp_path / "run").glob("context/state-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    again = start(recipe_file, corpus, tmp_path / "run")
    _, errors = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, errors
    name = "best/model.safetensors"
    assert (tmp_path / "run" / name).read_bytes() == (undisturbed / name).read_bytes()


@pytest.mark.slow
def test_two_processes_equal_one_on_the_same_global_batch(recipe_file, corpus, tmp_path):
    still = [f"{stage}.{key}" for stage in ("sentence_stage", "context_stage") for key in ("dropout=0.0",)]
    still += ["context.dropout=0.0", "context_stage.context_dropout=0", "context_stage.source_word_dropout=0"]
    pair = start(recipe_file, corpus, tmp_path / "two", *still, torchrun=2)
    _, errors = pair.communicate(timeout=PATIENCE)
    assert pair.returncode == 0, errors
    run(recipe_file, corpus, tmp_path / "one", *still, "sentence_stage.accumulate=2", "context_stage.accumulate=2")
    for stage in ("sentence", "context"):
        one, two = losses(tmp_path / "one", stage), losses(tmp_path / "two", stage)
        assert [update for update, _ in one] == [update for update, _ in two]
        for (_, a), (_, b) in zip(one, two, strict=True):
            assert a == pytest.approx(b, abs=1e-4)


def test_a_finished_run_is_not_run_again(undisturbed, recipe_file, corpus, monkeypatch):
    monkeypatch.setattr(StageRun, "_update", lambda *_: pytest.fail("trained again"))
    before = (undisturbed / "best" / "model.safetensors").read_bytes()
    run(recipe_file, corpus, undisturbed)
    assert (undisturbed / "best" / "model.safetensors").read_bytes() == before


def test_a_changed_recipe_on_resume_shows_the_difference(undisturbed, recipe_file, corpus):
    with pytest.raises(UserError, match="batch_tokens: 300 -> 301"):
        run(recipe_file, corpus, undisturbed, "context_stage.batch_tokens=301")


def test_a_key_of_an_older_version_that_was_not_used_does_not_stop_a_run(undisturbed, recipe_file, corpus, tmp_path):
    shutil.copytree(undisturbed, tmp_path / "run")
    manifest = tmp_path / "run" / "manifest.json"
    for value in (0.0, 0.3):
        old = json.loads((undisturbed / "manifest.json").read_text(encoding="utf-8"))
        old["recipe"]["context_stage"]["gone"] = value
        manifest.write_text(json.dumps(old), encoding="utf-8")
        if value:
            with pytest.raises(UserError, match=r"context_stage\.gone: 0\.3 -> null"):
                run(recipe_file, corpus, tmp_path / "run")
        else:
            run(recipe_file, corpus, tmp_path / "run")


def test_stage_one_of_another_run_can_be_shared(undisturbed, recipe_file, corpus, tmp_path):
    stage1 = undisturbed / "sentence" / "model"
    frozen = ["context.states=frozen", f"stage1={stage1}", "context_stage.updates=4", "stage=context"]
    best = run(recipe_file, corpus, tmp_path / "run", *frozen)
    loaded = load_model(best).model
    expected = load_model(stage1).model.sentence.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in loaded.frozen.state_dict().items())
    assert not (tmp_path / "run" / "sentence").exists()


def test_a_stage_one_of_another_architecture_is_refused(undisturbed, recipe_file, corpus, tmp_path):
    stage1 = undisturbed / "sentence" / "model"
    with pytest.raises(UserError, match="another architecture"):
        run(recipe_file, corpus, tmp_path / "run", f"stage1={stage1}", "stage=context", "model.feed_forward=48")


def test_the_sentence_model_is_held_for_the_first_updates(undisturbed, recipe_file, corpus, tmp_path):
    stage1 = undisturbed / "sentence" / "model"
    held = ["stage=context", f"stage1={stage1}", "context_stage.updates=4", "context_stage.hold_sentence_model=4"]
    run(recipe_file, corpus, tmp_path / "run", *held)
    state = next((tmp_path / "run" / "context").glob("state-*"))
    weights = read_weights(state / "weights.safetensors")
    before = {f"sentence.{k}": v for k, v in load_model(stage1).model.sentence.state_dict().items()}
    assert all(torch.equal(value, before[name]) for name, value in weights.items() if name.startswith("sentence."))
    assert any(name.startswith("context.") for name in weights)


def test_the_gate_is_held_at_its_start(undisturbed, recipe_file, corpus, tmp_path):
    stage1 = undisturbed / "sentence" / "model"
    common = ["stage=context", f"stage1={stage1}", "context_stage.updates=4", "context.gate_start=2.0"]
    biases = []
    for held in (4, 3):
        run(recipe_file, corpus, tmp_path / str(held), *common, f"context_stage.hold_gate={held}")
        state = next((tmp_path / str(held) / "context").glob("state-*"))
        biases.append(read_weights(state / "weights.safetensors")["context.gate.bias"])
    assert (biases[0] == 2.0).all()
    assert (biases[1] != 2.0).any()


def test_a_loss_that_is_not_finite_stops_and_keeps_the_state(recipe_file, corpus, tmp_path):
    with pytest.raises(UserError, match=r"not finite at update .*sentences"):
        run(recipe_file, corpus, tmp_path / "run", "sentence_stage.learning_rate=1e30", "sentence_stage.save_every=1")
    assert list((tmp_path / "run" / "sentence").glob("state-*"))


def test_missing_corpora_and_damaged_models_are_named(recipe_file, undisturbed, corpus, tmp_path):
    with pytest.raises(UserError, match=r"nowhere/train\.en: no such file"):
        run(recipe_file, tmp_path / "nowhere", tmp_path / "run")
    with pytest.raises(UserError, match="no such model folder"):
        run(recipe_file, corpus, tmp_path / "run", f"stage1={tmp_path / 'none'}")
    import shutil

    shutil.copytree(undisturbed / "best", tmp_path / "cut")
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"model\.safetensors: is not the file that was saved"):
        load_model(tmp_path / "cut")
    weights.unlink()
    with pytest.raises(UserError, match=r"model\.safetensors: missing"):
        load_model(tmp_path / "cut")


@pytest.mark.slow
def test_ctrl_c_stops_cleanly_and_can_be_resumed(recipe_file, corpus, tmp_path):
    process = start(
        recipe_file, corpus, tmp_path / "run", "sentence_stage.updates=100000", "sentence_stage.patience=9999"
    )
    deadline = time.monotonic() + PATIENCE
    while not list((tmp_path / "run").glob("sentence/state-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "the same command goes on from there" in errors
    assert "Traceback" not in errors


def test_a_run_can_be_finished_where_it_stands(recipe_file, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(StageRun, "_update", lambda *_: pytest.fail("trained on"))
    recipe = load_recipe(recipe_file, [f"data.dir={corpus}", f"output={tmp_path / 'run'}", "stage=sentence"])
    best = train(recipe, quiet=True, finish=True)
    assert "ended by hand after 0 updates" in load_model(best).facts["stopped_because"]


def test_stage_one_of_another_run_is_trained_on(undisturbed, recipe_file, corpus, tmp_path):
    stage1 = undisturbed / "sentence" / "model"
    best = run(recipe_file, corpus, tmp_path / "run", "stage=sentence", f"stage1={stage1}", "sentence_stage.updates=3")
    log = (tmp_path / "run" / "sentence" / "log.jsonl").read_text().splitlines()
    first = json.loads(log[0])
    old = load_model(stage1).facts["dev_perplexity"]
    assert first["update"] == 0
    assert first["dev_perplexity"] == pytest.approx(old, rel=1e-3)
    assert not torch.equal(
        load_model(best).model.sentence.target_table.weight, load_model(stage1).model.sentence.target_table.weight
    )


def test_a_context_aware_model_is_trained_on(undisturbed, recipe_file, corpus, tmp_path):
    old = undisturbed / "best"
    common = ["stage=context", f"stage1={old}", "context_stage.updates=1", "context_stage.learning_rate=1e-9"]
    kept = load_model(run(recipe_file, corpus, tmp_path / "same", *common)).model
    expected = load_model(old).model.state_dict()
    assert all(torch.allclose(value, expected[name], atol=1e-6) for name, value in kept.state_dict().items())
    other = load_model(run(recipe_file, corpus, tmp_path / "other", *common, "context.integration=decoder")).model
    assert not torch.allclose(other.context.inner.weight, kept.context.inner.weight)


@pytest.mark.parametrize("wish", ["translation", "mixed"])
def test_translations_as_target_context(undisturbed, recipe_file, corpus, tmp_path, wish):
    common = ["stage=context", f"stage1={undisturbed / 'sentence' / 'model'}", "context.integration=decoder"]
    more = [f"context_stage.target_context={wish}", "context_stage.updates=12", "context.values=words"]
    best = run(recipe_file, corpus, tmp_path / "run", *common, *more)
    assert load_model(best).model.section.values == "words"
    own = CorpusStore(tmp_path / "run" / "data" / "train")
    read = CorpusStore(next((tmp_path / TRANSLATIONS).glob("train-*")))
    assert np.array_equal(own.ids["source"], read.ids["source"])
    same = [
        all(np.array_equal(own.sentence("target", i), read.sentence("target", i)) for i in own.document(number))
        for number in range(len(own))
    ]
    assert not any(same)


def test_a_stage_may_end_with_its_last_weights(recipe_file, corpus, tmp_path):
    common = ["stage=sentence", "sentence_stage.updates=6", "sentence_stage.average=1", "sentence_stage.save_every=6"]
    best = run(recipe_file, corpus, tmp_path / "run", *common, "sentence_stage.result=last")
    state = read_weights(tmp_path / "run" / "sentence" / "state-000000006" / "weights.safetensors")
    saved = load_model(best).model.state_dict()
    assert all(torch.equal(saved[name], value) for name, value in state.items())


def test_whoever_keeps_something_of_a_weight_sees_that_it_was_trained():
    """Packed weights of the kernels are made anew when a weight's version changes; fused Adam leaves it as it is."""
    model = build(ModelSection(dimension=16, heads=2, feed_forward=16), ContextSection(), 10, 10)
    optimiser = Optimiser(model, StageSection())
    for parameter in optimiser.parameters:
        parameter.grad = torch.ones_like(parameter)
    before = [parameter._version for parameter in optimiser.parameters]
    optimiser.step(1.0)
    assert all(p._version > version for p, version in zip(optimiser.parameters, before, strict=True))
