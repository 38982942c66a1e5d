"""Fast doubles find what their definitions define, whatever modifies the distribution of words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from weitblick.fast import kernels as library
from weitblick.fast.compiled_words import KEPT
from weitblick.fast.kernels import Kernels
from weitblick.model import output
from weitblick.model.modifiers import Allowed, Modifier, Pointed, WordChoice
from weitblick.model.output import Candidates, Softmax, Wanted, WordDistribution

SENTENCES, BEAM, SIZE = 3, 2, 64
STEPS = SENTENCES * BEAM


@pytest.fixture(autouse=True)
def without_gradient() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(params=["pytorch", "kernels"])
def engine(request: pytest.FixtureRequest, compiled: Kernels, monkeypatch: pytest.MonkeyPatch) -> str:
    found = compiled if request.param == "kernels" else None
    monkeypatch.setattr(library, "kernels", lambda: found)
    return str(request.param)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def softmax(vocabulary: int) -> Softmax:
    return Softmax(numbers(STEPS, SIZE) / 4, numbers(vocabulary, SIZE, seed=1), numbers(vocabulary, seed=2))


def decided() -> WordChoice:
    sets = torch.tensor([[True, False, True], [False, True, False]])  # of one word nothing is to be decided
    return WordChoice(torch.tensor([5, 6, 9]), sets, torch.tensor([1, 4]), numbers(2, 3, seed=4))


def pointed(vocabulary: int, words: WordDistribution) -> Pointed:
    """The end, words twice, words that are never said, and a step at which nothing was found."""
    generator = torch.Generator().manual_seed(5)
    share, weights = torch.rand(STEPS, generator=generator), torch.rand(STEPS, 6, generator=generator).softmax(1)
    share[2] = 0
    ids = torch.randint(0, vocabulary, (STEPS, 12), generator=generator)[:, ::2]  # rows further apart
    ids[:, 1], ids[:, 3] = ids[:, 0], 2
    return Pointed(share, ids, weights, own=words.look_up(ids, and_best=True))


def allowed(words: Softmax) -> Allowed:
    ids = torch.arange(words.vocabulary)[::2].clone()
    ids[:4] = torch.arange(4)
    ids = ids.unique()
    mask = torch.zeros(len(ids), SENTENCES).masked_fill_(numbers(len(ids), SENTENCES, seed=3) > 0.5, -torch.inf)
    mask[:4] = 0
    return Allowed(ids, words.weight[ids], words.bias[ids], mask)


def changed(kinds: str, vocabulary: int) -> WordDistribution:
    words = WordDistribution(softmax(vocabulary))
    if "decided" in kinds:
        words = words.then(decided())
    if "pointed" in kinds:
        words = words.then(pointed(vocabulary, words))
    return words


def assert_same(found: Candidates, exact: Candidates) -> None:
    count = exact.ids.shape[1]
    values, order = found.log_probabilities.sort(1, descending=True)
    real = exact.log_probabilities > -torch.inf
    torch.testing.assert_close(values[:, :count][real], exact.log_probabilities[real], rtol=1e-4, atol=1e-4)
    assert torch.equal(found.ids.gather(1, order)[:, :count][real], exact.ids[real])


@pytest.mark.parametrize("kinds", ["", "decided", "pointed", "decided, pointed"])
@pytest.mark.parametrize("vocabulary", [30, 700])
@pytest.mark.parametrize("count", [1, 8, 14])
@pytest.mark.parametrize("others", [None, [7, 20]])
@pytest.mark.parametrize("renormalize", [False, True])
def test_the_best_words(
    engine: str, kinds: str, vocabulary: int, count: int, others: list[int] | None, renormalize: bool
) -> None:
    for forbidden in (2, 3):
        wanted = Wanted(count, forbidden, None if others is None else torch.tensor(others), renormalize)
        words = changed(kinds, vocabulary)
        exact = output.best_words.plain(words, wanted)
        assert_same(output.best_words(words, wanted), exact)
        again = output.best_words(words, wanted)  # what was computed before, and for whom, changes nothing
        assert_same(again, exact)
        torch.testing.assert_close(again.end, exact.end, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kinds", ["", "decided", "pointed", "decided, pointed"])
def test_the_best_words_of_a_shortlist(engine: str, kinds: str) -> None:
    words = changed(kinds, 200)
    found = words.best(5, 2, allowed=allowed(words.softmax))
    table = words.table(slice(0, STEPS))
    kept = allowed(words.softmax)
    for row in range(STEPS):
        may = kept.ids[kept.mask[:, row // BEAM] == 0]
        if words.pointed is not None and words.pointed.share[row] > 0:
            may = torch.cat([may, words.pointed.ids[row]]).unique()
        exact = table[row, may].log_softmax(0)
        exact[may < 2] = -torch.inf
        values, places = exact.topk(5)
        torch.testing.assert_close(found.log_probabilities[row].sort(descending=True)[0], values, rtol=1e-4, atol=1e-4)
        assert set(found.ids[row].tolist()) == set(may[places].tolist())


@pytest.mark.parametrize("kinds", ["", "decided"])
@pytest.mark.parametrize("and_best", [False, True])
def test_words_that_are_looked_up(engine: str, kinds: str, and_best: bool) -> None:
    words = changed(kinds, 700)
    ids = torch.randint(0, 700, (STEPS, 9), generator=torch.Generator().manual_seed(6))
    exact, found = output.look_up.plain(words, ids, and_best), words.look_up(ids, and_best)
    torch.testing.assert_close(found.log_probabilities, exact.log_probabilities, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.highest, exact.highest, rtol=1e-4, atol=1e-4)
    assert (found.best is not None) == (engine == "kernels" and and_best and not kinds)
    if found.best is not None:
        assert found.best.ids.shape == (STEPS, KEPT)


def test_many_steps_are_looked_up_without_all_their_logits(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, ids = WordDistribution(softmax(90)), torch.tensor([5, 6, 40])
    exact = output.look_up.plain(words, ids.expand(STEPS, -1), False)
    together = output.probability_together.plain(words.softmax, ids)
    monkeypatch.setattr(output, "CHUNK_ELEMENTS", 100)
    monkeypatch.setattr("weitblick.fast.best_words.CHUNK_ELEMENTS", 100)
    assert not words.softmax.is_small
    found = words.look_up(ids.expand(STEPS, -1))
    torch.testing.assert_close(found.log_probabilities, exact.log_probabilities, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.highest, exact.highest, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(output.probability_together(words.softmax, ids), together, rtol=1e-4, atol=1e-4)


def test_nothing_depends_on_what_was_asked_before(engine: str) -> None:
    """Not to the last bit: a decision looks words up, a pointer others, and the best are the same without."""
    alone, asked = WordDistribution(softmax(200)), WordDistribution(softmax(200))
    asked.softmax.expect(torch.tensor([5, 6]))
    asked.look_up(torch.full((STEPS, 2), 7))
    for one, other in zip(*(vars(words.best(8, 2)).values() for words in (alone, asked)), strict=True):
        assert torch.equal(one, other)


class Doubled:
    """A modifier that the doubles have never heard of: the definition computes."""

    changes_something = True

    def apply(self, table: Tensor, rows: slice) -> Tensor:
        return (2 * table).log_softmax(-1)

    def of_words(self, own: Tensor, words: Tensor, before: WordDistribution) -> Tensor:
        return own

    def at(self, steps: Tensor) -> Modifier:
        return self


def test_a_modifier_of_a_new_kind_is_computed_by_definition(engine: str) -> None:
    words = WordDistribution(softmax(50)).then(Doubled())
    exact = (2 * words.softmax.table(slice(0, STEPS))).log_softmax(-1)
    exact[:, :2] = -torch.inf
    values, ids = exact.topk(4)
    found = words.best(4, 2)
    torch.testing.assert_close(found.log_probabilities, values)
    assert torch.equal(found.ids, ids)
