"""The pointer starts by telling decoder states apart as well as so few numbers can."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from weitblick.common.recipe import MemorySection
from weitblick.memory.keys import overlap
from weitblick.memory.pointer import MemoryPointer
from weitblick.model.output import Softmax
from weitblick.model.sentence_model import DecoderStates


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


def test_an_approved_source_that_has_what_others_lack_overlaps_more() -> None:
    everything, nothing, rare, common = overlap(
        [5, 6, 7], [frozenset({5, 6, 7, 8}), frozenset({9}), frozenset({5}), frozenset({6})]
    )
    assert everything == pytest.approx(1.0)
    assert nothing == 0.0
    assert rare == common
    shared = overlap([5, 6], [frozenset({5}), frozenset({6}), frozenset({6}), frozenset({6})])
    assert shared[0] > shared[1] == shared[2]
    assert overlap([], [frozenset({5})]) == [0.0]


@torch.no_grad()
def test_words_are_judged_as_by_the_whole_distribution() -> None:
    torch.manual_seed(3)
    words = Softmax(torch.randn(6, 4), torch.randn(11, 4), torch.randn(11))
    targets = torch.arange(6)
    table = torch.log_softmax(words.states @ words.weight.t() + words.bias, -1)
    likely, favourite = words.judge(targets)
    torch.testing.assert_close(likely, table[targets, targets])
    assert torch.equal(favourite, table.argmax(-1))
