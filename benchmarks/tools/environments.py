"""Peers in virtual environments of their own, and the processes that run them.

Nothing here is a dependency of the product. An environment is made once, in the work folder, and kept.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.turns import console
from weitblick.common.threads import SPIN_COUNT, USERS_OWN

PEERS = Path(__file__).parent.parent / "peers"
WORK_FOLDER = Path("~/.cache/weitblick-bench").expanduser()
TORCH = "torch==2.13.0"
OUR_THREADS = {"GOMP_SPINCOUNT": str(SPIN_COUNT)}
"""What `import weitblick` sets before PyTorch is loaded; our contestants load PyTorch first."""

INSTRUCTIONS: dict[str, dict[str, str]] = {
    "native": {},
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "DNNL_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "FBGEMM_ENABLE_INSTRUCTIONS": "AVX2",
        "CT2_FORCE_CPU_ISA": "AVX2",
    },
}
"""What holds all contestants to the instructions of an older processor: PyTorch, the libraries inside, CTranslate2."""

# PyTorch first: what needs it would otherwise bring another build of it.
PACKAGES = {
    "joeynmt": [[TORCH], ["joeynmt==2.3.0", "importlib_metadata"]],
    "marian": [[TORCH], ["transformers==5.*", "sentencepiece", "ctranslate2==4.*"]],
}


def environment(name: str, work_folder: Path) -> Path:
    """The Python of a peer, whose environment is made if it is not there."""
    folder = work_folder / name
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        console.print(f"making the environment of {name} in {folder} (once) ...")
        if not python.exists():
            venv.create(folder, with_pip=True)
        for packages in PACKAGES[name]:
            command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
            subprocess.run(command, check=True)
        ready.touch()
    return python


class Worker:
    """A process that makes its model once, then runs when it is told to, and is idle in between."""

    def __init__(
        self,
        name: str,
        python: Path | str,
        script: str,
        task: dict[str, Any],
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """variables: how OpenMP's threads wait (whatever the caller's environment says about that is left out), and
        whether our own kernels are used."""
        self.name = name
        threads = str(task["threads"])
        inherited = {key: value for key, value in os.environ.items() if key not in USERS_OWN}
        own = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": "false"}
        self.process = subprocess.Popen(
            [str(python), str(PEERS / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**inherited, **own, **(variables or {}), "HF_HUB_OFFLINE": "1"},
        )
        self.facts = self.ask(task)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with code {self.process.wait()}; its message is above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def python_with(name: str, work_folder: Path) -> Path | str:
    """A Python that has a peer's packages: this one, if it has them all, or one of an environment of its own."""
    wanted = [re.split("[=<>]", package)[0] for packages in PACKAGES[name] for package in packages]
    return our_python() if all(find_spec(package) for package in wanted) else environment(name, work_folder)


def our_python() -> str:
    return sys.executable
