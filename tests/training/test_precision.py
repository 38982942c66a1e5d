"""Mixed precision on the CPU: taken where the processor has it, and then it learns the same."""

import math

import pytest
import torch

from weitblick.checkpoints.folder import load_model
from weitblick.common.recipe_files import load_recipe
from weitblick.training.run import train
from weitblick.training.update import half_precision


@pytest.mark.parametrize(
    ("precision", "device", "has", "taken"),
    [
        ("bfloat16", "cpu", True, torch.bfloat16),
        ("bfloat16", "cpu", False, None),
        ("float16", "cpu", True, None),
        ("float32", "cpu", True, None),
        ("bfloat16", "cuda", False, torch.bfloat16),
        ("float16", "cuda", False, torch.float16),
        ("float32", "cuda", True, None),
    ],
)
def test_half_precision_is_taken_where_it_pays(precision, device, has, taken, monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has)
    assert half_precision(precision, torch.device(device)) == taken


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_bfloat16_learns_what_float32_learns(dropout, recipe_file, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)

    def perplexity(precision: str) -> float:
        wishes = [f"data.dir={corpus}", f"output={tmp_path / precision}", "stage=sentence"]
        stage = [f"sentence_stage.precision={precision}", f"sentence_stage.dropout={dropout}"]
        model = load_model(train(load_recipe(recipe_file, [*wishes, *stage]), quiet=True))
        assert all(parameter.dtype == torch.float32 for parameter in model.model.parameters())
        return float(model.facts["dev_perplexity"])

    exact, half = perplexity("float32"), perplexity("bfloat16")
    assert exact != half
    assert math.isclose(exact, half, rel_tol=0.01)
