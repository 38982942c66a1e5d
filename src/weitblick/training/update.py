"""One update: batches forward and backward, gradients summed over processes, a step of Adam."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import torch

from weitblick.batches.batch import Batch
from weitblick.batches.batching import load_batch
from weitblick.distributed import World
from weitblick.errors import UserError
from weitblick.model.document_model import DocumentModel
from weitblick.training.figures import ContextSums, UpdateSums
from weitblick.training.optimisation import Optimiser
from weitblick.training.regularisation import regularise
from weitblick.training.task import Plan, StageTask

HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def half_precision(precision: str, device: torch.device) -> torch.dtype | None:
    """The type of matrix products; None: float32. A CPU that has no products of bfloat16 of its own emulates them, far
    more slowly than float32, and none has float16: these train in float32."""
    if device.type == "cpu" and not (precision == "bfloat16" and torch.cpu._is_avx512_bf16_supported()):
        return None
    return HALF.get(precision)


class Updater:
    """Makes the updates of a stage. What is random in one depends on the seed, its number and the process alone."""

    def __init__(self, task: StageTask, model: DocumentModel, optimiser: Optimiser, world: World) -> None:
        self.task, self.model, self.optimiser, self.world = task, model, optimiser, world
        self.half = half_precision(task.section.precision, world.device)
        self.scaler = torch.amp.GradScaler(world.device.type, enabled=self.half == torch.float16)

    def __call__(self, plans: Sequence[Plan], update: int) -> UpdateSums:
        """The `update`-th update (from 1) from this process's batches; sums over all processes."""
        torch.manual_seed(
            np.random.SeedSequence([self.task.seed, update, self.world.rank, 7]).generate_state(1)[0].item()
        )
        self.optimiser.prepare(update)
        sums = UpdateSums()
        names = []
        for plan in plans:
            batch = load_batch(self.task.stores, plan, self.task.translated).to(self.world.device)
            names.append(batch.name)
            sums += self._backward(batch, update)
        self.world.sum_gradients(self.optimiser.parameters)
        sums = sums.sum(self.world)
        self._step(sums, f"update {update} ({'; '.join(names)})")
        return sums

    def _backward(self, batch: Batch, update: int) -> UpdateSums:
        section = self.task.section
        options, hidden = regularise(self.model, batch, section, update)
        with torch.autocast(self.world.device.type, self.half) if self.half else nullcontext():
            output = self.model(batch, options, hidden)
            loss, likelihood = output.words.loss(batch.current.labels, section.label_smoothing)
        self.scaler.scale(loss / section.batch_tokens).backward()
        reading = ContextSums() if output.context is None else ContextSums.of(output.context)
        return UpdateSums(len(batch.current.labels), float(loss.detach()), float(likelihood), reading)

    def _step(self, sums: UpdateSums, where: str) -> None:
        """In half precision a step whose gradients overflow is left out, and the scale falls; elsewhere that is the
        end: nothing finite would come of it any more."""
        if self.half == torch.float16:
            self.scaler.unscale_(self.optimiser.adam)
        norm = self.optimiser.step(self.task.section.batch_tokens / max(1.0, sums.tokens))
        if self.half == torch.float16:
            self.scaler.update()
        elif not np.isfinite(norm) or not sums.finite:
            raise UserError(
                f"the loss or its gradient is not finite at {where}",
                where=self.task.folder,
                remedy="the last saved state is kept; lower learning_rate or clip, or look at these texts",
            )
        self.optimiser.zero()
