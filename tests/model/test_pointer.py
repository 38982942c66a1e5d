"""The pointer starts by telling decoder states apart as well as so few numbers can."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from weitblick.config.recipe import MemorySection
from weitblick.model.pointer import MemoryPointer
from weitblick.sentence.sentence_model import DecoderStates


def test_keys_start_from_what_sets_states_apart() -> None:
    torch.manual_seed(1)
    directions = torch.linalg.qr(torch.randn(12, 12)).Q
    strength = torch.tensor([9.0, 7.0, 5.0, *[0.1] * 9])
    states = 40 * directions[11] + torch.randn(500, 12) * strength @ directions.t()
    pointer = MemoryPointer(MemorySection(kind="pointer", dimension=3), 12)
    pointer.start_from(states)
    keys = pointer.keys(DecoderStates(states, states))
    torch.testing.assert_close(keys, F.normalize(pointer.key(states), dim=-1))
    # Without what all states share, and with the three directions in which they differ, their angles are kept.
    apart = F.normalize(states - states.mean(0), dim=-1)
    assert (keys @ keys.t() - apart @ apart.t()).abs().mean() < 0.02


def test_more_numbers_than_states_have() -> None:
    pointer = MemoryPointer(MemorySection(kind="pointer", dimension=8), 4)
    pointer.start_from(torch.randn(30, 4))
    assert torch.isfinite(pointer.key.weight).all()
