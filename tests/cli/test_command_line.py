"""The command line as a whole: one way to name things, inputs that survive, mistakes in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main

from weitblick.cli.check import Kind
from weitblick.cli.main import app, main
from weitblick.cli.options import FormatName, WritableFormat
from weitblick.common.errors import UserError
from weitblick.common.files import output_in, protect_inputs, text_writer
from weitblick.documents.checking import KINDS
from weitblick.documents.corpora.formats import CORPUS_FORMATS


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(*arguments: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["weitblick", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    return int(end.value.code or 0), printed.out, printed.err


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    group = group or typer.main.get_command(app)
    for name in group.list_commands(None):
        inner = group.get_command(None, name)
        if hasattr(inner, "commands"):
            yield from commands(inner, (*path, name))
        else:
            yield " ".join((*path, name)), inner


# Choices


def test_choices_are_those_there_are() -> None:
    assert set(get_args(FormatName)) == set(CORPUS_FORMATS)
    assert set(get_args(WritableFormat)) == {name for name, format in CORPUS_FORMATS.items() if format.write}
    assert set(Kind) == set(KINDS)


def test_one_option_has_one_meaning() -> None:
    """The same name is of the same kind in every command: never a number here and a file there."""
    kinds: dict[str, set[str]] = {}
    for _, command in commands():
        for parameter in command.params:
            for name in parameter.opts:
                if name.startswith("--"):
                    kinds.setdefault(name, set()).add(kind_of(parameter))
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}


def kind_of(parameter: Any) -> str:
    if getattr(parameter, "is_flag", False):
        return "flag"
    return "number" if isinstance(parameter.min, int) or isinstance(parameter.default, int | float) else "text"


def test_a_model_is_always_named_the_same_way() -> None:
    having = {name for name, command in commands() if any("--model" in p.opts for p in command.params)}
    assert {"translate", "explain", "contrast", "context-use", "complexity"} <= having
    for name, command in commands():
        for parameter in command.params:
            assert parameter.metavar != "MODEL", name
            assert ("--model" in parameter.opts) == ("-m" in parameter.opts), name


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["translate", "--no-such-option"], "No such option"),
        (["nothing"], "No such command"),
        (["translate", "a.srt", "--from", "rtf"], "'rtf' is not one of 'text'"),
        (["data", "convert", "a.en"], "Missing option '--output'"),
        (["score", "a.de"], "Missing option '--reference'"),
        (["translate", "a.en", "--beam", "0"], "greater than or equal to 1"),
        (["translate", "nothing.en"], "nothing.en: no such file"),
        (["translate", "-o", "", __file__], "the output has no name"),
        (["data", "stats"], "either files or --corpus"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = call(*arguments, capsys=capsys, monkeypatch=monkeypatch)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("weitblick: ")
    assert complaint in err


def test_help_is_short_to_ask_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (["-h"], ["data", "-h"], ["data", "split", "-h"]):
        code, out, _ = call(*arguments, capsys=capsys, monkeypatch=monkeypatch)
        assert code == 0
        assert "--help" in out


# Inputs are never written over


def test_an_output_that_is_an_input_is_refused() -> None:
    Path("a").write_text("x")
    Path("b").write_text("y")
    Path("link").symlink_to("a")
    os.link("a", "hard")
    for output in ("a", "./a", "link", "hard"):
        with pytest.raises(UserError, match="never written over"):
            protect_inputs(["b", "a"], [output])
    protect_inputs(["a"], ["b", "new", "/dev/null"])
    protect_inputs(["/dev/null"], ["/dev/null"])


def test_redirected_streams_are_inputs_too() -> None:
    Path("t.en").write_text("a\n")
    script = [sys.executable, "-m", "weitblick", "data", "convert", "-", "--to", "text", "-o", "t.en"]
    with open("t.en") as stream:
        result = subprocess.run(script, stdin=stream, capture_output=True, text=True)
    assert (result.returncode, Path("t.en").read_text()) == (2, "a\n")
    with open("t.en", "a") as stream:
        script = [sys.executable, "-m", "weitblick", "data", "convert", "t.en", "--to", "text", "-o", "-"]
        result = subprocess.run(script, stdout=stream, stderr=subprocess.PIPE, text=True)
    assert (result.returncode, Path("t.en").read_text()) == (2, "a\n")
    assert "standard output: is the input t.en" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["translate", "t.en", "-o", "."],
        ["translate", "t.en", "-o", "./"],
        ["translate", "t.en", "-o", "t.en"],
        ["translate", "t.en", "u.en", "-o", "."],
        ["explain", "t.en", "-o", "t.en", "--format", "html"],
        ["data", "convert", "t.en", "t.de", "-o", "x.en", "-o", "t.de"],
        ["data", "check", "t.en", "t.de", "-o", "x.en", "-o", "t.en"],
        ["data", "check", "t.en", "t.de", "--against", "u.en", "-o", "x.en", "-o", "u.en"],
        ["data", "select", "t.en", "--source-has", "a", "-o", "t.en"],
        ["data", "antecedents", "t.en", "t.de", "-o", "x.en", "-o", "t.de"],
        ["data", "antecedents", "t.en", "t.de", "-o", "x.en", "-o", "x.de", "--contrast", "t.de"],
        ["judge", "sample", "t.de", "u.de", "--source", "t.en", "-o", "t.en"],
    ],
    ids=" ".join,
)
def test_commands_leave_their_inputs_alone(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("t.en", "t.de", "u.en", "u.de")
    for name in names:
        Path(name).write_text(f"{name} a\nb\n")
    code, _, err = call(*arguments, capsys=capsys, monkeypatch=monkeypatch)
    assert (code, err.count("\n")) == (2, 1), err
    assert "never written over" in err
    assert [Path(name).read_text() for name in names] == [f"{name} a\nb\n" for name in names]
    assert sorted(path.name for path in Path().iterdir()) == sorted(names)


def test_where_outputs_go() -> None:
    assert output_in("-", "t.en") == "-"
    assert output_in("new.de", "t.en") == "new.de"
    assert output_in("made/", "t.en") == "made/t.en"
    assert Path("made").is_dir()
    assert output_in("made", "t.en", folder=True) == "made/t.en"
    for output, complaint in (("", "no name"), ("absent", "absent/ with a slash is made")):
        with pytest.raises(UserError, match=complaint):
            output_in(output, "t.en", folder=True)


def test_a_link_is_written_through() -> None:
    Path("target").write_text("old")
    Path("link").symlink_to("target")
    with text_writer("link") as stream:
        stream.write("new")
    assert Path("link").is_symlink()
    assert Path("target").read_text() == "new"
