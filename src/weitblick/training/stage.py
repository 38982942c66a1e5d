"""One stage of training: updates, validations, saves; stops early; resumes to the same weights."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from weitblick.distributed import World
from weitblick.errors import UserError
from weitblick.model.document_model import DocumentModel
from weitblick.training.checkpoints import Checkpoints
from weitblick.training.figures import UpdateSums
from weitblick.training.interruption import Interrupted, StopRequest
from weitblick.training.logs import Logs
from weitblick.training.optimisation import Optimiser
from weitblick.training.state import Progress, load_state, save_state
from weitblick.training.task import Plan, StageTask
from weitblick.training.update import Updater
from weitblick.training.validation import Validation, validate

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
        result = validate(self.model, self.task.dev, plans, self.task.seed, self.world)
        if not np.isfinite(result.loss):
            raise UserError(
                f"the loss on dev is not finite after update {progress.update}",
                where=self.task.folder,
                remedy="the last saved state is kept; lower learning_rate or clip",
            )
        figures, text = result.figures(), str(result)
        if self.task.bleu is not None and progress.update and self.world.first:
            bleu = self.task.bleu(self.model)
            figures["dev_bleu"], text = bleu, f"{text}  dev BLEU {bleu:.2f}"
        logs.write("dev", progress.update, figures)
        logs.say(f"{self.task.name} update {progress.update}: {text}")
        self.checkpoints.consider(self.model, progress, result.perplexity)
        return result

    def take_best(self) -> float:
        """Loads the best weights, or the average of the kept ones where that is better on dev; its dev perplexity.
        Where the last ones are wanted they stay."""
        progress = self.progress
        if self.task.section.result == "last":
            return progress.last
        if self.checkpoints.load_average(self.model, progress):
            result = validate(self.model, self.task.dev, self.task.dev_plans(), self.task.seed, self.world)
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
