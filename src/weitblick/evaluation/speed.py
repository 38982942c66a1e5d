"""How fast models train and translate: whole updates and whole documents, models taking turns on the same text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch

from weitblick.checkpoints.folder import load_model
from weitblick.common.process import resolve_device
from weitblick.evaluation.complexity import ModelPlan
from weitblick.model.batch import Batch, pack_pairs
from weitblick.model.concatenation import batch_as_read
from weitblick.model.context_module import PLAIN, ContextOptions
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import EOS
from weitblick.text.units import Unit
from weitblick.training.update import Optimiser
from weitblick.translation.driver import translate_units
from weitblick.translation.options import TranslationOptions

FIRST_WORD = 4  # behind the special ids
NEVER = -1e9


@dataclass(frozen=True)
class Speed:
    """Target words per second, medians over rounds, and both as a share of the first model's."""

    model: str
    training: float
    decoding: float
    training_share: float = 1.0
    decoding_share: float = 1.0

    def as_row(self) -> dict[str, Any]:
        return {
            "training_words_per_second": round(self.training, 1),
            "decoding_words_per_second": round(self.decoding, 1),
            "training_share": round(self.training_share, 4),
            "decoding_share": round(self.decoding_share, 4),
        }


@dataclass(frozen=True)
class Workload:
    """Made-up documents: so many, of so many sentences of about so many words, the same for every model."""

    documents: int = 2
    sentences: int = 20
    words: int = 20
    beam: int = 1
    seed: int = 1

    def texts(self, vocabulary: int, side: int) -> list[list[list[int]]]:
        """Word ids by document and sentence. Lengths do not depend on the vocabulary, and spread as those of text."""
        random = np.random.default_rng([self.seed, side])
        lengths = random.gamma(4.0, self.words / 4.0, (self.documents, self.sentences)).astype(int) + 1
        places = random.random((int(lengths.sum()),))
        ids = (FIRST_WORD + places * (vocabulary - FIRST_WORD)).astype(int)
        sentences = iter(np.split(ids, np.cumsum(lengths.ravel())[:-1]))
        return [[next(sentences).tolist() for _ in range(self.sentences)] for _ in range(self.documents)]


def measure_speed(
    candidates: Sequence[ModelPlan],
    workload: Workload,
    rounds: int = 5,
    say: Callable[[str], None] | None = None,
    device: str = "cpu",
) -> list[Speed]:
    """Models take turns in every round, so that whatever else the machine does hits all of them alike."""
    runs = [_Run(candidate, workload, resolve_device(device)) for candidate in candidates]
    for number in range(rounds + 1):  # the first round warms up
        for run in runs:
            figures = run.train(), run.decode()
            if number:
                run.training.append(figures[0])
                run.decoding.append(figures[1])
        if say is not None:
            say(f"round {number} of {rounds}" if number else "warm-up")
    results = [(run.name, median(run.training), median(run.decoding)) for run in runs]
    _, training, decoding = results[0]
    return [Speed(name, t, d, t / training, d / decoding) for name, t, d in results]


class _Run:
    def __init__(self, candidate: ModelPlan, workload: Workload, device: torch.device) -> None:
        self.name, self.device = candidate.name, device
        self.training: list[float] = []
        self.decoding: list[float] = []
        self.stage = candidate.stage
        torch.manual_seed(workload.seed)
        self.model = _model(candidate).to(device)
        self.optimiser = Optimiser(self.model, candidate.stage)
        self.update = 0
        sources = workload.texts(candidate.source_size, 0)
        targets = workload.texts(candidate.target_size, 1)
        places = [(d, s) for d in range(workload.documents) for s in range(workload.sentences)]
        batch = Batch(
            pack_pairs(
                [sources[d][s] for d, s in places],
                [targets[d][s] for d, s in places],
                [d for d, _ in places],
                [s for _, s in places],
            )
        )
        self.batch = batch_as_read(self.model, batch).to(device)
        self.units = [Unit(d, s, s, "", sources[d][s]) for d, s in places]
        self.options = TranslationOptions(beam=workload.beam)

    def train(self) -> float:
        """Words per second of one whole update: both passes and the optimiser."""
        model, labels = self.model.train(), self.batch.current.labels
        started = self._now()
        self.update += 1
        self.optimiser.prepare(self.update)
        loss, _ = model(self.batch, self._options()).words.loss(labels, self.stage.label_smoothing)
        (loss / len(labels)).backward()
        self.optimiser.step(1.0)
        self.optimiser.zero()
        return len(labels) / (self._now() - started)

    def _now(self) -> float:
        """The time when all that was asked of the device is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def _options(self) -> ContextOptions:
        if self.model.context is None:
            return PLAIN
        chance = torch.rand(self.batch.current.sentences, device=self.device)
        return ContextOptions(use=chance >= self.stage.context_dropout)

    def decode(self) -> float:
        """Words produced per second, all passes of the documents counted once."""
        model = self.model.eval()
        started = self._now()
        found = translate_units(model, self.units, self.options)
        return sum(len(best.ids) + 1 for best, *_ in found) / (self._now() - started)


def _model(candidate: ModelPlan) -> DocumentModel:
    """The trained model, or a fresh one that never ends a sentence, so that all of them produce as many words."""
    if candidate.folder is not None:
        return load_model(candidate.folder).model
    model = candidate.build()
    for sentence in {model.sentence, model.provider}:
        with torch.no_grad():
            sentence.output_bias[EOS] = NEVER
    return model
