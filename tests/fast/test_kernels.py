"""Compiled kernels: what PyTorch computes, to a few units in the last place; a row the same alone and among others."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from weitblick.checkpoints.folder import build
from weitblick.common.errors import UserError
from weitblick.common.recipe import ContextSection, ModelSection
from weitblick.fast import build as building
from weitblick.fast import kernels as library
from weitblick.fast import quantized
from weitblick.fast.decoder import KEPT
from weitblick.fast.kernels import Kernels
from weitblick.fast.quantized import quantize_linears
from weitblick.model.batch import pack_source
from weitblick.model.document_model import DocumentModel
from weitblick.model.transformer import Transformer, decoder_step
from weitblick.translation.beam import SearchOptions, beam_search

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, building.COMPILERS)) or sys.platform != "linux", reason="no C compiler"
)


@pytest.fixture
def used(compiled: Kernels, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernels]:
    """Models compute by these kernels."""
    for module in (library, quantized):
        monkeypatch.setattr(module, "kernels", lambda: compiled)
    with torch.no_grad():
        yield compiled


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@settings(deadline=None, max_examples=40)
@given(rows=st.integers(0, 200), inner=st.integers(1, 70), columns=st.integers(1, 70), rectified=st.booleans())
def test_linear(compiled: Kernels, rows: int, inner: int, columns: int, rectified: bool) -> None:
    x, weight, bias = numbers(rows, inner), numbers(columns, inner, seed=1), numbers(columns, seed=2)
    found = compiled.linear(x, weight, bias, rectified)
    exact = F.linear(x, weight, bias)
    torch.testing.assert_close(found, exact.relu() if rectified else exact, rtol=1e-5, atol=1e-5)
    if rows:
        assert torch.equal(compiled.linear(x[-1:], weight, bias, rectified), found[-1:])


def test_a_weight_that_changes_is_packed_again(compiled: Kernels) -> None:
    layer = nn.Linear(16, 8)
    x = numbers(3, 16)
    with torch.no_grad():
        compiled.linear(x, layer.weight, layer.bias)
        layer.weight.mul_(2)
        torch.testing.assert_close(compiled.linear(x, layer.weight, layer.bias), layer(x))
        layer.weight = nn.Parameter(numbers(8, 16, seed=3))
        torch.testing.assert_close(compiled.linear(x, layer.weight, layer.bias), layer(x))


@pytest.mark.parametrize("threads", [1, 2])
def test_large_products_with_threads(compiled: Kernels, threads: int) -> None:
    x, weight = numbers(130, 256), numbers(300, 256, seed=1)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.testing.assert_close(compiled.linear(x, weight, None), x @ weight.t(), rtol=1e-4, atol=1e-4)
    finally:
        torch.set_num_threads(before)


@settings(deadline=None, max_examples=30)
@given(sentences=st.integers(1, 4), hypotheses=st.integers(1, 5), cells=st.integers(1, 40), seed=st.integers(0, 99))
def test_attention_of_a_step(compiled: Kernels, sentences: int, hypotheses: int, cells: int, seed: int) -> None:
    heads, size = 2, 3 * compiled.lanes
    d = heads * size
    projected, past = numbers(sentences, hypotheses, 3 * d, seed=seed), numbers(sentences, cells + 7, 2 * d, seed=seed)
    hidden = torch.rand(sentences, 1, hypotheses, cells, generator=torch.Generator().manual_seed(seed)) < 0.4
    hidden[..., seed % cells] = False
    bias = torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)
    q, k, v = (
        part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (projected[:, :, :d], *past[:, :cells].chunk(2, -1))
    )
    exact = F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).flatten(0, 1).flatten(1)
    found = compiled.attend(q, k, v, bias)
    torch.testing.assert_close(found, exact, rtol=1e-5, atol=1e-5)
    shared = compiled.attend(q, k.contiguous(), v.contiguous(), bias[:, :, :1])
    exact = F.scaled_dot_product_attention(q, k, v, attn_mask=bias[:, :, :1])
    torch.testing.assert_close(shared, exact.transpose(1, 2).flatten(0, 1).flatten(1), rtol=1e-5, atol=1e-5)
    # Hidden cells are as if they were not there, to the last bit.
    seen = (~hidden[0, 0, 0]).nonzero()[:, 0]
    alone = compiled.attend(*(x[:1, :, :1] if x is q else x[:1, :, seen] for x in (q, k, v)), None)
    assert torch.equal(alone, found[:1])


@settings(deadline=None, max_examples=30)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5), parts=st.integers(1, 9), causal=st.booleans())
def test_attention_inside_sentences(compiled: Kernels, lengths: list[int], parts: int, causal: bool) -> None:
    """Sentence by sentence what PyTorch computes, and of each the same bits alone and among others."""
    heads, size = 2, parts * compiled.lanes
    projected = numbers(sum(lengths), 3 * heads * size, seed=parts)
    starts = torch.tensor([sum(lengths[:s]) for s in range(len(lengths))])
    found = compiled.attend_sentences(projected, starts, heads, causal)
    for begin, length in zip(starts.tolist(), lengths, strict=True):
        own = projected[begin : begin + length]
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(0, 1) for part in own.chunk(3, -1))
        exact = F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(0, 1).flatten(1)
        torch.testing.assert_close(found[begin : begin + length], exact, rtol=1e-5, atol=1e-5)
        alone = compiled.attend_sentences(own, torch.zeros(1, dtype=torch.long), heads, causal)
        assert torch.equal(alone, found[begin : begin + length])


def test_norm(compiled: Kernels) -> None:
    size = 5 * compiled.lanes
    norm = nn.LayerNorm(size)
    x, change = numbers(7, size), numbers(7, size, seed=1)
    with torch.no_grad():
        norm.weight.copy_(numbers(size, seed=2))
        torch.testing.assert_close(compiled.norm(norm, x, change), norm(x + change), rtol=1e-5, atol=1e-5)


@settings(deadline=None, max_examples=40)
@given(rows=st.integers(1, 9), words=st.integers(4, 400), scale=st.sampled_from([0.01, 1.0, 50.0]))
def test_best_words(compiled: Kernels, rows: int, words: int, scale: float) -> None:
    logits = numbers(rows, words, seed=words) * scale
    highest, normaliser = compiled.normalisers(logits)
    assert torch.equal(highest, logits.amax(1))
    torch.testing.assert_close(normaliser, logits.logsumexp(1), rtol=1e-6, atol=1e-5)
    count = min(6, words - 2)
    values, ids = compiled.best(logits, count, 2)
    exact = logits[:, 2:].topk(count)
    assert torch.equal(values, exact.values)
    assert torch.equal(logits.gather(1, ids), exact.values)
    assert bool((ids >= 2).all())


@pytest.mark.parametrize("where", ["linear", "rectified", "norm", "normaliser", "integers"])
def test_what_is_not_a_number_stays_so(compiled: Kernels, where: str) -> None:
    x = numbers(2, 4 * compiled.lanes)
    x[0, 5] = torch.nan
    weight = numbers(8, x.shape[1], seed=1)
    if where in ("linear", "rectified"):
        found = compiled.linear(x, weight, None, where == "rectified")
    elif where == "norm":
        found = compiled.norm(nn.LayerNorm(x.shape[1]), x)
    elif where == "normaliser":
        found = compiled.normalisers(x)[1][:, None]
    else:
        if not compiled.integer_columns:
            pytest.skip("no 8-bit kernels for this processor")
        packed = library.PackedIntegers(compiled, weight.round().to(torch.int8), torch.ones(8), None, 128)
        found = compiled.linear_integers(x, packed)
    assert bool(found[0].isnan().all())
    assert not bool(found[1].isnan().any())


def model(**keywords: object) -> DocumentModel:
    torch.manual_seed(3)
    section = ModelSection(dimension=64, feed_forward=96, encoder_layers=2, decoder_layers=2, heads=4, **keywords)
    return build(section, ContextSection(), 90, 90).eval()


SOURCES = [[5, 6, 7, 8, 9], [11], [20, 21, 22, 23, 24, 25, 26, 27, 28], [30, 31]]


def translations(found: DocumentModel, beam: int, sources: list[list[int]]) -> list[tuple[list[int], float]]:
    source = pack_source(sources)
    memory, _ = found.encode(source, None)
    options = SearchOptions(beam=beam, length_penalty=0.6)
    return [(best[0].ids, best[0].score) for best in beam_search(found, memory, source.layout, None, options)]


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "swish"])
@pytest.mark.parametrize("hypotheses", [1, 3])
def test_a_step_of_the_decoder_is_that_of_its_layers(
    used: Kernels, norm: str, activation: str, hypotheses: int
) -> None:
    """Of all layers in one call, and of some sentences after others have left."""
    own = model(norm=norm, activation=activation).sentence
    assert isinstance(own, Transformer)
    source = pack_source(SOURCES)
    memory = own.encode(source.tokens, source.layout)
    ours, exact = own.start(memory, source.layout), own.start(memory, source.layout)
    sentences = len(SOURCES)
    for step in range(70):  # more than there is room for at first
        each = hypotheses if step else 1
        tokens = torch.arange(sentences * each) % 80 + step % 7
        found = own.step(tokens, ours)
        exact.advance(len(tokens))
        layers = decoder_step.plain(own, tokens, exact, None)
        exact.length += 1
        assert ours.kept[KEPT] is not None
        torch.testing.assert_close(found.final, layers.final, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found.attended, layers.attended, rtol=1e-4, atol=1e-5)
        kept = torch.arange(sentences * each).view(sentences, each)
        if step == 20:
            sentences, kept = 2, kept[[0, 3]]
            for cache in (ours, exact):
                cache.select_sentences(torch.tensor([0, 3]))
        chosen = kept[:, [0] * hypotheses if step == 0 else list(range(hypotheses))[::-1]].flatten()
        for cache in (ours, exact):
            cache.select_hypotheses(chosen)


@pytest.mark.parametrize("threads", [2, 3, 5], ids=["two", "as many as not divide sentences", "more than sentences"])
def test_translations_are_the_same_whatever_the_threads(used: Kernels, threads: int) -> None:
    own = model()
    before = torch.get_num_threads()
    found = []
    try:
        for count in (1, threads):
            torch.set_num_threads(count)
            found.append(translations(own, 4, SOURCES))
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


def test_a_gelu_decoder_goes_layer_by_layer(used: Kernels) -> None:
    own = model(activation="gelu").sentence
    source = pack_source(SOURCES)
    cache = own.start(own.encode(source.tokens, source.layout), source.layout)
    own.step(torch.full((len(SOURCES),), 5), cache)
    assert cache.kept[KEPT] is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("beam", [1, 4])
def test_translations_are_those_of_pytorch(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch, norm: str, beam: int
) -> None:
    own = model(norm=norm)
    with torch.no_grad():
        monkeypatch.setattr(library, "kernels", lambda: None)
        exact = translations(own, beam, SOURCES)
        monkeypatch.setattr(library, "kernels", lambda: compiled)
        found = translations(own, beam, SOURCES)
        assert [ids for ids, _ in found] == [ids for ids, _ in exact]
        assert [score for _, score in found] == pytest.approx([score for _, score in exact], abs=1e-4)


def test_8_bit_layers_are_those_of_pytorch(used: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    if not used.integer_columns or "fbgemm" not in torch.backends.quantized.supported_engines:
        pytest.skip("no 8-bit kernels for this processor")
    weight, bias, levels = numbers(40, 64, seed=1), numbers(40, seed=2), quantized.weight_levels(64)
    for nonnegative in (False, True):
        x = numbers(9, 64).relu() if nonnegative else numbers(9, 64)
        monkeypatch.setattr(quantized, "kernels", lambda: None)
        exact = quantized.QuantizedLinear(weight, bias, nonnegative, levels)(x)
        monkeypatch.setattr(quantized, "kernels", lambda: used)
        ours = quantized.QuantizedLinear(weight, bias, nonnegative, levels)
        torch.testing.assert_close(ours(x), exact, rtol=1e-3, atol=1e-2 * float(exact.std()))
        assert torch.equal(ours(x[:1]), ours(x)[:1])
        assert torch.equal(ours(x, rectified=True), ours(x).relu())


def test_weights_have_as_many_levels_as_never_overflow(used: Kernels) -> None:
    if not used.integer_columns:
        pytest.skip("no 8-bit kernels for this processor")
    size, levels = 64, quantized.weight_levels(64)
    integers = torch.full((5, size), levels, dtype=torch.int8)
    for sign in (1, -1):
        packed = library.PackedIntegers(used, integers * sign, torch.ones(5), None, 0)
        exact = torch.full((3, 5), float(sign * levels * size))
        torch.testing.assert_close(used.linear_integers(torch.ones(3, size), packed), exact)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_translation_is_the_same_alone_and_in_a_batch(used: Kernels, beam: int) -> None:
    own = model()
    eight = quantize_linears(own, least_weights=0)
    for found in (own, eight):
        together = translations(found, beam, SOURCES)
        alone = [translations(found, beam, [source])[0] for source in SOURCES]
        assert [ids for ids, _ in together] == [ids for ids, _ in alone]
        assert [score for _, score in together] == pytest.approx([score for _, score in alone], abs=1e-5)


def test_8_bits_that_kernels_do_not_know_are_left_to_pytorch(used: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a processor, or of a compiler's options, without AVX2."""
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        pytest.skip("nor does PyTorch know them")
    monkeypatch.setattr(used, "integer_columns", 0)
    assert len(translations(quantize_linears(model(), least_weights=0), 2, SOURCES)) == len(SOURCES)


def test_training_goes_on_without_them(used: Kernels) -> None:
    own = model().train()
    with torch.enable_grad():
        source = pack_source(SOURCES)
        own.encode(source, None)[0].sum().backward()
    assert all(p.grad is not None for name, p in own.sentence.named_parameters() if name.startswith("encoder."))


def test_a_machine_without_a_compiler_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="no C compiler is here"):
        building.build()
    assert library.kernels.__wrapped__() is None


def test_which_kernels_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind has a file of its own, so that none is taken for another."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(building.VARIABLE, raising=False)
    native = building.library_path()
    monkeypatch.setenv(building.VARIABLE, "on")
    assert building.library_path() == native
    monkeypatch.setenv(building.VARIABLE, "avx2")
    assert building.library_path() != native
    monkeypatch.setenv(building.VARIABLE, "off")
    assert library.kernels.__wrapped__() is None
    monkeypatch.setenv(building.VARIABLE, "sse9")
    with pytest.raises(UserError, match="off, on, avx2"):
        library.kernels.__wrapped__()


def test_those_for_avx2_have_its_vectors_and_weights_of_7_bits(used: Kernels, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["compiled"] != "avx2":
        pytest.skip("other vectors")
    assert used.lanes == 8
    assert quantized.weight_levels(64) == quantized.FEWER_WEIGHT_LEVELS


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "weitblick.fast"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), building.VARIABLE: "on"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "decoding on the CPU uses these kernels" in done.stdout
    done = subprocess.run(
        command,
        env={**environment, "XDG_CACHE_HOME": str(tmp_path / "x"), "CC": "nothing"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_what_kernels_could_not_read_is_refused(compiled: Kernels) -> None:
    """A compiled function takes whatever lies at an address: its bindings look first."""
    x, weight, bias = numbers(3, 64), numbers(90, 64, seed=1), numbers(90, seed=2)
    calls = [
        lambda: compiled.linear(x.double(), weight, bias),
        lambda: compiled.linear(x[:, :32], weight, bias),
        lambda: compiled.linear(x, weight, bias[:80]),
        lambda: compiled.linear(x, weight, bias.long()),
        lambda: compiled.scores(x, weight, bias, torch.full((3, 2), 90)),
        lambda: compiled.scores(x, weight, bias, torch.full((3, 2), -1)),
        lambda: compiled.choose(numbers(3, 90).t(), 2, 2, None, None, 2),
        lambda: compiled.choose(numbers(3, 90), 2, 2, None, torch.tensor([95]), 2),
        lambda: compiled.normalisers(numbers(3, 90).half()),
        lambda: compiled.attend_sentences(numbers(5, 192), torch.tensor([0, 9]), 1, False),
        lambda: compiled.norm(nn.LayerNorm(64), x, numbers(2, 64)),
    ]
    for call in calls:
        with torch.no_grad(), pytest.raises(ValueError, match=r"kernels|rows|ids|begin"):
            call()


def test_a_token_that_the_model_does_not_have_is_refused(used: Kernels) -> None:
    own = model().sentence
    source = pack_source(SOURCES)
    cache = own.start(own.encode(source.tokens, source.layout), source.layout)
    with pytest.raises(ValueError, match="ids from 5 to 90"):
        own.step(torch.tensor([5, 6, 7, 90]), cache)
