"""The Transformer and the loss: padding never counts, nothing depends on neighbours, gradients are right."""

import pytest
import torch

from tests.plain_formulas import token_log_probabilities
from weitblick.common.recipe import DropoutSection, ModelSection
from weitblick.model.batch import Layout, pack_pairs
from weitblick.model.layers import Dropout
from weitblick.model.loss import smoothed_cross_entropy
from weitblick.model.transformer import Transformer

STILL = DropoutSection(embedding=0, attention=0, residual=0)


def model(**changes) -> Transformer:
    torch.manual_seed(0)
    section = {
        "dimension": 16,
        "feed_forward": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "heads": 2,
        "dropout": STILL,
    }
    return Transformer(ModelSection(**{**section, **changes}), 30, 30)


def sentences(lengths, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(4, 30, (n,), generator=generator).tolist() for n in lengths]


def run(net, pairs):
    memory = net.encode(pairs.source.tokens, pairs.source.layout)
    return memory, net.decode(pairs.target.tokens, pairs.target.layout, memory, pairs.source.layout)


@pytest.mark.parametrize(
    "changes", [{}, {"norm": "pre"}, {"activation": "gelu", "attention_biases": True}, {"source_end": False}]
)
def test_a_sentence_alone_equals_itself_in_a_batch(changes):
    net = model(**changes).eval()
    sources, targets = sentences([3, 9, 1, 25, 7]), sentences([4, 8, 2, 21, 30], 1)
    memory, together = run(net, pack_pairs(sources, targets))
    at = memory_at = 0
    for source, target in zip(sources, targets, strict=True):
        own_memory, alone = run(net, pack_pairs([source], [target]))
        size, memory_size = len(target) + 1, len(source) + 1
        assert torch.allclose(own_memory, memory[memory_at : memory_at + memory_size], atol=1e-5)
        assert torch.allclose(alone.final, together.final[at : at + size], atol=1e-5)
        assert torch.allclose(alone.attended, together.attended[at : at + size], atol=1e-5)
        at, memory_at = at + size, memory_at + memory_size


@pytest.mark.parametrize("end", [True, False], ids=["end", "no end"])
@torch.no_grad()
def test_whether_the_end_of_the_source_is_read(end):
    """Whatever stands there makes no difference, where it is not."""
    net = model(source_end=end).eval()
    pairs = pack_pairs(sentences([3, 9, 1, 5]), sentences([4, 8, 2, 6], 1))
    layout = pairs.source.layout
    other = pairs.source.tokens.clone()
    other[~layout.is_word] = 7
    memory, states = run(net, pairs)
    changed = net.encode(other, layout)
    found = net.decode(pairs.target.tokens, pairs.target.layout, changed, layout)
    assert torch.equal(found.final, states.final) != end
    weights = net.source_weights(pairs.target.tokens, pairs.target.layout, memory, layout)
    assert weights.shape == (4, 9, 10)
    torch.testing.assert_close(weights[pairs.target.layout.mask].sum(-1), torch.ones(len(pairs.target.tokens)))
    ends = weights[torch.arange(4), :, layout.lengths - 1][pairs.target.layout.mask]
    assert bool(ends.any()) == end
    cache = net.start(memory, layout)
    first = net.step(torch.full((4,), 1), cache).final
    assert torch.allclose(first, states.final[pairs.target.layout.starts], atol=1e-5)


@torch.no_grad()
def test_a_source_without_words_and_without_an_end_is_read_all_the_same():
    net = model(source_end=False).eval()
    memory, states = run(net, pack_pairs([[], [5, 6]], [[4], [4, 5]]))
    assert torch.isfinite(memory).all()
    assert torch.isfinite(states.final).all()


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.no_grad()
def test_one_pass_gives_states_and_weights_of_source_words(norm):
    net = model(norm=norm).eval()
    pairs = pack_pairs(sentences([3, 9, 5]), sentences([4, 8, 6], 1))
    memory, states = run(net, pairs)
    given = pairs.target.tokens, pairs.target.layout, memory, pairs.source.layout
    found, weights = net.decode_with_weights(*given)
    assert torch.equal(found.final, states.final)
    assert torch.equal(found.attended, states.attended)
    torch.testing.assert_close(weights, net.source_weights(*given))


def test_attention_dropout_path_equals_the_fast_path_at_rate_almost_zero():
    fast, slow = model().eval(), model(dropout=DropoutSection(embedding=0, attention=1e-9, residual=0)).train()
    pairs = pack_pairs(sentences([3, 9, 5]), sentences([4, 8, 6], 1))
    for module in slow.modules():
        if isinstance(module, Dropout) and module.rate:
            module.mask = torch.ones_like
    assert torch.allclose(run(fast, pairs)[1].final, run(slow, pairs)[1].final, atol=1e-5)


def test_the_decoder_never_sees_later_words():
    net = model().eval()
    source, target = sentences([5]), sentences([8], 1)
    before = run(net, pack_pairs(source, target))[1].final
    changed = [target[0][:4] + [29 if t != 29 else 28 for t in target[0][4:]]]
    after = run(net, pack_pairs(source, changed))[1].final
    assert torch.equal(before[:5], after[:5])
    assert not torch.equal(before[5:], after[5:])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_chunked_loss_equals_pytorchs_and_its_gradients(smoothing, monkeypatch):
    monkeypatch.setattr("weitblick.model.loss.CHUNK_ELEMENTS", 100)
    torch.manual_seed(1)
    leaves = [torch.randn(17, 8), torch.randn(23, 8), torch.randn(23)]
    targets = torch.randint(0, 23, (17,))
    ours, theirs = ([leaf.clone().requires_grad_() for leaf in leaves] for _ in range(2))
    loss, likelihood = smoothed_cross_entropy(*ours, targets, smoothing)
    logits = theirs[0] @ theirs[1].t() + theirs[2]
    expected = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    (loss * 3).backward()
    (expected * 3).backward()
    assert torch.allclose(loss, expected, rtol=1e-5)
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a.grad, b.grad, atol=1e-4)
    chosen = token_log_probabilities(*leaves, targets)
    assert torch.allclose(-chosen.sum(), likelihood, rtol=1e-5)


def test_the_loss_multiplies_in_half_precision_under_autocast_and_sums_in_full():
    torch.manual_seed(1)
    leaves = [torch.randn(40, 32), torch.randn(50, 32) / 6, torch.randn(50)]
    targets = torch.randint(0, 50, (40,))
    half, full = ([leaf.clone().requires_grad_() for leaf in leaves] for _ in range(2))
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = smoothed_cross_entropy(*half, targets, 0.1)
    exact, _ = smoothed_cross_entropy(*full, targets, 0.1)
    loss.backward()
    exact.backward()
    assert loss.item() != exact.item()
    assert loss.item() == pytest.approx(exact.item(), rel=1e-3)
    for a, b in zip(half, full, strict=True):
        assert a.grad.dtype == torch.float32
        assert (a.grad - b.grad).norm() < 0.01 * b.grad.norm()


def test_the_loss_of_a_word_too_unlikely_for_a_number_is_finite():
    states = torch.tensor([[200.0, 0.0], [0.0, 1.0]], requires_grad=True)
    weight, bias = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), torch.zeros(3)
    loss, likelihood = smoothed_cross_entropy(states, weight, bias, torch.tensor([2, 1]), 0.1)
    logits = states.detach() @ weight.t()
    targets = torch.tensor([2, 1])
    expected = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=0.1, reduction="sum")
    assert loss.item() == pytest.approx(expected.item())
    assert likelihood.item() == pytest.approx(400 + torch.logsumexp(logits[1], 0).item() - 1)
    loss.backward()
    assert states.grad.isfinite().all()


def test_the_loss_has_no_bias_of_half_precision():
    """What is taken off for the target is not rounded: gradients of all logits of a token sum up to nothing."""
    torch.manual_seed(1)
    leaves = [torch.randn(512, 32), torch.randn(64, 32) / 6, torch.zeros(64)]
    states, weight, bias = (leaf.requires_grad_() for leaf in leaves)
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = smoothed_cross_entropy(states, weight, bias, torch.randint(0, 64, (512,)), 0.1)
    loss.backward()
    assert abs(bias.grad.sum().item()) < 512 * 4e-4  # 0.9 is 0.8984 in bfloat16: 512 * 1.6e-3


def test_byte_dropout_keeps_the_mean_and_drops_the_rounded_share():
    torch.manual_seed(0)
    dropout = Dropout(0.3).train()
    x = torch.ones(400_000)
    y = dropout(x)
    share = round(0.3 * 256) / 256
    assert (y == 0).float().mean().item() == pytest.approx(share, abs=0.005)
    assert y.mean().item() == pytest.approx(1.0, abs=0.01)
    assert dropout.eval()(x) is x


def test_layout_knows_words_positions_and_documents():
    layout = Layout.of([3, 1, 2], [0, 0, 1], [0, 2, 0])
    assert layout.sentence.tolist() == [0, 0, 0, 1, 2, 2]
    assert layout.offset.tolist() == [0, 1, 2, 0, 0, 1]
    assert layout.is_word.tolist() == [True, True, False, False, True, False]
