"""Dropout on attention weights: the same as in the definition, with right gradients, in training only."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from test_attention import (
    D,
    attention,
    both_directions,
    every_variant,
    layout,
    mixed_batch,
    states,
)
from torch import Tensor

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ContextStageSection, DropoutSection, ModelSection
from weitblick.model.batch import Layout
from weitblick.model.context_attention import ContextAttention
from weitblick.model.context_layer import ContextLayer
from weitblick.model.layers import Dropout
from weitblick.model.plain_attention import WeightDropout
from weitblick.model.tuning import TUNING
from weitblick.training.run import _set_dropout

RATE = 0.25


def dropping(variant: tuple[str, str, str, str], direction: str = "offline", **options) -> ContextAttention:
    return attention(variant, direction, dropout=RATE, **options).train()


def by_value(weights: Tensor) -> Tensor:
    """A mask that tells weights by what they are, so that it is the same however they are laid out."""
    return ((weights.detach() * 1000).frac() > RATE).to(weights.dtype) / (1 - RATE)


@pytest.fixture
def masks_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WeightDropout, "masks", lambda self, device: by_value)


def read_and_differentiate(module: ContextAttention, places: Layout, need_weights: bool) -> list[Tensor]:
    inputs = [states(places.tokens, seed).requires_grad_() for seed in (1, 2, 3)]
    module.zero_grad()
    read = module(inputs[0], places, module.prepare(inputs[1], inputs[2], places), need_weights)
    (read.output * states(places.tokens, 4)).sum().backward()
    return [read.output.detach(), read.support, *(x.grad for x in (*inputs, *module.parameters()))]


@pytest.mark.usefixtures("masks_by_value")
@both_directions
@every_variant
def test_the_engine_drops_as_the_definition_does(variant, direction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward and backward, with the same masks; that of the definition is differentiated by PyTorch."""
    module = dropping(variant, direction)
    defined = read_and_differentiate(module, layout(), need_weights=True)
    for kept in (96 << 20, 0):
        monkeypatch.setattr("weitblick.fast.context_dense.KEPT_ELEMENTS", kept)
        for fast, slow in zip(read_and_differentiate(module, layout(), need_weights=False), defined, strict=True):
            torch.testing.assert_close(fast, slow, atol=1e-10, rtol=1e-8)
    assert not torch.allclose(read_and_differentiate(module.eval(), layout(), need_weights=False)[0], defined[0])


@every_variant
def test_gradients_with_drawn_masks_are_the_numerical_ones(variant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WeightDropout, "drawn", lambda dropout: WeightDropout(dropout.rate, 3))
    monkeypatch.setitem(TUNING, "cpu", replace(TUNING["cpu"], chunk=1, tile=1))  # several chunks, and masks
    monkeypatch.setattr("weitblick.fast.context_dense.KEPT_ELEMENTS", 0)
    module = dropping(variant)
    small = Layout.of([4, 3, 1, 5, 3, 2], [0, 0, 0, 0, 1, 1], [0, 1, 2, 3, 0, 1])
    inputs = [states(small.tokens, seed).requires_grad_() for seed in (5, 6, 7)]

    def function(q: Tensor, k: Tensor, v: Tensor, *_: Tensor) -> Tensor:
        return module(q, small, module.prepare(k, v, small)).output

    assert torch.autograd.gradcheck(function, (*inputs, *module.parameters()), fast_mode=True)


@pytest.mark.parametrize("need_weights", [False, True], ids=["engine", "definition"])
@pytest.mark.parametrize(
    "variant",
    [
        ("sentence", "dense", "soft", "soft"),
        ("word", "dense", "soft", "soft"),
        ("hierarchical", "dense", "sparse", "soft"),
        ("hierarchical", "routed", "sparse", "soft"),
    ],
    ids="-".join,
)
def test_the_expectation_is_attention_without_dropout(variant, need_weights: bool) -> None:
    module, draws = dropping(variant), 300
    places = Layout.of([4, 3, 5], [0, 0, 0], [0, 1, 2])
    x = states(places.tokens, 1)
    with torch.no_grad():
        bank = module.prepare(x, x, places)
        torch.manual_seed(1)
        drawn = torch.stack([module(x, places, bank, need_weights).output for _ in range(draws)])
        plain = module.eval()(x, places, bank, need_weights).output
    error = drawn.std(0) / draws**0.5
    assert (error > 0).all()
    assert ((drawn.mean(0) - plain).abs() < 5 * error).all()


@both_directions
@every_variant
def test_evaluation_is_the_same_to_the_bit(variant, direction: str) -> None:
    x = states(layout().tokens)
    plain, module = attention(variant, direction), dropping(variant, direction).eval()
    module.load_state_dict(plain.state_dict())
    before = torch.random.get_rng_state()
    a, b = (m(x, layout(), m.prepare(x, x, layout())) for m in (plain, module))
    assert torch.equal(a.output, b.output)
    assert torch.equal(before, torch.random.get_rng_state())


@every_variant
def test_the_seed_says_what_is_dropped(variant) -> None:
    module = dropping(variant)

    def run(seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        return read_and_differentiate(module, layout(), need_weights=False)

    first, again, other = run(1), run(1), run(2)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])
    assert torch.equal(first[1], other[1])  # a sentence counts as read though it was dropped


@pytest.mark.usefixtures("masks_by_value")
@both_directions
@every_variant
def test_masked_equals_absent_in_training(variant, direction: str) -> None:
    """A document without the sentences that the query may not read gives the same."""
    module, lengths, position = dropping(variant, direction), [5, 3, 4, 6], 2
    query, query_layout = states(3, 20), Layout.of([3], [0], [position])
    parts = states(sum(lengths), 1).split(lengths)
    kept = [s for s in range(4) if (s < position if direction == "online" else s != position)]
    outputs = []
    for chosen in (range(4), kept):
        x = torch.cat([parts[s] for s in chosen])
        places = Layout.of([lengths[s] for s in chosen], [0] * len(chosen), list(chosen))
        outputs.append(module(query, query_layout, module.prepare(x, x, places)).output)
    torch.testing.assert_close(*outputs)


def test_documents_on_both_paths_have_masks_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = []
    drawn = WeightDropout.masks
    monkeypatch.setattr(WeightDropout, "masks", lambda self, device: seeds.append(self.seed) or drawn(self, device))
    many, x = mixed_batch()
    module = dropping(("hierarchical", "auto", "sparse", "soft"))
    module(x, many, module.prepare(x, x, many)).output.sum().backward()
    assert len(seeds) == 4  # dense and routed, forward and backward
    assert len(set(seeds)) == 2


def test_without_context_states_stay_as_they_are_in_training() -> None:
    model = ModelSection(dimension=D, heads=3, feed_forward=16, dropout=DropoutSection(attention=RATE))
    layer = ContextLayer(ContextSection(kind="hierarchical", direction="online"), model).double().train()
    places, x = Layout.of([3, 4], [0, 0], [0, 1]), states(7)
    read = layer(x, x, places, layer.prepare(x, x, places))
    assert torch.equal(read.states[:3], x[:3])
    assert not torch.equal(read.states[3:], x[3:])


@pytest.mark.parametrize("kind", ["sentence", "word", "hierarchical", "han", "zhang"])
def test_rates_come_from_the_recipe(kind: str) -> None:
    """Of context attention itself, else of the model's attention; a stage that has one sets all."""
    section = ModelSection(
        dimension=D, heads=3, feed_forward=16, encoder_layers=1, decoder_layers=1, dropout=DropoutSection(attention=0.3)
    )

    def rates(model) -> set[float]:
        found = {
            name: module.rate
            for name, module in model.context.named_modules()
            if isinstance(module, Dropout) and "attention" in name and not name.startswith("encoder")
        }
        assert found
        return set(found.values())

    given = build(section, ContextSection(kind=kind, attention_dropout=0.4, dropout=0.1), 20, 20)
    model = build(section, ContextSection(kind=kind, dropout=0.1), 20, 20)
    assert rates(given) == {0.4}
    assert rates(model) == {0.3}
    _set_dropout(model, ContextStageSection(dropout=0.2))
    assert rates(model) == {0.2}
