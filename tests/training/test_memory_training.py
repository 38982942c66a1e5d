"""The memory stage: a pointer is trained beside a model, nothing else of which changes."""

import pytest
import torch

from tests.training.conftest import RECIPE
from weitblick.checkpoints.folder import load_model
from weitblick.common.errors import UserError
from weitblick.common.logs import read_log
from weitblick.common.recipe_files import load_recipe
from weitblick.memory.training import FIT_PASSES
from weitblick.training.run import train

SMALL = ["memory.dimension=8", "memory_stage.documents=24", "memory_stage.dev_documents=12"]


@pytest.fixture
def run(corpus, tmp_path):
    """Trains into a folder of this name."""
    (tmp_path / "recipe.yaml").write_text(RECIPE, encoding="utf-8")

    def run(name, *overrides):
        wishes = [f"data.dir={corpus}", f"output={tmp_path / name}", *overrides]
        return train(load_recipe(tmp_path / "recipe.yaml", wishes), quiet=True)

    return run


def test_a_pointer_is_trained_and_the_rest_left_alone(run, tmp_path):
    sentence = run("sentence", "stage=sentence", "sentence_stage.updates=3")
    first = run("memory", "stage=memory", f"stage1={sentence}", *SMALL)
    again = run("again", "stage=memory", f"stage1={sentence}", *SMALL)
    before, after, repeated = (load_model(folder) for folder in (sentence, first, again))
    assert before.model.pointer is None
    assert after.model.pointer is not None
    assert after.model.pointer.section.dimension == 8
    own = before.model.state_dict()
    assert all(torch.equal(value, after.model.state_dict()[name]) for name, value in own.items())
    pointer = after.model.pointer.state_dict()
    assert all(torch.equal(value, pointer[name]) for name, value in repeated.model.pointer.state_dict().items())
    bold = load_model(run("bold", "stage=memory", f"stage1={sentence}", *SMALL, "memory_stage.caution=0"))
    bolder = bold.model.pointer.state_dict()
    assert {name for name in pointer if not torch.equal(bolder[name], pointer[name])} == {"share.4.bias"}
    assert bolder["share.4.bias"].item() - pointer["share.4.bias"].item() == pytest.approx(0.8, abs=1e-3)
    told = [entry["kind"] for entry in read_log(tmp_path / "memory" / "memory" / "log.jsonl")]
    assert told == ["train"] * FIT_PASSES + ["dev"]
    assert {"memory_past_nats", "memory_project_nats", "memory_random_nats"} <= after.facts.keys()


def test_a_corpus_without_related_documents_says_so(run):
    sentence = run("sentence", "stage=sentence", "sentence_stage.updates=1")
    with pytest.raises(UserError, match="use order"):
        run("memory", "stage=memory", f"stage1={sentence}", *SMALL, "memory_stage.runs=related")


def test_the_memory_stage_needs_a_model(run):
    with pytest.raises(UserError, match="stage1"):
        run("run", "stage=memory")
