"""Commands are killed at their file operations, and while they write; run again, they give the bytes of a run that
nobody disturbed, and nothing of what they were given has changed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from attacks import ONLY, SECONDS, Attack, attacks
from commands import Commands, contents

TRAIN = ("train", "recipe.yaml", "data.dir=corpus", "output=run")
SHORT = {
    "translation": ("translate", "document.en", "-o", "out.de", "-m", "RUN/best"),
    "subtitles": ("translate", "film.srt", "-o", "out.srt", "-m", "RUN/best"),
    "conversion": ("data", "convert", "corpus/train.en", "corpus/train.de", "-o", "out.en", "-o", "out.de"),
    "conversion to one file": ("data", "convert", "corpus/train.en", "corpus/train.de", "-o", "out.jsonl.gz"),
    "split": ("data", "split", "corpus/train.en", "corpus/train.de", "-o", "out", "--dev", "2", "--test", "2"),
    "explanation": ("explain", "document.en", "-o", "out.json", "-m", "RUN/best"),
}
FILM = "1\n00:00:01,000 --> 00:00:03,000\nThe report is here.\n\n2\n00:00:04,000 --> 00:00:06,000\nIt is long.\n"
OLD = b"what was there before\n"


def killed(code: int) -> bool:
    return code in (137, -9, -25)  # by us, by the system, for the size of a file


@pytest.mark.parametrize("name", SHORT)
def test_short_commands(weitblick: Commands, home: Path, place: Path, name: str) -> None:
    (place / "film.srt").write_text(FILM, encoding="utf-8")
    inputs = contents(place)
    command = [part.replace("RUN", str(home / "run")) for part in SHORT[name]]
    outputs = [part for part in command if part.startswith("out") and name != "split"]
    expected, operations = _undisturbed(weitblick, place, command)
    for number in _points(operations, suite=2):
        _clear(place, inputs)
        for output in outputs:
            (place / output).write_bytes(OLD)
        first = weitblick(place, *command, kill_at=number)
        assert killed(first.code), first
        now = contents(place, hidden=False)
        for path, content in inputs.items():
            assert now[path] == content, f"{path} was changed by a kill at operation {number}"
        for output in outputs:
            assert now[output] in (OLD, expected[output]), f"{output} is half written at operation {number}"
        again = weitblick(place, *command)
        if name == "split" and again.code == 2:  # part of it is there, complete; it says so
            assert "is there from an earlier split" in again.complaint
            continue
        assert again.sound().code == 0, again
        after = contents(place)
        assert after == {**inputs, **expected}, f"other files after a kill at operation {number}"


def _undisturbed(weitblick: Commands, place: Path, command: list[str]) -> tuple[dict[str, bytes], int]:
    """What a command writes, and how many file operations it takes."""
    before = contents(place)
    log = place / ".operations"
    assert weitblick(place, *command, kill_at=-1, count=str(log)).sound().code == 0
    operations = len(log.read_text(encoding="utf-8").splitlines())
    log.unlink()
    return {path: content for path, content in contents(place).items() if path not in before}, operations


def _clear(place: Path, inputs: dict[str, bytes]) -> None:
    for path in contents(place).keys() - inputs.keys():
        (place / path).unlink()
    shutil.rmtree(place / "out", ignore_errors=True)


def _points(operations: int, suite: int) -> list[int]:
    """Every operation in `make torture`; in the suite the last, and some others."""
    if ONLY is not None:
        return [int(ONLY)]
    points = list(range(1, operations + 1))
    if SECONDS >= 600:
        return points
    return sorted({*Attack("points", operations).sample(points, min(suite - 1, operations)), operations})


def test_training_at_every_operation(weitblick: Commands, home: Path, place: Path) -> None:
    inputs = contents(place)
    _, operations = _undisturbed(weitblick, place, list(TRAIN))
    expected = result(home / "run")
    assert result(place / "run") == expected, "training is not repeatable"
    for number in _points(operations, suite=3):
        shutil.rmtree(place / "run", ignore_errors=True)
        first = weitblick(place, *TRAIN, kill_at=number)
        assert killed(first.code), first
        _finish_and_compare(weitblick, place, inputs, expected, f"killed at operation {number} of {operations}")


def test_training_again_and_again(weitblick: Commands, home: Path, place: Path) -> None:
    """A run that is killed again and again gets there in the end."""
    inputs, expected = contents(place), result(home / "run")
    for attack in attacks("training_again_and_again", 1, 0.05):
        shutil.rmtree(place / "run", ignore_errors=True)
        kills = []
        for _ in range(4):
            kills.append(attack.randrange(1, 250))
            if not killed(weitblick(place, *TRAIN, kill_at=kills[-1]).code):
                break
        _finish_and_compare(weitblick, place, inputs, expected, f"killed at operations {kills}; {attack}")


def test_training_while_a_file_is_written(weitblick: Commands, home: Path, place: Path) -> None:
    """Files cannot grow beyond a size: death in the middle of one, or a disc that is full (one line, exit code 2)."""
    inputs, expected = contents(place), result(home / "run")
    for attack in attacks("training_while_a_file_is_written", 2, 0.1):
        shutil.rmtree(place / "run", ignore_errors=True)
        size, die = int(2 ** attack.uniform(0, 17)), attack.number % 2 == 0
        first = weitblick(place, *TRAIN, file_size=size, die=die)
        if not die:
            first.sound()
        _finish_and_compare(weitblick, place, inputs, expected, f"files of {size} bytes; {attack}")


@pytest.mark.parametrize("name", [name for name in SHORT if name != "split"])
def test_full_disc(weitblick: Commands, home: Path, place: Path, name: str) -> None:
    (place / "film.srt").write_text(FILM, encoding="utf-8")
    inputs = contents(place)
    command = [part.replace("RUN", str(home / "run")) for part in SHORT[name]]
    expected, _ = _undisturbed(weitblick, place, command)
    for attack in attacks(f"full_disc_{name}", 1, 0.01):
        _clear(place, inputs)
        size = attack.randrange(max(map(len, expected.values())))
        outcome = weitblick(place, *command, file_size=size).sound()
        assert outcome.code == 2, outcome
        assert contents(place) == inputs, f"half a file is left, or an input changed; {attack}"


def _finish_and_compare(
    weitblick: Commands, place: Path, inputs: dict[str, bytes], expected: dict[str, Any], how: str
) -> None:
    again = weitblick(place, *TRAIN)
    assert again.code == 0, f"{how}: {again.errors[-2000:]}"
    again.sound()
    assert result(place / "run") == expected, f"another result when {how}"
    now = contents(place)
    assert all(now[path] == content for path, content in inputs.items()), f"an input changed when {how}"
    left = [str(path) for path in (place / "run").rglob(".*") if path.name != ".lock"]
    assert not left, f"left lying about when {how}: {left}"


def result(run: Path) -> dict[str, Any]:
    """All that a run came to, without how long it took."""
    found: dict[str, Any] = {}
    for path, content in contents(run).items():
        kind = Path(path).name
        if path.endswith((".safetensors", ".npy", ".model")) or "/text/" in path:
            found[path] = content
        elif kind == "config.json":
            found[path] = _config(content)
        elif kind == "log.jsonl":
            entries = [json.loads(line) for line in content.splitlines()]
            found[path] = [
                {k: v for k, v in entry.items() if k not in ("tokens_per_second", "seconds")} for entry in entries
            ]
        elif kind == "progress.json":
            found[path] = {k: v for k, v in json.loads(content).items() if k != "seconds"}
    return found


def _config(content: bytes) -> dict[str, Any]:
    values = json.loads(content)
    values["facts"].pop("training_minutes", None)
    values.pop("checksum", None)
    return values


def test_temporary_files_of_others_stay(weitblick: Commands, home: Path, place: Path) -> None:
    """Only what a process of this machine left behind that is no more is swept away."""
    from weitblick.common.system import _machine

    alive = place / f".out.de.weitblick-{_machine()}-{os.getpid()}-abc.de"
    elsewhere = place / ".out.de.weitblick-00000000-999999-abc.de"
    dead = place / f".out.de.weitblick-{_machine()}-4194305-abc.de"
    for path in (alive, elsewhere, dead):
        path.write_text("x", encoding="utf-8")
    weitblick(place, "data", "convert", "document.en", "-o", "out.jsonl").sound()
    assert alive.exists()
    assert elsewhere.exists()
    assert not dead.exists()
