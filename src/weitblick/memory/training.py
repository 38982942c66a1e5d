"""Training the pointer to approved translations. The sentence model is untouched, so its states are computed once.

A translator is simulated with references (`training_examples`). What is learned is the pointer's share, all of it from
what the model does with text that it was *not* trained on: of its own training text it is too sure to be corrected.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from weitblick.common.errors import UserError
from weitblick.common.logs import Logs
from weitblick.common.recipe import MemorySection, MemoryStageSection, Recipe
from weitblick.memory.pointer import REFUSED, MemoryPointer, share_network
from weitblick.memory.training_examples import (
    KINDS,
    RUN,
    Kind,
    ParallelCorpus,
    SimulatedTranslator,
    Steps,
    related_runs,
    runs_in_order,
)
from weitblick.model.document_model import DocumentModel
from weitblick.model.sentence_model import SentenceModel
from weitblick.text.base import TextPipeline

FIT_STEPS = 4096
FIT_RATE = 5e-3
FIT_PASSES = 40
"""A batch of steps, and how the share is fitted to them: Adam's rate, falling to a fiftieth, and times over all."""
LOYALTY = 4.0
"""How much more it counts to follow a correction than to leave the model its word. In references a word that the model
did not expect is often mere variation; what a user has put in its place is meant."""


def train_pointer(
    model: DocumentModel,
    pipeline: TextPipeline,
    recipe: Recipe,
    train: ParallelCorpus,
    dev: ParallelCorpus,
    folder: Path,
    quiet: bool,
) -> dict[str, float]:
    """Gives a trained model a pointer, with logs in a folder; returns what its card should say about it."""
    started = time.monotonic()
    section = recipe.memory.model_copy(update={"kind": "pointer"})
    training = MemoryTraining(model.sentence, pipeline, section, recipe.memory_stage)
    model.pointer, gains = training.train(train, dev, recipe.seed, folder, quiet)
    figures = {f"memory_{kind}_nats": round(gain.nats, 4) for kind, gain in gains.items()}
    minutes = round((time.monotonic() - started) / 60, 1)
    return {**figures, "memory_seed": recipe.seed, "memory_training_minutes": minutes}


@dataclass(frozen=True)
class Gain:
    """Nats a token gained over the model alone, and the mean share, with each kind of memory."""

    nats: float
    share: float


class MemoryTraining:
    def __init__(
        self, sentence: SentenceModel, pipeline: TextPipeline, section: MemorySection, stage: MemoryStageSection
    ) -> None:
        self.sentence, self.pipeline, self.section, self.stage = sentence.eval(), pipeline, section, stage

    def train(
        self, train: ParallelCorpus, dev: ParallelCorpus, seed: int, folder: Path, quiet: bool
    ) -> tuple[MemoryPointer, dict[Kind, Gain]]:
        torch.manual_seed(seed)
        pointer = MemoryPointer(self.section, self.sentence.dimension).to(self.sentence.output()[0].device)
        runs, held_out = self._runs(train, seed), runs_in_order(dev, self.stage.dev_documents)
        work = 2 * sum(map(len, runs)) + sum(map(len, held_out))  # read, then asked what it finds
        how = self.sentence, self.pipeline, pointer, self.stage
        with Logs(folder, "documents", work, 0, active=True, quiet=quiet) as logs:
            advance = _Bar(logs, work).advance
            material = SimulatedTranslator(*how, train, runs, start=True, advance=advance)
            judging = SimulatedTranslator(*how, dev, held_out, advance=advance)
            steps = self._collect(pointer, material, random.Random(seed), advance)
            for number, nats in enumerate(self._fit_share(pointer, steps), 1):
                logs.write("train", number, {"nats": nats})
            gains = self.evaluate(pointer, judging)
            logs.write("dev", FIT_PASSES, {kind: gain.nats for kind, gain in gains.items()})
            figures = ", ".join(f"{kind} {gain.nats:+.4f} (share {gain.share:.3f})" for kind, gain in gains.items())
            logs.say(f"nats a token on dev: {figures}")
        return pointer.eval(), gains

    def _runs(self, corpus: ParallelCorpus, seed: int) -> Sequence[Sequence[int]]:
        if self.stage.runs == "order":
            return runs_in_order(corpus, self.stage.documents)
        found = related_runs(corpus, max(1, self.stage.documents // RUN), RUN, seed)
        if not found:
            raise UserError(
                f"no {RUN} documents of the training corpus share what others do not have",
                where="memory_stage.runs",
                remedy="use order",
            )
        return found

    @torch.no_grad()
    def _collect(
        self, pointer: MemoryPointer, material: SimulatedTranslator, chance: random.Random, advance: Callable[[], None]
    ) -> Steps:
        """The steps of all documents, each with its own past and with another kind of memory."""
        found = []
        for document in range(len(material)):
            kinds: tuple[Kind, Kind] = ("past", "random" if chance.random() < self.stage.random else "project")
            found += [material.steps(pointer, document, kind, chance) for kind in kinds]
            advance()
        return Steps.of_all([steps for steps in found if steps is not None])

    def _fit_share(self, pointer: MemoryPointer, steps: Steps) -> Iterator[float]:
        """Gives what every pass over the steps gains, nats a step. Features are standardised for the network, which its
        first layer takes over in the end. Steps follow a human's words; those of a search follow the model's own, and
        memory is right less often: hence the caution."""
        mean, spread = steps.features.mean(0), steps.features.std(0).clamp_min(1e-3)
        standard = (steps.features - mean) / spread
        corrected = steps.features[:, REFUSED] * steps.said  # what a human refused there is wanted again here, wrongly
        weights = 1 + (LOYALTY - 1) * corrected
        network = share_network(self.section.hidden).to(mean.device)
        optimiser = torch.optim.Adam(network.parameters(), lr=FIT_RATE)
        updates = FIT_PASSES * (len(standard) // FIT_STEPS + 1)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda done: max(0.02, 1 - done / updates))
        for _ in range(FIT_PASSES):
            total = 0.0
            for rows in torch.randperm(len(standard), device=mean.device).split(FIT_STEPS):
                optimiser.zero_grad()
                gain = steps[rows].gain(network(standard[rows]))[0] * weights[rows]
                (-gain.sum() / weights[rows].sum()).backward()
                optimiser.step()
                schedule.step()
                total += float(gain.detach().sum())
            yield total / float(weights.sum())
        first = network[0]
        assert isinstance(first, nn.Linear)
        with torch.no_grad():
            first.weight.div_(spread)
            first.bias.sub_(first.weight @ mean)
            pointer.share.load_state_dict(network.state_dict())
            pointer.share_layers[-1].bias.sub_(self.stage.caution)

    @torch.no_grad()
    def evaluate(self, pointer: MemoryPointer, material: SimulatedTranslator) -> dict[Kind, Gain]:
        pointer.eval()
        gains: dict[Kind, Gain] = {}
        for kind in KINDS:
            chance = random.Random(1)
            every = [material.steps(pointer, document, kind, chance) for document in range(len(material))]
            found = [steps.gain(pointer.share(steps.features)) for steps in every if steps is not None]
            if not found:
                gains[kind] = Gain(0.0, 0.0)
                continue
            nats, share = (torch.cat(column).mean() for column in zip(*found, strict=True))
            gains[kind] = Gain(float(nats), float(share))
        return gains


class _Bar:
    """How much of the work is done, and how long the rest will take."""

    def __init__(self, logs: Logs, work: int) -> None:
        self.logs, self.work, self.done, self.started = logs, work, 0, time.monotonic()

    def advance(self) -> None:
        self.done += 1
        left = (time.monotonic() - self.started) / self.done * (self.work - self.done)
        self.logs.show(self.done, self.work, {}, left)
