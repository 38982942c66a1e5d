"""What benchmarks of our own models share: their shape, supports as narrow as a trained model's, the clock."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tools.sizes import Size
from tools.turns import circumstances
from weitblick.common.process import tune_allocator
from weitblick.common.recipe import ModelSection
from weitblick.fast.context_attention import ContextBank
from weitblick.model.batch import Layout

NARROW = 3.0
"""Sentences in support of a query of a trained model."""


def begin(options: argparse.Namespace) -> dict[str, Any]:
    """Sets threads and allocator as products do; the circumstances at the start."""
    torch.set_num_threads(options.threads)
    tune_allocator()
    return circumstances()


def clock_of(options: argparse.Namespace) -> Callable[[], float]:
    return time.perf_counter if options.clock == "wall" else time.process_time


class Seconds:
    """By the clock that was asked for, what the work inside `with` takes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.clock = clock_of(options)
        self.passed = 0.0

    def __enter__(self) -> Seconds:
        self.begun = self.clock()
        return self

    def __exit__(self, *failure: object) -> None:
        self.passed = self.clock() - self.begun


def model_section(size: Size) -> ModelSection:
    return ModelSection(
        dimension=size.dimension,
        feed_forward=size.feed_forward,
        encoder_layers=size.layers,
        decoder_layers=size.layers,
        heads=size.heads,
    )


@torch.no_grad()
def narrow(attention: Any, queries: Tensor, layout: Layout, bank: ContextBank) -> float:
    """Scales the sentence queries until about `NARROW` sentences are in support, by bisection; returns the scale."""
    weight = attention.sentence_query.weight
    original, low, high = weight.clone(), 0.0, 10.0  # of the logarithm
    for _ in range(10):
        middle = (low + high) / 2
        weight.copy_(original * 2.0**middle)
        support = float(attention(queries, layout, bank).support.mean())
        low, high = (middle, high) if support > NARROW else (low, middle)
    return 2.0**middle
