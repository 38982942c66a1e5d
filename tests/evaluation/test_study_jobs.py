"""Several processes share the steps of a study, and each step is done once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from study_samples import STUDY, reproduce, study_file

from weitblick.evaluation.study_steps import Ledger, Step, continue_alone, devices_of, run_steps


def test_processes_share_the_steps_of_a_study(
    tmp_path: Path, corpus: Path, finished: tuple[Path, dict[str, Any]]
) -> None:
    """Two jobs of a process each: what they leave is what one process leaves."""
    path = study_file(tmp_path, corpus)
    command = [sys.executable, "-m", "weitblick", "reproduce", str(path), "-o", str(tmp_path / "out"), "--jobs", "2"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == finished[1]
    steps = [line.split("] ")[1].split(": done in")[0] for line in done.stderr.splitlines() if ": done in" in line]
    assert len(steps) == len(set(steps)) == len(list((tmp_path / "out" / "steps").glob("*.json")))


def test_jobs_that_are_killed_leave_what_the_next_ones_finish(
    tmp_path: Path, corpus: Path, finished: tuple[Path, dict[str, Any]]
) -> None:
    """Killed without a chance to tell its jobs, which go on, then asked to stop while others work on the folder."""
    path, out = study_file(tmp_path, corpus), tmp_path / "out"
    command = [sys.executable, "-m", "weitblick", "reproduce", str(path), "-o", str(out), "--jobs", "2", "--quiet"]
    for stop in (signal.SIGKILL, signal.SIGTERM):
        started = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        before = len(list(out.glob("steps/*.json")))
        while started.poll() is None and len(list(out.glob("steps/*.json"))) <= before:
            time.sleep(0.05)
        started.send_signal(stop)
        assert started.wait() in (-stop, 130)  # the second one may come before anybody listens
    assert not (out / "tables.json").exists()
    assert reproduce(path, "-o", out) == finished[1]


def test_a_claimed_step_is_left_to_whoever_has_it(tmp_path: Path) -> None:
    """Threads stand for processes: a lock belongs to an open file."""
    ledger, done = Ledger(tmp_path), []
    slow = Step("kind", "slow", {}, lambda: (time.sleep(0.5), done.append("slow"))[1])
    quick = Step("kind", "quick", {}, lambda: done.append("quick"))
    last = Step("kind", "last", {}, lambda: done.append("last"), [slow, quick])
    with ThreadPoolExecutor(2) as pool:
        for work_of_one in [pool.submit(run_steps, [slow, quick, last], ledger, lambda _: None) for _ in range(2)]:
            work_of_one.result()
    assert sorted(done) == ["last", "quick", "slow"]
    assert done[-1] == "last"


def test_a_job_that_fails_ends_the_others(tmp_path: Path, corpus: Path) -> None:
    text = STUDY.replace("contrast.jsonl", "broken.jsonl").replace("CORPUS", str(tmp_path / "corpus"))
    shutil.copytree(corpus, tmp_path / "corpus")
    (tmp_path / "corpus" / "broken.jsonl").write_text("{}\n", encoding="utf-8")
    path = study_file(tmp_path, corpus, text)
    command = [sys.executable, "-m", "weitblick", "reproduce", str(path), "-o", str(tmp_path / "out"), "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "broken.jsonl" in done.stderr
    assert not (tmp_path / "out" / "tables.json").exists()


def test_under_torchrun_one_process_works_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for rank, works in (("0", True), ("1", False)):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert continue_alone() is works
        assert "WORLD_SIZE" not in os.environ


def test_every_gpu_has_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices_of("cpu", None) == ["cpu"]
    assert devices_of("cpu", 3) == ["cpu"] * 3
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices_of("auto", None) == ["cuda:0", "cuda:1"]
    assert devices_of("cuda", 3) == ["cuda:0", "cuda:1", "cuda:0"]
    assert devices_of("cuda:1", None) == ["cuda:1"]


def test_a_step_whose_output_is_gone_is_done_again(tmp_path: Path) -> None:
    output, ledger, done = tmp_path / "output", Ledger(tmp_path), []

    def work_once() -> int:
        output.write_text("x")
        done.append(1)
        return len(done)

    step = Step("kind", "name", {"a": 1}, work_once, outputs=(output,))
    for _ in range(2):
        run_steps([step], ledger, lambda _: None)
    assert (len(done), ledger.result(step)) == (1, 1)
    output.unlink()
    run_steps([step], ledger, lambda _: None)
    assert ledger.result(step) == 2
    assert not ledger.done(Step("kind", "name", {"a": 2}, work_once, outputs=(output,)))
    assert not ledger.done(Step("kind", "name", {"a": 1}, work_once, [step], outputs=(output,)))
