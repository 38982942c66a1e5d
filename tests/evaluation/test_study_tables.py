"""The tables of a study: what stands in them, and which rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from study_samples import STUDY, refuse, reproduce, study_file

from weitblick.common.errors import UserError
from weitblick.evaluation import study_work as work
from weitblick.evaluation.study import load_study
from weitblick.evaluation.study_tables import Cell, Table, TableLine, _marks, _note, latex, markdown


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


def test_tables_of_what_is_finished_are_made_without_training(
    larger: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(larger, tmp_path / "part")
    for path in (tmp_path / "part" / "out" / "steps").glob("context-use.talks.continued.seed2.json"):
        path.unlink()
    for name in ("train_model", "translate_corpus", "contrast_suite", "measure_use"):
        monkeypatch.setattr(work, name, refuse)
    both = reproduce(tmp_path / "part" / "study.yaml", "-o", tmp_path / "part" / "out", "--finished")
    assert "continued" not in both["tables"]["table1"]["rows"]
    one = reproduce(tmp_path / "part" / "study.yaml", "-o", tmp_path / "part" / "out", "--finished", "--seeds", "1")
    assert "continued" in one["tables"]["table1"]["rows"]
    with pytest.raises(UserError, match="no row is finished"):
        reproduce(tmp_path / "part" / "study.yaml", "-o", tmp_path / "new", "--finished")


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
