"""Label-smoothed cross-entropy over real tokens, chunk by chunk: tokens x vocabulary is never held whole."""

from __future__ import annotations

import torch
from torch import Tensor

CHUNK_ELEMENTS = 4_000_000  # logits held at a time


def _chunks(tokens: int, vocabulary: int) -> range:
    return range(0, tokens, max(1, CHUNK_ELEMENTS // vocabulary))


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The gradient of a chunk is known as soon as its logits are: it is computed at once and the logits dropped."""

    @staticmethod
    def forward(ctx, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float):  # type: ignore[override]
        vocabulary = weight.shape[0]
        step = _chunks(states.shape[0], vocabulary).step
        wanted = any(ctx.needs_input_grad[:3])
        d_states = torch.empty_like(states) if wanted else None
        d_weight = torch.zeros_like(weight) if wanted else None
        d_bias = torch.zeros_like(bias) if wanted else None
        loss = states.new_zeros((), dtype=torch.float32)
        likelihood = states.new_zeros((), dtype=torch.float32)
        for start in range(0, states.shape[0], step):
            chunk, wanted_ids = states[start : start + step], targets[start : start + step]
            logits = torch.addmm(bias, chunk, weight.t()).float()
            scaled = torch.log_softmax(logits, -1)
            chosen = scaled.gather(1, wanted_ids[:, None]).sum()
            likelihood -= chosen
            loss -= (1 - smoothing) * chosen
            if smoothing:
                loss -= smoothing / vocabulary * scaled.sum()
            if d_states is not None and d_weight is not None and d_bias is not None:
                gradient = scaled.exp_()
                gradient.scatter_add_(1, wanted_ids[:, None], gradient.new_full((len(chunk), 1), smoothing - 1))
                if smoothing:
                    gradient -= smoothing / vocabulary
                gradient = gradient.to(states.dtype)
                torch.mm(gradient, weight, out=d_states[start : start + step])
                d_weight.addmm_(gradient.t(), chunk)
                d_bias += gradient.sum(0)
        ctx.gradients = (d_states, d_weight, d_bias)
        ctx.mark_non_differentiable(likelihood)
        return loss, likelihood

    @staticmethod
    def backward(ctx, d_loss: Tensor, _: Tensor):  # type: ignore[override]
        d_states, d_weight, d_bias = ctx.gradients
        ctx.gradients = None
        return d_states * d_loss, d_weight * d_loss, d_bias * d_loss, None, None


def smoothed_cross_entropy(
    states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Sums over tokens of the smoothed loss and of the plain negative log-likelihood. states [T, d], targets [T]."""
    with torch.autocast(states.device.type, enabled=False):
        return _SmoothedCrossEntropy.apply(states, weight.to(states.dtype), bias.to(states.dtype), targets, smoothing)


@torch.no_grad()
def token_log_probabilities(states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """[T] log-probability of each target token."""
    step = _chunks(states.shape[0], weight.shape[0]).step
    parts = []
    for start in range(0, states.shape[0], step):
        logits = torch.addmm(bias, states[start : start + step], weight.t()).float()
        chosen = logits.gather(1, targets[start : start + step, None])[:, 0]
        parts.append(chosen - logits.logsumexp(-1))
    return torch.cat(parts) if parts else states.new_zeros(0)
