"""Context that decides between some words is read where they are expected, and changes nothing elsewhere."""

from __future__ import annotations

import pytest
import torch

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.model.batch import Batch, Layout, pack_pairs
from weitblick.model.document_model import DocumentModel

WORDS = [6, 7]
SECTION = ModelSection(dimension=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=1)


def model() -> DocumentModel:
    torch.manual_seed(3)
    context = ContextSection(kind="word", integration="decoder", values="words", direction="online", order=True)
    return build(SECTION, context, 20, 20).eval()


def batch() -> Batch:
    return Batch(pack_pairs([[9, 10], [5, 11], [12, 5]], [[8, 9], [6, 10], [9, 7]], [0, 0, 0], [0, 1, 2]))


def distributions(one: DocumentModel, made: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """[T, V] log-probabilities without context and with it."""
    memory, _ = one.encode(made.current.source)
    without = one.decode(made.current.target, memory, made.current.source.layout)
    every = slice(0, len(made.current.labels))
    return without.words.table(every), one(made).words.table(every)


@torch.no_grad()
@pytest.mark.parametrize("shift", [-3.0, 0.0, 3.0])
def test_context_shares_out_what_these_words_have_together_and_changes_nothing_else(shift: float) -> None:
    one, made = model(), batch()
    one.sentence.output_bias[WORDS] = shift
    _, everywhere = distributions(one, made)
    one.decide_between([WORDS])
    without, decided = distributions(one, made)
    others = [word for word in range(20) if word not in WORDS]
    assert torch.equal(decided[:, others], without[:, others])
    together = without[:, WORDS].logsumexp(-1)
    torch.testing.assert_close(decided[:, WORDS].logsumexp(-1), together)
    expected = together.exp() >= 0.1
    assert torch.equal(decided[~expected], without[~expected])
    ratio = (table[:, WORDS[0]] - table[:, WORDS[1]] for table in (decided, everywhere))
    torch.testing.assert_close(*(one[expected] for one in ratio))
    assert bool(expected.all()) == (shift == 3.0)


@torch.no_grad()
def test_log_probabilities_and_loss_are_those_of_the_table() -> None:
    one, made = model(), batch()
    one.sentence.output_bias[WORDS] = 1.0
    one.decide_between([WORDS])
    labels, words = made.current.labels, one(made).words
    assert words.word_choice is not None
    table = words.table(slice(0, len(labels)))
    of_labels = table.gather(1, labels[:, None])[:, 0]
    torch.testing.assert_close(words.log_probabilities(labels), of_labels)
    loss, likelihood = words.loss(labels, 0.1)
    torch.testing.assert_close(likelihood, -of_labels.sum())
    torch.testing.assert_close(loss, -0.9 * of_labels.sum() - 0.1 * table.mean(-1).sum())
    best = words.best(1, 0)
    assert torch.equal(best.ids[:, 0], table.argmax(-1))


@torch.no_grad()
@pytest.mark.parametrize("shift", [-9.0, 0.0, 3.0])
def test_a_step_reads_what_a_whole_pass_reads(shift: float) -> None:
    one, made = model(), batch()
    one.sentence.output_bias[WORDS] = shift
    one.decide_between([WORDS])
    target = made.current.target
    memory, _ = one.encode(made.current.source)
    context = one.offer(made.current.source, target)
    whole = one.decode(target, memory, made.current.source.layout, context).words
    layout = Layout(torch.ones_like(target.layout.lengths), target.layout.documents, target.layout.positions)
    cache = one.sentence.start(memory, made.current.source.layout)
    for position in range(3):
        rows = target.layout.starts + position
        found = one.step(target.tokens[rows], cache, layout, context)
        torch.testing.assert_close(found.table(slice(0, 3)), whole.at(rows).table(slice(0, 3)))


@torch.no_grad()
def test_none_named_is_everywhere() -> None:
    one, made = model(), batch()
    before = one(made).states
    one.decide_between([WORDS])
    one.decide_between([])
    assert torch.equal(one(made).states, before)


def test_it_needs_the_decoder() -> None:
    with pytest.raises(ValueError, match="decides needs integration: decoder"):
        ContextSection(kind="word", decides=["er"])


@torch.no_grad()
def test_own_odds_and_what_context_says_have_a_mean() -> None:
    one, made = model(), batch()
    one.sentence.output_bias[WORDS] = torch.tensor([3.0, 2.0])
    one.decide_between([WORDS])
    without, alone = distributions(one, made)
    one.section = one.section.model_copy(update={"own_odds": 0.6})
    _, both = distributions(one, made)
    own, context, mean = (table[:, WORDS[0]] - table[:, WORDS[1]] for table in (without, alone, both))
    torch.testing.assert_close(mean, 0.4 * context + 0.6 * own)
    assert not torch.allclose(mean, context)


@torch.no_grad()
def test_each_set_shares_out_what_its_own_words_have() -> None:
    one, made = model(), batch()
    sets = [[6, 7], [9, 12, 5]]
    for words in sets:
        one.sentence.output_bias[words] = 2.0
    _, everywhere = distributions(one, made)
    one.decide_between(sets)
    without, decided = distributions(one, made)
    others = [word for word in range(20) if word not in sets[0] + sets[1]]
    assert torch.equal(decided[:, others], without[:, others])
    for words in sets:
        torch.testing.assert_close(decided[:, words].logsumexp(-1), without[:, words].logsumexp(-1))
        expected, found = (table[:, words].log_softmax(-1) for table in (everywhere, decided))
        torch.testing.assert_close(found, expected)
    assert not torch.allclose(decided, without, atol=1e-4)


def test_a_word_is_in_one_set_and_a_list_of_words_is_one() -> None:
    settings = {"kind": "word", "integration": "decoder"}
    assert ContextSection(**settings, decides=["er", "sie"]).decides == [["er", "sie"]]
    with pytest.raises(ValueError, match="decides has 'sie' twice"):
        ContextSection(**settings, decides=[["er", "sie"], ["ihm", "sie"]])
