"""Focus: chosen words are learned, the others are held to what they are without context."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from weitblick.batches.batch import Batch, pack_pairs
from weitblick.config import load_recipe
from weitblick.config.recipe import ContextSection, ModelSection
from weitblick.errors import UserError
from weitblick.model.build import build
from weitblick.model.context import PLAIN, ContextOptions
from weitblick.model.document_model import DocumentModel
from weitblick.model.folder import load_model
from weitblick.training.focus import Focus
from weitblick.training.run import train

IT, ER, ES = 5, 6, 7
SECTION = ModelSection(dimension=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=1)


def focus(hold: float = 1.0, others: float = 0.0) -> Focus:
    return Focus(torch.tensor([ER, ES]), torch.tensor([2.0, 1.0]), torch.tensor([IT]), hold, others)


def batch() -> Batch:
    """Two documents; the second sentence of each has *it* and a pronoun, the first of the second a pronoun alone."""
    sources = [[9, 10], [IT, 11], [12], [11, IT, 13]]
    targets = [[8, 9], [ER, 10], [ES, 9], [9, ES]]
    return Batch(pack_pairs(sources, targets, [0, 0, 1, 1], [0, 1, 0, 1]))


def model(seed: int = 3) -> DocumentModel:
    torch.manual_seed(seed)
    context = ContextSection(kind="word", integration="decoder", values="words", direction="online", gate_start=1.0)
    return build(SECTION, context, 20, 20).eval()


def test_words_in_focus_have_their_weight_where_the_source_asks_for_them() -> None:
    made = batch()
    weight = focus().weight(made)
    labels = made.current.labels.tolist()
    assert [(label, w) for label, w in zip(labels, weight.tolist(), strict=True) if w] == [(ER, 2.0), (ES, 1.0)]


def test_only_sentences_in_focus_are_trained_on_and_all_are_context() -> None:
    narrowed = focus().narrow(batch())
    assert narrowed.current.labels.tolist() == [ER, 10, 2, 9, ES, 2]
    assert narrowed.current.source.tokens.tolist() == [IT, 11, 2, 11, IT, 13, 2]
    assert narrowed.current.target.layout.positions.tolist() == [1, 1]
    assert narrowed.all_sentences.sentences == 4
    assert focus(others=1.0).narrow(batch()).current.sentences == 4


def test_what_is_said_where_a_word_in_focus_is_expected_is_learned() -> None:
    one, narrowed = model(), focus().narrow(batch())
    with torch.no_grad():
        one.sentence.output_bias[ER] = 5.0  # everywhere expected
        loss, _, output = focus(0.0).loss(one, narrowed, PLAIN)
    weight = torch.tensor([2.0, 0.5, 0.5, 0.5, 1.0, 0.5])
    of_words = -output.words.log_probabilities(narrowed.current.labels)
    assert float(loss) == pytest.approx(float((of_words * weight).sum() / weight.sum()) * 6, rel=1e-5)


def test_the_same_states_as_in_the_whole_batch() -> None:
    made, narrowed, one = batch(), focus().narrow(batch()), model()
    whole = one(made).states[made.current.target.layout.positions[made.current.target.layout.sentence] == 1]
    assert torch.allclose(focus().loss(one, narrowed, PLAIN)[2].states, whole, atol=1e-5)


def test_without_context_nothing_diverges() -> None:
    one, narrowed = model(), focus().narrow(batch())
    none = ContextOptions(use=torch.zeros(2, dtype=torch.bool))
    unexpected = Focus(torch.tensor([ER]), torch.tensor([1.0]), torch.tensor([IT]), 1.0, 0.0)
    with torch.no_grad():
        one.sentence.output_bias[ER] = -50.0  # nowhere expected, so that all other words are held
        free = replace(unexpected, hold=0.0)
        for options, differs in ((none, False), (PLAIN, True)):
            with_hold, without = (float(f.loss(one, narrowed, options)[0]) for f in (unexpected, free))
            assert (with_hold > without + 1e-4) is differs


def test_the_loss_is_the_weighted_mean_of_words_in_focus() -> None:
    one, narrowed = model(), focus().narrow(batch())
    with torch.no_grad():
        one.sentence.output_bias[[ER, ES]] = -5.0  # nowhere expected: nothing else is learned
        loss, likelihood, output = focus(0.0).loss(one, narrowed, PLAIN)
    of_words = -output.words.log_probabilities(narrowed.current.labels)
    mean = (2 * of_words[0] + of_words[4]) / 3
    assert float(loss) == pytest.approx(float(mean) * 6, rel=1e-5)
    assert float(likelihood) == pytest.approx(float(loss), rel=1e-5)


def test_a_run_moves_the_context_layer_and_nothing_else(recipe_file, corpus, tmp_path) -> None:
    base = [
        f"data.dir={corpus}",
        "sentence_stage.updates=4",
        "context_stage.updates=4",
        "context_stage.sentence_rate=0",
    ]
    train(load_recipe(recipe_file, [*base, f"output={tmp_path / 'plain'}", "stage=sentence"]), quiet=True)
    start = load_model(tmp_path / "plain" / "best")
    said = sorted(set((corpus / "train.de").read_text(encoding="utf-8").split()))
    pieces = zip(said, start.pipeline.encode_target(said), strict=True)
    words = dict.fromkeys([word for word, ids in pieces if len(ids) == 1][:5], 1.0)
    with_focus = [
        *base,
        f"output={tmp_path / 'focus'}",
        f"stage1={tmp_path / 'plain' / 'best'}",
        "stage=context",
        "context.integration=decoder",
        "context.values=words",
        "context_stage.source_word_dropout=0",
        "context_stage.result=last",
    ]
    recipe = load_recipe(recipe_file, with_focus)
    recipe.context_stage.focus = words
    train(recipe, quiet=True)
    end = load_model(tmp_path / "focus" / "best").model
    held = zip(start.model.sentence.parameters(), end.sentence.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in held)
    torch.manual_seed(recipe.seed)
    new = build(recipe.model, recipe.context, *(len(v) for v in (start.pipeline.source_vocabulary,) * 2)).context
    assert new is not None
    assert any(not torch.equal(a, b) for a, b in zip(new.parameters(), end.context_parameters(), strict=True))


def test_a_word_of_several_pieces_is_refused(recipe_file, corpus, tmp_path) -> None:
    recipe = load_recipe(recipe_file, [f"data.dir={corpus}", f"output={tmp_path / 'run'}", "sentence_stage.updates=0"])
    recipe.context_stage.focus = {"Donaudampfschifffahrt": 1.0}
    with pytest.raises(UserError, match=r"focus: 'Donaudampfschifffahrt' is \d+ pieces"):
        train(recipe, quiet=True)
