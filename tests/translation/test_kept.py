"""What is kept between jobs is bounded, and holds nothing but itself."""

import torch

from weitblick.translation.kept import KeptStates


def test_the_oldest_goes_first_and_what_was_asked_for_is_young() -> None:
    kept = KeptStates(tokens=6)
    for name in "abc":
        kept.put(name, torch.zeros(2, 4))
    assert kept.get("a") is not None
    kept.put("d", torch.zeros(2, 4))
    assert kept.get("b") is None
    assert all(kept.get(name) is not None for name in "acd")


def test_a_part_of_a_batch_does_not_hold_the_batch() -> None:
    kept = KeptStates(tokens=10)
    kept.put("part", torch.zeros(1000, 4)[:2])
    found = kept.get("part")
    assert found is not None
    assert found.untyped_storage().nbytes() == 2 * 4 * 4
