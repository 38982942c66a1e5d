"""Label-smoothed cross-entropy over real tokens, chunk by chunk: tokens x vocabulary is never held whole."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK_ELEMENTS = 8_000_000  # logits held at a time


def _chunks(tokens: int, vocabulary: int) -> range:
    return range(0, tokens, max(1, CHUNK_ELEMENTS // vocabulary))


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The gradient of a chunk is known as soon as its logits are: it is computed at once, in their place.

    With e the exponentials of a row less its maximum, s their sum, and V words, the gradient of the row's logits is
    e / s - (1 - smoothing) 1[target] - smoothing / V. Only e passes over tokens x vocabulary: the division by s is done
    on the other factor of each product, and smoothing, the same for all words, needs sums of states and weights alone.
    Products are of type `products`; what is summed up over chunks has that of the parameters.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        smoothing: float,
        products: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        vocabulary = weight.shape[0]
        factor, summand = weight.to(products), bias.to(products)
        wanted = any(ctx.needs_input_grad[:3])
        d_states = torch.empty_like(states) if wanted else None
        d_weight = torch.zeros_like(weight) if wanted else None
        d_bias = torch.zeros_like(bias) if wanted else None
        likelihood = states.new_zeros((), dtype=torch.float32)
        normalisers = torch.zeros_like(likelihood)
        step = _chunks(states.shape[0], vocabulary).step
        for start in range(0, states.shape[0], step):
            chunk, wanted_ids = states[start : start + step], targets[start : start + step, None]
            logits = torch.addmm(summand, chunk.to(products), factor.t()).float()
            chosen = logits.gather(1, wanted_ids)
            highest = logits.amax(-1, keepdim=True)
            exponentials = logits.sub_(highest).exp_()
            total = exponentials.sum(-1, keepdim=True)
            normaliser = total.log() + highest
            likelihood += (normaliser - chosen).sum()
            normalisers += normaliser.sum()
            if d_states is not None and d_weight is not None and d_bias is not None:
                exponentials.scatter_add_(1, wanted_ids, total * (smoothing - 1))
                gradient, share = exponentials.to(products), total.reciprocal()
                torch.mul(gradient @ factor, share, out=d_states[start : start + step])
                d_weight += gradient.t() @ (chunk * share).to(products)
                d_bias += (exponentials.t() @ share[:, 0]).to(bias.dtype)
        loss = likelihood.clone()
        if smoothing:
            evenly, tokens = smoothing / vocabulary, states.shape[0]
            of_states, of_weights = states.float().sum(0), weight.float().sum(0)
            logits_sum = of_states @ of_weights + tokens * bias.float().sum()
            loss = (1 - smoothing) * likelihood + smoothing * normalisers - evenly * logits_sum
            if d_states is not None and d_weight is not None and d_bias is not None:
                d_states -= evenly * of_weights.to(states.dtype)
                d_weight -= evenly * of_states.to(states.dtype)
                d_bias -= evenly * tokens
        ctx.gradients = (d_states, d_weight, d_bias)
        ctx.mark_non_differentiable(likelihood)
        return loss, likelihood

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        d_states, d_weight, d_bias = ctx.gradients
        ctx.gradients = None
        return d_states.mul_(d_loss), d_weight.mul_(d_loss), d_bias.mul_(d_loss), None, None, None


def smoothed_cross_entropy(
    states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Sums over tokens of the smoothed loss and of the plain negative log-likelihood. states [T, d], targets [T]."""
    device = states.device.type
    half = torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.bfloat16
    products = torch.bfloat16 if half else weight.dtype  # sums over a large vocabulary do not fit into float16
    with torch.autocast(device, enabled=False):
        return _SmoothedCrossEntropy.apply(states.to(weight), weight, bias, targets, smoothing, products)


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
