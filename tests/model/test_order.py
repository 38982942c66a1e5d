"""Order in context attention: without effect at its start, exact in every path, and it changes what it should."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.model.batch import Layout
from weitblick.model.context_attention import (
    PERIODS,
    ContextAttention,
    Distance,
    HierarchicalAttention,
    SentenceAttention,
    WordAttention,
)
from weitblick.model.context_module import Projected
from weitblick.training.run import _take_over

D, H = 24, 3
VARIANTS = [(SentenceAttention, "dense"), (WordAttention, "dense"), (HierarchicalAttention, "dense"),
            (HierarchicalAttention, "routed")]  # fmt: skip
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: f"{v[0].__name__}-{v[1]}")
both_directions = pytest.mark.parametrize("direction", ["offline", "online"])
LENGTHS = [5, 3, 1, 9, 2, 6, 4, 4]
PLACES = Layout.of(LENGTHS, [0, 0, 0, 0, 0, 0, 2, 2], [0, 1, 2, 3, 4, 5, 0, 1])


def states(count: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(count, D, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def attention(variant: tuple[type[ContextAttention], str], direction: str = "offline", order: bool = True, **options):
    """With order, parameters that have learned something."""
    torch.manual_seed(7)
    module = variant[0](D, H, direction=direction, path=variant[1], order=order, **options).double()
    learned = torch.Generator().manual_seed(8)
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, Distance) or type(part).__name__ == "Place":
                for parameter in part.parameters():
                    parameter.normal_(0, 0.5, generator=learned)
    return module


def read(module: ContextAttention, x: Tensor, places: Layout = PLACES) -> Tensor:
    return module(x, places, module.prepare(x, x, places)).output


@both_directions
@every_variant
def test_it_starts_without_effect_bit_for_bit(variant, direction: str) -> None:
    torch.manual_seed(1)
    plain = variant[0](D, H, direction=direction, path=variant[1])
    torch.manual_seed(1)
    ordered = variant[0](D, H, direction=direction, path=variant[1], order=True)
    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, ordered.get_parameter(name)), "the start of everything else stays the same"
    x = states(PLACES.tokens, dtype=torch.float32)
    assert torch.equal(read(plain, x), read(ordered, x))
    step = Layout.of([1, 1], [0, 2], [3, 1])
    banks = plain.prepare(x, x, PLACES), ordered.prepare(x, x, PLACES)
    assert torch.equal(plain(x[:2], step, banks[0]).output, ordered(x[:2], step, banks[1]).output)


@every_variant
def test_it_learns_from_the_first_update(variant) -> None:
    torch.manual_seed(1)
    module = variant[0](D, H, path=variant[1], order=True)
    read(module, states(PLACES.tokens, dtype=torch.float32)).square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_a_distance_scores_the_same_wherever_it_is() -> None:
    torch.manual_seed(2)
    distance = Distance(D, H).double()
    with torch.no_grad():
        distance.weight.normal_()
        distance.bias.normal_()
    query, key = states(1, 3), states(1, 4)

    def score(at: int, other: int) -> Tensor:
        """[H] without the part that has nothing to do with distance."""
        wide = distance.of_states(query, query, torch.tensor([at])).view(H, -1)
        seen = distance.of_positions(key, torch.tensor([other])).view(H, -1)
        return (wide[:, D // H :].detach() * seen[:, D // H :]).sum(-1) / math.sqrt(D // H)

    a, b = (query @ distance.weight.T + distance.bias).view(2, H, len(PERIODS)).unbind(0)
    for delta in (-7, -1, 0, 1, 2, 40):
        angle = 2 * math.pi * delta / torch.tensor(PERIODS, dtype=torch.float64)
        expected = (a * angle.cos() + b * angle.sin()).sum(-1)
        for at in (0, 3, 1000, 10**9):
            torch.testing.assert_close(score(at, at + delta), expected, atol=1e-9, rtol=0)
    assert len({round(float(score(50, 50 + delta)[0]), 6) for delta in range(-20, 21)}) == 41


@both_directions
@every_variant
def test_only_distances_count_not_positions(variant, direction: str) -> None:
    module, x = attention(variant, direction), states(PLACES.tokens)
    moved = Layout(PLACES.lengths, PLACES.documents, PLACES.positions + 12345)
    torch.testing.assert_close(read(module, x, moved), read(module, x), atol=1e-9, rtol=1e-9)


@every_variant
def test_other_sentences_in_another_order_change_what_is_read(variant) -> None:
    """Offline, by a sentence that stays where it is; without order nothing changes."""
    x = states(PLACES.tokens)
    parts = list(x[:26].split(LENGTHS[:6]))
    order = [3, 4, 2, 0, 1, 5]
    shuffled = Layout.of(
        [LENGTHS[i] for i in order] + LENGTHS[6:], PLACES.documents.tolist(), PLACES.positions.tolist()
    )
    y = torch.cat([*(parts[i] for i in order), x[26:]])
    query, at = x[:3], Layout.of([3], [0], [5])
    for ordered in (False, True):
        module = attention(variant, order=ordered)
        before = module(query, at, module.prepare(x, x, PLACES)).output
        after = module(query, at, module.prepare(y, y, shuffled)).output
        assert torch.allclose(before, after, atol=1e-9) is not ordered
        # What stands in another document, in whatever order, is never seen.
        other = module(query, Layout.of([3], [2], [0]), module.prepare(x, x, PLACES)).output
        torch.testing.assert_close(
            module(query, Layout.of([3], [2], [0]), module.prepare(y, y, shuffled)).output, other
        )


@every_variant
def test_words_of_a_sentence_in_another_order_change_what_is_read(variant) -> None:
    x = states(PLACES.tokens)
    y = x.clone()
    y[9:17] = x[9:17].flip(0)  # the words of sentence 3; its last token is none
    query, at = x[:3], Layout.of([3], [0], [5])
    for ordered in (False, True):
        module = attention(variant, order=ordered)
        before, after = (module(query, at, module.prepare(z, z, PLACES)).output for z in (x, y))
        changes = ordered and variant[0] is not SentenceAttention  # a mean has no order
        assert torch.allclose(before, after, atol=1e-9) is not changes


@both_directions
@pytest.mark.parametrize("kind", [SentenceAttention, WordAttention, HierarchicalAttention])
def test_sentences_projected_one_by_one_are_read_as_all_at_once(kind, direction: str) -> None:
    module, x = attention((kind, "dense"), direction), states(PLACES.tokens)
    parts = [
        module.project(rows, rows, Layout.of([len(rows)], [int(document)], [int(position)]))
        for rows, document, position in zip(x.split(LENGTHS), PLACES.documents, PLACES.positions, strict=True)
    ]
    streamed = module(x, PLACES, module.bank(Projected.join(parts))).output
    torch.testing.assert_close(streamed, read(module, x), atol=1e-10, rtol=1e-10)


@both_directions
def test_routed_equals_dense(direction: str) -> None:
    results = []
    for path in ("dense", "routed"):
        module = attention((HierarchicalAttention, path), direction)
        x = states(PLACES.tokens).requires_grad_()
        output = read(module, x)
        (output * states(PLACES.tokens, 9)).sum().backward()
        results.append([output, x.grad, *(p.grad for p in module.parameters())])
    for dense, routed in zip(*results, strict=True):
        torch.testing.assert_close(dense, routed, atol=1e-9, rtol=1e-8)


@both_directions
@every_variant
def test_gradients_are_the_numerical_ones(variant, direction: str) -> None:
    module = attention(variant, direction, sentence_attention="sparse", word_attention="soft")
    small = Layout.of([4, 3, 1, 5, 3, 2], [0, 0, 0, 0, 1, 1], [0, 1, 2, 3, 0, 1])
    x = states(small.tokens, 5).requires_grad_()
    assert torch.autograd.gradcheck(lambda z, *_: read(module, z, small), (x, *module.parameters()), fast_mode=True)


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
def test_a_trained_layer_starts_unchanged(integration: str) -> None:
    from weitblick.model.batch import Batch, pack_pairs

    model = ModelSection(dimension=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=1)
    section = ContextSection(kind="hierarchical", integration=integration)
    torch.manual_seed(1)
    trained = build(model, section, 30, 30).eval()
    torch.manual_seed(2)
    ordered = build(model, section.model_copy(update={"order": True}), 30, 30).eval()
    _take_over(ordered, trained)
    batch = Batch(pack_pairs([[5, 6, 7], [8, 9], [10]], [[11, 12], [13, 14], [15]], [0, 0, 0], [0, 1, 2]))
    with torch.no_grad():
        assert torch.equal(ordered(batch).states, trained(batch).states)


@pytest.mark.parametrize("kind", ["none", "han", "zhang"])
def test_only_our_attention_has_order(kind: str) -> None:
    with pytest.raises(ValidationError, match="order: true needs kind"):
        ContextSection(kind=kind, order=True)
