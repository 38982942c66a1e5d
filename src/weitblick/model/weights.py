"""Weights on disk: named tensors in one file, whole, finite, and the very ones that were saved."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from weitblick.errors import UserError
from weitblick.files import atomic_path, check_plain

CHECKSUM = "sha256"
RESTORE = "copy the file again or train anew"


def weights_of(model: torch.nn.Module, dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """Every distinct parameter once: tied tables are stored under their first name."""
    seen: set[int] = set()
    weights = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.data_ptr() not in seen:
            seen.add(parameter.data_ptr())
            weights[name] = parameter.detach().to("cpu", dtype or parameter.dtype).contiguous()
    return weights


def load_weights(model: torch.nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Copies weights into a model; a missing, surplus or misshapen one is the wrong architecture, and is named."""
    own = weights_of(model)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name in sorted(own.keys() ^ weights.keys()):
        what = "is missing" if name in own else "is not part of this architecture"
        raise UserError(f"weight {name!r} {what}", where=path, remedy="the weights belong to another configuration")
    with torch.no_grad():
        for name, value in weights.items():
            if parameters[name].shape != value.shape:
                raise UserError(
                    f"weight {name!r} has shape {tuple(value.shape)}, the configuration asks for "
                    f"{tuple(parameters[name].shape)}",
                    where=path,
                    remedy="the weights belong to another configuration",
                )
            parameters[name].copy_(value)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """A file that appears complete, and carries the checksum of its tensors."""
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with atomic_path(path) as temporary:
        save_tensors(temporary, plain, {CHECKSUM: _checksum(plain)})


def save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        raise UserError(f"cannot be written ({error})", where=path, remedy="free some space") from None


def read_weights(path: Path) -> dict[str, Tensor]:
    """All tensors of a file. Damage is named: a file cut short, a checksum that differs, a value that is no number."""
    check_plain(path)
    try:
        with safe_open(path, "pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"damaged or cut short ({error})", where=path, remedy=RESTORE) from None
    if CHECKSUM in metadata and metadata[CHECKSUM] != _checksum(tensors):
        raise UserError("damaged: the weights are not those that were saved", where=path, remedy=RESTORE)
    for name, value in tensors.items():
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise UserError(
                f"weight {name!r} holds values that are not finite (NaN or inf)", where=path, remedy=RESTORE
            )
    return tensors


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
