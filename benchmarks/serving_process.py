"""Servers of the benchmarks: processes of their own, started and ended within a limit of time."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

STARTING = 300.0
ENDING = 30.0
"""Seconds that a server may take to listen, and to go down."""


class ServerProcess:
    """`command` starts a server that prints its address when it listens."""

    def __init__(self, command: Sequence[str], log: IO[str] | None = None) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        try:
            self.address = self._address()
        except BaseException:
            self.kill()
            raise

    def _address(self) -> str:
        assert self.process.stdout is not None
        said, end = b"", time.monotonic() + STARTING
        while time.monotonic() < end:
            if select.select([self.process.stdout], [], [], 0.5)[0]:
                part = os.read(self.process.stdout.fileno(), 4096)
                said += part
                found = re.search(rb"http://\S+?(?=/?[\s(])", said)
                if found:
                    return found.group().decode()
                if not part:
                    break
        raise SystemExit(f"the server did not listen within {STARTING:g} s, or ended: {said.decode()!r}")

    @property
    def resident_megabytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) // 1024

    def end(self) -> int:
        """Asks it to go down, and gives its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(ENDING)
        except subprocess.TimeoutExpired:
            self.kill()
            raise SystemExit(f"the server did not go down within {ENDING:g} s") from None

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(ENDING)
