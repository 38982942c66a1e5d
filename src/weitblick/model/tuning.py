"""How the work of context attention is cut, by device: a processor wants parts that stay in its cache, a GPU few large
launches and no waiting for results. The choice is about speed alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Tuning:
    """chunk       scores that dense attention holds at a time
    sentence_chunk scores of sentences that routed attention holds at a time
    tile           numbers of tiles that routed attention holds at a time
    segment_cost   words of a document that a further segment of sentences must save
    sorted         whether sparsemax sorts all scores instead of asking after each round whether it is done
    """

    chunk: int
    sentence_chunk: int
    tile: int
    segment_cost: int
    sorted: bool


TUNING = {
    "cpu": Tuning(chunk=1 << 19, sentence_chunk=1 << 21, tile=1 << 19, segment_cost=24, sorted=False),
    # Counted, not timed: there was no GPU to measure on. A chunk is 256 MB of float32.
    "cuda": Tuning(chunk=1 << 26, sentence_chunk=1 << 26, tile=1 << 26, segment_cost=512, sorted=True),
}


def tuning_for(device: torch.device) -> Tuning:
    return TUNING["cpu" if device.type == "cpu" else "cuda"]
