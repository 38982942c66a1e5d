"""Steps that leave their result on disk: a step whose result is there, from the same inputs, is not done again."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from weitblick.files import make_folder, read_json, write_json

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Step:
    """inputs: everything that decides the result, as plain data; needs: steps whose results it reads; outputs: files
    and folders that it leaves, besides the record of its result; work: does it, and gives a result for JSON."""

    kind: str
    name: str
    inputs: Mapping[str, Any]
    work: Callable[[], Any]
    needs: Sequence[Step] = ()
    outputs: Sequence[Path] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the estimate of its cost needs; no part of the fingerprint."""

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_of(self.kind, self.inputs, self.needs)


def fingerprint_of(kind: str, inputs: Mapping[str, Any], needs: Sequence[Step] = ()) -> str:
    """Changes with the inputs of the step and of every step that it needs."""
    everything = [kind, inputs, [need.fingerprint for need in needs]]
    return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()


class Ledger:
    """The records of finished steps, a file each in the folder of a study."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "steps"

    def _path(self, step: Step) -> Path:
        return self.folder / f"{step.kind.replace(' ', '-')}.{step.name}.json"

    def record(self, step: Step) -> dict[str, Any] | None:
        """The record of a step that is done with these very inputs, and whose outputs are there; else None."""
        path = self._path(step)
        if not path.is_file() or not all(output.exists() for output in step.outputs):
            return None
        record = read_json(path)
        same = record.get("format_version") == FORMAT_VERSION and record.get("fingerprint") == step.fingerprint
        return record if same else None

    def done(self, step: Step) -> bool:
        return self.record(step) is not None

    def result(self, step: Step) -> Any:
        record = self.record(step)
        assert record is not None, f"{step.kind} {step.name} has not been done"
        return record["result"]

    def run(self, step: Step) -> float:
        """Does a step and records it; gives the seconds it took."""
        started = time.perf_counter()
        result = step.work()
        seconds = time.perf_counter() - started
        make_folder(self._path(step).parent)
        write_json(
            self._path(step),
            {
                "format_version": FORMAT_VERSION,
                "step": f"{step.kind} {step.name}",
                "fingerprint": step.fingerprint,
                "seconds": round(seconds, 2),
                "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "inputs": dict(step.inputs),
                "result": result,
            },
        )
        return seconds


def run_steps(steps: Sequence[Step], ledger: Ledger, say: Callable[[str], None]) -> None:
    """Does what is missing, in order."""
    for number, step in enumerate(steps, 1):
        what = f"[{number}/{len(steps)}] {step.kind} {step.name}"
        if ledger.done(step):
            say(f"{what}: done before")
            continue
        say(what)
        say(f"{what}: done in {ledger.run(step):.0f} s")
