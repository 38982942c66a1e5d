"""The process: its memory allocator, its device, and its place among the processes of `torchrun`."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn

from weitblick.common.errors import UserError

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def tune_allocator() -> None:
    """glibc returns large blocks to the system after each use; keeping them saves most page faults."""
    if sys.platform != "linux":
        return
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
    except (OSError, AttributeError):
        return


def release_free_memory() -> None:
    """Free pages go back to the system, those between blocks in use, too. Without it a process that lives for long and
    keeps some of what it computes grows a little all the time."""
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return


def explain_out_of_memory(error: BaseException) -> str | None:
    """One line if `error` is a lack of memory, else None."""
    text = str(error)
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError) or "can't allocate memory" in text:
        return f"out of memory ({text.splitlines()[0] if text else 'MemoryError'})"
    return None


# Several processes that train or translate as one, on PyTorch's engine: started by `torchrun`, or just one.


@dataclass(frozen=True)
class World:
    rank: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes, in float64."""
        values = values.detach().to("cpu" if dist_backend() == "gloo" else self.device, torch.float64).clone()
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Adds the gradients of all processes, as one flat message. A process without a batch adds zeros."""
        if self.size == 1:
            return
        chosen = [p for p in parameters if p.requires_grad]
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in chosen])
        dist.all_reduce(flat)
        for parameter, part in zip(chosen, flat.split([p.numel() for p in chosen]), strict=True):
            parameter.grad = part.view_as(parameter).clone()

    def barrier(self) -> None:
        if self.size > 1:
            dist.barrier()

    def close(self) -> None:
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()


def dist_backend() -> str:
    return str(dist.get_backend()) if dist.is_initialized() else "gloo"


def is_first_process() -> bool:
    """Whether this process is the one that speaks for all, known before they have met."""
    return os.environ.get("RANK", "0") == "0"


def resolve_device(name: str = "auto", index: int = 0) -> torch.device:
    """The device that a name means here: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`. GPUs without a number of their own
    get `index`. What this machine does not have is refused."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return torch.device("cuda", index) if gpus else torch.device("cpu")
    found = re.fullmatch(r"(cpu|cuda|mps)(?::(\d{1,3}))?", name)
    if found is None:
        raise UserError(f"{name!r} is no device", where="device", remedy="use auto, cpu, cuda, cuda:1, ... or mps")
    kind, number = found[1], None if found[2] is None else int(found[2])
    if kind == "cuda":
        number = index if number is None else number
        if number >= gpus:
            what = "no GPU that PyTorch can use" if not gpus else f"{gpus} GPUs, numbered from 0"
            raise UserError(f"{name!r}: this machine has {what}", where="device", remedy="use auto or cpu")
        return torch.device("cuda", number)
    if kind == "mps" and not torch.backends.mps.is_available():
        raise UserError("'mps': this machine has no Apple GPU", where="device", remedy="use auto or cpu")
    if number:
        raise UserError(f"{name!r} has a number that it does not take", where="device", remedy=f"use {kind}")
    return torch.device(kind)


def join_world(device: str = "auto") -> World:
    """This process's place among those of `torchrun`; the only one if there is no `torchrun`."""
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    chosen = resolve_device(device, local)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    if size > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo", timeout=timedelta(hours=2))
    return World(rank, size, chosen)
