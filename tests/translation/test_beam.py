from __future__ import annotations

import itertools
import math

import pytest
import torch
from tiny_models import random_ids, tiny_model

from tests.plain_formulas import token_log_probabilities
from weitblick.fast.best_words import STRIP, best_in_strips
from weitblick.model.batch import pack_source, pack_target
from weitblick.model.document_model import DocumentModel
from weitblick.model.output import Wanted
from weitblick.text.base import BOS, EOS, PAD
from weitblick.translation import beam as beam_module
from weitblick.translation.beam import Hypothesis, SearchOptions, beam_search

NONE = {"kind": "none"}


def search(model: DocumentModel, sources: list[list[int]], **options) -> list[list[Hypothesis]]:
    packed = pack_source(sources)
    with torch.no_grad():
        memory, _ = model.encode(packed, None)
    return beam_search(model, memory, packed.layout, None, SearchOptions(**options))


@pytest.mark.parametrize("end", [-5.0, 0.5, 2.0])  # at the limit only, at different steps, early
@pytest.mark.parametrize("free_end", [False, True])
def test_greedy_search_is_a_beam_of_one(end: float, free_end: bool) -> None:
    model = tiny_model(NONE)
    model.sentence.generation = model.sentence.generation.model_copy(update={"free_end": free_end})
    with torch.no_grad():
        model.sentence.output_bias[EOS] += end
    packed = pack_source(random_ids([4, 9, 2, 6, 1]))
    with torch.no_grad():
        memory, _ = model.encode(packed, None)
        how = model, memory, packed.layout, None, SearchOptions(beam=1, length_penalty=0.7), None
        greedy, beam = beam_module._GreedySearch(*how).run(), beam_module._BeamSearch(*how).run()
    for (ours,), (exact,) in zip(greedy, beam, strict=True):
        assert ours.ids == exact.ids
        assert ours.score == pytest.approx(exact.score, abs=1e-5)
        assert ours.word_log_probabilities == pytest.approx(exact.word_log_probabilities, abs=1e-5)


@torch.no_grad()
def log_probabilities(model: DocumentModel, source: list[int], targets: list[list[int]]) -> list[torch.Tensor]:
    """Of every word and EOS of some translations of one sentence, teacher-forced."""
    packed = pack_source([source] * len(targets))
    target, labels = pack_target(targets)
    memory, _ = model.encode(packed, None)
    states = model.decode(target, memory, packed.layout, None).states
    values = token_log_probabilities(states, *model.sentence.output(), labels)
    return list(values.split([len(ids) + 1 for ids in targets]))


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_a_wide_beam_finds_what_brute_force_finds(penalty: float) -> None:
    model = tiny_model(NONE, target_size=6)
    limit, words = 3, range(3, 6)
    everything = [list(ids) for length in range(1, limit + 1) for ids in itertools.product(words, repeat=length)]
    options = {"length_penalty": penalty, "length_factor": 0.0, "length_slack": limit}
    for source in random_ids([4, 2, 5]):
        sums = [float(values.sum()) for values in log_probabilities(model, source, everything)]
        scores = [value / (len(ids) + 1) ** penalty for value, ids in zip(sums, everything, strict=True)]
        order = sorted(range(len(everything)), key=lambda i: -scores[i])
        (found,) = search(model, [source], beam=64, n_best=5, **options)
        assert [hypothesis.ids for hypothesis in found] == [everything[i] for i in order[:5]]
        for hypothesis, i in zip(found, order, strict=False):
            assert hypothesis.score == pytest.approx(scores[i], abs=1e-5)
            assert hypothesis.log_probability == pytest.approx(sums[i], abs=1e-5)


def test_beam_one_is_greedy() -> None:
    model = tiny_model(NONE)
    sources = random_ids([4, 9, 2, 6])
    for source, (found,) in zip(sources, search(model, sources, beam=1), strict=True):
        ids: list[int] = []
        packed = pack_source([source])
        while len(ids) < 2 * len(source) + 10:
            with torch.no_grad():
                memory, _ = model.encode(packed, None)
                target, _ = pack_target([ids])
                states = model.decode(target, memory, packed.layout, None).states[-1:]
            weight, bias = model.sentence.output()
            logits = torch.addmm(bias, states, weight.t())[0]
            logits[[PAD, BOS] if ids else [PAD, BOS, EOS]] = -math.inf
            if int(logits.argmax()) == EOS:
                break
            ids.append(int(logits.argmax()))
        assert found.ids == ids


@pytest.mark.parametrize("end", [-3.0, 1.0, 4.0])
@pytest.mark.parametrize("beam", [1, 3, 5])
def test_hypotheses_are_what_they_claim(beam: int, end: float) -> None:
    model = tiny_model(NONE, end=end)
    sources = random_ids([1, 8, 3, 3, 12])
    for source, found in zip(sources, search(model, sources, beam=beam, n_best=beam), strict=True):
        assert 1 <= len(found) <= beam
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        assert len({tuple(h.ids) for h in found}) == len(found)
        exact = log_probabilities(model, source, [h.ids for h in found])
        for hypothesis, values in zip(found, exact, strict=True):
            assert 1 <= len(hypothesis.ids) <= 2 * len(source) + 10
            assert not {PAD, BOS, EOS} & set(hypothesis.ids)
            torch.testing.assert_close(torch.tensor(hypothesis.word_log_probabilities), values, atol=1e-4, rtol=0)
            assert hypothesis.log_probability == pytest.approx(float(values.sum()), abs=1e-4)
            assert hypothesis.score == pytest.approx(hypothesis.log_probability / len(values), abs=1e-4)


def test_a_wider_beam_does_not_score_worse_here() -> None:
    """Not a law of beam search, but it holds on most sentences, and would not if hypotheses were mixed up."""
    model, sources = tiny_model(NONE), random_ids([5] * 40)
    narrow, wide = search(model, sources, beam=1), search(model, sources, beam=6)
    better = sum(w[0].score >= n[0].score - 1e-6 for n, w in zip(narrow, wide, strict=True))
    assert better >= 36


def test_the_batch_does_not_matter() -> None:
    model, sources = tiny_model(NONE), random_ids([5, 1, 11, 3, 7, 2])
    together = search(model, sources, beam=4, n_best=4)
    for source, found in zip(sources, together, strict=True):
        (alone,) = search(model, [source], beam=4, n_best=4)
        assert [h.ids for h in alone] == [h.ids for h in found]
        for one, other in zip(alone, found, strict=True):
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)


@pytest.mark.parametrize("size", [6, STRIP, STRIP + 1, 5 * STRIP - 3])
@pytest.mark.parametrize("count", [1, 4, 12])
@pytest.mark.parametrize("forbidden", [2, 3])
def test_best_words_are_those_of_the_whole_vocabulary(size: int, count: int, forbidden: int) -> None:
    torch.manual_seed(size + count)
    states, weight, bias = torch.randn(7, 8), torch.randn(size, 8), torch.randn(size)
    bias[:forbidden] += 5  # tempting
    found = best_in_strips(states, weight, bias, Wanted(count, forbidden))
    expected = torch.log_softmax(states @ weight.t() + bias, -1)
    torch.testing.assert_close(found.end, expected[:, EOS])
    expected[:, :forbidden] = -math.inf
    values, ids = expected.topk(min(count, size))
    torch.testing.assert_close(found.log_probabilities, values)
    allowed = values > -math.inf
    assert torch.equal(found.ids[allowed], ids[allowed])


def test_equal_words_come_out_the_same_every_time() -> None:
    model = tiny_model(NONE)
    with torch.no_grad():
        model.sentence.output()[0].zero_()
        model.sentence.output()[1].zero_()
    first = search(model, random_ids([3, 4]), beam=3, n_best=3)
    assert search(model, random_ids([3, 4]), beam=3, n_best=3) == first
