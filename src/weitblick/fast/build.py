"""Compiles the C files beside it for this very processor, or as WEITBLICK_KERNELS says, into the user's cache.

Nobody has to ask for it: where there is a compiler and no library, the first model that is loaded starts a build in the
background (`build_in_background`), which nobody waits for; processes that start later use what it built. Only a library
that belongs to this user, and that nobody else can write, is ever loaded.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory

from weitblick.common.errors import UserError
from weitblick.common.files import atomic_path, make_folder
from weitblick.common.system import SYSTEM

FOLDER = Path(__file__).parent
PACKAGES = FOLDER.parent.parent
OPTIONS = ("-O3", "-ffp-contract=fast", "-fno-math-errno", "-fopenmp", "-fPIC")
COMPILERS = ("cc", "gcc", "clang")
VARIABLE = "WEITBLICK_KERNELS"
OFF = "off"
PROCESSORS = {"on": "-march=native", "avx2": "-march=x86-64-v3"}
"""What WEITBLICK_KERNELS may say besides OFF, and what is compiled for: this processor, or as it would be for one
that has AVX2, FMA and F16C and neither AVX-512 nor VNNI."""


def wanted() -> str:
    """OFF, or a key of PROCESSORS."""
    said = os.environ.get(VARIABLE) or "on"
    if said != OFF and said not in PROCESSORS:
        raise UserError(f"{VARIABLE}={said} names no kernels", remedy=f"use one of {', '.join([OFF, *PROCESSORS])}")
    return said


def library_path() -> Path | None:
    """Where the library for this source and this processor is, or would be; None for a user without a home."""
    texts = [path.read_text(encoding="utf-8") for path in (*_sources(), *sorted(FOLDER.glob("*.h")))]
    fingerprinted = "\n".join([*texts, *_options(), platform.machine(), _processor()])
    try:
        cache = SYSTEM.cache_folder()
    except RuntimeError:
        return None
    return cache / f"kernels-{hashlib.sha256(fingerprinted.encode()).hexdigest()[:16]}.so"


def _options() -> tuple[str, ...]:
    """Of the compiler. Kernels that are left out would be compiled for this processor."""
    return (*OPTIONS, PROCESSORS.get(wanted(), PROCESSORS["on"]))


def _sources() -> list[Path]:
    return sorted(FOLDER.glob("*.c"))


def _processor() -> str:
    """What the compiler would compile for: a home folder may be that of several machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))


def built() -> Path | None:
    """The library, if it is there, whole and nobody else's."""
    path = library_path()
    return path if path is not None and _is_private(path) and _is_sealed(path) else None


def _is_private(library: Path) -> bool:
    """Whether library and folder belong to this user and nobody else can write them: a library that another user has
    put there would run with our rights."""
    try:
        found = [place.lstat() for place in (library, library.parent)]
    except OSError:
        return False
    mine = os.geteuid() if hasattr(os, "geteuid") else found[0].st_uid
    return all(one.st_uid == mine and not one.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for one in found)


def build() -> Path:
    """The library, compiled unless it is there. What does not compute as it should in a trial is never kept."""
    if (path := built()) is not None:
        return path
    path = library_path()
    if path is None:
        raise UserError("no home folder is known", remedy="set XDG_CACHE_HOME to a folder where kernels can be kept")
    compiler = _compiler()
    _make_private(path.parent)
    with atomic_path(path) as written:
        _compile(compiler, written)
        _try(written)
        _seal(written)
    path.chmod(0o600)
    _marker(path).unlink(missing_ok=True)
    return path


def _make_private(folder: Path) -> None:
    """Makes the folder of the library, which this user alone can write."""
    make_folder(folder)
    try:
        folder.chmod(0o700)
    except OSError as error:
        raise UserError(
            f"cannot be kept from others ({error.strerror})",
            where=folder,
            remedy="set XDG_CACHE_HOME to a folder of your own",
        ) from None


# The build that nobody asked for.

STALE = 900
"""Seconds after which a build that was begun has been broken off."""
log = logging.getLogger("weitblick")


def _marker(library: Path) -> Path:
    """A file that is there while the library is built in the background, and stays, with the reason, if that fails."""
    return library.with_suffix(".building")


def build_in_background() -> None:
    """Starts a build, once for all processes of this user, if a library is wanted, missing, and could be built. It goes
    on when this process ends. This process never uses what it builds: its results stay the same to its end."""
    if wanted() == OFF or built() is not None or (path := library_path()) is None:
        return
    if not os.environ.get("CC") and not any(map(shutil.which, COMPILERS)):
        return
    try:
        _make_private(path.parent)
        if not _begin(_marker(path)):
            return
        process = Popen(
            [sys.executable, "-m", "weitblick.fast", BACKGROUND],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, UserError):  # all that can be lost is time
        return
    threading.Thread(target=process.wait, daemon=True).start()  # lest it stay behind as a zombie
    log.warning(
        "a faster engine is being built for this processor, in the background and once; it is used from the next start "
        "on (%s=%s: never)",
        VARIABLE,
        OFF,
    )


BACKGROUND = "--background"


def _begin(marker: Path) -> bool:
    """Whether this process is the one to begin: it has made the marker, or found one of a build that was broken off."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        found = marker.stat()
        if found.st_size or time.time() - found.st_mtime < STALE:
            return False  # it has failed, or goes on
        os.utime(marker)
    return True


def finish_in_background() -> None:
    """The build itself, in a process of its own, behind all that has more to do. A failure is noted in the marker: the
    same build would fail again."""
    with suppress(OSError, AttributeError):
        os.nice(19)
    path = library_path()
    try:
        build()
    except UserError as error:
        if path is not None:
            _marker(path).write_text(f"{error}\n", encoding="utf-8")


def _environment() -> dict[str, str]:
    """For processes of our own: they find this very package, wherever it was imported from."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(PACKAGES), os.environ.get("PYTHONPATH"))))}


def _compiler() -> list[str]:
    """A command, of which CC may have several words, as for make."""
    try:
        said = shlex.split(os.environ.get("CC", ""))
    except ValueError as error:
        raise UserError(f"CC={os.environ['CC']} is no command ({error})", remedy="set CC to a C compiler") from None
    found = said or list(filter(shutil.which, COMPILERS))[:1]
    if not found:
        raise UserError("no C compiler is here", remedy="install gcc or clang, or go on without: nothing needs kernels")
    return found


def _compile(compiler: list[str], library: Path) -> None:
    # By the name of a temporary file the folder is swept, too, if we are killed.
    with TemporaryDirectory(dir=library.parent, prefix=library.name) as folder:
        objects = [str(Path(folder) / f"{source.stem}.o") for source in _sources()]
        for source, compiled in zip(_sources(), objects, strict=True):
            _run([*compiler, *_options(), "-c", str(source), "-o", compiled])
        # Not linked against a library of OpenMP: the one that PyTorch has loaded is to be the only one.
        _run([*compiler, "-shared", *objects, "-o", str(library), "-lm"])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise UserError(f"{command[0]}: {error.strerror}", remedy="set CC to a C compiler") from None
    if done.returncode:
        raise UserError(
            f"the compiler failed: {_reason(done)}", remedy="set CC to another C compiler, or go on without kernels"
        )


def _try(library: Path) -> None:
    """In a process of its own: it may die of what the compiler made, or of what the processor cannot do."""
    command = [sys.executable, "-m", "weitblick.fast.kernels", str(library)]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise UserError(
            f"the kernels were built, but fail: {_reason(done)}",
            remedy="set CC to another C compiler, or go on without kernels",
        )


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """One line for why a process failed: its first that tells of an error."""
    if done.returncode < 0:
        return signal.strsignal(-done.returncode) or f"signal {-done.returncode}"
    lines = done.stderr.splitlines()
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else f"exit {done.returncode}")


def _seal(library: Path) -> None:
    """Its checksum goes behind the library, where no loader looks: one that was damaged would take us with it."""
    with library.open("ab") as stream:
        stream.write(hashlib.sha256(library.read_bytes()).digest())


def _is_sealed(library: Path) -> bool:
    try:
        content = library.read_bytes()
    except OSError:  # not there, or not for us
        return False
    size = hashlib.sha256().digest_size
    return hashlib.sha256(content[:-size]).digest() == content[-size:]
