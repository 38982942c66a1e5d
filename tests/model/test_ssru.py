"""The recurrent units of Firefox's models: their recurrence, its gradients, and where they start."""

from __future__ import annotations

import pytest
import torch

from weitblick.checkpoints.folder import build_sentence_model
from weitblick.common.recipe import ModelSection
from weitblick.model.batch import pack_pairs
from weitblick.model.ssru import Recurrence, RecurrentTransformer
from weitblick.text.base import BOS

SECTION = ModelSection(
    architecture="ssru", dimension=16, heads=2, feed_forward=24, encoder_layers=2, decoder_layers=2,
    attention_biases=True, tied_embeddings="all",
)  # fmt: skip


def model(**changes: object) -> RecurrentTransformer:
    torch.manual_seed(1)
    built = build_sentence_model(SECTION.model_copy(update=changes), 20, 20).eval()
    assert isinstance(built, RecurrentTransformer)
    return built


def test_the_recurrence_is_its_formula() -> None:
    torch.manual_seed(2)
    forget, value = torch.rand(5, 3, 4), torch.randn(5, 3, 4)
    states, before = Recurrence.apply(forget, value), torch.zeros(3, 4)
    for step in range(5):
        before = forget[step] * before + (1 - forget[step]) * value[step]
        torch.testing.assert_close(states[step], before)


def test_its_gradients_are_the_numerical_ones() -> None:
    torch.manual_seed(3)
    forget = torch.rand(4, 2, 3, dtype=torch.float64, requires_grad=True)
    value = torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Recurrence.apply, (forget, value))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_sentence_alone_or_in_a_batch_and_later_words_change_nothing(norm: str) -> None:
    built = model(norm=norm)
    pairs = [([5, 6, 7], [8, 9]), ([4] * 9, [10, 11, 12, 13, 14]), ([3], [4])]

    def states(chosen: list[tuple[list[int], list[int]]]) -> list[torch.Tensor]:
        batch = pack_pairs([source for source, _ in chosen], [target for _, target in chosen])
        memory = built.encode(batch.source.tokens, batch.source.layout)
        found = built.decode(batch.target.tokens, batch.target.layout, memory, batch.source.layout).final
        return list(found.split(batch.target.layout.lengths.tolist()))

    together = states(pairs)
    for pair, expected in zip(pairs, together, strict=True):
        torch.testing.assert_close(states([pair])[0], expected, atol=1e-5, rtol=1e-4)
    changed = states([(pairs[1][0], [10, 11, 12, 4, 4])])[0]
    torch.testing.assert_close(changed[:4], together[1][:4], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(changed[4], together[1][4], atol=1e-3)


def test_the_decoder_starts_from_zeros_whatever_the_table_says() -> None:
    built = model()
    batch = pack_pairs([[5, 6]], [[7, 8]])
    memory = built.encode(batch.source.tokens, batch.source.layout)
    expected = built.decode(batch.target.tokens, batch.target.layout, memory, batch.source.layout).final
    with torch.no_grad():
        built.target_table.weight[BOS] = 7.0
    found = built.decode(batch.target.tokens, batch.target.layout, memory, batch.source.layout).final
    assert torch.equal(found, expected)


def test_every_parameter_learns() -> None:
    built = model().train()
    batch = pack_pairs([[5, 6, 7], [8, 4]], [[9, 10, 11], [12]])
    memory = built.encode(batch.source.tokens, batch.source.layout)
    states = built.decode(batch.target.tokens, batch.target.layout, memory, batch.source.layout).final
    weight, bias = built.output()
    torch.nn.functional.cross_entropy(states @ weight.t() + bias, batch.labels).backward()
    for name, parameter in built.named_parameters():
        assert parameter.grad is not None, name
        if "attention" not in name:  # a bias of keys changes nothing
            assert parameter.grad.abs().sum() > 0, name


def test_weights_of_the_last_attention_are_shares() -> None:
    built = model()
    batch = pack_pairs([[5, 6, 7], [8, 4]], [[9, 10, 11], [12]])
    memory = built.encode(batch.source.tokens, batch.source.layout)
    given = batch.target.tokens, batch.target.layout, memory, batch.source.layout
    weights = built.source_weights(*given)
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(4))
    states, again = built.decode_with_weights(*given)
    torch.testing.assert_close(again, weights)
    torch.testing.assert_close(states.final, built.decode(*given).final)
