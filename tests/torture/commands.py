"""Runs commands in forked children of one warm process: a hundred in the time in which one would start."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from weitblick.cli.main import main

MEMORY = 2 << 30  # bytes that a command may take beyond what the warm process has
SECONDS = 120.0


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code (negative: the signal that killed it), and what it wrote."""

    code: int
    output: str
    errors: str
    seconds: float

    def sound(self) -> None:
        """What holds for every command, whatever it was given."""
        assert self.code in (0, 2), f"exit code {self.code}: {self.errors[-2000:]}"
        assert "Traceback" not in self.errors, self.errors[-3000:]
        if self.code == 2:
            assert self.complaint.startswith("weitblick: "), self.errors[-2000:]
            assert len(self.complaint) < 2500

    @property
    def complaint(self) -> str:
        """The last line of the errors, which must be all that a mistake says about itself."""
        lines = self.errors.strip().splitlines()
        return lines[-1] if lines else ""


def weitblick(
    *arguments: str | Path,
    folder: Path,
    stdin: bytes = b"",
    before: Callable[[], None] | None = None,
    seconds: float = SECONDS,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """`weitblick ARGUMENTS` in `folder`. `before` is called in the child, first of all."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        sys.stdout.flush()
        sys.stderr.flush()
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            _become(arguments, folder, (given.fileno(), output.fileno(), errors.fileno()), before, environment)
        code = _wait(child, began + seconds)
        texts = []
        for stream in (output, errors):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
        return Outcome(code, *texts, time.monotonic() - began)


def _become(
    arguments: tuple[str | Path, ...],
    folder: Path,
    streams: tuple[int, int, int],
    before: Callable[[], None] | None,
    environment: Mapping[str, str] | None,
) -> None:
    """The child: a process as a shell would start it, as far as a command can tell. Never returns."""
    code = 70
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (they live as long as the process)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
        os.chdir(folder)
        os.environ.update(environment or {})
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.argv = ["weitblick", *map(str, arguments)]
        if before is not None:
            before()
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 1
        os._exit(code)


def _wait(child: int, deadline: float) -> int:
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -signal.SIGALRM  # it hung
        time.sleep(0.005)
