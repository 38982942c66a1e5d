"""`weitblick postedit` and `translate --memory` as a user meets them."""

from __future__ import annotations

import json

import pytest
import torch
from tiny_models import SECTION, SOURCES, TARGETS, tiny_pipeline, tiny_translation_model
from typer.testing import CliRunner

from weitblick.checkpoints.folder import save_model
from weitblick.cli.main import app
from weitblick.common.recipe import MemorySection
from weitblick.memory.pointer import MemoryPointer

METRICS = {"sacrebleu", "chrf", "ter"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models with and without a pointer, and two documents with references."""
    folder = tmp_path_factory.mktemp("postedit")
    torch.manual_seed(3)
    model = tiny_translation_model({"kind": "none"}, end=2.5)
    save_model(folder / "plain", model, tiny_pipeline(), SECTION, {})
    model.pointer = MemoryPointer(MemorySection(kind="pointer", dimension=8, candidates=3), 16)
    save_model(folder / "pointing", model, tiny_pipeline(), SECTION, {})
    for name, lines in (("d.en", SOURCES), ("d.de", TARGETS)):
        (folder / name).write_text("\n".join([*lines[1:3], "", *lines[2:]]) + "\n", encoding="utf-8")
    return folder


def call(folder, *arguments):
    result = CliRunner().invoke(app, [a.replace("@", str(folder) + "/") for a in arguments])
    return result


def test_postedit_reports_every_column(folder):
    result = call(folder, "postedit", "@d.en", "@d.de", "-m", "@pointing", "--beam", "1", "--trials", "20", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    names = {"none", "approved", "project", "random", "machine", "adapt", "terms", "both", "glossary"}
    assert set(report["follows"]) == names
    assert set(report["systems"]) == set(report["recall"]) == set(report["sticks"]) == names
    assert set(report["difference"]) == names - {"none"}
    assert set(report["over_random"]) == names - {"none", "random"}
    for of_metrics in report["difference"].values():
        assert set(of_metrics) == METRICS
        assert all({"value", "interval", "p"} <= figures.keys() for figures in of_metrics.values())
    for name in names:
        assert set(report["systems"][name]) == METRICS
        assert {"approved", "first"} <= report["recall"][name].keys()
        assert {"right", "cases"} <= report["sticks"][name].keys()


def test_postedit_is_a_table_for_people(folder, tmp_path):
    wishes = ["--beam", "1", "--trials", "20", "--systems", "approved", "-o", str(tmp_path / "out")]
    result = call(folder, "postedit", "@d.en", "@d.de", "-m", "@pointing", *wishes)
    assert result.exit_code == 0, result.output
    assert "approved" in result.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"none.txt", "approved.txt", "run.json"}


def test_a_run_that_was_interrupted_goes_on_with_the_rest(folder, tmp_path, monkeypatch):
    from weitblick.evaluation.postedit_systems import Simulation

    wishes = ["--beam", "1", "--trials", "20", "-o", str(tmp_path), "--json"]
    command = ["postedit", "@d.en", "@d.de", "-m", "@pointing", *wishes, "--systems"]
    whole = json.loads(call(folder, *command, "none,approved,random").stdout)
    for name in ("approved", "random"):
        (tmp_path / f"{name}.txt").unlink()
    translated, begun = Simulation.translate, []

    def watched(self, name, machine=None):
        begun.append(name)
        if name == "random" and begun.count(name) == 1:
            raise KeyboardInterrupt
        return translated(self, name, machine)

    monkeypatch.setattr(Simulation, "translate", watched)
    assert call(folder, *command, "none,approved,random").exit_code == 130
    again = json.loads(call(folder, *command, "none,approved,random").stdout)
    assert begun == ["approved", "random", "random"]
    assert again == whole
    other = json.loads(call(folder, *command[:-1], "--before", "1", "--systems", "none").stdout)
    assert begun[3:] == ["none"]  # another run
    assert other["before"] == 1


def test_a_stream_follows_terms_and_says_so(folder):
    (folder / "terms.tsv").write_text("report\tUnsinn\n", encoding="utf-8")
    options = ["-m", f"{folder}/pointing", "--glossary", f"{folder}/terms.tsv", "--beam", "1"]
    lines = "It is near.\nThe report.\n\nA report.\n"
    result = CliRunner().invoke(app, ["translate", "--stream", *options], input=lines)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("Unsinn") == 2
    assert "2 of 2 terms translated as it says" in result.stderr
    assert "report -> Unsinn (terms.tsv:1) followed in 2 of 2 places" in result.stderr


def test_empty_sentences_are_kept_as_well(folder, tmp_path, monkeypatch):
    from weitblick.evaluation.postedit_systems import Simulation

    for language, lines in (("en", SOURCES), ("de", TARGETS)):
        text = "\n".join(["<d>", *lines[:2], "", "<d>", "", *lines[2:4]]) + "\n"
        (tmp_path / f"d.{language}").write_text(text, encoding="utf-8")
    wishes = ["--systems", "none,approved", "--beam", "1", "--trials", "20", "-o", str(tmp_path / "out"), "--json"]
    command = ["postedit", f"{tmp_path}/d.en", f"{tmp_path}/d.de", "-m", "@pointing", *wishes]
    whole = json.loads(call(folder, *command).stdout)
    monkeypatch.setattr(Simulation, "translate", lambda *_: pytest.fail("was finished before"))
    assert json.loads(call(folder, *command).stdout) == whole


def test_an_input_is_not_written_over(folder, tmp_path):
    memory = tmp_path / "approved.txt"
    memory.write_text(f"{SOURCES[0]}\t{TARGETS[0]}\n", encoding="utf-8")
    options = ["-m", "@pointing", "--systems", "approved", "--memory", str(memory), "-o", str(tmp_path)]
    result = call(folder, "postedit", "@d.en", "@d.de", *options)
    assert "is an input, which is never written over" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["approved.txt"]


BAD = [
    (["translate", "@d.en", "-m", "@pointing", "--memory", "@d.en"], "no target side"),
    (["translate", "@d.en", "-m", "@pointing", "--memory", "@broken.tmx"], "broken.tmx:2"),
    (["translate", "@d.en", "-m", "@pointing", "--memory", "@empty.tsv"], "empty.tsv"),
    (["postedit", "@d.en", "-m", "@pointing"], "has no reference"),
    (["postedit", "@d.en", "@d.de", "-m", "@pointing", "--trials", "0"], "trials"),
    (["postedit", "@d.en", "@d.de", "-m", "@pointing", "--systems", "some"], "unknown system 'some'"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[row[1] for row in BAD])
def test_mistakes_are_one_line(folder, arguments, message, capsys):
    (folder / "m.tsv").write_text(f"1\t{SOURCES[0]}\t{TARGETS[0]}\n", encoding="utf-8")
    (folder / "broken.tmx").write_text('<tmx version="1.4">\n<body></tmx>\n', encoding="utf-8")
    (folder / "empty.tsv").write_text("", encoding="utf-8")
    from weitblick.common.errors import UserError

    result = call(folder, *arguments)
    assert result.exit_code != 0
    said = str(result.exception) if isinstance(result.exception, UserError) else result.output
    assert message in said
