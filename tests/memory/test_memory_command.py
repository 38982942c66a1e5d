"""`weitblick memory`: pairs go in, are changed, taken out and written; matches are drafts with their difference."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from weitblick.cli.main import app
from weitblick.common.errors import UserError
from weitblick.memory.store import Memory


def call(*arguments) -> str:
    result = CliRunner().invoke(app, ["memory", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.tsv").write_text("The quota is low.\tDie Quote ist niedrig.\nYes.\tJa.\n", encoding="utf-8")
    assert "2 pairs, 2 of 2 new" in call("add", tmp_path / "m", tmp_path / "a.tsv")
    return tmp_path / "m"


def test_pairs_are_listed_replaced_removed_and_exported(folder, tmp_path):
    assert call("list", folder, "--find", "quota") == "1\tThe quota is low.\tDie Quote ist niedrig.\ta.tsv:1\n"
    call("replace", folder, 1, "Die Menge ist gering.")
    call("remove", folder, 2)
    call("export", folder, "-o", tmp_path / "x.tmx")
    assert [(p.source, p.target) for p in Memory.read(tmp_path / "x.tmx", ("en", "de"))] == [
        ("The quota is low.", "Die Menge ist gering.")
    ]
    assert "1 pairs, 0 of 1 new" in call("add", folder, tmp_path / "x.tmx")


def test_a_pair_is_a_line_of_the_list(tmp_path):
    with Memory.open(tmp_path / "m") as memory:
        memory.add("Two\nlines,\ta tab.", "Zwei Zeilen.", "a.jsonl:1")
    assert call("list", tmp_path / "m") == "1\tTwo lines, a tab.\tZwei Zeilen.\ta.jsonl:1\n"


def test_matches_show_what_is_different(folder, tmp_path):
    (tmp_path / "d.en").write_text("The quota is high.\nYes.\nSomething else.\n", encoding="utf-8")
    shown = call("matches", tmp_path / "d.en", "--memory", folder)
    assert "80%  Die Quote ist niedrig.  (a.tsv:1)" in shown
    assert "The quota is [low -> high] ." in shown
    assert "2 of 3 sentences have a match" in shown
    found = json.loads(call("matches", tmp_path / "d.en", "--memory", folder, "--json"))
    assert [row["matches"][0]["similarity"] for row in found["sentences"]] == [0.8, 1.0]
    assert "1 of 3" in call("matches", tmp_path / "d.en", "--memory", folder, "--at-least", "0.9")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["remove", "@m", "7"], "has no pair 7"),
        (["replace", "@m", "1", " "], "translation is empty"),
        (["list", "@nothing"], "is no memory"),
        (["export", "@a.tsv", "-o", "x.tmx"], "is no memory"),
        (["add", "@m", "@missing.tmx"], "no such file"),
        (["matches", "@d.en", "--memory", "@missing.tmx"], "no such file"),
    ],
)
def test_mistakes_are_one_line(folder, tmp_path, arguments, message):
    (tmp_path / "d.en").write_text("Yes.\n", encoding="utf-8")
    with pytest.raises(UserError, match=message):
        call(*(a.replace("@", f"{tmp_path}/") for a in arguments))


def test_matches_of_a_file_with_a_layout(folder, tmp_path):
    (tmp_path / "d.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\n<i>The quota is low.</i>\n", encoding="utf-8")
    assert "100%  Die Quote ist niedrig.  (a.tsv:1)" in call("matches", tmp_path / "d.srt", "--memory", folder)


def test_a_bad_file_among_several_leaves_everything_as_it_was(folder, tmp_path):
    (tmp_path / "good.tsv").write_text("No.\tNein.\n", encoding="utf-8")
    (tmp_path / "bad.tsv").write_text("No.\n", encoding="utf-8")
    for place in (folder, tmp_path / "new"):
        with pytest.raises(UserError, match=r"bad\.tsv"):
            call("add", place, tmp_path / "good.tsv", tmp_path / "bad.tsv")
    assert "Nein" not in call("list", folder)
    assert not (tmp_path / "new").exists()
