"""One stage of training: updates, validations, saves; stops early; resumes to the same weights."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from weitblick.batches.batch import Batch
from weitblick.batches.batching import DocumentPlan, SentencePlan, document_plans, load_batch, sentence_plans
from weitblick.batches.store import CorpusStore
from weitblick.config.recipe import ContextStageSection, StageSection
from weitblick.distributed import World
from weitblick.errors import UserError
from weitblick.model.document_model import DocumentModel
from weitblick.model.weights import load_weights, read_weights, weights_of
from weitblick.training.lessons import lessons
from weitblick.training.logs import Logs
from weitblick.training.optimisation import Optimiser
from weitblick.training.state import Progress, load_state, save_state
from weitblick.training.validation import Validation, validate

Plan = SentencePlan | DocumentPlan
LOG_EVERY = 20


@dataclass(frozen=True)
class StageTask:
    """What a stage trains, on what, and where it leaves its files."""

    name: str
    folder: Path
    section: StageSection
    stores: Sequence[CorpusStore]
    dev: CorpusStore
    seed: int
    documents: bool
    mix_share: float = 0.0
    translated: Sequence[CorpusStore] | None = None  # target context in training, where it is not the references

    def plans(self, epoch: int) -> Sequence[Plan]:
        if not self.documents:
            return sentence_plans(self.stores[0], self.section.batch_tokens, self.seed, epoch)
        most = self.section.batch_documents if isinstance(self.section, ContextStageSection) else None
        return document_plans(
            self.stores,
            self.section.batch_tokens,
            self.seed,
            epoch,
            batch_documents=most,
            mix_share=self.mix_share,
        )

    def dev_plans(self) -> Sequence[Plan]:
        if not self.documents:
            return sentence_plans(self.dev, 4000, 0, 0)
        return document_plans([self.dev], 4000, 0, 0)


class Interrupted(Exception):
    """Ctrl-C or a termination signal: the state was saved."""


class StageRun:
    def __init__(
        self, task: StageTask, model: DocumentModel, world: World, *, quiet: bool = False, finish: bool = False
    ) -> None:
        self.task, self.model, self.world, self.quiet = task, model.to(world.device), world, quiet
        self.finish = finish  # end the stage where it stands, without another update
        self.section = task.section
        self.optimiser = Optimiser(model, task.section)
        self.progress = load_state(task.folder, model, self.optimiser) or Progress()
        self.bleu: Callable[[DocumentModel], float] | None = None
        self._stop = False
        half = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(task.section.precision)
        self.half = half if world.device.type == "cuda" else None
        self.scaler = torch.amp.GradScaler(world.device.type, enabled=self.half == torch.float16)

    def run(self) -> Progress:
        """Trains until done; returns where it ended. The best weights are in `best.safetensors`."""
        if self.progress.finished:
            return self.progress
        task, progress = self.task, self.progress
        logs = Logs(
            task.folder, task.name, self.section.updates, progress.update, active=self.world.first, quiet=self.quiet
        )
        before = {s: signal.signal(s, self._on_signal) for s in (signal.SIGINT, signal.SIGTERM)}
        self.model.train()
        try:
            self._loop(logs)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            logs.close()
        return progress

    def _on_signal(self, *_: object) -> None:
        self._stop = True

    def _loop(self, logs: Logs) -> None:
        section, progress, world = self.section, self.progress, self.world
        group_size = section.accumulate * world.size
        dev_plans = self.task.dev_plans()
        if progress.update == 0 or self.finish:
            self._validate(logs, dev_plans)
        if self.finish:
            return self._finish(f"ended by hand after {progress.update} updates")
        started, begun_at = time.monotonic(), progress.update
        sums = torch.zeros(6, dtype=torch.float64)
        while progress.epoch < section.epochs and progress.update < section.updates:
            plans = self.task.plans(progress.epoch)
            groups = -(-len(plans) // group_size)
            while progress.group < groups and progress.update < section.updates:
                clock = time.monotonic()
                mine = plans[progress.group * group_size : (progress.group + 1) * group_size][world.rank :: world.size]
                progress.update += 1
                progress.group += 1
                sums += self._update(mine)
                progress.seconds += time.monotonic() - clock
                if progress.update % LOG_EVERY == 0:
                    sums = self._log(logs, sums, started, begun_at)
                saving = progress.update % section.save_every == 0
                if progress.update % section.validate_every == 0:
                    self._validate(logs, dev_plans)
                    if progress.stale >= section.patience:
                        return self._finish(f"no better dev perplexity in {section.patience} validations")
                stop = (world.size > 1 and bool(world.sum(torch.tensor([float(self._stop)])))) or self._stop
                if (saving or stop) and world.first:
                    save_state(self.task.folder, self.model, self.optimiser, progress)
                if stop:
                    raise Interrupted(f"stopped at update {progress.update}; the same command goes on from there")
            if progress.group >= groups:
                progress.epoch, progress.group = progress.epoch + 1, 0
        if progress.update % section.validate_every:
            self._validate(logs, dev_plans)
        self._finish("all updates done" if progress.update >= section.updates else "all epochs done")

    def _finish(self, reason: str) -> None:
        self.progress.finished, self.progress.reason = True, reason
        if self.world.first:
            save_state(self.task.folder, self.model, self.optimiser, self.progress)
        self.world.barrier()

    def _update(self, plans: Sequence[Plan]) -> torch.Tensor:
        """One update from this process's batches. Returns sums: tokens, loss, likelihood, gate, support, queries."""
        update = self.progress.update
        torch.manual_seed(
            np.random.SeedSequence([self.task.seed, update, self.world.rank, 7]).generate_state(1)[0].item()
        )
        self.optimiser.prepare(update)
        sums = torch.zeros(6, dtype=torch.float64)
        names = []
        for plan in plans:
            batch = load_batch(self.task.stores, plan, self.task.translated).to(self.world.device)
            names.append(batch.name)
            sums += self._backward(batch)
        self.world.sum_gradients(self.optimiser.parameters)
        sums = self.world.sum(sums).cpu()
        if self.half == torch.float16:
            self.scaler.unscale_(self.optimiser.adam)
        norm = self.optimiser.step(self.section.batch_tokens / max(1.0, float(sums[0])))
        if self.half == torch.float16:
            self.scaler.update()
        elif not np.isfinite(norm) or not torch.isfinite(sums).all():
            raise UserError(
                f"the loss or its gradient is not finite at update {update} ({'; '.join(names)})",
                where=self.task.folder,
                remedy="the last saved state is kept; lower learning_rate or clip, or look at these texts",
            )
        self.optimiser.zero()
        self.progress.tokens += int(sums[0])
        return sums

    def _backward(self, batch: Batch) -> torch.Tensor:
        options, hidden = lessons(self.model, batch, self.section, self.progress.update)
        autocast = torch.autocast("cuda", self.half) if self.half else nullcontext()
        with autocast:
            output = self.model(batch, options, hidden)
        loss, likelihood = output.words.loss(batch.current.labels, self.section.label_smoothing)
        self.scaler.scale(loss / self.section.batch_tokens).backward()
        figures = [float(len(batch.current.labels)), float(loss.detach()), float(likelihood), 0.0, 0.0, 0.0]
        if output.context is not None:
            present = output.context.present
            figures[3] = float((1 - output.context.gate[present]).sum())
            figures[4] = float(output.context.support[present].sum())
            figures[5] = float(present.sum())
        return torch.tensor(figures, dtype=torch.float64)

    def _log(self, logs: Logs, sums: torch.Tensor, started: float, begun_at: int) -> torch.Tensor:
        progress, section = self.progress, self.section
        tokens, loss, likelihood, gate, support, queries = sums.tolist()
        figures = {
            "loss": loss / tokens,
            "perplexity": float(np.exp(min(likelihood / tokens, 50))),
            "rate": self.optimiser.adam.param_groups[1]["lr"],
            "tokens_per_second": progress.tokens / max(1e-9, progress.seconds),
        }
        if queries:
            figures |= {"context_share": gate / queries, "support": support / queries}
        logs.write("train", progress.update, figures)
        pace = (time.monotonic() - started) / max(1, progress.update - begun_at)
        shown = {k: v for k, v in figures.items() if k != "rate"}
        logs.show(progress.update, section.updates, shown, pace * (section.updates - progress.update))
        return torch.zeros_like(sums)

    def _validate(self, logs: Logs, plans: Sequence[Plan]) -> Validation:
        progress, folder = self.progress, self.task.folder
        result = validate(self.model, self.task.dev, plans, self.task.seed, self.world)
        figures = result.figures()
        if self.bleu is not None and progress.update and self.world.first:
            figures["dev_bleu"] = self.bleu(self.model)
        logs.write("dev", progress.update, figures)
        logs.say(f"{self.task.name} update {progress.update}: " + "  ".join(f"{k} {v:.4g}" for k, v in figures.items()))
        progress.last = result.perplexity
        if result.perplexity < progress.best:
            progress.best, progress.best_update, progress.stale = result.perplexity, progress.update, 0
            if self.world.first:
                write_weights(folder / "best.safetensors", self.model)
        else:
            progress.stale += 1
        self._keep(result.perplexity)
        return result

    def _keep(self, perplexity: float) -> None:
        """Keeps the best few checkpoints, to be averaged at the end."""
        progress, count, folder = self.progress, self.section.average, self.task.folder / "checkpoints"
        if count == 1:
            return
        progress.kept = sorted([*progress.kept, (perplexity, progress.update)])[:count]
        if not self.world.first:
            return
        if (perplexity, progress.update) in progress.kept:
            write_weights(folder / f"{progress.update:09d}.safetensors", self.model)
        names = {f"{update:09d}.safetensors" for _, update in progress.kept}
        for path in folder.glob("*.safetensors"):
            if path.name not in names:
                path.unlink()

    def take_best(self) -> float:
        """Loads the best weights, or the average of the kept ones where that is better on dev; its dev perplexity.
        Where the last ones are wanted they stay."""
        folder, progress = self.task.folder, self.progress
        if self.section.result == "last":
            return progress.last
        best = folder / "best.safetensors"
        if len(progress.kept) > 1:
            paths = [folder / "checkpoints" / f"{update:09d}.safetensors" for _, update in progress.kept]
            load_weights(self.model, average_weights(paths), paths[0])
            result = validate(self.model, self.task.dev, self.task.dev_plans(), self.task.seed, self.world)
            if result.perplexity < progress.best:
                return result.perplexity
        load_weights(self.model, read_weights(best), best)
        return progress.best


def write_weights(path: Path, model: torch.nn.Module) -> None:
    from weitblick.files import atomic_path, make_folder

    make_folder(path.parent)
    with atomic_path(path) as temporary:
        save_file(weights_of(model), temporary)


def average_weights(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
    total = {name: value.double() for name, value in read_weights(paths[0]).items()}
    for path in paths[1:]:
        for name, value in read_weights(path).items():
            total[name] += value.double()
    return {name: (value / len(paths)).float() for name, value in total.items()}
