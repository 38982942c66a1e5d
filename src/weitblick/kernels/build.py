"""Compiles the C files beside it for this very processor, or as WEITBLICK_KERNELS says, into the user's cache."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

from weitblick.errors import UserError
from weitblick.files import atomic_path, make_folder

FOLDER = Path(__file__).parent
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


def library_path() -> Path:
    """Where the library for this source and this processor is, or would be."""
    texts = [path.read_text(encoding="utf-8") for path in (*_sources(), *sorted(FOLDER.glob("*.h")))]
    told = "\n".join([*texts, *_options(), platform.machine(), _processor()])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "weitblick" / f"kernels-{hashlib.sha256(told.encode()).hexdigest()[:16]}.so"


def _options() -> tuple[str, ...]:
    """Of the compiler. Kernels that are left out would be compiled for this processor."""
    return (*OPTIONS, PROCESSORS.get(wanted(), PROCESSORS["on"]))


def _sources() -> list[Path]:
    return sorted(FOLDER.glob("*.c"))


def _processor() -> str:
    """What the compiler would compile for: a home folder may be that of several machines."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8", errors="replace").splitlines() if known.exists() else []
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))


def build() -> Path:
    """The library, compiled unless it is there."""
    path = library_path()
    if path.exists():
        return path
    compiler = os.environ.get("CC") or next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        raise UserError("no C compiler is here", remedy="install gcc or clang, or go on without: nothing needs kernels")
    make_folder(path.parent)
    with atomic_path(path) as written:
        # Not linked against a library of OpenMP: the one that PyTorch has loaded is to be the only one.
        objects = [written.with_suffix(f".{source.stem}.o") for source in _sources()]
        for source, compiled in zip(_sources(), objects, strict=True):
            _run([compiler, *_options(), "-c", str(source), "-o", str(compiled)])
        _run([compiler, "-shared", *map(str, objects), "-o", str(written), "-lm"])
        for compiled in objects:
            compiled.unlink()
    return path


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise UserError(f"{command[0]}: {error.strerror}", remedy="set CC to a C compiler") from None
    if done.returncode:
        first = next(iter(done.stderr.splitlines()), f"exit code {done.returncode}")
        raise UserError(
            f"the compiler failed: {first}", remedy="set CC to another C compiler, or go on without kernels"
        )
