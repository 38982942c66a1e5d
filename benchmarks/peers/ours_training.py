"""Weitblick's Transformer, trained by its own optimiser. See `serving`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from ours_model import ours
from serving import serve

from weitblick import __version__
from weitblick.common.recipe import StageSection
from weitblick.model.batch import Batch, pack_pairs
from weitblick.model.loss import smoothed_cross_entropy
from weitblick.training.update import Optimiser


def make(task: dict[str, Any]) -> tuple[Callable[..., int], dict[str, Any]]:
    torch.set_num_threads(task["threads"])
    model = ours(task["size"], dropout=task["dropout"]).train()
    smoothing = task["label_smoothing"]
    optimiser = Optimiser(model, StageSection(learning_rate=1e-4, clip=task["clip"], label_smoothing=smoothing))
    half = torch.autocast("cpu", torch.bfloat16, enabled=task["precision"] == "bfloat16")
    update = 0

    def run() -> int:
        nonlocal update
        tokens = 0
        for sources, targets in task["batches"]:
            update += 1
            optimiser.prepare(update)
            batch = Batch(pack_pairs(sources, targets))
            labels = batch.current.labels
            with half:
                loss, _ = smoothed_cross_entropy(model(batch).states, *model.sentence.output(), labels, smoothing)
            (loss / len(labels)).backward()
            optimiser.step(1.0)
            optimiser.zero()
            tokens += len(labels)
        return tokens

    count = sum(p.numel() for p in model.parameters())
    return run, {"version": __version__, "torch": torch.__version__, "parameters": count}


if __name__ == "__main__":
    serve(make)
