"""Building kernels: whatever compiler, disc or user there is, all that can be lost is time."""

import hashlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from weitblick.common.errors import UserError
from weitblick.fast import build as building
from weitblick.fast import kernels as library

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, building.COMPILERS)) or sys.platform != "linux", reason="no C compiler"
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where this user's library would be, which is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv(building.VARIABLE, raising=False)
    folder = tmp_path / "weitblick"
    folder.mkdir()
    return folder


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def quick_compiler(cache: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that knows beforehand what it will make."""
    made = tmp_path / "made.so"
    made.write_bytes(whole.read_bytes()[: -hashlib.sha256().digest_size])
    copying = f'while [ "$1" != -o ]; do shift; done; exec cp {made} "$2"'
    monkeypatch.setenv("CC", script(tmp_path / "copying", copying))


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def zeros_inside(content: bytes) -> bytes:
    return content[:20_000] + bytes(40_000) + content[60_000:]


@pytest.mark.usefixtures("quick_compiler")
@pytest.mark.parametrize("damage", [half, zeros_inside, lambda content: b"", lambda content: bytes(reversed(content))])
def test_a_damaged_library_is_not_used_and_is_built_anew(
    cache: Path, whole: Path, damage: Callable[[bytes], bytes]
) -> None:
    """To load one, or to call it, may end the process."""
    path = cache / whole.name
    path.write_bytes(damage(whole.read_bytes()))
    assert library.kernels.__wrapped__() is None
    assert building.build() == path
    assert library.kernels.__wrapped__() is not None


def test_a_library_that_cannot_be_loaded_is_left_out_with_one_warning(
    cache: Path, whole: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = cache / whole.name
    path.write_bytes(b"of another machine")
    building._seal(path)
    with caplog.at_level(logging.WARNING, "weitblick"):
        assert library.kernels.__wrapped__() is None
    assert [record.getMessage().count("\n") for record in caplog.records] == [0]
    assert str(path) in caplog.text


def test_a_user_without_a_home_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert library.kernels.__wrapped__() is None
    with pytest.raises(UserError, match="set XDG_CACHE_HOME"):
        building.build()


def test_a_cache_that_cannot_be_looked_into_is_one_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/" + "x" * 300)  # as root, this is what cannot be read
    assert library.kernels.__wrapped__() is None
    with pytest.raises(UserError, match="cannot be written"):
        building.build()


def test_a_compiler_may_be_a_command_of_several_words(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the message for processors with half of AVX-512 says, and as for make."""
    compiler = next(filter(shutil.which, building.COMPILERS))
    monkeypatch.setenv("CC", f"{compiler} -mno-avx512f -DNOTHING='a b'")
    path = building.build()
    assert [entry.name for entry in cache.iterdir()] == [path.name]
    assert library.load(path).lanes < 16


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("nothing-of-this-name", "No such file"),
        ("true", "cannot be loaded"),
        ("false", "exit 1"),
        ("cc 'unbalanced", "is no command"),
        ("cc -include nothing.h", "nothing.h"),
    ],
)
def test_a_compiler_that_is_none(cache: Path, command: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", command)
    with pytest.raises(UserError, match=said) as failure:
        building.build()
    assert "set CC to" in str(failure.value)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("included", "said"),
    [
        ("__attribute__((constructor)) static void f(void) { __builtin_trap(); }", "Illegal instruction|Trace"),
        ("#include <string.h>\n#define memcpy(to, from, size) memset(to, 0, size)", "results are wrong"),
    ],
    ids=["crash", "wrong"],
)
def test_a_library_that_fails_its_trial_is_never_kept(
    cache: Path, tmp_path: Path, included: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler that makes nonsense, or for a processor that this one is not."""
    header = tmp_path / "spoilt.h"
    header.write_text(included)
    monkeypatch.setenv("CC", f"{next(filter(shutil.which, building.COMPILERS))} -include {header}")
    with pytest.raises(UserError, match=said):
        building.build()
    assert list(cache.iterdir()) == []


def test_a_build_that_is_interrupted_says_so_in_one_line(cache: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    environment = {**os.environ, "CC": script(tmp_path / "slow", f"touch {begun}; exec sleep 600")}
    # A test run in the background of a script has been told to ignore Ctrl-C, and so would its children.
    listening = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{listening}; runpy.run_module('weitblick.fast', run_name='__main__')"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while not begun.exists():
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=PATIENCE)[1] == "interrupted\n"
    finally:
        process.kill()
    assert process.returncode == 130
    assert list(cache.iterdir()) == []


def test_left_out_is_not_called_used(cache: Path, whole: Path) -> None:
    shutil.copy(whole, cache)
    command = [sys.executable, "-m", "weitblick.fast"]
    environment = {**os.environ, building.VARIABLE: building.OFF}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "leaves these kernels out" in done.stdout


@pytest.mark.usefixtures("quick_compiler")
@pytest.mark.parametrize("what", ["library", "folder"])
def test_a_library_that_others_can_write_is_not_used(cache: Path, whole: Path, what: str) -> None:
    path = cache / whole.name
    shutil.copy(whole, path)
    assert building.built() == path
    (path if what == "library" else cache).chmod(0o777)
    assert building.built() is None
    assert building.build() == path  # in its place, and nobody else's again
    assert (path.stat().st_mode & 0o777, cache.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to give a file away")
def test_the_library_of_another_user_is_not_used(cache: Path, whole: Path) -> None:
    path = cache / whole.name
    shutil.copy(whole, path)
    os.chown(path, 12345, -1)
    assert building.built() is None
    assert library.kernels.__wrapped__() is None


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The processes that would be started."""
    commands: list[list[str]] = []

    class Started:
        def __init__(self, command: list[str], **options: object) -> None:
            commands.append(command)

        def wait(self) -> int:
            return 0

    monkeypatch.setattr(building, "Popen", Started)
    return commands


def test_the_first_of_several_processes_builds_and_says_so(
    cache: Path, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []  # of the logger itself: which handlers it has depends on the tests before
    monkeypatch.setattr(building.log, "warning", lambda message, *values: said.append(message % values))
    for _ in range(3):
        building.build_in_background()
    assert len(started) == 1
    assert [message.count("\n") for message in said] == [0]
    (marker,) = cache.iterdir()
    os.utime(marker, (1, 1))  # broken off long ago
    building.build_in_background()
    assert len(started) == 2


def test_nothing_is_built_unasked_where_it_is_not_wanted_there_or_possible(
    cache: Path, whole: Path, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setenv(building.VARIABLE, building.OFF)
        building.build_in_background()
    with monkeypatch.context() as without:
        without.setenv("PATH", str(cache))
        building.build_in_background()
    shutil.copy(whole, cache)
    building.build_in_background()
    assert started == []


def test_a_build_that_failed_unasked_is_not_tried_again(
    cache: Path, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "false")
    monkeypatch.setattr(os, "nice", lambda increment: increment)
    building.finish_in_background()
    (marker,) = cache.iterdir()
    assert "the compiler failed" in marker.read_text()
    os.utime(marker, (1, 1))
    building.build_in_background()
    assert started == []


@pytest.mark.usefixtures("quick_compiler")
def test_a_build_removes_its_marker(cache: Path, whole: Path, started: list[list[str]]) -> None:
    building.build_in_background()
    assert len(started) == 1
    assert building.build() == cache / whole.name
    assert [path.name for path in cache.iterdir()] == [whole.name]
