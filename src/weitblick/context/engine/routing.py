"""Which documents are routed. The choice is about speed alone; it is made from a document's own shape and states, so
that what a sentence reads never depends on its neighbours in a batch."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from weitblick.batches.layout import Layout
from weitblick.context.attend import AttentionSettings
from weitblick.context.engine.bank import BankCells, BankLayout
from weitblick.context.sparsemax import normalise

PROBES = "sentence_probes"
"""Among projected rows: the sentence query of one word of each sentence, to see how widely a document reads itself."""

# Where routing pays, measured on one processor (benchmarks/context_attention.py): below that share of sentences in
# support, from so many sentences and so many pairs of a word and a sentence of a document; sorting few of them costs
# more than it saves. Another processor may move the break-even, never the result.
SUPPORT = 0.35
SENTENCES = 8
PAIRS = 2000
# Online the choice must not depend on weights, or future sentences could change it: there length alone decides.
ONLINE_SENTENCES = 400
# A step of decoding has few queries, whatever the document: there it pays from so many sentences on.
STEP_SENTENCES = 64
# Sentences of a document whose support is looked at.
SAMPLE = 32


def wants_probes(settings: AttentionSettings) -> bool:
    return settings.path == "auto" and settings.sentence_kind != "soft" and not settings.online


def routed_now(bank: BankCells, layout: Layout, settings: AttentionSettings) -> np.ndarray | None:
    """[documents + 1] which documents to route for these queries: fewer in a step of decoding."""
    if bank.routed is None or settings.path != "auto" or layout.longest > 1:
        return bank.routed
    return bank.routed & (bank.layout.count_of >= STEP_SENTENCES)


def documents_to_route(bank: BankCells, probes: Tensor | None, settings: AttentionSettings) -> np.ndarray | None:
    """[documents + 1] which documents of a bank to route."""
    places, counts = bank.layout, bank.layout.count_of  # [documents + 1] sentences with words
    if settings.path == "dense" or settings.sentence_kind == "soft" or bank.word_keys is None:
        return None
    if settings.path == "routed":
        return counts > 0
    tokens = np.bincount(places.documents, weights=places.words + 1, minlength=len(counts))
    worth = (counts >= (ONLINE_SENTENCES if settings.online else SENTENCES)) & (tokens * counts >= PAIRS)
    if worth.any() and probes is not None and bank.sentence_keys is not None:
        worth &= _support(places, probes, bank.sentence_keys, settings) <= SUPPORT * counts
    return worth


@torch.no_grad()
def _support(places: BankLayout, probes: Tensor, keys: Tensor, settings: AttentionSettings) -> np.ndarray:
    """[documents + 1] mean number of sentences in support of some sentences of each document, evenly spread."""
    found = np.zeros(len(places.count_of))
    cells = places.sentence_gather(probes)
    for group in places.groups:
        size, shape = group.size * places.heads * group.slots, (group.size, places.heads, group.slots, -1)
        k, q = (x.narrow(0, group.cells, size).view(shape) for x in (keys, cells))
        count = min(SAMPLE, group.slots)
        sample = torch.from_numpy(group.counts[:, None] * np.arange(count) // count).to(k.device)  # [B, n]
        q = q.gather(2, sample[:, None, :, None].expand(-1, places.heads, -1, q.shape[-1]))
        hidden = group.positions[:, :, None] == group.positions.gather(1, sample)[:, None]  # [B, J, n]
        hidden |= group.positions[:, :, None] < 0
        scores = (k @ q.transpose(2, 3)).div_(math.sqrt(settings.width)).masked_fill_(hidden.unsqueeze(1), -torch.inf)
        weights = normalise(scores, settings.sentence_kind, 2)
        found[group.documents] = (weights > 0).sum(2).to(torch.float64).mean((1, 2)).cpu().numpy()
    return found
