"""8-bit layers: near the exact ones, the same alone and in a batch, and words scored exactly."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import SOURCES, tiny_pipeline, tiny_translation_model
from torch import nn

from weitblick.common.errors import UserError
from weitblick.documents.document import Document, Sentence
from weitblick.fast.best_words import best_in_strips, best_rescored
from weitblick.fast.quantized import QuantizedLinear, QuantizedOutput, available, gain, quantize_linears
from weitblick.model.modifiers import Pointed, WordChoice
from weitblick.model.output import Softmax, Wanted, WordDistribution
from weitblick.translation.translator import Translator

pytestmark = pytest.mark.skipif(not available(), reason="no 8-bit kernels for this processor")

ENCODER, DECODER = ({"kind": "hierarchical", "integration": side} for side in ("encoder", "decoder"))
QUICK: dict[str, Any] = {"beam": 2, "length_penalty": 0.0}


def translator(section: dict[str, str]) -> Translator:
    return Translator(tiny_translation_model(section, end=2.5), tiny_pipeline())


def document(sentences: list[str], name: str = "1") -> Document:
    return Document(name, tuple(Sentence(sentence) for sentence in sentences))


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_layer_is_near_the_exact_one(nonnegative: bool) -> None:
    x, weight, bias = numbers(9, 64), numbers(40, 64, seed=1), numbers(40, seed=2)
    x = x.relu() if nonnegative else x
    exact = torch.addmm(bias, x, weight.t())
    found = QuantizedLinear(weight, bias, nonnegative)(x)
    # A row's error: a level of inputs and of weights at most, independent over 64 products.
    assert (found - exact).std() < 0.02 * (exact - bias).std()


@settings(deadline=None)
@given(rows=st.integers(1, 20), scale=st.floats(1e-6, 1e6), seed=st.integers(0, 99))
def test_a_row_never_depends_on_the_others(rows: int, scale: float, seed: int) -> None:
    layer = QuantizedLinear(numbers(24, 32), numbers(24, seed=1))
    x = numbers(rows, 32, seed=seed)
    alone = layer(x[:1].clone())
    x[1:] *= scale
    assert torch.equal(layer(x)[:1], alone)


def test_rows_of_zeros_and_no_rows() -> None:
    bias = numbers(24)
    layer = QuantizedLinear(numbers(24, 32), bias)
    assert torch.equal(layer(torch.zeros(2, 32)), bias.expand(2, -1))
    assert layer(torch.zeros(0, 32)).shape == (0, 24)


def test_what_is_not_finite_stays_so() -> None:
    x = numbers(2, 32)
    x[0, 3] = torch.nan
    found = QuantizedLinear(numbers(24, 32), None)(x)
    assert found[0].isnan().all()
    assert found[1].isfinite().all()


@settings(deadline=None)
@given(
    vocabulary=st.integers(5, 70),
    count=st.integers(1, 6),
    forbidden=st.sampled_from([2, 3]),
    renormalize=st.booleans(),
    others=st.sampled_from([None, [4], [3, 4]]),
    seed=st.integers(0, 99),
)
def test_words_proposed_are_scored_exactly(
    vocabulary: int, count: int, forbidden: int, renormalize: bool, others: list[int] | None, seed: int
) -> None:
    states, weight, bias = numbers(3, 16, seed=seed), numbers(vocabulary, 16, seed=1), numbers(vocabulary, seed=2)
    never = None if others is None else torch.tensor(others)
    wanted = Wanted(count, forbidden, never, renormalize)
    exact = best_in_strips(states, weight, bias, wanted)
    logits = torch.addmm(bias, states, weight.t())
    padded = nn.functional.pad(logits, (0, -vocabulary % 16), value=-torch.inf)
    found = best_rescored(WordDistribution(Softmax(states, weight, bias, lambda _: padded)), wanted)
    values, order = found.log_probabilities.sort(dim=1, descending=True, stable=True)
    real = exact.log_probabilities > -torch.inf
    width = real.shape[1]
    torch.testing.assert_close(values[:, :width][real], exact.log_probabilities[real])
    assert torch.equal(found.ids.gather(1, order)[:, :width][real], exact.ids[real])
    torch.testing.assert_close(found.end, exact.end)


@torch.no_grad()
@pytest.mark.parametrize("read", [False, True], ids=["without-context", "with-context"])
def test_a_step_that_points_at_nothing_never_depends_on_those_that_do(read: bool) -> None:
    """Steps of a batch in which others point choose by the same logits, 8-bit or exact, as among their like."""
    states, weight, bias = numbers(3, 64), numbers(90, 64, seed=1), numbers(90, seed=2)
    pointed = Pointed(torch.tensor([0.9, 0.0, 0.0]), torch.tensor([[7], [0], [0]]), torch.tensor([[1.0], [0.0], [0.0]]))

    nothing = WordChoice(
        torch.tensor([5, 6]), torch.ones(1, 2, dtype=torch.bool), torch.zeros(0, dtype=torch.long), torch.zeros(0, 2)
    )
    alone = WordDistribution(Softmax(states, weight, bias, QuantizedOutput(weight, bias)))
    alone = alone.then(nothing) if read else alone
    together, apart = alone.then(pointed).best(4, 2), alone.best(4, 2)
    for one, other in (
        (together.log_probabilities, apart.log_probabilities),
        (together.end[:, None], apart.end[:, None]),
    ):
        torch.testing.assert_close(one[1:].sort(1, True)[0][:, :4], other[1:].sort(1, True)[0][:, :4])
    assert int(together.ids[0, together.log_probabilities[0].argmax()]) == 7


def test_approximate_logits_of_a_vocabulary_that_fills_no_strip() -> None:
    weight, bias, states = numbers(21, 16), numbers(21, seed=1), numbers(4, 16, seed=2)
    logits = QuantizedOutput(weight, bias)(states)
    assert logits.shape == (4, 32)
    assert (logits[:, 21:] == -torch.inf).all()
    assert (logits[:, :21] - torch.addmm(bias, states, weight.t())).abs().max() < 0.5


@pytest.mark.parametrize("section", [ENCODER, DECODER])
def test_translations_are_the_same_alone_and_in_a_batch(section: dict[str, str]) -> None:
    ours = translator(section)
    quantized = Translator(quantize_linears(ours.model, least_weights=0), ours.pipeline)
    assert not any(isinstance(module, nn.Linear) for module in quantized.model.modules())
    documents = [document(SOURCES[:2], "a"), document(SOURCES, "b"), document(SOURCES[1:], "c")]
    together = list(quantized.translations(documents, **QUICK))
    for one, found in zip(documents, together, strict=True):
        (alone,) = quantized.translations([one], **QUICK)
        assert alone.document.targets == found.document.targets


def test_scores_are_near_those_of_float32_and_the_model_is_left_as_it_was() -> None:
    ours = translator(ENCODER)
    before = {name: value.clone() for name, value in ours.model.state_dict().items()}
    (exact,) = ours.translations([document(SOURCES)], **QUICK)
    quantized = Translator(quantize_linears(ours.model, least_weights=0), ours.pipeline)
    (close,) = quantized.translations([document(SOURCES)], **QUICK)
    pairs = zip(exact.translations, close.translations, strict=True)
    differences = [abs(a[0].confidence - b[0].confidence) for a, b in pairs if a[0].text == b[0].text]
    assert differences
    assert max(differences) < 0.02
    assert all(torch.equal(value, before[name]) for name, value in ours.model.state_dict().items())
    assert ours.model.sentence.approximate_output is None


def test_small_layers_stay_as_they_are() -> None:
    quantized = quantize_linears(translator(ENCODER).model)
    assert not any(isinstance(module, QuantizedLinear) for module in quantized.sentence.encoder.modules())  # type: ignore[operator, union-attr]


def test_the_gain_is_measured() -> None:
    model = translator(ENCODER).model
    assert gain(model, quantize_linears(model)) > 0


def test_other_devices_and_processors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = translator(ENCODER).model
    monkeypatch.setattr("weitblick.fast.quantized.available", lambda: False)
    with pytest.raises(UserError, match="no 8-bit kernels"):
        quantize_linears(model)


def test_a_processor_that_gains_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("weitblick.fast.quantized.gain", lambda *_: 0.9)
    Translator.load(quantize=True, warn=said.append)
    assert said == ["8-bit layers run at 0.90 of the speed of float32 on this processor: leave --int8 out"]
