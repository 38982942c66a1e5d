"""The weights that a stage may end with: the best by dev perplexity, and the few best, to be averaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from weitblick.files import make_folder
from weitblick.model.document_model import DocumentModel
from weitblick.model.weights import load_weights, read_weights, weights_of, write_tensors
from weitblick.training.state import Progress

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
