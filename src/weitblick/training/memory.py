"""Training the pointer to approved translations: the sentence model is untouched, so its states are computed once.

A translator is simulated with references. In half of the documents only the sentences before are approved; in others
the documents before as well; in the rest what is approved belongs to another text altogether, so that the pointer
learns to leave such a memory alone instead of smoothing with it.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from weitblick.batches.batch import pack_source, pack_target
from weitblick.batches.layout import Layout
from weitblick.batches.store import CorpusStore
from weitblick.config.recipe import MemorySection, MemoryStageSection, Recipe
from weitblick.memory.selection import Sentences
from weitblick.model.folder import LoadedModel
from weitblick.model.pointer import MemoryPointer, Places
from weitblick.model.words import Pointed
from weitblick.sentence.sentence_model import DecoderStates, SentenceModel
from weitblick.text.base import TextPipeline

log = logging.getLogger("weitblick")

RUN = 12
"""Documents that follow each other in the corpus: what was approved before one of them is in those before it."""
PART_TOKENS = 3000
SAMPLE = 20_000
"""Decoder states by which queries and keys start."""
Kind = Literal["past", "project", "random"]
KINDS: tuple[Kind, ...] = ("past", "project", "random")
Report = Callable[[str], None]


def train_pointer(base: LoadedModel, recipe: Recipe, train: CorpusStore, dev: CorpusStore) -> dict[str, float]:
    """Gives a trained model a pointer; returns what its card should say about it."""
    started = time.monotonic()
    section = recipe.memory.model_copy(update={"kind": "pointer"})
    training = MemoryTraining(base.model.sentence, base.pipeline, section, recipe.memory_stage)
    base.model.pointer, gains = training.train(train, dev, recipe.seed, log.info)
    figures = {f"memory_{kind}_nats": round(gain.nats, 4) for kind, gain in gains.items()}
    minutes = round((time.monotonic() - started) / 60, 1)
    return {**figures, "memory_seed": recipe.seed, "memory_training_minutes": minutes}


@dataclass(frozen=True)
class _Sentence:
    """What the sentence model says of one pair; W steps, the last of which predicts the end.

    attended, final [W, d] in half precision; normaliser [W] and highest [W]: of the logits; own [W]: log-probability
    of the reference
    """

    source: Sequence[int]
    labels: Tensor
    previous: Tensor
    inside: Tensor
    attended: Tensor
    final: Tensor
    normaliser: Tensor
    highest: Tensor
    own: Tensor


_Run = list[list[_Sentence]]
"""Documents that follow each other, each a list of sentences."""


@dataclass(frozen=True)
class Gain:
    """Nats a token gained over the model alone, and the mean share, with each kind of memory."""

    nats: float
    share: float


class MemoryTraining:
    def __init__(
        self, sentence: SentenceModel, pipeline: TextPipeline, section: MemorySection, stage: MemoryStageSection
    ) -> None:
        self.sentence, self.pipeline, self.section, self.stage = sentence.eval(), pipeline, section, stage
        weight, bias = sentence.output()
        self.weight, self.bias = weight.detach(), bias.detach()

    def train(
        self, train: CorpusStore, dev: CorpusStore, seed: int, say: Report
    ) -> tuple[MemoryPointer, dict[Kind, Gain]]:
        torch.manual_seed(seed)
        pointer = MemoryPointer(self.section, self.sentence.dimension).to(self.weight.device)
        started = time.monotonic()
        runs = list(self._runs(train, self.stage.documents))
        held_out = list(self._runs(dev, self.stage.dev_documents))
        say(f"states of {sum(map(len, runs))} documents after {time.monotonic() - started:.0f} s")
        pointer.start_from(_sample([s.attended for run in runs for document in run for s in document]))
        for projection in (pointer.query, pointer.key):
            projection.requires_grad_(self.stage.train_keys)
        examples = [(run, document) for run in range(len(runs)) for document in range(len(runs[run]))]
        updates = self.stage.epochs * len(examples)
        optimiser = torch.optim.Adam(pointer.parameters(), lr=self.stage.learning_rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda done: min(1.0, (done + 1) / 50) * max(0.05, 1 - done / updates)
        )
        chance = random.Random(seed)
        for epoch in range(1, self.stage.epochs + 1):
            pointer.train()
            chance.shuffle(examples)
            for run, document in examples:
                found = self._gain(pointer, runs, run, document, self._kind(chance), chance)
                if found is None:
                    continue
                optimiser.zero_grad()
                (-found[0].mean()).backward()
                torch.nn.utils.clip_grad_norm_(pointer.parameters(), 1.0)
                optimiser.step()
                schedule.step()
            gains = self.evaluate(pointer, held_out)
            figures = ", ".join(f"{kind} {gain.nats:+.4f} (share {gain.share:.3f})" for kind, gain in gains.items())
            say(f"epoch {epoch}: nats a token on dev: {figures}; {time.monotonic() - started:.0f} s")
        return pointer.eval(), gains

    @torch.no_grad()
    def evaluate(self, pointer: MemoryPointer, runs: Sequence[_Run]) -> dict[Kind, Gain]:
        pointer.eval()
        gains: dict[Kind, Gain] = {}
        for kind in KINDS:
            chance = random.Random(1)
            nats = share = 0.0
            tokens = 0
            for run in range(len(runs)):
                for document in range(len(runs[run])):
                    found = self._gain(pointer, runs, run, document, kind, chance)
                    if found is not None:
                        nats, share, tokens = (
                            nats + float(found[0].sum()), share + float(found[1].sum()), tokens + len(found[0])
                        )  # fmt: skip
            gains[kind] = Gain(nats / max(1, tokens), share / max(1, tokens))
        return gains

    def _kind(self, chance: random.Random) -> Kind:
        drawn = chance.random()
        if drawn < self.stage.past_only:
            return "past"
        return "random" if drawn > 1 - self.stage.random else "project"

    def _runs(self, store: CorpusStore, documents: int) -> Iterator[_Run]:
        """Runs of documents, evenly spread over the corpus."""
        count = max(1, min(documents, len(store)) // RUN)
        for number in range(count):
            first = number * len(store) // count
            chosen = range(first, min(first + RUN, len(store)))
            sentences = iter(self._states([(store, index) for d in chosen for index in store.document(d)]))
            yield [[next(sentences) for _ in store.document(d)] for d in chosen]

    @torch.inference_mode()
    def _states(self, members: Sequence[tuple[CorpusStore, int]]) -> list[_Sentence]:
        pairs = [[store.sentence(side, index).tolist() for side in ("source", "target")] for store, index in members]
        order = sorted(range(len(pairs)), key=lambda index: len(pairs[index][1]))
        found: dict[int, _Sentence] = {}
        while order:
            count = max(1, PART_TOKENS // (len(pairs[order[0]][1]) + 1))
            part, order = order[:count], order[count:]
            found.update(zip(part, self._part([pairs[index] for index in part]), strict=True))
        return [found[index] for index in range(len(pairs))]

    def _part(self, pairs: Sequence[list[list[int]]]) -> Iterator[_Sentence]:
        device = self.weight.device
        source = pack_source([pair[0] for pair in pairs]).to(device)
        packed, labels = pack_target([pair[1] for pair in pairs])
        target, labels = packed.to(device), labels.to(device)
        states = self.sentence.encode(source.tokens, source.layout)
        states_of_target = self.sentence.decode(target.tokens, target.layout, states, source.layout)
        logits = torch.addmm(self.bias, states_of_target.final, self.weight.t()).float()
        normaliser = logits.logsumexp(-1)
        columns = (
            labels, target.tokens, states_of_target.attended.half(), states_of_target.final.half(), normaliser,
            logits.amax(-1) - normaliser, logits.gather(1, labels[:, None])[:, 0] - normaliser,
        )  # fmt: skip
        split = zip(*(column.split(target.layout.host_lengths) for column in columns), strict=True)
        for pair, (own_labels, previous, attended, final, *figures) in zip(pairs, split, strict=True):
            inside = torch.tensor([*self.pipeline.continuing(pair[1], "target"), False], device=device)
            yield _Sentence(pair[0], own_labels, previous, inside, attended, final, *figures)

    def _gain(
        self, pointer: MemoryPointer, runs: Sequence[_Run], run: int, document: int, kind: Kind, chance: random.Random
    ) -> tuple[Tensor, Tensor] | None:
        """Nats gained [T] at every step of a document that has anything to read, and shares [T]; None if none has."""
        memory, first = self._memory(runs, run, document, kind, chance)
        current = runs[run][document]
        own_memory = kind != "random"
        pool = [*memory, *current] if own_memory else memory
        search = Sentences([sentence.source for sentence in pool])
        readers, chosen, distances = [], [], []
        for index, sentence in enumerate(current):
            visible = range(first + index) if own_memory else range(len(pool))
            numbers = search.nearest(sentence.source, self.section.candidates, visible)
            if numbers:
                readers.append(sentence)
                chosen.append(numbers)
                distances.append([float(len(visible) - 1 - number) for number in numbers])
        if not readers:
            return None
        places = _places(pointer, pool, chosen, distances)
        pointed, layout = self._point(pointer, readers, places)
        kept = layout.padded_index
        own, labels = (torch.cat([getattr(sentence, name) for sentence in readers]) for name in ("own", "labels"))
        said = pointed.probabilities(layout.pad(labels).flatten())[kept]
        share = pointed.share[kept]
        mixed = ((1 - share) * own.exp() + share * said).clamp_min(1e-9).log()
        return mixed - own, share

    def _memory(
        self, runs: Sequence[_Run], run: int, document: int, kind: Kind, chance: random.Random
    ) -> tuple[list[_Sentence], int]:
        """What is approved before a document begins, and how much that is."""
        if kind == "past":
            return [], 0
        if kind == "random" and len(runs) > 1:
            other = chance.choice([number for number in range(len(runs)) if number != run])
            start = chance.randrange(max(1, len(runs[other]) - self.stage.before))
            strangers = [s for d in runs[other][start : start + self.stage.before + 1] for s in d]
            return strangers, len(strangers)
        before = [s for d in runs[run][max(0, document - self.stage.before) : document] for s in d]
        return before, len(before)

    def _point(self, pointer: MemoryPointer, readers: Sequence[_Sentence], places: Places) -> tuple[Pointed, Layout]:
        device = self.weight.device
        layout = Layout.of([len(sentence.labels) for sentence in readers], device=device)
        attended, final, previous, normaliser, highest = (
            layout.pad(torch.cat([getattr(sentence, name) for sentence in readers]).to(kind))
            for name, kind in (
                ("attended", torch.float32), ("final", torch.float32), ("previous", torch.long),
                ("normaliser", torch.float32), ("highest", torch.float32),
            )
        )  # fmt: skip

        def look_up(ids: Tensor) -> tuple[Tensor, Tensor]:
            logits = torch.einsum("td,tnd->tn", final.flatten(0, 1), self.weight[ids]) + self.bias[ids]
            return logits - normaliser.flatten()[:, None], highest.flatten()

        return pointer(attended, previous, places, look_up), layout


def _sample(states: Sequence[Tensor]) -> Tensor:
    """[n, d] of many states [W, d], evenly spread."""
    every = torch.cat(list(states))
    return every[:: max(1, len(every) // SAMPLE)].float()


def _places(
    pointer: MemoryPointer, pool: Sequence[_Sentence], chosen: Sequence[list[int]], distances: Sequence[list[float]]
) -> Places:
    layout = Layout.of([len(sentence.labels) for sentence in pool], device=pool[0].labels.device)
    attended = torch.cat([sentence.attended for sentence in pool]).float()
    keys = layout.pad(pointer.keys(DecoderStates(attended, attended)))
    columns = ("labels", "previous", "inside", "own")
    tables = [layout.pad(torch.cat([getattr(sentence, name) for sentence in pool])) for name in columns]
    count = max(map(len, chosen))
    index = torch.tensor([numbers + [0] * (count - len(numbers)) for numbers in chosen], device=keys.device)
    there = torch.tensor([[k < len(numbers) for k in range(count)] for numbers in chosen], device=keys.device)
    far = keys.new_tensor([row + [0.0] * (count - len(row)) for row in distances])
    ids, previous, inside, expected = (table[index] for table in tables)
    return Places(keys[index], ids, previous, inside, layout.mask[index] & there[..., None], far, expected)
