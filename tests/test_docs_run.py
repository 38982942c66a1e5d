"""The tutorial and the Python page are run: every command and every snippet, as they stand, on a smaller corpus.

What is left out needs another program (torchrun, TensorBoard, a browser), and is only parsed, by test_docs.py.
"""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import weitblick
import weitblick.common.recipe_files
import weitblick.evaluation.study
from tests.test_docs import ROOT, SHELLS, blocks
from weitblick.cli.main import app

OTHER_PROGRAMS = ("torchrun", "tensorboard", "make", "source", "pip", "curl", "#")
SMALLER = {"3000": "60"}  # documents
SMALLER_RECIPE = [
    "text.merges=200",
    *("model.dimension=16", "model.feed_forward=32", "model.encoder_layers=1", "model.decoder_layers=1"),
    *(f"{stage}_stage.{key}=2" for stage in ("sentence", "context") for key in ("updates", "validate_every", "warmup")),
]
FINDINGS = 1  # the exit code of `data check` if it found anything


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_splits: None) -> Path:
    """An empty folder in which recipes are as small as can be."""
    monkeypatch.chdir(tmp_path)
    original = weitblick.common.recipe_files.load_recipe

    def load_recipe(path: Any, overrides: Any = ()) -> Any:
        return original(path, [*overrides, *SMALLER_RECIPE])

    for module in (weitblick.common.recipe_files, weitblick.evaluation.study):
        monkeypatch.setattr(module, "load_recipe", load_recipe)
    return tmp_path


def run_line(line: str) -> None:
    """A line of shell: a pipeline of commands, ours in this process, and where its output goes."""
    line, _, target = line.partition(" > ")
    data = b""
    for part in line.split(" | "):
        words = [SMALLER.get(word, word) for word in shlex.split(part, comments=True)]
        if words[0] != "weitblick":
            data = subprocess.run(words, input=data, capture_output=True, check=True).stdout
            continue
        result = CliRunner().invoke(app, words[1:], input=data)
        fine = {0, FINDINGS} if words[1:3] == ["data", "check"] else {0}
        assert result.exit_code in fine, f"{line}\n{result.output}\n{result.exception!r}"
        data = result.stdout_bytes
    if target:
        Path(target).write_bytes(data)


def run_page(page: Path) -> int:
    lines = [line for block in blocks(page, *SHELLS) for line in block.splitlines()]
    chosen = [line for line in lines if line.strip() and not line.startswith(OTHER_PROGRAMS)]
    for line in chosen:
        run_line(line)
    return len(chosen)


@pytest.mark.slow
def test_the_tutorial_runs_as_it_stands(small: Path) -> None:
    assert run_page(ROOT / "docs" / "tutorial.md") > 30
    assert (small / "report.html").stat().st_size > 10_000
    assert (small / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert len((small / "encoder.de").read_text().splitlines()) == len(
        (small / "corpora" / "mine" / "test.en").read_text().splitlines()
    )


@pytest.mark.slow
def test_the_python_page_runs_as_it_stands(small: Path) -> None:
    page = ROOT / "docs" / "python-api.md"
    run_page(page)
    names: dict[str, Any] = {}
    for snippet in blocks(page, "python"):
        exec(compile(snippet, page.name, "exec"), names)
    assert (small / "report.html").exists()
    assert (small / "letter.jsonl").exists()
