"""Context attention against its slow reference, and the properties every variant must have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from attention_reference import Sentence, read, visible
from torch import Tensor

from weitblick.model.batch import Layout
from weitblick.model.context_attention import ContextAttention, HierarchicalAttention, SentenceAttention, WordAttention
from weitblick.model.tuning import TUNING

D, H = 12, 3
KINDS = {"sentence": SentenceAttention, "word": WordAttention, "hierarchical": HierarchicalAttention}
FLAT = [(kind, "dense", a, a) for kind in ("sentence", "word") for a in ("soft", "sparse", "entmax15")]
DENSE = [
    ("hierarchical", "dense", s, w) for s in ("soft", "sparse", "entmax15") for w in ("soft", "sparse", "entmax15")
]
ROUTED = [("hierarchical", "routed", s, w) for s in ("sparse", "entmax15") for w in ("soft", "sparse", "entmax15")]
VARIANTS = FLAT + DENSE + ROUTED
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=["-".join(v) for v in VARIANTS])
both_directions = pytest.mark.parametrize("direction", ["offline", "online"])

# Document 1 has no sentence, 3 one without words, 4 a single sentence; sentence 2 of document 0 has no words.
LENGTHS = [5, 3, 1, 9, 2, 6, 4, 4, 2, 1, 6, 3, 3, 12]
DOCUMENTS = [0, 0, 0, 0, 0, 0, 2, 2, 2, 3, 4, 5, 5, 5]
POSITIONS = [0, 1, 2, 3, 4, 5, 0, 1, 2, 0, 0, 0, 1, 2]


def layout() -> Layout:
    return Layout.of(LENGTHS, DOCUMENTS, POSITIONS)


def states(count: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(count, D, dtype=dtype, generator=torch.Generator().manual_seed(seed)) * 1.5


def attention(variant: tuple[str, str, str, str], direction: str = "offline", **options) -> ContextAttention:
    kind, path, sentence_attention, word_attention = variant
    torch.manual_seed(7)
    options = {"sentence_attention": sentence_attention, "word_attention": word_attention, "path": path, **options}
    return KINDS[kind](D, H, direction=direction, **options).double()


def sentences_of(layout: Layout, keys: Tensor, values: Tensor) -> list[Sentence]:
    parts = zip(
        layout.documents.tolist(),
        layout.positions.tolist(),
        keys.split(layout.lengths.tolist()),
        values.split(layout.lengths.tolist()),
        strict=True,
    )
    return [Sentence(d, p, k.numpy(), v.numpy()) for d, p, k, v in parts]


def assert_agrees_with_reference(module: ContextAttention, variant, queries: Tensor, query_layout: Layout) -> None:
    """The engine with the definition, and that with NumPy, one query at a time."""
    bank_layout = layout()
    keys, values = states(bank_layout.tokens, 1), states(bank_layout.tokens, 2)
    with torch.no_grad():
        bank = module.prepare(keys, values, bank_layout)
        fast, defined = module(queries, query_layout, bank), module(queries, query_layout, bank, need_weights=True)
    torch.testing.assert_close(fast.output, defined.output, atol=1e-10, rtol=0)
    torch.testing.assert_close(fast.support, defined.support)
    assert torch.equal(fast.present, defined.present)
    assert fast.weights is None
    matrices = {name.removesuffix(".weight"): p.detach().numpy() for name, p in module.named_parameters()}
    context = sentences_of(bank_layout, keys, values)
    record = defined.weights
    assert record is not None
    for token in range(query_layout.tokens):
        sentence = int(query_layout.sentence[token])
        document, position = int(query_layout.documents[sentence]), int(query_layout.positions[sentence])
        seen = visible(context, document, position, "online" if module.settings.online else "offline")
        slow = read(variant[0], queries[token].numpy(), seen, matrices, H, *variant[2:])
        np.testing.assert_allclose(defined.output[token].numpy(), slow.output @ matrices["output"].T, atol=1e-10)
        assert bool(defined.present[token]) == bool(seen)
        support = np.mean([sum(w > 1e-12 for w in head.values()) for head in slow.sentence_weights or [{}]])
        assert abs(float(defined.support[token]) - support) < 1e-9
        assert_record_agrees(record, token, slow, {s.position for s in seen}, variant)


def assert_record_agrees(record, token: int, slow, seen: set[int], variant) -> None:
    document = int(record.documents[token])
    if document < 0:
        assert not seen
        assert not record.sentence_weights[token].any()
        return
    positions = record.sentence_positions[document].tolist()
    assert {p for p, v in zip(positions, record.visible[token].tolist(), strict=True) if v} == seen
    for head in range(H):
        expected = np.array([slow.sentence_weights[head].get(p, 0.0) if seen else 0.0 for p in positions])
        np.testing.assert_allclose(record.sentence_weights[token, head].numpy(), expected, atol=1e-10)
        if record.word_weights is None:
            assert variant[0] == "sentence"
            continue
        columns, indices = record.word_columns[document].tolist(), record.word_indices[document].tolist()
        for n, (column, index) in enumerate(zip(columns, indices, strict=True)):
            inside = slow.word_weights[head].get(positions[column]) if column >= 0 and seen else None
            share = 1.0 if variant[0] == "word" or inside is None else expected[column]
            weight = 0.0 if inside is None else inside[index]
            assert abs(float(record.rescaled[token, head, n]) - share * weight) < 1e-10
            if share > 1e-9 and inside is not None:
                assert abs(float(record.word_weights[token, head, n]) - weight) < 1e-10


@both_directions
@every_variant
def test_agrees_with_the_reference(variant, direction: str) -> None:
    module = attention(variant, direction)
    assert_agrees_with_reference(module, variant, states(layout().tokens, 3), layout())


@both_directions
@every_variant
def test_queries_in_any_order_and_number_as_in_beam_search(variant, direction: str) -> None:
    query_layout = Layout.of([1] * 9, [5, 0, 0, 2, 9, 1, 0, 4, 2], [1, 3, 3, 0, 0, 4, 20, 1, 2])
    assert_agrees_with_reference(attention(variant, direction), variant, states(9, 4), query_layout)


@every_variant
def test_neither_chunk_size_nor_recomputing_matters(variant, monkeypatch: pytest.MonkeyPatch) -> None:
    module, keys = attention(variant), states(layout().tokens)

    def run() -> tuple[Tensor, ...]:
        module.zero_grad()
        out = module(keys, layout(), module.prepare(keys, keys, layout())).output
        out.square().sum().backward()
        return out, *(p.grad for p in module.parameters())

    whole = run()
    monkeypatch.setattr("weitblick.fast.context_dense.KEPT_ELEMENTS", 0)
    monkeypatch.setitem(TUNING, "cpu", replace(TUNING["cpu"], chunk=1, sentence_chunk=1, tile=1))
    for a, b in zip(whole, run(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-11, rtol=1e-9)


@both_directions
@every_variant
def test_gradients_are_the_numerical_ones(variant, direction: str) -> None:
    module = attention(variant, direction)
    small = Layout.of([4, 3, 1, 5, 3, 2], [0, 0, 0, 0, 1, 1], [0, 1, 2, 3, 0, 1])
    queries, keys, values = (states(small.tokens, seed).requires_grad_() for seed in (5, 6, 7))

    def function(q: Tensor, k: Tensor, v: Tensor, *_: Tensor) -> Tensor:
        return module(q, small, module.prepare(k, v, small)).output

    inputs = (queries, keys, values, *module.parameters())
    assert torch.autograd.gradcheck(function, inputs, fast_mode=True)


@pytest.mark.parametrize("variant", ROUTED, ids=["-".join(v) for v in ROUTED])
def test_routed_equals_dense_forward_and_backward(variant) -> None:
    many = Layout.of([3 + i % 9 for i in range(70)], [i // 35 for i in range(70)], [i % 35 for i in range(70)])
    results = []
    for path in ("dense", "routed"):
        module = attention(variant, path=path)
        inputs = [(states(many.tokens, seed) * 3).requires_grad_() for seed in (8, 9, 10)]
        read = module(inputs[0], many, module.prepare(inputs[1], inputs[2], many))
        (read.output * states(many.tokens, 11)).sum().backward()
        results.append([read.output, read.support, *(x.grad for x in (*inputs, *module.parameters()))])
        assert 1 < read.support.mean() < 30
    for dense, routed in zip(*results, strict=True):
        torch.testing.assert_close(dense, routed, atol=1e-10, rtol=1e-8)


def mixed_batch() -> tuple[Layout, Tensor]:
    """A document whose queries point at few sentences beside one whose support is wide, both long."""
    many = Layout.of([4] * 120, [i // 60 for i in range(120)], [i % 60 for i in range(120)])
    x = states(many.tokens)
    x[: many.tokens // 2] *= 12
    x[many.tokens // 2 :] *= 0.01
    return many, x


def test_auto_chooses_per_document_and_agrees_with_both() -> None:
    many, x = mixed_batch()
    outputs = {}
    for path in ("auto", "dense", "routed"):
        module = attention(("hierarchical", path, "sparse", "soft"))
        leaf = x.clone().requires_grad_()
        outputs[path] = read = module(leaf, many, module.prepare(leaf, leaf, many), need_weights=True)
        read.output.sum().backward()
        outputs[path + " gradient"] = leaf.grad
    for path in ("dense", "routed"):
        torch.testing.assert_close(outputs["auto"].output, outputs[path].output, atol=1e-9, rtol=1e-7)
        torch.testing.assert_close(outputs["auto"].weights.rescaled, outputs[path].weights.rescaled)
        torch.testing.assert_close(outputs["auto gradient"], outputs[path + " gradient"], atol=1e-8, rtol=1e-6)


def test_auto_choice_does_not_depend_on_neighbours() -> None:
    many, x = mixed_batch()
    module = attention(("hierarchical", "auto", "sparse", "soft"))
    half = many.tokens // 2
    one = Layout.of([4] * 60, [0] * 60, list(range(60)))
    together = module.prepare(x, x, many).cells.routed
    alone = [module.prepare(part, part, one).cells.routed for part in (x[:half], x[half:])]
    assert together[:2].tolist() == [True, False] == [alone[0][0], alone[1][0]]


@both_directions
@every_variant
def test_masked_equals_absent(variant, direction: str) -> None:
    """Offline, a document without the query's own sentence gives the same; online, without all from there on."""
    module, x = attention(variant, direction), states(layout().tokens)
    query, position = states(4, 20), 3
    query_layout = Layout.of([4], [0], [position])
    full = module(query, query_layout, module.prepare(x, x, layout()))
    kept = [
        s
        for s in range(len(LENGTHS))
        if DOCUMENTS[s] == 0 and (POSITIONS[s] < position if direction == "online" else POSITIONS[s] != position)
    ]
    parts = x.split(LENGTHS)
    less = Layout.of([LENGTHS[s] for s in kept], [0] * len(kept), [POSITIONS[s] for s in kept])
    y = torch.cat([parts[s] for s in kept])
    torch.testing.assert_close(module(query, query_layout, module.prepare(y, y, less)).output, full.output)


@every_variant
def test_online_never_sees_the_future_to_the_bit(variant) -> None:
    module = attention(variant, "online").float()
    x = states(layout().tokens, dtype=torch.float32)
    changed = x.clone()
    start, stop = sum(LENGTHS[:3]), sum(LENGTHS[:6])
    changed[start:stop] = states(stop - start, 30, torch.float32) * 5
    before = module(x, layout(), module.prepare(x, x, layout())).output
    after = module(changed, layout(), module.prepare(changed, changed, layout())).output
    assert torch.equal(before[:start], after[:start])
    assert torch.equal(before[stop:], after[stop:])
    assert not torch.equal(before[start:stop], after[start:stop])


def test_the_future_changes_nothing_however_much_of_it_is_read() -> None:
    """A future that reads widely, or hardly anything, of the past: routed attention must not lay out the past anew."""
    module = attention(("hierarchical", "routed", "sparse", "soft"), "online").float()
    places = Layout.of([9] * 60, [0] * 60, list(range(60)))
    past = 20 * 9
    x = states(places.tokens, dtype=torch.float32)
    outputs = []
    for scale in (0.01, 1.0, 30.0):
        changed = torch.cat([x[:past], x[past:] * scale])
        outputs.append(module(changed, places, module.prepare(changed, changed, places)).output[:past])
    assert torch.equal(outputs[0], outputs[1])
    assert torch.equal(outputs[0], outputs[2])


def test_the_path_does_not_depend_on_who_reads() -> None:
    """A query reads the same, alone or among all queries of its document and of others."""
    many, x = mixed_batch()
    module = attention(("hierarchical", "auto", "sparse", "soft"))
    bank = module.prepare(x, x, many)
    assert bank.cells.routed[:2].tolist() == [True, False]
    all_of_it = module(x, many, bank).output
    for sentence in (3, 70):
        tokens = slice(4 * sentence, 4 * sentence + 4)
        alone = module(x[tokens], Layout.of([4], [sentence // 60], [sentence % 60]), bank).output
        torch.testing.assert_close(alone, all_of_it[tokens], atol=1e-12, rtol=0)


@both_directions
@every_variant
def test_a_document_alone_or_in_a_batch(variant, direction: str) -> None:
    module = attention(variant, direction).float()
    x = states(layout().tokens, dtype=torch.float32)
    together = module(x, layout(), module.prepare(x, x, layout()))
    for document in sorted(set(DOCUMENTS)):
        chosen = [s for s in range(len(LENGTHS)) if DOCUMENTS[s] == document]
        tokens = torch.cat([torch.arange(LENGTHS[s]) + sum(LENGTHS[:s]) for s in chosen])
        alone = Layout.of([LENGTHS[s] for s in chosen], [0] * len(chosen), [POSITIONS[s] for s in chosen])
        read = module(x[tokens], alone, module.prepare(x[tokens], x[tokens], alone))
        torch.testing.assert_close(read.output, together.output[tokens], atol=1e-5, rtol=0)
        assert torch.equal(read.present, together.present[tokens])


@every_variant
def test_permuting_the_context_permutes_its_weights_only(variant) -> None:
    module = attention(variant)
    lengths = torch.tensor([4, 6, 3, 5])
    x, query = states(18), states(3, 21)
    query_layout = Layout.of([3], [0], [9])
    order = [2, 0, 3, 1]
    permuted = torch.cat([x.split(lengths.tolist())[i] for i in order])

    def run(states: Tensor, lengths: list[int]):
        places = Layout.of(lengths, [0] * 4, list(range(4)))
        return module(query, query_layout, module.prepare(states, states, places), need_weights=True)

    before, after = run(x, lengths.tolist()), run(permuted, lengths[order].tolist())
    torch.testing.assert_close(before.output, after.output)
    torch.testing.assert_close(before.weights.sentence_weights[..., order], after.weights.sentence_weights)


@both_directions
@every_variant
def test_weights_are_distributions(variant, direction: str) -> None:
    module, x = attention(variant, direction), states(layout().tokens) * 3
    read = module(x, layout(), module.prepare(x, x, layout()), need_weights=True)
    record = read.weights
    weights = record.sentence_weights
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), read.present.double().unsqueeze(1).expand(-1, H))
    assert (weights.masked_select(~record.visible.unsqueeze(1).expand_as(weights)) == 0).all()
    if record.rescaled is not None:
        assert (record.rescaled >= 0).all()
        torch.testing.assert_close(record.rescaled.sum(-1), read.present.double().unsqueeze(1).expand(-1, H))
    if "sparse" in variant[2:] and "soft" not in variant[2:]:
        assert (weights.masked_select(record.visible.unsqueeze(1).expand_as(weights)) == 0).any()


@every_variant
def test_an_empty_bank_gives_no_context(variant) -> None:
    module, x = attention(variant), states(6)
    places = Layout.of([1, 1, 1], [0, 0, 1], [0, 1, 0])
    bank = module.prepare(x[:3], x[:3], places)
    read = module(x, Layout.of([4, 2], [0, 1], [0, 1]), bank, need_weights=True)
    assert not read.present.any()
    assert not read.output.any()
    assert not read.weights.sentence_weights.any()


def test_autocast_computes_weights_in_float32() -> None:
    module, x = attention(("hierarchical", "dense", "sparse", "soft")).float(), states(layout().tokens).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        read = module(x, layout(), module.prepare(x, x, layout()), need_weights=True)
    assert read.weights.sentence_weights.dtype == torch.float32
    torch.testing.assert_close(
        read.weights.sentence_weights.sum(-1), read.present.float().unsqueeze(1).expand(-1, H), atol=1e-6, rtol=0
    )
    full = module(x, layout(), module.prepare(x, x, layout()))
    torch.testing.assert_close(read.output.float(), full.output, atol=0.1, rtol=0.1)


def test_soft_attention_over_sentences_is_never_routed() -> None:
    x, places = states(layout().tokens), layout()
    read = [
        attention(("hierarchical", path, "soft", "soft"))(
            x, places, attention(("hierarchical", path, "soft", "soft")).prepare(x, x, places)
        )
        for path in ("dense", "routed")
    ]
    assert torch.equal(read[0].output, read[1].output)
    assert read[1].output.isfinite().all()
