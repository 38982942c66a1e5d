from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.model.batch import Layout
from weitblick.model.context_layer import ContextLayer
from weitblick.model.context_module import ContextOptions

KINDS = ["sentence", "word", "hierarchical"]
SMALL = ModelSection(dimension=16, heads=2, feed_forward=40)
LAYOUT = Layout.of([5, 3, 4, 6, 1, 4], [0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 0])


def layer(kind: str = "hierarchical", model: ModelSection = SMALL, **options) -> ContextLayer:
    torch.manual_seed(3)
    return ContextLayer(ContextSection(kind=kind, **options), model).eval()


def states(seed: int = 0, tokens: int = LAYOUT.tokens) -> Tensor:
    return torch.randn(tokens, SMALL.dimension, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("kind", "count"), [("sentence", 3_674_624), ("word", 3_674_624), ("hierarchical", 4_198_912)])
def test_parameter_counts_of_the_paper(kind: str, count: int) -> None:
    with torch.device("meta"):
        assert sum(p.numel() for p in ContextLayer(ContextSection(kind=kind), ModelSection()).parameters()) == count


@pytest.mark.parametrize("direction", ["offline", "online"])
@pytest.mark.parametrize("kind", KINDS)
def test_without_context_states_come_back_to_the_bit(kind: str, direction: str) -> None:
    module, x = layer(kind, direction=direction), states()
    result = module(x, states(1), LAYOUT, module.prepare(x, x, LAYOUT))
    assert not result.present[-4:].any()
    assert torch.equal(result.states[~result.present], x[~result.present])
    assert not torch.isclose(result.states[result.present], x[result.present]).all(-1).any()
    assert result.present[:5].any() == (direction == "offline")
    assert (result.gate[~result.present] == 1).all()
    assert result.gate.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_that_may_not_use_context(kind: str) -> None:
    module, x = layer(kind), states()
    use = torch.tensor([True, False, True, True, True, True])
    bank = module.prepare(x, x, LAYOUT)
    limited, free = module(x, x, LAYOUT, bank, ContextOptions(use)), module(x, x, LAYOUT, bank)
    assert torch.equal(limited.states[5:8], x[5:8])
    assert not limited.present[5:8].any()
    assert torch.equal(limited.states[:5], free.states[:5])
    leaf = x.clone().requires_grad_()
    none = module(leaf, leaf, LAYOUT, bank, ContextOptions(torch.zeros(6, dtype=torch.bool)))
    none.states.sum().backward()
    assert torch.equal(none.states, x)
    assert torch.equal(leaf.grad, torch.ones_like(x))


def test_the_gate_mixes_states_and_context() -> None:
    module, x = layer(), states()
    bank = module.prepare(x, x, LAYOUT)
    with torch.no_grad():
        module.gate.of_states.weight.zero_()
        module.gate.of_context.weight.zero_()
    half = module(x, x, LAYOUT, bank)
    torch.testing.assert_close(half.gate[half.present], torch.full_like(half.gate[half.present], 0.5))
    module.gate.bias = torch.nn.Parameter(torch.full((x.shape[-1],), -math.log(3)))
    quarter = module(x, x, LAYOUT, bank)
    torch.testing.assert_close(quarter.gate[half.present], torch.full_like(half.gate[half.present], 0.25))
    context = 2 * half.states - x
    torch.testing.assert_close(quarter.states[half.present], (0.25 * x + 0.75 * context)[half.present])


def test_gate_start_lets_states_through() -> None:
    module, x = layer(gate_start=3.0), states()
    assert sum(p.numel() for p in module.parameters()) == sum(p.numel() for p in layer().parameters()) + 16
    result = module(x, x, LAYOUT, module.prepare(x, x, LAYOUT))
    assert result.gate[result.present].mean() > 0.85


@pytest.mark.parametrize("kind", KINDS)
def test_projections_learn_from_detached_context(kind: str) -> None:
    module, x = layer(kind), states()
    module(x, x, LAYOUT, module.prepare(x, x, LAYOUT)).states.square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("kind", ["word", "hierarchical"])
def test_retrieval_start_attends_to_like_words(kind: str) -> None:
    model = ModelSection(dimension=64, heads=2, feed_forward=256)
    module = layer(kind, model, retrieval_start=True)
    words = torch.randn(8 * 20, 64, generator=torch.Generator().manual_seed(9))
    places = Layout.of([8] * 20, [0] * 20, list(range(20)))
    query = words[8 * 13 + 2].unsqueeze(0)
    bank = module.prepare(words, words, places)
    record = module(query, query, Layout.of([1], [0], [99]), bank, ContextOptions(need_weights=True)).weights
    assert record.sentence_weights.mean(1).argmax() == 13
    assert record.rescaled.mean(1).argmax() == 13 * 7 + 2
    assert record.rescaled.mean(1).max() > 0.5


def test_dropout_only_in_training() -> None:
    module, x = layer(dropout=0.5), states()
    bank = module.prepare(x, x, LAYOUT)
    assert torch.equal(module(x, x, LAYOUT, bank).states, module(x, x, LAYOUT, bank).states)
    module.train()
    assert not torch.equal(module(x, x, LAYOUT, bank).states, module(x, x, LAYOUT, bank).states)


def test_what_is_added_starts_as_nothing_and_is_learned() -> None:
    module, x = layer(gate="add"), states()
    bank = module.prepare(x, x, LAYOUT)
    assert torch.equal(module(x, x, LAYOUT, bank).states, x)
    module(x, x, LAYOUT, bank).states.square().sum().backward()
    assert module.feed_forward_norm.weight.grad is not None
    assert module.feed_forward_norm.weight.grad.abs().sum() > 0
    with torch.no_grad():
        module.feed_forward_norm.weight.fill_(1.0)
    mixed, added = layer(), module
    mixed.load_state_dict(added.state_dict())
    a, b = added(x, x, LAYOUT, bank), mixed(x, x, LAYOUT, bank)
    assert torch.equal(a.gate, b.gate)
    assert not torch.equal(a.states, b.states)
