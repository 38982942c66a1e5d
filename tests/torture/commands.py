"""`weitblick` as a function: many commands in the time of one, each with limits, and what must hold for all of them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forge import HUNG

SECONDS = 200.0
"""Of the processor, after which a command hangs."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code (negative: the signal that killed it), and what it wrote."""

    arguments: tuple[str, ...]
    code: int
    seconds: float  # of the processor
    output: bytes
    errors: str

    def sound(self) -> Outcome:
        """What holds for every command, whatever it was given and whatever happened to its files."""
        shown = f"weitblick {' '.join(self.arguments)[:2000]}\nexit code {self.code}\n{self.errors[-3000:]}"
        assert self.code != HUNG, f"hangs: {shown}"
        found_faults = self.code == 1 and self.arguments[:2] == ("data", "check")  # as other programs that check do
        assert self.code in (0, 2) or found_faults, shown
        assert "Traceback" not in self.errors, shown
        assert "Error:" not in self.errors, shown
        if self.code == 2:
            last = self.complaint
            assert last.startswith("weitblick: "), shown
            assert len(last) < 2500, shown
            assert "out of memory" not in last, shown
            assert sum(line.startswith("weitblick: ") and ": warning: " not in line for line in self.lines) >= 1
        return self

    @property
    def lines(self) -> list[str]:
        return self.errors.strip().splitlines()

    @property
    def complaint(self) -> str:
        """The last line of the errors, which must be all that a mistake says about itself."""
        return self.lines[-1] if self.lines else ""


class Commands:
    """Runs commands in a folder, in forks of one process that has imported everything (see `forge`)."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"  # else what a command writes depends on those before it
        environment.pop("PYTHONWARNINGS", None)
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forge.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def close(self) -> None:
        self._process.kill()  # it holds nothing that would have to be put away
        self._process.wait()

    def __call__(
        self, folder: Path, *arguments: str | Path, stdin: bytes | None = None, seconds: float = SECONDS, **trap: Any
    ) -> Outcome:
        """One command; for the traps see `forge`."""
        return self.each(folder, [arguments], [stdin], seconds=seconds, **trap)[0]

    def each(
        self,
        folder: Path,
        commands: Sequence[Sequence[str | Path]],
        stdins: Sequence[bytes | None] = (),
        *,
        seconds: float = SECONDS,
        **trap: Any,
    ) -> list[Outcome]:
        """Many commands that do not need each other; those that crash or hang do so alone."""
        plain = [tuple(map(str, command)) for command in commands]
        with tempfile.TemporaryDirectory() as streams:
            os.chmod(streams, 0o777)
            for number, given in enumerate(stdins):
                if given is not None:
                    Path(streams, f"{number}.in").write_bytes(given)
            request = {
                "commands": plain,
                "folder": str(folder),
                "streams": streams,
                "seconds": seconds,
                "trap": trap,
            }
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            pickle.dump(request, self._process.stdin)
            self._process.stdin.flush()
            ends = pickle.load(self._process.stdout)
            return [
                Outcome(
                    command,
                    *end,
                    _content(Path(streams, f"{number}.out")),
                    _content(Path(streams, f"{number}.err")).decode("utf-8", "replace"),
                )
                for number, (command, end) in enumerate(zip(plain, ends, strict=True))
            ]


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def contents(folder: Path, *, hidden: bool = True) -> dict[str, bytes]:
    """Every file in a folder, for comparison."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and (hidden or not path.name.startswith("."))
    }
