"""Where a translation goes: names that promise another format are refused, and binary files on a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from weitblick.cli.console import read_glossary
from weitblick.cli.main import app
from weitblick.cli.real_files import Inputs, check_outputs
from weitblick.common.errors import UserError
from weitblick.files.text import lines_content
from weitblick.files.translatable_file import TranslatableFile
from weitblick.translation.options import MOST_HYPOTHESES


def file(name: str, format: str) -> TranslatableFile:
    return TranslatableFile(Path(name), format, lines_content("A text."))


def test_a_word_file_is_not_written_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Inputs([], [file("report.docx", "docx")], [])
    check_outputs(given, ["-"], None)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    with pytest.raises(UserError, match=r"-o OUT\.docx"):
        check_outputs(given, ["-"], None)
    check_outputs(Inputs([], [file("film.srt", "srt")], []), ["-"], None)


@pytest.mark.parametrize(
    ("format", "output", "remedy"),
    [
        ("docx", "x.pdf", "x.docx"),
        ("docx", "x.srt", "x.docx"),
        ("srt", "x.docx", "x.srt"),
        ("docx", "x.txt", "x.docx"),
        (None, "x.pdf", "x.txt"),
        (None, "x.docx", "x.txt"),
    ],
)
def test_a_name_that_promises_another_format_is_refused(format: str | None, output: str, remedy: str) -> None:
    given = Inputs([], [file("report", format)], []) if format else Inputs([], [], ["talk.en"])
    with pytest.raises(UserError, match=remedy):
        check_outputs(given, [output], None)


@pytest.mark.parametrize(
    ("format", "output"),
    [("docx", "x.docx"), ("docx", "x"), ("docx", "x.docm"), ("txt", "x.md"), (None, "x.de"), (None, "x.txt")],
)
def test_a_name_that_fits_is_taken(format: str | None, output: str) -> None:
    check_outputs(Inputs([], [file("report", format)], []) if format else Inputs([], [], ["talk.en"]), [output], None)


def test_a_beam_has_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("A text.\n")
    ended = CliRunner().invoke(app, ["translate", str(tmp_path / "a.en"), "--beam", str(MOST_HYPOTHESES + 1)])
    assert ended.exit_code == 2
    assert str(MOST_HYPOTHESES) in ended.output


def test_a_glossary_may_be_csv(tmp_path: Path) -> None:
    table, columns = tmp_path / "terms.csv", tmp_path / "terms.tsv"
    table.write_text('source,target\ncod quota,Dorschquote\n"fish, fresh",Frischfisch\n')
    columns.write_text("report\tBericht\n")
    pipeline = SimpleNamespace(source_language="en", target_language="de")
    found = read_glossary([str(table), str(columns)], None, pipeline)  # type: ignore[arg-type]
    assert found is not None
    assert {(term.source, term.target) for term in found.terms} == {
        ("cod quota", "Dorschquote"),
        ("fish, fresh", "Frischfisch"),
        ("report", "Bericht"),
    }
