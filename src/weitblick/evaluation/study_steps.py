"""Steps that leave their result on disk: a step whose result is there, from the same inputs, is not done again."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from weitblick.common.errors import UserError
from weitblick.common.files import make_folder, read_json, write_json
from weitblick.common.locks import Interrupted, StopRequest, try_lock

FORMAT_VERSION = 1
WAIT = 2.0  # seconds between looks at what other processes have done


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

    @property
    def timed(self) -> bool:
        """Whether its time depends on a model and a corpus, and can be told in advance if these are there."""
        return bool(self.facts)

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
        self.folder, self._study = folder / "steps", folder / "study.json"

    def check(self, study: str) -> None:
        """Refuses the folder of a study of another name: its steps would be taken for this one's, or be replaced."""
        found = read_json(self._study).get("study") if self._study.is_file() else study
        if found != study:
            remedy = "choose another folder: -o DIR"
            raise UserError(f"holds the study {found!r}, not {study!r}", where=self._study.parent, remedy=remedy)

    def open(self, study: str) -> None:
        """Makes the folder this study's."""
        self.check(study)
        make_folder(self.folder)
        if not self._study.is_file():
            write_json(self._study, {"format_version": FORMAT_VERSION, "study": study})

    @contextmanager
    def claim(self, step: Step) -> Iterator[bool]:
        """Whether this process may do the step: no other does so at the same time."""
        path = self._path(step)
        make_folder(path.parent)
        with try_lock(path.with_name(f".{path.stem}.lock")) as mine:
            yield mine

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
    """Does what is missing, in order as far as possible. Any number of processes may do so at once for one folder: a
    step is claimed by a lock, so that each is done once; what another one is at is waited for. A process that is killed
    loses its claim, and whoever comes next goes on with the step."""
    finished: set[int] = set()
    while len(finished) < len(steps):
        did = False
        for number, step in enumerate(steps):
            if number in finished:
                continue
            what = f"[{number + 1}/{len(steps)}] {step.kind} {step.name}"
            if ledger.done(step):
                say(f"{what}: done before")
                finished.add(number)
            elif all(ledger.done(need) for need in step.needs) and (did := _do(step, ledger, what, say)):
                finished.add(number)
                break  # what stands before it may be possible now
        if not did and len(finished) < len(steps):
            time.sleep(WAIT)


def _do(step: Step, ledger: Ledger, what: str, say: Callable[[str], None]) -> bool:
    """Does a step, unless another process is at it or has done it meanwhile; says whether it is done."""
    with ledger.claim(step) as mine:
        if not mine:
            return False
        if not ledger.done(step):
            say(what)
            say(f"{what}: done in {ledger.run(step):.0f} s")
        return True


# In parallel: processes of the same command, each on its device, that share the steps by locks.


DISTRIBUTED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
LOOK = 0.5  # seconds between looks at whether a job has ended


def continue_alone() -> bool:
    """Whether this process is to work: under `torchrun` the first one alone does, as if it had been started without.
    Steps are shared out by jobs, not by the processes of one training."""
    first = os.environ.get("RANK", "0") == "0"
    for name in DISTRIBUTED:
        os.environ.pop(name, None)
    return first


def devices_of(device: str, jobs: int | None) -> list[str]:
    """The device of each job: every GPU has one, or as many as are wanted take turns; on a CPU one if none is named."""
    gpus = torch.cuda.device_count() if device in ("auto", "cuda") and torch.cuda.is_available() else 0
    if not gpus:
        return [device] * (jobs or 1)
    return [f"cuda:{number % gpus}" for number in range(jobs or gpus)]


def threads_of(threads: int | None, jobs: int) -> int:
    """Threads of each job: what the study says, or its share of the cores."""
    return threads or max(1, (os.cpu_count() or 1) // jobs)


def run_jobs(arguments: Sequence[str], devices: Sequence[str], threads: int, say: Callable[[str], None]) -> int:
    """Runs `weitblick reproduce` with these arguments once for each device, and waits; gives the exit code. When one
    fails, or this process is asked to stop, the others stop where they can go on later."""
    say(f"{len(devices)} jobs of {threads} threads on {', '.join(dict.fromkeys(devices))}")
    command = [sys.executable, "-m", "weitblick", "reproduce", *arguments, "--steps-only", f"threads={threads}"]
    jobs = [subprocess.Popen([*command, f"device={device}"]) for device in devices]
    code = 0
    with StopRequest() as stop:
        while any(job.poll() is None for job in jobs):
            failed = next((job.returncode for job in jobs if job.returncode), 0)
            if (failed or stop) and not code:
                code = failed or 130
                for job in jobs:
                    job.terminate()
            time.sleep(LOOK)
        code = code or next((job.returncode for job in jobs if job.returncode), 0)
        if stop:
            raise Interrupted("stopped; the same command goes on from there")
    return code
