"""Trains a context layer on the steps at which context decides between a few words, the sentence model untouched.

A document of the corpus ends with the sentence that is decided (`data pronouns` makes such documents): its first word
among those of `context.decides`, where the model expects one of these at all. Nothing that is read there changes while
a context layer learns, so it is computed once: the states of the step, and what the sentences before offer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from weitblick.common.errors import UserError
from weitblick.common.locks import Interrupted, StopRequest
from weitblick.common.logs import Logs
from weitblick.common.recipe import DecisionStageSection, Recipe
from weitblick.model.batch import Layout, Pairs, pack_pairs
from weitblick.model.document_model import DocumentModel
from weitblick.model.modifiers import log_softmax_in_sets
from weitblick.model.sentence_model import DecoderStates
from weitblick.text.base import TextPipeline
from weitblick.training.store import CorpusStore

PART_TOKENS = 4000
"""Tokens that go through the sentence model at a time."""


@dataclass(frozen=True)
class Decision:
    """final, attended [d]: the states of the step; own [n]: log-probabilities of the words without context; word: which
    of them is right; keys [W, d], in half precision, and tokens [W], as the decoder reads them, of the sentences
    before, whose lengths are `lengths`."""

    final: Tensor
    attended: Tensor
    own: Tensor
    word: int
    keys: Tensor
    tokens: Tensor
    lengths: list[int]


@dataclass(frozen=True)
class Decisions:
    """N steps in a batch, each of a document of its own: final, attended [N, d], own [N, n], words [N]."""

    final: Tensor
    attended: Tensor
    own: Tensor
    words: Tensor

    @classmethod
    def of(cls, chosen: Sequence[Decision]) -> Decisions:
        final, attended, own = (
            torch.stack([getattr(one, name) for one in chosen]) for name in ("final", "attended", "own")
        )
        return cls(final, attended, own, torch.tensor([one.word for one in chosen], device=own.device))

    def scores(self, model: DocumentModel, read: Sequence[Decision], own_odds: bool = True) -> Tensor:
        """[N, n] log-probabilities of the words among each other, with the sentences that `read` have before them as
        context: their own, or those of others as a control; as the model says them, or as context alone does."""
        assert model.context is not None
        device = self.final.device
        lengths = [length for one in read for length in one.lengths]
        documents = [number for number, one in enumerate(read) for _ in one.lengths]
        positions = [position for one in read for position in range(len(one.lengths))]
        layout = Layout.of(lengths, documents, positions, device)
        keys = torch.cat([one.keys for one in read]).to(self.final.dtype)
        with torch.no_grad():
            values = model.sentence.next_words(torch.cat([one.tokens for one in read]))
        bank = model.context.prepare(keys, values, layout)
        count = len(read)
        asking = Layout.of([1] * count, list(range(count)), [len(one.lengths) for one in read], device)
        states = model.context(self.final, self.attended, asking, bank).states
        steps = torch.arange(count, device=device)
        found = model.word_choice(steps, states, self.final if own_odds else None)
        return log_softmax_in_sets(found.scores, found.sets)


@torch.no_grad()
def read_decisions(model: DocumentModel, store: CorpusStore) -> Iterator[list[Decision]]:
    """Those of a corpus, part by part; documents without one, or with nothing before it, are passed over."""
    model.eval()
    waiting: list[range] = []
    tokens = 0
    lengths = store.lengths("source") + store.lengths("target")
    for number in range(len(store)):
        document = store.document(number)
        if len(document) > 1:
            waiting.append(document)
            tokens += int(lengths[document.start : document.stop].sum())
        if tokens >= PART_TOKENS:
            yield _decisions(model, store, waiting)
            waiting, tokens = [], 0
    if waiting:
        yield _decisions(model, store, waiting)


def _decisions(model: DocumentModel, store: CorpusStore, documents: Sequence[range]) -> list[Decision]:
    assert model.choice_words is not None
    rows = [index for document in documents for index in document]
    owners = [number for number, document in enumerate(documents) for _ in document]
    sources, targets = ([store.sentence(side, index) for index in rows] for side in ("source", "target"))
    pairs = pack_pairs(sources, targets, owners).to(model.choice_words.device)
    memory = model.sentence.encode(pairs.source.tokens, pairs.source.layout)
    states = model.sentence.decode(pairs.target.tokens, pairs.target.layout, memory, pairs.source.layout)
    return list(_found(model, documents, pairs, states))


def _found(model: DocumentModel, documents: Sequence[range], pairs: Pairs, states: DecoderStates) -> Iterator[Decision]:
    assert model.choice_words is not None
    layout = pairs.target.layout
    starts, lengths = layout.starts.tolist(), layout.host_lengths
    last = -1
    for document in documents:
        first, last = last + 1, last + len(document)
        begin, end = starts[first], starts[last]  # of the sentences before
        labels = pairs.labels[end : end + lengths[last]]
        which = labels[:, None] == model.choice_words  # [W, n]
        steps = which.any(1).nonzero()[:, 0]
        if not len(steps):
            continue
        step = end + int(steps[0])
        softmax = model.softmax(DecoderStates(states.attended[step : step + 1], states.final[step : step + 1]))
        if not bool(softmax.expect(model.choice_words)[0]):
            continue
        yield Decision(
            states.final[step].clone(),
            states.attended[step].clone(),
            softmax.table(slice(0, 1))[0, model.choice_words],
            int(which[steps[0]].nonzero()[0, 0]),
            states.attended[begin:end].half(),
            pairs.target.tokens[begin:end].clone(),
            lengths[first:last],
        )


# Training a context layer that decides between a few words (`context.decides`), the sentence model untouched.
#
# Of all the words of a corpus context decides a few, and the loss of the others drowns theirs. So these steps alone
# are learned from (`decisions`). What the sentence model says there is computed once, which takes most of the time;
# the layer then passes over all of them in a minute or so, as often as it takes.

log = logging.getLogger("weitblick")

BETAS, WEIGHT_DECAY, WARM_UP, CLIP = (0.9, 0.98), 0.01, 30, 1.0
JUDGED_TOGETHER = 128
FEWEST = 20
"""Decisions from which anything can be learned and judged."""


@dataclass(frozen=True)
class Judgement:
    """Of decisions held out: how often the right word comes before the others, and its mean log-probability among them,
    with the sentences before them (own), with those of others (random), and with none (removed)."""

    accuracy: dict[str, float]
    nats: dict[str, float]

    def figures(self) -> dict[str, float]:
        parts = (("accuracy", self.accuracy), ("nats", self.nats))
        return {f"{name}_{context}": value for name, values in parts for context, value in values.items()}

    def __str__(self) -> str:
        return "right with own context {own:.3f}, removed {removed:.3f}, random {random:.3f}".format(**self.accuracy)


def train_decisions(
    model: DocumentModel, pipeline: TextPipeline, recipe: Recipe, train: CorpusStore, folder: Path, quiet: bool = False
) -> dict[str, float]:
    """Trains the model's context layer; returns what its card should say about it."""
    if model.choice_words is None or model.section.values != "words":
        raise UserError(
            "stage: decision needs words between which context decides, and reads words",
            remedy="set context.decides and context.values: words (see recipes/europarl-small/pronouns.yaml)",
        )
    stage = recipe.decision_stage
    with StopRequest() as stop:
        training = DecisionTraining(model, stage, _weights(model, pipeline, stage), stop)
        started = time.monotonic()
        learned, held_out = training.read(train, recipe.seed)
        log.info("%d decisions read in %.0f s", len(learned) + len(held_out), time.monotonic() - started)
        judgement = training.fit(learned, held_out, recipe.seed, folder, quiet)
    minutes = round((time.monotonic() - started) / 60, 1)
    figures = {f"decision_{name}": round(value, 4) for name, value in judgement.figures().items()}
    return {**figures, "decisions": len(learned), "decision_seed": recipe.seed, "decision_training_minutes": minutes}


def _weights(model: DocumentModel, pipeline: TextPipeline, section: DecisionStageSection) -> Tensor:
    """[n] of the words that context decides between."""
    assert model.choice_words is not None
    weights = torch.ones(len(model.choice_words), device=model.choice_words.device)
    ids = model.choice_words.tolist()
    named = pipeline.single_pieces(list(section.weights), "decision_stage.weights")
    for word, id, weight in zip(section.weights, named, section.weights.values(), strict=True):
        if id not in ids:
            raise UserError(
                f"decision_stage.weights: {word!r} is no word that context decides between",
                remedy="name words of context.decides",
            )
        weights[ids.index(id)] = weight
    return weights


class DecisionTraining:
    def __init__(self, model: DocumentModel, stage: DecisionStageSection, weights: Tensor, stop: StopRequest) -> None:
        assert model.context is not None
        assert model.choice_sets is not None
        self.model, self.context, self.stage, self.weights, self.stop = model, model.context, stage, weights, stop
        self.sets = model.choice_sets
        self.set_of = self.sets.long().argmax(0)  # [n] of each word

    def read(self, store: CorpusStore, seed: int) -> tuple[list[Decision], list[Decision]]:
        """Decisions to learn from, and those held out to judge by, drawn by the seed."""
        found: list[Decision] = []
        for part in read_decisions(self.model, store):
            found += part
            self._stop_if_asked()
        chance = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(found), generator=chance).tolist()
        count = round(self.stage.held_out * len(found))
        if count < 2 or len(found) - count < FEWEST:
            raise UserError(
                f"only {len(found)} documents end with a sentence in which context could decide",
                where=store.folder,
                remedy="make a corpus with `weitblick data pronouns`",
            )
        return [found[index] for index in order[count:]], [found[index] for index in order[:count]]

    def fit(
        self, learned: Sequence[Decision], held_out: Sequence[Decision], seed: int, folder: Path, quiet: bool
    ) -> Judgement:
        """Passes over all that is learned, in a new order each time, the rate falling to zero."""
        size = min(self.stage.batch, len(learned))
        updates = self.stage.passes * (len(learned) // size)
        optimiser = torch.optim.AdamW(
            self.context.parameters(), self.stage.learning_rate, betas=BETAS, weight_decay=WEIGHT_DECAY
        )
        rate = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda done: min(1.0, (done + 1) / WARM_UP) * (1 - done / max(1, updates))
        )
        torch.manual_seed(seed)
        judgement, update, started = self.judge(held_out), 0, time.monotonic()
        with Logs(folder, "decisions", updates, 0, active=True, quiet=quiet) as logs:
            logs.say(f"decisions, before: {judgement}")
            for number in range(self.stage.passes):
                self.context.train()
                sums = 0.0
                for rows in torch.randperm(len(learned))[: updates // self.stage.passes * size].split(size):
                    loss = self._step([learned[row] for row in rows.tolist()], optimiser)
                    rate.step()
                    update, sums = update + 1, sums + loss
                    left = (time.monotonic() - started) / update * (updates - update)
                    logs.show(update, updates, {"loss": loss}, left)
                    self._stop_if_asked()
                judgement = self.judge(held_out)
                logs.write("train", update, {"loss": sums / (len(learned) // size)})
                logs.write("dev", update, judgement.figures())
                logs.say(f"decisions, pass {number + 1}: {judgement}")
        self.model.eval()
        return judgement

    def _step(self, chosen: Sequence[Decision], optimiser: torch.optim.Optimizer) -> float:
        """Context alone is to decide: in a corpus in which the words are about equally frequent, it would learn to take
        back what the model's own odds say."""
        batch = Decisions.of(chosen)
        loss = nn.functional.nll_loss(batch.scores(self.model, chosen, own_odds=False), batch.words, self.weights)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.context.parameters(), CLIP)
        optimiser.step()
        return float(loss.detach())

    @torch.no_grad()
    def judge(self, decisions: Sequence[Decision]) -> Judgement:
        self.context.eval()
        contexts = ("own", "removed", "random")
        right: dict[str, list[Tensor]] = {context: [] for context in contexts}
        nats: dict[str, list[Tensor]] = {context: [] for context in contexts}
        others = [*decisions[1:], decisions[0]]
        for start in range(0, len(decisions), JUDGED_TOGETHER):
            rows = slice(start, start + JUDGED_TOGETHER)
            batch = Decisions.of(decisions[rows])
            tables = (
                batch.scores(self.model, decisions[rows]),
                log_softmax_in_sets(batch.own, self.sets),
                batch.scores(self.model, others[rows]),
            )
            for context, table in zip(contexts, tables, strict=True):
                among = table.masked_fill(~self.sets[self.set_of[batch.words]], -torch.inf)
                right[context].append(among.argmax(-1) == batch.words)
                nats[context].append(table.gather(1, batch.words[:, None])[:, 0])
        means = ({name: float(torch.cat(x).float().mean()) for name, x in of.items()} for of in (right, nats))
        return Judgement(*means)

    def _stop_if_asked(self) -> None:
        if self.stop:
            raise Interrupted("stopped; nothing is kept of this stage: the same command begins it again")
