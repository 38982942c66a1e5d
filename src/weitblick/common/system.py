"""What differs between Linux, macOS and Windows: locks, renames, the disc, permissions, processes, the user's folders.

`SYSTEM` is the system that this process runs on. Everything else in the package asks it, so that the rest is the same
everywhere. Tests run `Windows` on other systems, with the calls that it makes emulated.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import platform
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

FOLDER = "weitblick"
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
PUBLIC_FILE, PUBLIC_FOLDER = 0o666, 0o777
"""For files that are the user's to share; the system takes away what the user's umask says."""


class System(ABC):
    """What the rest of the package asks of a system."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self.environment = environment

    @abstractmethod
    def lock(self, stream: IO[Any], *, wait: bool) -> bool:
        """Whether this process now holds a file, until it closes it or ends, however it ends. File systems without
        locks are trusted."""

    @abstractmethod
    def replace(self, source: Path, target: Path) -> None:
        """Renames a file or a folder. A file that is there already is replaced in one step."""

    @abstractmethod
    def sync(self, path: Path) -> None:
        """Returns when the disc has a file, or the entries of a folder: before, a rename promises nothing."""

    @abstractmethod
    def is_alive(self, process: int) -> bool:
        """Whether a process of this machine runs; true if that cannot be known."""

    @abstractmethod
    def end_with_children(self, process: int) -> None:
        """Ends a process that began a session of its own, and everything that it has started."""

    @abstractmethod
    def make_private(self, path: Path) -> None:
        """Keeps a file or a folder of this user's from other users."""

    @abstractmethod
    def share_address(self, listener: socket.socket) -> None:
        """Lets a server take the address of one that has just ended, and no address of one that runs."""

    @abstractmethod
    def data_folder(self) -> Path:
        """Where the user's programs keep their data."""

    @abstractmethod
    def cache_folder(self) -> Path:
        """Where the user's programs keep what they can make again."""

    def prepare_streams(self) -> None:
        """Makes standard output take any text, and names of files that are no text."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="surrogateescape")

    def new_file(self, folder: Path, prefix: str, suffix: str, *, private: bool = False) -> Path:
        """An empty file of a name that nobody has, with the permissions that the user gives new files, or private."""
        while True:
            path = folder / f"{prefix}{secrets.token_hex(4)}{suffix}"
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE if private else PUBLIC_FILE))
                return path

    def new_folder(self, folder: Path, prefix: str) -> Path:
        """An empty folder of a name that nobody has, with the permissions that the user gives new folders."""
        while True:
            path = folder / f"{prefix}{secrets.token_hex(4)}"
            with suppress(FileExistsError):
                os.mkdir(path, PUBLIC_FOLDER)
                return path

    def open_private(self, path: Path) -> IO[str]:
        """A text file to read and to append to, made if it is not there, that is kept from other users."""
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, PRIVATE_FILE)
        self.make_private(path)
        return open(handle, "a+", encoding="utf-8")


class Posix(System):
    """Linux, macOS and their like."""

    def lock(self, stream: IO[Any], *, wait: bool) -> bool:
        fcntl = import_module("fcntl")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def sync(self, path: Path) -> None:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that know no such thing
                raise
        finally:
            os.close(handle)

    def is_alive(self, process: int) -> bool:
        try:
            os.kill(process, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except OSError:
            return True  # somebody else's
        return True

    def end_with_children(self, process: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)

    def make_private(self, path: Path) -> None:
        path.chmod(PRIVATE_FOLDER if path.is_dir() else PRIVATE_FILE)

    def share_address(self, listener: socket.socket) -> None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    def data_folder(self) -> Path:
        if named := self.environment.get("XDG_DATA_HOME"):
            return Path(named) / FOLDER
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Application Support" / FOLDER
        return Path.home() / ".local" / "share" / FOLDER

    def cache_folder(self) -> Path:
        return Path(self.environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / FOLDER


LOCKED_BYTE = 1 << 30
"""The byte of a lock file that Windows locks. Others cannot even read what is locked, so it is none that is used."""
BUSY = (errno.EACCES, errno.EDEADLK, errno.EAGAIN)
IN_USE = (5, 32, 33)
"""Errors of Windows: access denied, sharing violation, lock violation."""
PATIENCE = 5.0
"""Seconds for another program, mostly one that looks for viruses, that has a file open which is to be replaced."""
QUERY_LIMITED_INFORMATION, STILL_ACTIVE, INVALID_PARAMETER = 0x1000, 259, 87


class Windows(System):
    """Windows. `msvcrt` and `kernel32` are its libraries, or what a test has in their place."""

    def __init__(
        self, environment: Mapping[str, str] = os.environ, *, msvcrt: Any = None, kernel32: Any = None
    ) -> None:
        super().__init__(environment)
        self._msvcrt = msvcrt or import_module("msvcrt")
        self._kernel32 = kernel32 or import_module("ctypes").windll.kernel32

    def lock(self, stream: IO[Any], *, wait: bool) -> bool:
        handle = stream.fileno()
        while True:
            os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
            try:
                self._msvcrt.locking(handle, self._msvcrt.LK_NBLCK, 1)
            except OSError as error:
                if error.errno not in BUSY:
                    return True
                if not wait:
                    return False
            else:
                return True
            finally:
                os.lseek(handle, 0, os.SEEK_SET)
            time.sleep(0.1)

    def replace(self, source: Path, target: Path) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                os.replace(source, target)
                return
            except OSError as error:
                if getattr(error, "winerror", None) not in IN_USE or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def sync(self, path: Path) -> None:
        """Only files: Windows keeps the order of a folder's entries itself, and flushes what may be written alone."""
        if path.is_dir():
            return
        handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def is_alive(self, process: int) -> bool:
        """Asks the kernel: what tests a process elsewhere (`os.kill(process, 0)`) sends it Ctrl-C here."""
        import ctypes

        handle = self._kernel32.OpenProcess(QUERY_LIMITED_INFORMATION, False, process)
        if not handle:
            return bool(self._kernel32.GetLastError() != INVALID_PARAMETER)  # else there is no such process
        code = ctypes.c_ulong()
        known = self._kernel32.GetExitCodeProcess(handle, ctypes.byref(code))
        self._kernel32.CloseHandle(handle)
        return not known or code.value == STILL_ACTIVE

    def end_with_children(self, process: int) -> None:
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(process)], capture_output=True, check=False)

    def make_private(self, path: Path) -> None:
        """Nothing: what lies in a user's folders is private there, and permission bits are not kept."""

    def share_address(self, listener: socket.socket) -> None:
        """Here REUSEADDR would let two servers have one address."""
        listener.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", -5), 1)

    def data_folder(self) -> Path:
        return self._local() / FOLDER

    def cache_folder(self) -> Path:
        return self._local() / FOLDER / "Cache"

    def _local(self) -> Path:
        return Path(self.environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")

    def prepare_streams(self) -> None:
        """What is piped would be in the code page of the machine, which has few characters."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="surrogateescape")


SYSTEM: System = Windows() if os.name == "nt" else Posix()


# What lies behind a file that appears complete: temporary names, sweeping those that were left behind, the disc.

MARK = "weitblick"
"""Part of the name of every temporary file, with the machine and process that write it."""


def _machine() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def temporary_prefix(path: Path) -> str:
    start = os.fsencode(path.name)[:60].decode("utf-8", "ignore")  # names have an end
    return f".{start}.{MARK}-{_machine()}-{os.getpid()}-"


_TEMPORARY = re.compile(rf"\..*\.{MARK}-([0-9a-f]{{8}})-(\d+)-")
_swept: set[Path] = set()


def sweep(folder: Path) -> None:
    """Removes what commands that were killed left in a folder, once for each folder and process. Temporary files of
    living processes and of other machines stay."""
    if folder in _swept:
        return
    _swept.add(folder)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _TEMPORARY.match(entry.name)
            if found and found[1] == _machine() and not SYSTEM.is_alive(int(found[2])):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    with suppress(OSError):
                        os.unlink(entry.path)


def make_durable(path: Path) -> None:
    """Returns when the disc has a file, or a folder and all in it."""
    if path.is_dir():
        for inner in path.iterdir():
            if not inner.is_symlink():
                make_durable(inner)
    SYSTEM.sync(path)
