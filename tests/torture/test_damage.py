"""Every file of a model folder and of a run folder is cut, flipped, emptied, replaced by what is no file, or closed to
the reader. A command then gives what it gave before, or one line and exit code 2."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks import Attack, attacks
from commands import Commands, contents
from test_kills import TRAIN, result

import weitblick

WAYS = ("cut", "flipped", "emptied", "doubled", "gone", "folder", "pipe", "endless", "loop", "other", "closed")
IN_SUITE = len(WAYS)
NOBODY = 65534


def damage(path: Path, way: str, attack: Attack, others: list[Path]) -> None:
    content = path.read_bytes()
    if way == "cut":
        path.write_bytes(content[: attack.randrange(len(content) or 1)])
    elif way == "flipped":
        changed = bytearray(content or b"x")
        changed[attack.randrange(len(changed))] ^= 1 << attack.randrange(8)
        path.write_bytes(changed)
    elif way == "emptied":
        path.write_bytes(b"")
    elif way == "doubled":
        path.write_bytes(content * 2)
    elif way == "other":
        path.write_bytes(attack.choice(others).read_bytes())
    elif way == "closed":
        path.chmod(0)
    else:
        path.unlink()
        if way == "folder":
            path.mkdir()
        elif way == "pipe":
            os.mkfifo(path)
        elif way == "endless":
            path.symlink_to("/dev/zero")
        elif way == "loop":
            path.symlink_to(path.name)


def _reader(way: str) -> dict[str, int]:
    """Who runs the command: for root nothing is closed. Another user must be able to read the program itself."""
    open_to_all = all(folder.stat().st_mode & 0o005 == 0o005 for folder in Path(weitblick.__file__).resolve().parents)
    return {"user": NOBODY} if way == "closed" and open_to_all else {}


def files_of(folder: Path) -> list[str]:
    return [name for name in contents(folder) if "tensorboard" not in name]


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that the user nobody can write in: root may read everything, and would see nothing closed."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


def _copy(source: Path, place: Path) -> Path:
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(source, place)
    for path in (place, *place.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    return place


def test_model_folders(weitblick: Commands, home: Path, open_place: Path) -> None:
    document = open_place / "document.en"
    shutil.copy(home / "document.en", document)
    command = ("translate", "document.en", "--beam", "1", "-m", "model")
    _copy(home / "run" / "best", open_place / "model")
    expected = weitblick(open_place, *command).sound().output
    names = files_of(home / "run" / "best")
    for attack in attacks("model_folders", IN_SUITE, 0.1):
        model = _copy(home / "run" / "best", open_place / "model")
        others = [model / name for name in names]
        name, way = names[attack.number // len(WAYS) % len(names)], WAYS[attack.number % len(WAYS)]
        if attack.number < IN_SUITE:  # each way at least once
            name = attack.choice(names)
        damage(model / name, way, attack, others)
        outcome = weitblick(open_place, *command, **_reader(way))
        outcome.sound()
        if outcome.code == 0:
            assert outcome.output == expected, f"another translation, {name} {way}; {attack}"
        assert document.read_bytes() == (home / "document.en").read_bytes()


def test_memories_and_shortlists(weitblick: Commands, home: Path, open_place: Path) -> None:
    """A damaged memory may have lost pairs; a damaged shortlist is refused, or its words are those of the model."""
    shutil.copy(home / "document.en", open_place / "document.en")
    translate = ("translate", "document.en", "--beam", "1", "-m", str(home / "run" / "best"))
    commands: list[tuple[str, ...]] = [
        ("memory", "list", "project"),
        ("memory", "matches", "document.en", "--memory", "project"),
        ("memory", "add", "project", "document.en", "document.en"),
        ("memory", "replace", "project", "1", "x"),
        ("memory", "export", "project", "-o", "out.tmx"),
        (*translate, "--shortlist", "words.shortlist"),
    ]
    for attack in attacks("memories_and_shortlists", IN_SUITE, 0.05):
        way = WAYS[attack.number % len(WAYS)]
        _copy(home / "project", open_place / "project")
        shutil.copy(home / "words.shortlist", open_place / "words.shortlist")
        (open_place / "words.shortlist").chmod(0o666)
        files = [open_place / "project" / "pairs.sqlite", open_place / "words.shortlist"]
        for path in files:
            damage(path, way, attack, [home / "document.en", home / "run" / "best" / "model.safetensors"])
        chosen = [attack.choice(commands[:-1]), commands[-1]]
        for outcome in weitblick.each(open_place, chosen, **_reader(way)):
            try:
                outcome.sound()
            except AssertionError as error:
                raise AssertionError(f"{attack}, {way}\n{error}") from None
        for path in files:
            if path.is_symlink() or path.is_fifo():
                path.unlink()
            elif path.is_dir():
                path.rmdir()


def test_run_folders(weitblick: Commands, home: Path, open_place: Path) -> None:
    """A run that is finished, or stopped in the middle, with one file damaged: it ends with the same model, or says
    which file is wrong."""
    place = open_place
    for name in ("corpus", "recipe.yaml"):
        if (home / name).is_dir():
            shutil.copytree(home / name, place / name)
        else:
            shutil.copy(home / name, place / name)
    expected = result(home / "run")
    weitblick(place, *TRAIN, kill_at=250)
    shutil.move(place / "run", place / "stopped")
    for attack in attacks("run_folders", 5, 0.15):
        base = place / "stopped" if attack.random() < 0.6 else home / "run"
        run = _copy(base, place / "run")
        names = files_of(base)
        name, way = attack.choice(names), attack.choice(WAYS)
        damage(run / name, way, attack, [run / other for other in names])
        outcome = weitblick(place, *TRAIN, **_reader(way))
        outcome.sound()
        if outcome.code == 0 and way != "gone":
            for path, content in expected.items():
                if path.startswith("best/"):
                    found = result(run).get(path)
                    assert found == content, f"another {path}, {name} {way}, {base.name}; {attack}"
