"""The machine at its limits: closed streams, few handles, long names, a disc that takes nothing, two runs in one
folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from commands import Commands
from test_kills import TRAIN

TRANSLATE = ("translate", "document.en", "--beam", "1", "-m")


@pytest.mark.parametrize("streams", [(1,), (0, 1)])
@pytest.mark.parametrize("command", ["translate", "stats", "explain"])
def test_closed_streams(weitblick: Commands, home: Path, place: Path, command: str, streams: tuple[int, ...]) -> None:
    commands = {
        "translate": (*TRANSLATE, str(home / "run" / "best")),
        "stats": ("data", "stats", "corpus/dev.en"),
        "explain": ("explain", "document.en", "--format", "json", "-o", "-", "-m", str(home / "run" / "best")),
    }
    weitblick(place, *commands[command], close=streams).sound()


def test_full_standard_output(weitblick: Commands, home: Path, place: Path) -> None:
    for command in ((*TRANSLATE, home / "run" / "best"), ("data", "stats", "corpus/dev.en"), ("recipe", "keys")):
        outcome = weitblick(place, *command, stdout="/dev/full").sound()
        assert outcome.code == 2, outcome


@pytest.mark.parametrize("handles", [8, 24])
def test_few_handles(weitblick: Commands, home: Path, place: Path, handles: int) -> None:
    weitblick(place, *TRANSLATE, home / "run" / "best", handles=handles).sound()
    weitblick(place, *TRAIN, handles=handles).sound()


def test_long_names(weitblick: Commands, home: Path, place: Path) -> None:
    long = "a" * 300
    for command in (
        ("translate", long),
        ("translate", "document.en", "-o", long, "-m", home / "run" / "best"),
        ("translate", "document.en", "-m", long),
        ("data", "convert", "document.en", "-o", f"{long}.jsonl"),
        (*TRAIN[:-1], f"output={long}"),
        ("train", long),
        ("explain", "document.en", "-o", f"{long}.html", "-m", home / "run" / "best"),
    ):
        assert weitblick(place, *command).sound().code == 2


def test_a_place_where_nothing_may_be_written(weitblick: Commands, home: Path, tmp_path: Path) -> None:
    for command in (
        (*TRANSLATE, home / "run" / "best", "-o", "/proc/x"),
        ("data", "convert", "document.en", "-o", "/proc/x.jsonl"),
        (*TRAIN[:-1], "output=/proc/run"),
    ):
        assert weitblick(home, *command).sound().code == 2


def test_two_trainings_in_one_folder(weitblick: Commands, place: Path) -> None:
    """The second is refused in one line; the first does not notice."""
    import fcntl

    (place / "run").mkdir()
    with open(place / "run" / ".lock", "a+", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        outcome = weitblick(place, *TRAIN).sound()
        assert outcome.code == 2
        assert "another training is at work there" in outcome.complaint
    assert [path.name for path in (place / "run").iterdir()] == [".lock"]


def test_a_reader_that_leaves(home: Path, place: Path) -> None:
    """As in `weitblick recipe keys | head -1`: no stack trace."""
    command = [sys.executable, "-m", "weitblick", "recipe", "reference"]
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
