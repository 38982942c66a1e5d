"""Folders: the same tree comes out, what is there already stays, and one bad file keeps no other from its turn."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from file_translators import upper

from weitblick.common.errors import UserError
from weitblick.files.translatable_file import TranslatableFile, align_by_places
from weitblick.files.translation import translate_folder


def run(inbox: Path, outbox: Path, prepare: list[str] | None = None) -> tuple[list[str], list[str]]:
    said: list[str] = []
    warned: list[str] = []
    seen = prepare if prepare is not None else []

    def note(file: TranslatableFile) -> None:
        seen.append(file.path.name)

    try:
        translate_folder(inbox, outbox, upper, align_by_places, prepare=note, say=said.append, warn=warned.append)
    except UserError as error:
        warned.append(str(error))
    return said, warned


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / "a.txt").write_text("We go home.\n", encoding="utf-8")
    (folder / "sub" / "b.md").write_text("# A title\n", encoding="utf-8")
    (folder / ".hidden" / "c.txt").write_text("Secret.\n", encoding="utf-8")
    return folder


def test_the_tree_is_kept_and_a_second_run_does_nothing(tmp_path: Path, inbox: Path) -> None:
    outbox = tmp_path / "out"
    run(inbox, outbox)
    found = {str(path.relative_to(outbox)): path.read_text() for path in outbox.rglob("*") if path.is_file()}
    assert found == {"a.txt": "WE GO HOME.\n", os.path.join("sub", "b.md"): "# A TITLE\n"}
    (outbox / "a.txt").write_text("mended by hand\n", encoding="utf-8")
    again: list[str] = []
    said, warned = run(inbox, outbox, again)
    assert (again, warned) == ([], [])
    assert said == ["2 of 2 files have been translated before and are left as they are"]
    assert (outbox / "a.txt").read_text() == "mended by hand\n"


def test_a_file_that_changed_is_translated_again(tmp_path: Path, inbox: Path) -> None:
    outbox = tmp_path / "out"
    run(inbox, outbox)
    later = (outbox / "a.txt").stat().st_mtime_ns + 10**9
    (inbox / "a.txt").write_text("We stay here.\n", encoding="utf-8")
    os.utime(inbox / "a.txt", ns=(later, later))
    again: list[str] = []
    run(inbox, outbox, again)
    assert again == ["a.txt"]
    assert (outbox / "a.txt").read_text() == "WE STAY HERE.\n"


def test_bad_files_are_named_and_the_others_translated(tmp_path: Path, inbox: Path) -> None:
    (inbox / "0.docx").write_bytes(b"no zip")
    (inbox / "1.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (inbox / "2.html").write_text("<p>" + "<b>" * 5000 + "x" + "</b>" * 5000 + "</p>", encoding="utf-8")
    _, warned = run(inbox, tmp_path / "out")
    assert [line.partition(": ")[0].rpartition(os.sep)[2] for line in warned] == ["0.docx", "1.png", "2.html", "in"]
    assert "2 of 5 files could not be translated" in warned[-1]
    assert sorted(path.name for path in (tmp_path / "out").rglob("*.*")) == ["a.txt", "b.md"]


def test_a_folder_is_never_written_over(inbox: Path) -> None:
    _, warned = run(inbox, inbox / "sub" / "..")
    assert "never written over" in warned[0]
    assert (inbox / "a.txt").read_text() == "We go home.\n"


def test_an_output_below_its_input_is_not_read(inbox: Path) -> None:
    run(inbox, inbox / "out")
    seen: list[str] = []
    run(inbox, inbox / "out", seen)
    assert seen == []
