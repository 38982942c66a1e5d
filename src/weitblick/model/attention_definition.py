"""Context attention by its definition: H-Attention and its flat cousins in plain padded PyTorch. Read this file first.

For one document: H heads, Q queries, J context sentences, W words of the longest, d_k = d / H. The queries of a
sentence may read all other sentences (offline) or those before it (online). The
other modules named `context_...` say where queries, keys and values come from and what is done with the output;
`weitblick.fast` computes the same, packed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from weitblick.model.sparsemax import Kind, entmax15, masked_softmax, sparsemax

NORMALISE = {"soft": masked_softmax, "sparse": sparsemax, "entmax15": entmax15}
"""Scores and where they count -> weights that sum to one; zeros where nothing counts."""


Masks = Callable[[Tensor], Tensor]
"""Gives what to multiply weights with before they weigh values: in training, a mask of dropout of their shape."""


def dropped(weights: Tensor, masks: Masks | None) -> Tensor:
    """Weights as they weigh values: in training some are zero and the others a little greater, to make up for them."""
    return weights if masks is None else weights * masks(weights)


def visible(queries: Tensor, keys: Tensor, online: bool) -> Tensor:
    """Positions of the queries' sentences [Q] and of the context's [J] -> which query may read which [Q, J]"""
    return keys < queries[:, None] if online else keys != queries[:, None]


def sentence_attention(
    queries: Tensor, keys: Tensor, values: Tensor, seen: Tensor, kind: Kind, masks: Masks | None = None
) -> tuple[Tensor, Tensor]:
    """Flat, over sentences. queries [H, Q, d_k], keys and values [H, J, d_k], seen [Q, J].

    -> output [H, Q, d_k], weights [H, Q, J] before dropout
    """
    scores = torch.einsum("hqd,hjd->hqj", queries, keys) / math.sqrt(values.shape[-1])
    weights = NORMALISE[kind](scores, seen)
    return torch.einsum("hqj,hjd->hqd", dropped(weights, masks), values), weights


def word_attention(
    queries: Tensor, keys: Tensor, values: Tensor, real: Tensor, seen: Tensor, kind: Kind, masks: Masks | None = None
) -> tuple[Tensor, Tensor]:
    """Flat, over all words of the document. queries [H, Q, d_k], keys and values [H, J, W, d_k], seen [Q, J], and where
    there is a word: real [J, W].

    -> output [H, Q, d_k], weights [H, Q, J, W] before dropout
    """
    scores = torch.einsum("hqd,hjwd->hqjw", queries, keys) / math.sqrt(values.shape[-1])
    places = seen[:, :, None] & real  # [Q, J, W]
    weights = NORMALISE[kind](scores.flatten(2), places.flatten(1)).view_as(scores)
    return torch.einsum("hqjw,hjwd->hqd", dropped(weights, masks), values), weights


def hierarchical_attention(
    sentence_queries: Tensor,
    word_queries: Tensor,
    sentence_keys: Tensor,
    word_keys: Tensor,
    values: Tensor,
    real: Tensor,
    seen: Tensor,
    sentence_kind: Kind,
    word_kind: Kind,
    masks: Masks | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """H-Attention: over sentences, then over the words inside each, the second rescaled by the first. Dropout takes
    sentences from a query, and words.

    -> output [H, Q, d_k], sentence weights [H, Q, J], weights of the words inside their sentence [H, Q, J, W]
    """
    scale = 1 / math.sqrt(values.shape[-1])
    alpha = NORMALISE[sentence_kind](torch.einsum("hqd,hjd->hqj", sentence_queries, sentence_keys) * scale, seen)
    inside = NORMALISE[word_kind](torch.einsum("hqd,hjwd->hqjw", word_queries, word_keys) * scale, real)
    rescaled = dropped(alpha, masks).unsqueeze(-1) * inside
    return torch.einsum("hqjw,hjwd->hqd", dropped(rescaled, masks), values), alpha, inside
