"""The decision stage: a context layer learns to decide between a few words, and nothing else of the model changes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from weitblick.checkpoints.folder import build, load_model
from weitblick.common.errors import UserError
from weitblick.common.locks import StopRequest
from weitblick.common.recipe import ContextSection, DecisionStageSection, ModelSection
from weitblick.common.recipe_files import load_recipe
from weitblick.model.batch import Batch, pack_pairs
from weitblick.model.document_model import DocumentModel
from weitblick.training.decisions import Decisions, DecisionTraining, read_decisions
from weitblick.training.run import train
from weitblick.training.store import CorpusStore, StoreWriter

IT, ER, ES, REPORT, HOUSE = 5, 6, 7, 8, 9
SECTION = ModelSection(dimension=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=1)


def model(own_odds: float = 0.0) -> DocumentModel:
    torch.manual_seed(3)
    section = ContextSection(
        kind="word", integration="decoder", values="words", direction="online", order=True, gate_start=1.0, dropout=0.0
    )
    context = section.model_copy(update={"own_odds": own_odds})
    made = build(SECTION, context, 20, 20).eval()
    made.sentence.output_bias.data[[ER, ES]] = 3.0  # expected everywhere
    made.decide_between([[ER, ES]])
    made.sentence.requires_grad_(False)
    return made


def store_of(folder: Path, documents: list[tuple[list[list[int]], list[list[int]]]]) -> CorpusStore:
    with StoreWriter(folder, 20) as writer:
        for number, (sources, targets) in enumerate(documents):
            writer.add(str(number), sources, targets)
    return CorpusStore(folder)


def speeches(count: int) -> list[tuple[list[list[int]], list[list[int]]]]:
    """The noun of the sentence before, which only the German has, decides between ER and ES."""
    return [
        ([[10], [11, 12], [IT, 13]], [[10 + n % 3], [noun, 12 + n % 4], [pronoun, 14]])
        for n in range(count)
        for noun, pronoun in ((REPORT, ER), (HOUSE, ES))
    ]


@pytest.mark.parametrize("own_odds", [0.0, 0.6])
def test_scores_are_those_of_the_model_itself(own_odds: float, tmp_path: Path) -> None:
    documents = speeches(3)
    one = model(own_odds)
    found = [decision for part in read_decisions(one, store_of(tmp_path / "s", documents)) for decision in part]
    assert [[ER, ES][decision.word] for decision in found] == [ER, ES] * 3
    with torch.no_grad():
        scores = Decisions.of(found).scores(one, found)
        for (sources, targets), own, decided in zip(documents, Decisions.of(found).own, scores, strict=True):
            pairs = pack_pairs(sources, targets, [0] * 3, [0, 1, 2])
            table = one(Batch(pairs)).words.own_table(slice(0, len(pairs.labels)))
            step = int(pairs.target.layout.starts[2])
            torch.testing.assert_close(decided, table[step, [ER, ES]].log_softmax(-1), atol=2e-3, rtol=0)  # half keys
            memory, _ = one.encode(pairs.source)
            without = one.decode(pairs.target, memory, pairs.source.layout).words.own_table(slice(0, 9))
            torch.testing.assert_close(own, without[step, [ER, ES]])


def test_documents_without_a_decision_are_passed_over(tmp_path: Path) -> None:
    alone, undecided = ([[IT]], [[ER]]), ([[10], [IT]], [[ER], [10]])
    (decided,) = speeches(1)[:1]
    store = store_of(tmp_path / "s", [alone, undecided, decided])
    assert sum(len(part) for part in read_decisions(model(), store)) == 1
    unexpected = model()
    unexpected.sentence.output_bias.data[[ER, ES]] = -9.0
    assert not any(read_decisions(unexpected, store))


def test_it_learns_what_only_the_sentences_before_tell(tmp_path: Path) -> None:
    one = model()
    stage = DecisionStageSection(passes=30, batch=16, learning_rate=1e-2, held_out=0.25)
    training = DecisionTraining(one, stage, torch.ones(2), StopRequest())
    learned, held_out = training.read(store_of(tmp_path / "s", speeches(40)), seed=1)
    before = {name: value.clone() for name, value in one.sentence.state_dict().items()}
    judgement = training.fit(learned, held_out, 1, tmp_path / "log", quiet=True)
    assert judgement.accuracy["own"] == 1.0
    assert judgement.accuracy["removed"] < 0.8
    assert judgement.accuracy["random"] < 0.8
    assert judgement.nats["own"] > -0.2 > judgement.nats["random"]
    assert all(torch.equal(value, before[name]) for name, value in one.sentence.state_dict().items())


def test_too_little_to_learn_from_is_said(tmp_path: Path) -> None:
    training = DecisionTraining(model(), DecisionStageSection(), torch.ones(2), StopRequest())
    with pytest.raises(UserError, match="only 6 documents end"):
        training.read(store_of(tmp_path / "s", speeches(3)), seed=1)


def test_the_run(recipe_file, corpus, tmp_path: Path) -> None:
    base = [f"data.dir={corpus}", "sentence_stage.updates=4", "text.merges=700"]
    sentence = train(load_recipe(recipe_file, [*base, f"output={tmp_path / 'plain'}", "stage=sentence"]), quiet=True)
    start = load_model(sentence)
    said = sorted(set((corpus / "train.de").read_text(encoding="utf-8").split()))
    pieces = zip(said, start.pipeline.encode_target(said), strict=True)
    words = [word for word, ids in pieces if len(ids) == 1]
    assert len(words) > 20

    def run(name: str, *more: str, decides: list[str] = words):  # type: ignore[no-untyped-def]
        wishes = [f"output={tmp_path / name}", f"stage1={sentence}", "stage=decision", "decision_stage.passes=1"]
        layer = ["context.kind=word", "context.integration=decoder", "context.direction=online"]
        recipe = load_recipe(recipe_file, [*base, *layer, "context.values=words", *wishes, *more])
        recipe.context.decides = [decides] if decides else []
        return load_model(train(recipe, quiet=True))

    first, again = run("first"), run("again")
    ends = zip(first.model.state_dict().items(), again.model.state_dict().values(), strict=True)
    assert all(torch.equal(value, other) for (_, value), other in ends)
    held = zip(start.model.sentence.parameters(), first.model.sentence.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in held)
    assert {"decision_accuracy_own", "decision_accuracy_random", "decision_nats_removed"} <= first.facts.keys()
    assert (tmp_path / "first" / "decision" / "log.jsonl").stat().st_size
    with pytest.raises(UserError, match=r"set context\.decides"):
        run("none", decides=[])
    with pytest.raises(UserError, match=r"weights: 'Donaudampfschifffahrt' is \d+ pieces"):
        run("long", "decision_stage.weights={Donaudampfschifffahrt: 2}")
    with pytest.raises(UserError, match="no word that context decides between"):
        run("other", f"decision_stage.weights={{{words[-1]}: 2}}", decides=words[:-1])
