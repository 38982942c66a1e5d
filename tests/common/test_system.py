"""One module knows the system. Its Windows half is run here with the calls of Windows emulated."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import weitblick
from tests.patience import PATIENCE
from weitblick.common import files, locks, system
from weitblick.common.errors import UserError
from weitblick.common.files import atomic_folder, atomic_path
from weitblick.common.locks import run_lock, try_lock
from weitblick.common.system import LOCKED_BYTE, Posix, Windows
from weitblick.workbench import database
from weitblick.workbench.schema import Write
from weitblick.workbench.store import Store

UNIX_ONLY = re.compile(
    r"\bfcntl\b|\bos\.(umask|uname|kill|fork|setsid|getpgid|getuid|chown)\b|\bmsvcrt\b|\bSIG(KILL|HUP|USR1)\b"
)


class Msvcrt:
    """`msvcrt.locking`: one handle at a time has a byte, and another is refused with EACCES."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.held: dict[tuple[int, int], int] = {}

    def locking(self, handle: int, mode: int, count: int) -> None:
        assert (mode, count) == (self.LK_NBLCK, 1)
        assert os.lseek(handle, 0, os.SEEK_CUR) == LOCKED_BYTE  # what others read stays readable
        found = os.fstat(handle)
        file = found.st_dev, found.st_ino
        owner = self.held.get(file)
        if owner is not None and owner != handle and _is_open(owner, file):
            raise OSError(errno.EACCES, "Permission denied")
        self.held[file] = handle


def _is_open(handle: int, file: tuple[int, int]) -> bool:
    """Windows takes a lock back when its handle is closed."""
    try:
        found = os.fstat(handle)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == file


class Kernel32:
    """Processes 1 (which runs), 2 (which has ended) and 3 (which is somebody else's)."""

    def OpenProcess(self, access: int, inherit: bool, process: int) -> int:
        self.error = 5 if process == 3 else 87
        return process if process in (1, 2) else 0

    def GetLastError(self) -> int:
        return self.error

    def GetExitCodeProcess(self, handle: int, code: Any) -> int:
        ctypes.cast(code, ctypes.POINTER(ctypes.c_ulong))[0] = 259 if handle == 1 else 0
        return 1

    def CloseHandle(self, handle: int) -> int:
        return 1


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Windows:
    """The package as on Windows."""
    emulated = Windows({"LOCALAPPDATA": "C:/Users/me/AppData/Local"}, msvcrt=Msvcrt(), kernel32=Kernel32())
    for module in (files, locks, system, database):
        monkeypatch.setattr(module, "SYSTEM", emulated)
    return emulated


def test_only_one_module_knows_the_system() -> None:
    package = Path(weitblick.__file__).parent
    for path in package.rglob("*.py"):
        found = UNIX_ONLY.search(path.read_text(encoding="utf-8"))
        assert found is None or path == package / "common" / "system.py", f"{path}: {found}"


def test_a_lock_on_windows_is_held_by_one(windows: Windows, tmp_path: Path) -> None:
    with open(tmp_path / "lock", "a+") as one, open(tmp_path / "lock", "a+") as other:
        assert windows.lock(one, wait=False)
        assert not windows.lock(other, wait=False)
        one.write("process 7")
        one.flush()
        other.seek(0)
        assert other.read() == "process 7"
        waiting = threading.Thread(target=windows.lock, args=[other], kwargs={"wait": True})
        waiting.start()
        one.close()
        waiting.join(PATIENCE)
        assert not waiting.is_alive()


def test_file_systems_without_locks_are_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with open(tmp_path / "lock", "a+") as stream:
        assert Posix().lock(stream, wait=False)
        assert Windows(msvcrt=SimpleNamespace(locking=refuse, LK_NBLCK=2), kernel32=Kernel32()).lock(stream, wait=False)


def test_windows_replaces_what_another_program_looks_at_for_a_moment(
    windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals, real = [32, 5], os.replace

    def replace(source: Path, target: Path) -> None:
        if refusals:
            error = PermissionError(errno.EACCES, "in use")
            error.winerror = refusals.pop()  # type: ignore[attr-defined]
            raise error
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with atomic_path(tmp_path / "a") as written:
        written.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"
    monkeypatch.setattr(system, "PATIENCE", -1.0)
    refusals.append(32)
    with pytest.raises(UserError, match="cannot be written"), atomic_path(tmp_path / "a") as written:
        written.write_text("other")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_windows_flushes_files_that_it_may_write_and_no_folders(
    windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(handle: int) -> None:
        if not fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_RDWR or stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_folder(tmp_path / "folder") as folder:
        (folder / "a").write_text("x")
    with atomic_folder(tmp_path / "folder") as folder:
        (folder / "b").write_text("y")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["b"]


def test_windows_asks_the_kernel_whether_a_process_lives(windows: Windows) -> None:
    assert [windows.is_alive(process) for process in (1, 2, 3, 4)] == [True, False, True, False]


def test_temporary_files_of_dead_processes_are_swept_on_windows(windows: Windows, tmp_path: Path) -> None:
    names = [f".a.weitblick-{system._machine()}-{process}-xy" for process in (1, 2, 3)]
    for name in names:
        (tmp_path / name).write_text("")
    system.sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [names[0], names[2]]


def test_the_workbench_and_trainings_on_windows(windows: Windows, tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(UserError, match=f"in use by another server .process {os.getpid()}"):
        Store(tmp_path)
    project = store.add_project("Letters").id
    from weitblick.documents.document import Sentence

    document = store.add_document(project, "a.txt", [Sentence("One.")], b"One.")
    store.edit(document, 0, Write("Eins.", "confirmed", 1))
    database.back_up(tmp_path, tmp_path / "copy.sqlite")
    store.delete_project(project)
    store.close()
    Store(tmp_path).close()
    with run_lock(tmp_path / "run"), pytest.raises(UserError, match="another training"), run_lock(tmp_path / "run"):
        pass
    with try_lock(tmp_path / "x") as mine, try_lock(tmp_path / "x") as yours:
        assert (mine, yours) == (True, False)


def test_folders_of_the_user(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    assert windows.data_folder() == Path("C:/Users/me/AppData/Local/weitblick")
    assert windows.cache_folder() == Path("C:/Users/me/AppData/Local/weitblick/Cache")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert Windows({}, msvcrt=Msvcrt(), kernel32=Kernel32()).data_folder() == Path("/home/me/AppData/Local/weitblick")
    assert Posix({"XDG_DATA_HOME": "/data"}).data_folder() == Path("/data/weitblick")
    assert Posix({}).cache_folder() == Path("/home/me/.cache/weitblick")
    monkeypatch.setattr(system.sys, "platform", "darwin")
    assert Posix({}).data_folder() == Path("/home/me/Library/Application Support/weitblick")


def test_an_address_belongs_to_one_server_on_windows(windows: Windows) -> None:
    options: list[tuple[int, ...]] = []
    listener: Any = SimpleNamespace(setsockopt=lambda *option: options.append(option))
    windows.share_address(listener)
    assert options == [(socket.SOL_SOCKET, -5, 1)]  # SO_EXCLUSIVEADDRUSE


def test_new_files_have_the_users_permissions_and_private_ones_none_for_others(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "shared") as written:
            written.write_text("x")
        with atomic_path(tmp_path / "private", private=True) as written:
            written.write_text("x")
        with atomic_folder(tmp_path / "folder") as folder:
            (folder / "a").write_text("x")
        os.umask(0)
        store = Store(tmp_path / "projects")
        store.add_project("Letters")
        database.back_up(tmp_path / "projects", tmp_path / "copy.sqlite")
    finally:
        os.umask(before)
    modes = {str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert [modes[name] for name in ("shared", "private", "folder", "folder/a")] == [0o640, 0o600, 0o750, 0o640]
    projects = {name: mode for name, mode in modes.items() if name.startswith("projects")}
    assert len(projects) >= 5  # the folder, the database and its log, the lock, the reserve
    assert {mode for name, mode in projects.items() if name != "projects"} == {0o600}
    assert (projects["projects"], modes["copy.sqlite"]) == (0o700, 0o600)
    store.close()


def test_a_process_ends_with_what_it_has_started(tmp_path: Path) -> None:
    code = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **pipes) as process:
        child = int(process.stdout.readline())
        system.SYSTEM.end_with_children(process.pid)
        assert process.wait(PATIENCE) != 0
    end = time.monotonic() + PATIENCE
    while Path(f"/proc/{child}/stat").exists() and Path(f"/proc/{child}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() < end
        time.sleep(0.05)


def test_windows_is_asked_to_end_a_process_with_its_children(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(system.subprocess, "run", lambda command, **how: asked.append(command))
    windows.end_with_children(12)
    assert asked == [["taskkill", "/F", "/T", "/PID", "12"]]
