"""Adam with separate rates for old and new parameters, and the schedules of the rate."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from weitblick.config.recipe import ContextStageSection, StageSection
from weitblick.errors import UserError
from weitblick.model.document_model import DocumentModel

CLIP_ROUNDING = 1e-6
"""As in PyTorch's clipping: no division by zero."""


def rate_factor(stage: StageSection, update: int) -> float:
    """The rate of the `update`-th update (from 1) as a share of the peak."""
    if update <= stage.warmup:
        return update / stage.warmup
    if stage.schedule == "inverse_sqrt":
        return (max(1, stage.warmup) / update) ** 0.5
    if stage.schedule == "linear":
        return max(0.0, (stage.updates - update + 1) / max(1, stage.updates - stage.warmup))
    return 1.0


class Optimiser:
    """Adam over two groups: the context layer's parameters, and the sentence model's at a share of the rate."""

    def __init__(self, model: DocumentModel, stage: StageSection) -> None:
        self.stage = stage
        new = {id(p) for p in model.context_parameters()}
        trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        share = stage.sentence_rate if isinstance(stage, ContextStageSection) else 1.0
        if model.context is not None and model.context.fixes_sentence_model:
            share = 0.0
        self.old = [(name, p) for name, p in trained if id(p) not in new]
        self.new = [(name, p) for name, p in trained if id(p) in new]
        self.gates = [] if model.context is None else model.context.gate_parameters()
        if share == 0 and not self.new:
            raise UserError(
                "nothing would be trained: sentence_rate is 0, and there is no context layer",
                remedy="set context.kind, or context_stage.sentence_rate",
            )
        self.shares = (share, 1.0)
        groups = [{"params": [p for _, p in group]} for group in (self.old, self.new)]
        self.adam = torch.optim.AdamW(
            groups, lr=stage.learning_rate, betas=stage.betas, weight_decay=stage.weight_decay, fused=True
        )

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [p for _, p in (*self.old, *self.new)]

    def held(self, update: int) -> bool:
        """True while the sentence model is fixed: as long as there is something else to train."""
        if not isinstance(self.stage, ContextStageSection) or not self.new:
            return False
        return update <= self.stage.hold_sentence_model or self.shares[0] == 0

    def prepare(self, update: int) -> float:
        """Sets rates and what is trained for this update; returns the rate of the new parameters."""
        rate = self.stage.learning_rate * rate_factor(self.stage, update)
        for group, share in zip(self.adam.param_groups, self.shares, strict=True):
            group["lr"] = rate * share
        hold = self.held(update)
        for _, parameter in self.old:
            parameter.requires_grad_(not hold)
        if isinstance(self.stage, ContextStageSection):
            for parameter in self.gates:
                parameter.requires_grad_(update > self.stage.hold_gate)
        return rate

    def step(self, scale: float) -> float:
        """Scales gradients, clips, updates; returns the gradient norm before clipping."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients) * scale
        if torch.isfinite(norm):
            within = (self.stage.clip / (norm + CLIP_ROUNDING)).clamp(max=1.0)
            torch._foreach_mul_(gradients, within * scale)  # both at once: every pass reads all of them from memory
            self.adam.step()
            torch.autograd.graph.increment_version(self.parameters)  # fused Adam does not: packed weights would stay
        return float(norm)

    def zero(self) -> None:
        self.adam.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Adam's moments and step counts by parameter name, for the resumable state."""
        out = {}
        for name, parameter in (*self.old, *self.new):
            for key, value in self.adam.state.get(parameter, {}).items():
                out[f"{key}/{name}"] = value
        return out

    def restore(self, tensors: dict[str, torch.Tensor], path: Path) -> None:
        names = dict((*self.old, *self.new))
        for full, value in tensors.items():
            key, _, name = full.partition("/")
            if name not in names or (key != "step" and value.shape != names[name].shape):
                raise UserError(f"{full!r} belongs to another model", where=path, remedy="delete the state")
            parameter = names[name]
            device = parameter.device if key != "step" or self.adam.defaults["fused"] else torch.device("cpu")
            self.adam.state[parameter][key] = value.to(device)
