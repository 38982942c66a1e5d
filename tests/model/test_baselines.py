"""The paper's baselines keep the promises of the context layer: HAN, Zhang:18, and RNNSearch beneath any context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from weitblick.checkpoints.folder import build
from weitblick.common.recipe import ContextSection, ContextStageSection, ModelSection
from weitblick.model.batch import Batch, Layout, Packed, Pairs, pack_pairs, pack_source, pack_target
from weitblick.model.context_module import ContextOptions
from weitblick.model.document_model import DocumentModel
from weitblick.model.loss import smoothed_cross_entropy

SOURCE, TARGET = 40, 50
DOCUMENTS = (5, 3, 1, 6)  # sentences
SIZES: dict[str, int] = {"dimension": 16, "feed_forward": 32, "encoder_layers": 2, "decoder_layers": 2, "heads": 2}

Row = tuple[str, str, str]  # architecture, kind, integration
ROWS: list[Row] = [
    ("transformer", "zhang", "encoder"),
    ("transformer", "zhang", "decoder"),
    ("transformer", "han", "encoder"),
    ("transformer", "han", "decoder"),
    ("rnnsearch", "han", "encoder"),
    ("rnnsearch", "han", "decoder"),
    ("rnnsearch", "hierarchical", "encoder"),
    ("rnnsearch", "hierarchical", "decoder"),
]
every_row = pytest.mark.parametrize("row", ROWS, ids="-".join)


def model_of(row: Row, norm: str = "post", **context: object) -> DocumentModel:
    architecture, kind, integration = row
    section = ContextSection(kind=kind, integration=integration, direction="online", **context)  # type: ignore[arg-type]
    torch.manual_seed(5)
    return build(ModelSection(architecture=architecture, norm=norm, **SIZES), section, SOURCE, TARGET).eval()  # type: ignore[arg-type]


def texts(seed: int, vocabulary: int) -> list[list[list[int]]]:
    """Documents of sentences of word ids; the fourth sentence of the first is empty."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int, count: int) -> list[int]:
        return torch.randint(low, high, (count,), generator=generator).tolist()

    made = [[draw(4, vocabulary, draw(2, 9, 1)[0]) for _ in range(count)] for count in DOCUMENTS]
    made[0][3] = []
    return made


def pairs_of(sources: list[list[list[int]]], targets: list[list[list[int]]]) -> Pairs:
    documents = [d for d, document in enumerate(sources) for _ in document]
    positions = [p for document in sources for p in range(len(document))]
    return pack_pairs([s for doc in sources for s in doc], [t for doc in targets for t in doc], documents, positions)


def the_batch() -> Batch:
    return Batch(pairs_of(texts(1, SOURCE), texts(2, TARGET)))


def sentences(states: Tensor, layout: Layout) -> list[Tensor]:
    return list(states.split(layout.lengths.tolist()))


@every_row
@torch.no_grad()
def test_without_context_it_is_the_sentence_model(row: Row) -> None:
    model, batch = model_of(row), the_batch()
    current = batch.current
    memory = model.sentence.encode(current.source.tokens, current.source.layout)
    plain = model.sentence.decode(current.target.tokens, current.target.layout, memory, current.source.layout).final
    none = model(batch, ContextOptions(use=torch.zeros(current.sentences, dtype=torch.bool)))
    assert torch.equal(none.states, plain)
    assert not none.context.present.any()
    assert (none.context.gate == 1).all()
    output = model(batch)
    layout = current.target.layout
    for read, own, position in zip(
        sentences(output.states, layout), sentences(plain, layout), layout.positions.tolist(), strict=True
    ):
        assert torch.equal(read, own) == (position == 0)
    encoded, _ = model.encode(current.source, None)
    assert torch.equal(model.decode(current.target, encoded, current.source.layout, None).states, plain)


@every_row
@torch.no_grad()
def test_online_never_sees_the_future(row: Row) -> None:
    model = model_of(row)
    sources, targets = texts(1, SOURCE), texts(2, TARGET)
    before = model(Batch(pairs_of(sources, targets))).states
    sources[0][2] = [(word - 3) % (SOURCE - 4) + 4 for word in sources[0][2]]
    targets[0][2] = [(word - 3) % (TARGET - 4) + 4 for word in targets[0][2]]
    batch = Batch(pairs_of(sources, targets))
    after = model(batch).states
    rows = zip(
        sentences(before, batch.current.target.layout), sentences(after, batch.current.target.layout), strict=True
    )
    changed = [not torch.equal(a, b) for a, b in rows]
    assert changed[:2] == [False, False]
    assert changed[3:5] == [True, True]  # both read sentence 2, the empty sentence 3 being no context
    assert not any(changed[5:])


@pytest.mark.parametrize("row", ROWS[:6], ids="-".join)
@torch.no_grad()
def test_no_more_than_the_last_few_sentences_are_read(row: Row) -> None:
    model = model_of(row)
    sources, targets = texts(1, SOURCE), texts(2, TARGET)
    before = model(Batch(pairs_of(sources, targets))).states
    sources[3][0] = [(word - 3) % (SOURCE - 4) + 4 for word in sources[3][0]]
    targets[3][0] = [(word - 3) % (TARGET - 4) + 4 for word in targets[3][0]]
    batch = Batch(pairs_of(sources, targets))
    layout = batch.current.target.layout
    rows = zip(sentences(before, layout)[9:], sentences(model(batch).states, layout)[9:], strict=True)
    reach = model.section.sentences
    assert [not torch.equal(a, b) for a, b in rows] == [position <= reach for position in range(6)]


@every_row
@torch.no_grad()
def test_a_document_alone_or_in_a_batch(row: Row) -> None:
    model, batch = model_of(row), the_batch()
    together = sentences(model(batch).states, batch.current.target.layout)
    done = 0
    for source, target in zip(texts(1, SOURCE), texts(2, TARGET), strict=True):
        alone = model(Batch(pairs_of([source], [target]))).states
        expected = torch.cat(together[done : done + len(source)])
        torch.testing.assert_close(alone, expected, atol=1e-5, rtol=1e-5)
        done += len(source)


@every_row
@torch.no_grad()
def test_a_part_of_a_document_with_the_rest_as_context(row: Row) -> None:
    model, batch = model_of(row), the_batch()
    whole = sentences(model(batch).states, batch.current.target.layout)
    source, target = texts(1, SOURCE)[0], texts(2, TARGET)[0]
    part = pack_pairs(source[2:4], target[2:4], [0, 0], [2, 3])
    output = model(Batch(part, pairs_of([source], [target])))
    torch.testing.assert_close(output.states, torch.cat(whole[2:4]), atol=1e-5, rtol=1e-5)


@every_row
@torch.no_grad()
def test_empty_sentences_are_no_context(row: Row) -> None:
    model = model_of(row)
    source, target = texts(1, SOURCE)[3], texts(2, TARGET)[3]
    source[2], target[2] = [], []
    with_empty = model.offer(
        pack_source(source, [0] * 6, list(range(6))), pack_target(target, [0] * 6, list(range(6)))[0]
    )
    keep = [0, 1, 3, 4, 5]
    without = model.offer(
        pack_source([source[i] for i in keep], [0] * 5, keep), pack_target([target[i] for i in keep], [0] * 5, keep)[0]
    )
    current = Batch(pack_pairs([source[4]], [target[4]], [0], [4]))
    torch.testing.assert_close(
        model(current, context=with_empty).states, model(current, context=without).states, atol=1e-6, rtol=1e-5
    )


@every_row
@torch.no_grad()
def test_steps_with_a_cache_equal_teacher_forcing(row: Row) -> None:
    """Two hypotheses a sentence: the reference and its words reversed. Then the first sentences leave the search."""
    model, batch = model_of(row), the_batch()
    current = batch.current
    bank = model.offer(current.source, current.target)
    memory, _ = model.encode(current.source, bank)
    backwards = [[t[::-1] for t in document] for document in texts(2, TARGET)]
    wanted = []
    for targets in (texts(2, TARGET), backwards):
        target = pairs_of(texts(1, SOURCE), targets).target
        states = model.decode(target, memory, current.source.layout, bank).states
        wanted.append((target.layout.pad(target.tokens), target.layout.pad(states)))
    tokens, expected = (torch.stack(parts, 1).flatten(0, 1) for parts in zip(*wanted, strict=True))
    layout, kept = current.target.layout, list(range(current.sentences))
    cache = model.sentence.start(memory, current.source.layout)
    for time in range(layout.longest):
        going_on = [place for place, s in enumerate(kept) if layout.lengths[s] > time]
        if len(going_on) < len(kept):
            cache.select_sentences(torch.tensor(going_on))
            cache.select_hypotheses(torch.tensor([2 * p + k for p in going_on for k in (0, 1)]))
            kept = [kept[p] for p in going_on]
        hypotheses = [2 * s + k for s in kept for k in (0, 1)]
        places = Layout.of(
            [1] * len(hypotheses),
            [int(layout.documents[h // 2]) for h in hypotheses],
            [int(layout.positions[h // 2]) for h in hypotheses],
        )
        states = model.step(tokens[hypotheses, time], cache, places, bank).states
        torch.testing.assert_close(states, expected[hypotheses, time], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_rnnsearch_weights_of_source_words() -> None:
    model, batch = model_of(ROWS[4]).sentence, the_batch()
    source, target = batch.current.source, batch.current.target
    memory = model.encode(source.tokens, source.layout)
    weights = model.source_weights(target.tokens, target.layout, memory, source.layout)
    assert weights.shape == (source.layout.sentences, target.layout.longest, source.layout.longest)
    torch.testing.assert_close(weights.sum(-1), target.layout.mask.float())
    assert (weights.masked_select(~source.layout.mask[:, None]) == 0).all()


@torch.no_grad()
def test_rnnsearch_reads_the_previous_target_word_in_attention() -> None:
    model, batch = model_of(ROWS[4]).sentence, the_batch()
    source, target = batch.current.source, batch.current.target
    memory = model.encode(source.tokens, source.layout)
    weights = model.source_weights(target.tokens, target.layout, memory, source.layout)
    tokens = target.tokens.clone()
    tokens[target.layout.starts[0] + 1] = 4 + (tokens[target.layout.starts[0] + 1] - 3) % (TARGET - 4)
    changed = model.source_weights(tokens, target.layout, memory, source.layout)
    assert torch.equal(changed[0, 0], weights[0, 0])
    assert not torch.equal(changed[0, 1], weights[0, 1])


@pytest.mark.parametrize("row", ROWS[:4], ids="-".join)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_gradients_against_numerical_ones(row: Row, norm: str) -> None:
    model = model_of(row, norm).double()
    batch = the_batch()
    parameters = [p for _, p in sorted(model.context.named_parameters())]
    weight = torch.randn(len(batch.current.labels), 16, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

    def loss() -> Tensor:
        return (model(batch).states * weight).sum()

    loss().backward()
    step = 1e-6
    for parameter in parameters:
        direction = torch.randn_like(parameter)
        analytic = float((parameter.grad * direction).sum())
        with torch.no_grad():
            parameter.add_(step * direction)
            above = float(loss())
            parameter.sub_(2 * step * direction)
            below = float(loss())
            parameter.add_(step * direction)
        assert analytic == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("row", ROWS[2:4], ids="-".join)
def test_context_states_of_han_get_no_gradient(row: Row) -> None:
    model, batch = model_of(row), the_batch()
    seen: list[Tensor] = []
    prepare: Callable[..., object] = model.context.prepare
    model.context.prepare = lambda k, v, w: (seen.append(v), prepare(k, v, w))[1]
    model(batch)
    assert seen
    assert not any(values.requires_grad for values in seen)
    model.section.backpropagate = True
    model(batch)
    assert seen[-1].requires_grad


@pytest.mark.parametrize("integration", ["encoder", "decoder"])
def test_stage_two_of_zhang_trains_the_new_parameters_alone(integration: str) -> None:
    from weitblick.training.update import Optimiser

    model, batch = model_of(("transformer", "zhang", integration)).train(), the_batch()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimiser = Optimiser(model, ContextStageSection(learning_rate=0.01))
    optimiser.prepare(1)
    output = model(batch)
    loss, _ = smoothed_cross_entropy(output.states, *model.sentence.output(), batch.current.labels, 0.1)
    loss.backward()
    assert all(p.grad is None for p in model.sentence.parameters())
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.context_parameters())
    optimiser.step(1.0)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]) == name.startswith("sentence."), name


def test_gates_start_open_or_shut() -> None:
    for row in ROWS[:4]:
        gates = [model_of(row, gate_start=start)(the_batch()).context for start in (0.0, 4.0)]
        shares = [float(g.gate[g.present].mean()) for g in gates]
        assert shares[1] > 0.9 > shares[0]


@torch.no_grad()
def test_record_of_han_is_what_it_looked_at() -> None:
    model, batch = model_of(ROWS[2]), the_batch()
    context = model(batch, ContextOptions(need_weights=True)).context
    record, present = context.weights, context.present
    total = record.sentence_weights.sum(-1)
    torch.testing.assert_close(total[present], torch.ones_like(total[present]))
    assert (total[~present] == 0).all()
    torch.testing.assert_close(record.rescaled.sum(-1), total)
    assert torch.equal((record.sentence_weights > 0).any(1), record.visible)
    torch.testing.assert_close(record.visible.sum(-1).float(), context.support)
    layout = batch.current.source.layout
    positions = record.sentence_positions[record.documents]
    own = layout.positions[layout.sentence][:, None]
    seen = positions[record.visible]
    assert (seen < own.expand_as(positions)[record.visible]).all()
    assert (record.documents[present] == layout.documents[layout.sentence][present]).all()
    last = (record.visible & (positions == 2)).any(-1)
    assert last[(layout.sentence == 3) | (layout.sentence == 4)].all()


@torch.no_grad()
def test_context_of_another_document() -> None:
    """The random-context control reads any document at the current position, also beyond its end."""
    for row in ROWS:
        model, batch = model_of(row), the_batch()
        other = Batch(pairs_of(texts(7, SOURCE), texts(8, TARGET))).current
        bank = model.offer(other.source, other.target)
        sides = (batch.current.source, batch.current.target)
        third = (
            Packed(one.tokens, replace(one.layout, documents=torch.full_like(one.layout.documents, 2))) for one in sides
        )
        output = model(Batch(Pairs(*third, batch.current.labels)), context=bank)
        position = batch.current.source.layout.positions
        layout = batch.current.source.layout if model.sides.queries == "source" else batch.current.target.layout
        assert torch.equal(output.context.present, (position > 0)[layout.sentence])
        assert output.states.isfinite().all()
