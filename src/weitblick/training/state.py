"""The resumable state of a stage, in numbered folders: a new one is complete before the old one goes."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from weitblick.files import atomic_folder, check_format_version, read_json, write_json
from weitblick.model.weights import load_weights, read_weights, weights_of
from weitblick.training.optimisation import Optimiser

FORMAT_VERSION = 1


@dataclass
class Progress:
    """Where a stage stands: all that is not a tensor."""

    update: int = 0
    epoch: int = 0
    group: int = 0  # next group of batches in the epoch
    tokens: int = 0
    seconds: float = 0.0
    best: float = float("inf")
    best_update: int = 0
    last: float = float("inf")
    stale: int = 0  # validations since the best
    kept: list[tuple[float, int]] = field(default_factory=list)  # (dev perplexity, update) of checkpoints to average
    finished: bool = False
    reason: str = ""


def save_state(folder: Path, model: torch.nn.Module, optimiser: Optimiser, progress: Progress) -> None:
    with atomic_folder(folder / f"state-{progress.update:09d}") as temporary:
        save_file(weights_of(model), temporary / "weights.safetensors")
        save_file(
            {k: v.cpu().contiguous() for k, v in optimiser.tensors().items()}, temporary / "optimiser.safetensors"
        )
        write_json(temporary / "progress.json", {"format_version": FORMAT_VERSION, **asdict(progress)})
    for older in _states(folder)[:-1]:
        shutil.rmtree(older, ignore_errors=True)


def load_state(folder: Path, model: torch.nn.Module, optimiser: Optimiser) -> Progress | None:
    """Restores the newest state; None where there is none."""
    states = _states(folder)
    if not states:
        return None
    newest = states[-1]
    load_weights(model, read_weights(newest / "weights.safetensors"), newest / "weights.safetensors")
    optimiser.restore(read_weights(newest / "optimiser.safetensors"))
    return read_progress(newest)


def read_progress(state: Path) -> Progress:
    values: dict[str, Any] = read_json(state / "progress.json")
    check_format_version(values, FORMAT_VERSION, state / "progress.json")
    values.pop("format_version")
    return Progress(**{**values, "kept": [tuple(pair) for pair in values["kept"]]})


def newest_progress(folder: Path) -> Progress | None:
    states = _states(folder)
    return read_progress(states[-1]) if states else None


def _states(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("state-*") if path.is_dir())
