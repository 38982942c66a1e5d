"""`weitblick complexity`: rows in JSON and as a table, measured speeds, and mistakes named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.evaluation.complexity import read_candidate
from weitblick.evaluation.speed import Workload, measure_speed

TINY = """
text: {kind: sentencepiece, merges: 60, joint_vocabulary: true}
model: {dimension: 16, feed_forward: 32, encoder_layers: 1, decoder_layers: 1, heads: 2, tied_embeddings: all}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


def rows(*arguments: str) -> list[dict]:
    result = CliRunner().invoke(app, ["complexity", *arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)["models"]


def test_rows_of_the_paper_in_json() -> None:
    found = {row["model"]: row["parameters"] for row in rows("--paper")}
    assert all(isinstance(parameters, int) for parameters in found.values())
    assert (found["Transformer"], found["Zhang:18"]) == (50_040_328, 59_486_216)


def test_any_recipe_at_any_size(recipe: Path) -> None:
    (small,) = rows(str(recipe))
    (large,) = rows(str(recipe), "model.dimension=32", "--target-vocabulary", "100")
    assert small["model"] == "tiny"
    assert small["parts"]["target embedding"] == 60 * 16
    assert large["parts"]["target embedding"] == 100 * 32
    assert "source embedding" not in small["parts"]  # one table for both sides
    assert small["parameters"] == sum(small["parts"].values())


def test_the_table_has_a_line_for_each_model(recipe: Path) -> None:
    result = CliRunner().invoke(app, ["complexity", str(recipe), "--paper"], catch_exceptions=False)
    assert len(result.stdout.strip().splitlines()) == 1 + 8 + 1
    assert "50,040,328" in result.stdout


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
def test_speed_of_every_kind(recipe: Path, integration: str) -> None:
    kinds = ["none", "sentence", "word", "hierarchical", "zhang", "han"]
    candidates = [read_candidate(recipe, [f"context.kind={k}", f"context.integration={integration}"]) for k in kinds]
    candidates.append(read_candidate(recipe, ["model.architecture=rnnsearch"]))
    speeds = measure_speed(candidates, Workload(documents=2, sentences=3, words=4, beam=2), rounds=1)
    assert len(speeds) == len(candidates)
    assert (speeds[0].training_share, speeds[0].decoding_share) == (1.0, 1.0)
    assert [speed.model for speed in speeds] == [candidate.name for candidate in candidates]
    for speed in speeds:
        assert min(speed.training, speed.decoding) > 0


def test_speed_is_of_the_same_work_and_a_share_of_the_first(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that we move: the first model takes a second for everything, the second two."""
    from weitblick.evaluation import speed

    seconds = {"none": 1.0, "han": 2.0}
    monkeypatch.setattr(speed._Run, "train", lambda run: 120 / seconds[run.model.section.kind])
    monkeypatch.setattr(speed._Run, "decode", lambda run: 60 / seconds[run.model.section.kind])
    candidates = [read_candidate(recipe, [f"context.kind={kind}"]) for kind in seconds]
    first, second = measure_speed(candidates, Workload(documents=1, sentences=2, words=3), rounds=3)
    assert (first.training, first.decoding, second.training, second.decoding) == (120, 60, 60, 30)
    assert (second.training_share, second.decoding_share) == (0.5, 0.5)


def test_speed_on_the_command_line(recipe: Path) -> None:
    options = ["--speed", "--rounds", "1", "--documents", "1", "--sentences", "2", "--words", "3"]
    (row,) = rows(str(recipe), "context.kind=han", *options)
    assert row["training_share"] == row["decoding_share"] == 1.0
    assert row["training_words_per_second"] > 0


def test_the_same_text_for_every_vocabulary() -> None:
    lengths = [[len(s) for d in Workload().texts(size, 0) for s in d] for size in (50, 5000)]
    assert lengths[0] == lengths[1]
    words = [word for d in Workload().texts(50, 0) for s in d for word in s]
    assert (min(words), max(words)) == (4, 49)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.heads=2"], "no recipe to change"),
        (["--paper", "model.heads=2"], "no recipe to change"),
        (["absent.yaml"], "no such file"),
        (["."], "not a recipe; name a model with -m"),
        (["-m", "."], "not a model folder"),
        (["RECIPE", "model.dimesion=3"], "did you mean 'model.dimension'"),
        (["RECIPE", "text.joint_vocabulary=false"], "needs text.joint_vocabulary: true"),
        (["RECIPE", "--source-vocabulary", "50", "--target-vocabulary", "60"], "50 and 60 types"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str, recipe: Path) -> None:
    given = [str(recipe) if argument == "RECIPE" else argument for argument in arguments]
    with pytest.raises(UserError, match=message):
        CliRunner().invoke(app, ["complexity", *given], catch_exceptions=False)
