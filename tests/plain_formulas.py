"""Formulas that tests take for the truth."""

import torch
from torch import Tensor


@torch.no_grad()
def token_log_probabilities(states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """[T] log-probability of each target token, from states [T, d] and the output projection [V, d] and [V]."""
    logits = torch.addmm(bias, states, weight.t()).float()
    return logits.gather(1, targets[:, None])[:, 0] - logits.logsumexp(-1)
