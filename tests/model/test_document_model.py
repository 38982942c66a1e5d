"""What a document offers: the same whether it comes in one batch, cut, in parts or projected sentence by sentence."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ContextStageSection, ModelSection
from weitblick.model.batch import Batch, pack_pairs
from weitblick.model.context import Sources
from weitblick.model.document_model import DocumentModel
from weitblick.model.layers import Dropout
from weitblick.training.update import Optimiser

MODEL = ModelSection(dimension=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=1)
SECTIONS = [
    {"kind": "hierarchical", "integration": "encoder"},
    {"kind": "hierarchical", "integration": "decoder"},
    {"kind": "word", "integration": "decoder", "values": "words", "order": True},
    {"kind": "hierarchical", "integration": "encoder", "states": "frozen"},
    {"kind": "hierarchical", "integration": "decoder", "backpropagate": True},
    {"kind": "han", "integration": "decoder"},
    {"kind": "zhang", "integration": "encoder"},
]
every_section = pytest.mark.parametrize("section", SECTIONS, ids=lambda s: "-".join(map(str, s.values())))
SOURCES = [[5, 6, 7], [8, 9], [10, 5, 6], [12], [13, 14, 15, 16], [17, 5]]
TARGETS = [[11, 12], [13, 14, 15], [16, 17], [18, 19], [20], [21, 22]]
DOCUMENTS, POSITIONS = [0, 0, 0, 0, 1, 1], [0, 1, 2, 3, 0, 1]


def model_of(section: dict, **more) -> DocumentModel:
    torch.manual_seed(3)
    return build(MODEL, ContextSection(**{**section, **more}), 30, 30).eval()


def pairs(chosen: list[int]):
    columns = ([column[i] for i in chosen] for column in (SOURCES, TARGETS, DOCUMENTS, POSITIONS))
    return pack_pairs(*columns)


@every_section
@torch.no_grad()
def test_a_cut_document_is_read_as_a_whole_one(section: dict) -> None:
    model, everything = model_of(section), list(range(6))
    current, rest = [1, 2, 4, 5], [0, 3]
    whole = model(Batch(pairs(everything))).words.log_probabilities(pairs(everything).labels)
    cut = model(Batch(pairs(current), pairs(everything), rest=pairs(rest))).words.log_probabilities(
        pairs(current).labels
    )
    layout = pairs(everything).target.layout
    chosen = torch.cat([torch.arange(int(layout.lengths[i])) + int(layout.starts[i]) for i in current])
    torch.testing.assert_close(cut, whole[chosen], atol=1e-5, rtol=1e-5)


def test_of_a_cut_document_only_the_rest_is_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(SECTIONS[0]).train()
    seen = []
    original = type(model.sentence).encode
    monkeypatch.setattr(
        type(model.sentence),
        "encode",
        lambda self, tokens, layout, extras=None: seen.append(len(tokens)) or original(self, tokens, layout, extras),
    )
    current, rest = pairs([1, 2, 4, 5]), pairs([0, 3])
    model(Batch(current, pairs(list(range(6))), rest=rest)).words.loss(current.labels, 0.0)[0].backward()
    assert sorted(seen) == sorted([len(current.source.tokens), len(rest.source.tokens)])


@every_section
@torch.no_grad()
def test_context_in_parts_and_one_by_one_is_that_of_one_pass(section: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    model, all_pairs = model_of(section), pairs(list(range(6)))
    offered = model.offer(all_pairs.source, all_pairs.target)
    monkeypatch.setattr("weitblick.model.context.PART_TOKENS", 7)
    sources = Sources(SOURCES, DOCUMENTS, POSITIONS)
    in_parts = model.context_of(sources, sources.encode(model.sentence), TARGETS)
    projected = []
    for i in range(6):
        one = Sources([SOURCES[i]], [DOCUMENTS[i]], [POSITIONS[i]])
        projected.append(model.project(one, one.encode(model.sentence), [TARGETS[i]]))
    memory = sources.encode(model.sentence)
    results = []
    for context in (offered, in_parts, model.context_from(projected)):
        states, _ = model.encode(all_pairs.source, context, states=memory)
        results.append(model.decode(all_pairs.target, states, all_pairs.source.layout, context).states)
    torch.testing.assert_close(results[0], results[1], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(results[0], results[2], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["hierarchical", "han", "zhang"])
def test_a_held_gate_stays_as_it_starts(kind: str) -> None:
    model = model_of({"kind": kind}).train()
    gates = model.context.gate_parameters()
    before = [gate.detach().clone() for gate in gates]
    optimiser = Optimiser(model, ContextStageSection(hold_gate=1, learning_rate=1e-2))
    batch = Batch(pairs(list(range(6))))
    assert gates
    for update, changed in ((1, False), (2, True)):
        optimiser.prepare(update)
        model(batch).words.loss(batch.current.labels, 0.0)[0].backward()
        optimiser.step(1.0)
        optimiser.zero()
        same = [torch.equal(a, b) for a, b in zip(before, gates, strict=True)]
        assert not any(same) if changed else all(same)


def test_biases_of_recurrent_layers_start_at_zero() -> None:
    model = build(MODEL.model_copy(update={"architecture": "rnnsearch"}), ContextSection(), 30, 30)
    biases = {name: p for name, p in model.named_parameters() if "bias" in name.split(".")[-1]}
    assert any(name.endswith("bias_ih_l0") for name in biases)
    assert all((bias == 0).all() for bias in biases.values())


@pytest.mark.parametrize("rate", [0.0001, 0.5, 0.999, 0.9999])
def test_dropout_keeps_expectations_at_any_rate(rate: float) -> None:
    torch.manual_seed(1)
    dropout: nn.Module = Dropout(rate).train()
    x = dropout(torch.ones(1_000_000))
    assert x.isfinite().all()
    assert abs(float(x.mean()) - 1) < 0.1
