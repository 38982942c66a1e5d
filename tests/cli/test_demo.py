"""The demo from its first line to its last, on a corpus and models as small as can be."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from weitblick import demo
from weitblick.common.errors import UserError

SMALL = [
    *("text.merges=200", "model.dimension=16", "model.feed_forward=32", "model.encoder_layers=1"),
    *("model.decoder_layers=1", "sentence_stage.updates=2", "sentence_stage.validate_every=2"),
    *("context_stage.updates=2", "context_stage.validate_every=2"),
]


def run(folder: Path) -> tuple[demo.Figures, str]:
    console = Console(file=io.StringIO(), width=200)
    return demo.run_demo(folder, console), console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("short_splits")
def test_the_demo_runs_and_reads_its_figures_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = demo.load_recipe

    def load_recipe(path: Any, overrides: Any = ()) -> Any:
        return original(path, [*overrides, *SMALL])

    monkeypatch.setattr(demo, "load_recipe", load_recipe)
    monkeypatch.setattr(demo, "DOCUMENTS", 40)
    monkeypatch.setattr(demo, "BLEU_DOCUMENTS", 2)
    figures, shown = run(tmp_path)
    assert [row.context for row in figures.rows] == ["removed", "own", "removed", "random"]
    assert "Sie muss geschlossen werden." in shown  # the shipped model: die Tür, not what it would say without context
    assert (tmp_path / "report.html").is_file()

    def never(*_: Any) -> None:
        raise AssertionError("what is there already is made again")

    monkeypatch.setattr(demo, "judge_suite", never)
    again, _ = run(tmp_path)
    assert again == figures

    (tmp_path / "figures.json").write_text('{"format_version": 1, "rows": []}', encoding="utf-8")
    with pytest.raises(UserError, match="delete it"):
        run(tmp_path)
