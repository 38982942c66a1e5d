"""Label-smoothed cross-entropy over real tokens, chunk by chunk: tokens x vocabulary is never held whole."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK_ELEMENTS = 16_000_000
"""Logits held at a time. The gradient of all weights passes through memory once more for each further chunk."""


def _chunks(tokens: int, vocabulary: int) -> range:
    """Where chunks begin, all of about the same size."""
    count = max(1, -(-tokens * vocabulary // CHUNK_ELEMENTS))
    return range(0, tokens, max(1, -(-tokens // count)))


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The gradient of a chunk is known as soon as its logits are: it is computed at once, in their place.

    With p the softmax of a row and V words, the gradient of the row's logits is p - (1 - smoothing) 1[target] -
    smoothing / V. Only p passes over tokens x vocabulary, once: what is taken off for the target needs a row of states
    and weights for each token, and smoothing, the same for all words, their sums. The normaliser of a row is its logit
    of the target less the logarithm of p there. Logits and products are of type `products`, in which 1 - smoothing
    would be another number; what is summed up over chunks has the type of the parameters.
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
        tokens, vocabulary = states.shape[0], weight.shape[0]
        evenly, factor, summand = smoothing / vocabulary, weight.to(products), bias.to(products)
        of_states, of_weights = states.float().sum(0), weight.float().sum(0)
        likelihood = states.new_zeros((), dtype=torch.float32)
        normalisers = torch.zeros_like(likelihood)
        gradients = _Gradients(states, weight, bias) if any(ctx.needs_input_grad[:3]) else None
        step = _chunks(tokens, vocabulary).step
        for start in range(0, tokens, step):
            chunk, wanted = states[start : start + step].to(products), targets[start : start + step, None]
            logits = torch.addmm(summand, chunk, factor.t())
            chosen = logits.gather(1, wanted).float()
            shares = torch.softmax(logits, -1, out=logits if logits.device.type == "cpu" else None)
            own = shares.gather(1, wanted).float()
            normaliser = chosen - own.log()
            missed = (own == 0).nonzero()[:, 0]  # a share too small for a number tells nothing of its row
            if len(missed):
                normaliser[missed] = torch.addmm(summand, chunk[missed], factor.t()).float().logsumexp(-1, keepdim=True)
            likelihood += (normaliser - chosen).sum()
            normalisers += normaliser.sum()
            if gradients is not None:
                gradients.add(start, chunk, shares, factor)
        loss = likelihood.clone()
        if smoothing:
            logits_sum = of_states @ of_weights + tokens * bias.float().sum()
            loss = (1 - smoothing) * likelihood + smoothing * normalisers - evenly * logits_sum
        if gradients is not None:
            gradients.take_off(states, weight, targets, 1 - smoothing)
            if smoothing:
                gradients.take_off_evenly(evenly * of_states, evenly * of_weights, evenly * tokens)
        ctx.gradients = gradients
        ctx.mark_non_differentiable(likelihood)
        return loss, likelihood

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients, ctx.gradients = ctx.gradients, None
        return *(x.mul_(d_loss) for x in (gradients.states, gradients.weight, gradients.bias)), None, None, None


class _Gradients:
    """Those of states, weight and bias, from the gradients of logits, chunk by chunk."""

    def __init__(self, states: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.states, self.weight, self.bias = torch.empty_like(states), torch.empty_like(weight), torch.zeros_like(bias)

    def add(self, start: int, chunk: Tensor, shares: Tensor, factor: Tensor) -> None:
        """shares [C, V] of all words after the states chunk [C, d] from `start`; factor [V, d]: the weights"""
        self.states[start : start + len(chunk)] = shares @ factor
        product = shares.t() @ chunk
        self.weight = product.to(self.weight.dtype) if start == 0 else self.weight.add_(product)
        self.bias += (shares.new_ones(1, len(chunk)) @ shares)[0]

    def take_off(self, states: Tensor, weight: Tensor, targets: Tensor, share: float) -> None:
        """So much of each target [T]"""
        self.states.sub_(weight.index_select(0, targets), alpha=share)
        self.weight.index_add_(0, targets, states, alpha=-share)
        self.bias.index_add_(0, targets, torch.full_like(states[:, 0], -share))

    def take_off_evenly(self, of_states: Tensor, of_weights: Tensor, of_tokens: float) -> None:
        self.states -= of_weights.to(self.states.dtype)
        self.weight -= of_states.to(self.weight.dtype)
        self.bias -= of_tokens


def smoothed_cross_entropy(
    states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Sums over tokens of the smoothed loss and of the plain negative log-likelihood. states [T, d], targets [T]."""
    device = states.device.type
    half = torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.bfloat16
    products = torch.bfloat16 if half else weight.dtype  # sums over a large vocabulary do not fit into float16
    with torch.autocast(device, enabled=False):
        return _SmoothedCrossEntropy.apply(states.to(weight), weight, bias, targets, smoothing, products)
