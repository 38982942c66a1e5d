"""The resumable state of a stage, in numbered folders: a new one is complete before the old one goes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, Field

from weitblick.errors import UserError
from weitblick.files import atomic_folder, check_plain, make_folder, read_lines, settle, write_json
from weitblick.model.weights import load_weights, read_weights, weights_of, write_tensors
from weitblick.training.optimisation import Optimiser
from weitblick.validation import parse_json

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
    settle(folder)
    states = _states(folder)
    if not states:
        return None
    newest = states[-1]
    load_weights(model, read_weights(newest / WEIGHTS), newest / WEIGHTS)
    optimiser.restore(read_weights(newest / OPTIMISER), newest / OPTIMISER)
    return read_progress(newest)


def read_progress(state: Path) -> Progress:
    path = state / PROGRESS
    check_plain(path)
    remedy = "delete the folder that it stands in: the stage goes on from the state before, or from its beginning"
    text = "\n".join(read_lines(path))
    progress = parse_json(Progress, text, path, remedy=remedy)
    missing = Progress.model_fields.keys() - progress.model_fields_set
    if missing:
        raise UserError(f"field {min(missing)!r} is missing", where=path, remedy=remedy)
    return progress


def _states(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("state-*") if path.is_dir())
