"""One stage of training: its resumable state, the weights that it may end with, its updates and validations."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, Field

from weitblick.checkpoints.folder import load_weights, read_weights, weights_of, write_tensors
from weitblick.common.errors import UserError, parse_json
from weitblick.common.files import (
    atomic_folder,
    check_regular_file,
    make_folder,
    read_lines,
    recover_folders,
    write_json,
)
from weitblick.common.locks import Interrupted, StopRequest
from weitblick.common.logs import Logs
from weitblick.common.process import World
from weitblick.model.document_model import DocumentModel
from weitblick.training.update import Optimiser, Plan, StageTask, Updater, UpdateSums
from weitblick.training.validation import Validation, validate

FORMAT_VERSION: Literal[1] = 1
WEIGHTS, OPTIMISER, PROGRESS = "weights.safetensors", "optimiser.safetensors", "progress.json"


class Progress(BaseModel):
    """Where a stage stands: all that is not a tensor."""

    format_version: Literal[1] = FORMAT_VERSION
    update: int = Field(0, ge=0)
    epoch: int = Field(0, ge=0)
    group: int = Field(0, ge=0)  # next group of batches in the epoch
    tokens: int = 0
    seconds: float = 0.0
    best: float = float("inf")
    best_update: int = 0
    last: float = float("inf")
    stale: int = 0  # validations since the best
    kept: list[tuple[float, int]] = Field(default_factory=list)  # (dev perplexity, update) of checkpoints to average
    scaler: dict[str, Any] = Field(default_factory=dict)  # of half precision
    finished: bool = False
    reason: str = ""


def save_state(folder: Path, model: torch.nn.Module, optimiser: Optimiser, progress: Progress) -> None:
    with atomic_folder(make_folder(folder) / f"state-{progress.update:09d}") as temporary:
        write_tensors(temporary / WEIGHTS, weights_of(model))
        write_tensors(temporary / OPTIMISER, optimiser.tensors())
        write_json(temporary / PROGRESS, progress.model_dump())
    for older in _states(folder)[:-1]:
        shutil.rmtree(older, ignore_errors=True)


def load_state(folder: Path, model: torch.nn.Module, optimiser: Optimiser) -> Progress | None:
    """Restores the newest state; None where there is none."""
    recover_folders(folder)
    states = _states(folder)
    if not states:
        return None
    newest = states[-1]
    load_weights(model, read_weights(newest / WEIGHTS), newest / WEIGHTS)
    optimiser.restore(read_weights(newest / OPTIMISER), newest / OPTIMISER)
    return read_progress(newest)


def read_progress(state: Path) -> Progress:
    path = state / PROGRESS
    check_regular_file(path)
    remedy = "delete the folder that it stands in: the stage goes on from the state before, or from its beginning"
    text = "\n".join(read_lines(path))
    progress = parse_json(Progress, text, path, remedy=remedy)
    missing = Progress.model_fields.keys() - progress.model_fields_set
    if missing:
        raise UserError(f"field {min(missing)!r} is missing", where=path, remedy=remedy)
    return progress


def _states(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("state-*") if path.is_dir())


# The weights that a stage may end with: the best by dev perplexity, and the few best, to be averaged.

BEST = "best.safetensors"


class Checkpoints:
    """Files of one stage, written by the first process alone; `count` checkpoints are kept beside the best."""

    def __init__(self, folder: Path, count: int, *, active: bool) -> None:
        self.folder, self.count, self.active = folder, count, active

    def consider(self, model: DocumentModel, progress: Progress, perplexity: float) -> None:
        """After a validation: keeps the weights if they are the best so far, or among the best few."""
        progress.last = perplexity
        if perplexity < progress.best:
            progress.best, progress.best_update, progress.stale = perplexity, progress.update, 0
            if self.active:
                write_tensors(make_folder(self.folder) / BEST, weights_of(model))
        else:
            progress.stale += 1
        if self.count > 1:
            self._keep(model, progress, perplexity)

    def _keep(self, model: DocumentModel, progress: Progress, perplexity: float) -> None:
        progress.kept = sorted({*progress.kept, (perplexity, progress.update)})[: self.count]  # a stage may end twice
        if not self.active:
            return
        if (perplexity, progress.update) in progress.kept:
            make_folder(self.folder / "checkpoints")
            write_tensors(self._kept_path(progress.update), weights_of(model))
        names = {self._kept_path(update).name for _, update in progress.kept}
        for path in (self.folder / "checkpoints").glob("*.safetensors"):
            if path.name not in names:
                path.unlink()

    def _kept_path(self, update: int) -> Path:
        return self.folder / "checkpoints" / f"{update:09d}.safetensors"

    def load_best(self, model: DocumentModel) -> None:
        path = self.folder / BEST
        load_weights(model, read_weights(path), path)

    def load_average(self, model: DocumentModel, progress: Progress) -> bool:
        """Loads the average of the kept checkpoints; False if there are no two."""
        if len(progress.kept) < 2:
            return False
        paths = [self._kept_path(update) for _, update in progress.kept]
        load_weights(model, average_weights(paths), paths[0])
        return True


def average_weights(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
    total = {name: value.double() for name, value in read_weights(paths[0]).items()}
    for path in paths[1:]:
        for name, value in read_weights(path).items():
            total[name] += value.double()
    return {name: (value / len(paths)).float() for name, value in total.items()}


# One stage of training: updates, validations, saves; stops early; resumes to the same weights.

LOG_EVERY = 20


class StageRun:
    """The loop of a stage. Its parts: an `Updater` trains, `Checkpoints` keep weights, `Logs` tell."""

    def __init__(
        self, task: StageTask, model: DocumentModel, world: World, *, quiet: bool = False, finish: bool = False
    ) -> None:
        self.task, self.model, self.world, self.quiet = task, model.to(world.device), world, quiet
        self.finish = finish  # end the stage where it stands, without another update
        self.optimiser = Optimiser(model, task.section)
        self.update = Updater(task, model, self.optimiser, world)
        self.checkpoints = Checkpoints(task.folder, task.section.average, active=world.first)
        self.progress = load_state(task.folder, model, self.optimiser) or Progress()
        self.update.scaler.load_state_dict(self.progress.scaler)
        self.stop = StopRequest()

    def run(self) -> Progress:
        """Trains until done; returns where it ended. The best weights are in `best.safetensors`."""
        if self.progress.finished:
            return self.progress
        done, updates = self.progress.update, self.task.section.updates
        with (
            Logs(self.task.folder, self.task.name, updates, done, active=self.world.first, quiet=self.quiet) as logs,
            self.stop,
        ):
            self.model.train()
            reason = self._loop(logs)
            self.progress.finished, self.progress.reason = True, reason
            self._save()
            self.world.barrier()
        return self.progress

    def _loop(self, logs: Logs) -> str:
        """Trains; returns why it ended."""
        section, progress = self.task.section, self.progress
        dev_plans = self.task.dev_plans()
        if progress.update == 0 or self.finish:
            self._validate(logs, dev_plans)
        if self.finish:
            return f"ended by hand after {progress.update} updates"
        sums, pace = UpdateSums(), _Pace(progress.update)
        for plans in self._batches():
            clock = time.monotonic()
            sums += self._update(plans)
            progress.seconds += time.monotonic() - clock
            if progress.update % LOG_EVERY == 0:
                self._log(logs, sums, pace)
                sums = UpdateSums()
            if progress.update % section.validate_every == 0:
                self._validate(logs, dev_plans)
                if progress.stale >= section.patience:
                    return f"no better dev perplexity in {section.patience} validations"
            stop = self._asked_to_stop()
            if stop or progress.update % section.save_every == 0:
                self._save()
            if stop:
                raise Interrupted(f"stopped at update {progress.update}; the same command goes on from there")
        if progress.update % section.validate_every:
            self._validate(logs, dev_plans)
        return "all updates done" if progress.update >= section.updates else "all epochs done"

    def _batches(self) -> Iterator[Sequence[Plan]]:
        """This process's batches of each update, from where the stage stands to its last."""
        section, progress, world = self.task.section, self.progress, self.world
        size = section.accumulate * world.size
        while progress.epoch < section.epochs and progress.update < section.updates:
            plans = self.task.plans(progress.epoch)
            groups = -(-len(plans) // size)
            while progress.group < groups and progress.update < section.updates:
                first = progress.group * size
                progress.update += 1
                progress.group += 1
                yield plans[first : first + size][world.rank :: world.size]
            if progress.group >= groups:
                progress.epoch, progress.group = progress.epoch + 1, 0

    def _update(self, plans: Sequence[Plan]) -> UpdateSums:
        sums = self.update(plans, self.progress.update)
        self.progress.tokens += int(sums.tokens)
        return sums

    def _asked_to_stop(self) -> bool:
        """Whether any process was: all of them stop at the same update."""
        if self.world.size == 1:
            return bool(self.stop)
        return bool(self.world.sum(torch.tensor([float(bool(self.stop))])))

    def _save(self) -> None:
        if self.world.first:
            self.progress.scaler = self.update.scaler.state_dict()
            save_state(self.task.folder, self.model, self.optimiser, self.progress)

    def _log(self, logs: Logs, sums: UpdateSums, pace: _Pace) -> None:
        progress, updates = self.progress, self.task.section.updates
        figures = sums.means()
        figures["tokens_per_second"] = progress.tokens / max(1e-9, progress.seconds)
        logs.write("train", progress.update, {**figures, "rate": self.optimiser.adam.param_groups[1]["lr"]})
        logs.show(progress.update, updates, figures, pace.left(progress.update, updates))

    def _validate(self, logs: Logs, plans: Sequence[Plan]) -> Validation:
        progress = self.progress
        result = self._judge(plans)
        if not np.isfinite(result.loss):
            raise UserError(
                f"the loss on dev is not finite after update {progress.update}",
                where=self.task.folder,
                remedy="the last saved state is kept; lower learning_rate or clip",
            )
        logs.write("dev", progress.update, result.figures())
        logs.say(f"{self.task.name} update {progress.update}: {result}")
        self.checkpoints.consider(self.model, progress, result.perplexity)
        return result

    def _judge(self, plans: Sequence[Plan]) -> Validation:
        task = self.task
        return validate(self.model, task.dev, plans, task.seed, self.world, translated=task.dev_translated)

    def take_best(self) -> float:
        """Loads the best weights, or the average of the kept ones where that is better on dev; its dev perplexity.
        Where the last ones are wanted they stay."""
        progress = self.progress
        if self.task.section.result == "last":
            return progress.last
        if self.checkpoints.load_average(self.model, progress):
            result = self._judge(self.task.dev_plans())
            if result.perplexity < progress.best:
                return result.perplexity
        self.checkpoints.load_best(self.model)
        return progress.best


class _Pace:
    """How long the rest will take, if it goes on as since the start of this process."""

    def __init__(self, update: int) -> None:
        self._began, self._first = time.monotonic(), update

    def left(self, update: int, updates: int) -> float:
        return (time.monotonic() - self._began) / max(1, update - self._first) * (updates - update)
