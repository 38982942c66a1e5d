"""A translator simulated with references, for training the pointer: documents in runs, and what was approved before.

Documents of a run follow each other in the corpus or, where these stand in no order, share rare expressions.

In `past` the sentences before are approved; in `project` the documents before as well; in `random` what is approved
belongs to another text altogether, so that the pointer learns to leave such a memory alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Literal, Protocol

import numpy as np
import torch
from scipy.sparse import csr_matrix, diags
from torch import Tensor

from weitblick.common.recipe import MemoryStageSection
from weitblick.memory.keys import ApprovedKeys, ApprovedPlaces, Reader
from weitblick.memory.matches import Sentences
from weitblick.memory.pointer import MemoryPointer
from weitblick.model.batch import Layout, pack_source, pack_target
from weitblick.model.output import LookedUp
from weitblick.model.sentence_model import DecoderStates, SentenceModel
from weitblick.text.base import TextPipeline

RUN = 12
"""Documents that belong together: what was approved before one of them is in those before it."""
GROWING = 0.5
"""Share of the memories of another text that begin empty and grow with the document, as its own past does."""
PART_TOKENS = 3000
SAMPLE = 20_000
"""Decoder states by which keys start."""
Kind = Literal["past", "project", "random"]
KINDS: tuple[Kind, ...] = ("past", "project", "random")
LENGTHS = range(8, 46)
"""Sentences of a document that has a past to learn from, and is no book."""
MOST_DOCUMENTS = 60_000
COLUMNS = 1 << 20
FEWEST, COMMON = 3, 0.05
"""Two pieces that follow each other tell of a topic if so many documents have them, and no larger share of all."""
ALIKE = 0.06
"""Cosine that the documents of a run have at least, by their median, with the one that it was made for."""


class ParallelCorpus(Protocol):
    """Documents as ids: a prepared corpus, or anything like it. documents [D + 1]: the first sentence of each."""

    documents: np.ndarray

    def __len__(self) -> int: ...

    def document(self, index: int) -> range:
        """The numbers of its sentences."""

    def sentence(self, side: str, index: int) -> np.ndarray:
        """The ids of the source or target of a sentence."""


def runs_in_order(corpus: ParallelCorpus, documents: int) -> list[range]:
    """About so many documents that follow each other, in runs that are evenly spread over the corpus."""
    count = max(1, min(documents, len(corpus)) // RUN)
    firsts = [number * len(corpus) // count for number in range(count)]
    return [range(first, min(first + RUN, len(corpus))) for first in firsts]


def related_runs(corpus: ParallelCorpus, count: int, size: int, seed: int) -> list[list[int]]:
    """At most `count` runs of `size` documents each, no document twice: one at random and those most like it, in random
    order. One that has no others like it gets no run."""
    sizes = np.diff(np.asarray(corpus.documents))
    usable = np.flatnonzero((sizes >= LENGTHS.start) & (sizes < LENGTHS.stop))
    usable = usable[:: max(1, len(usable) // MOST_DOCUMENTS)]
    vectors = _vectors(corpus, usable)
    chance = random.Random(seed)
    free = np.ones(len(usable), dtype=bool)
    runs: list[list[int]] = []
    for start in chance.sample(range(len(usable)), len(usable)):
        if len(runs) == count or free.sum() < size:
            break
        if not free[start]:
            continue
        alike = np.where(free, (vectors @ vectors[start].T).toarray()[:, 0], -1.0)
        nearest = np.argsort(-alike, kind="stable")[:size]
        if alike[nearest[size // 2]] < ALIKE:
            continue
        free[nearest] = False
        runs.append(chance.sample(usable[nearest].tolist(), size))
    return runs


def _vectors(corpus: ParallelCorpus, documents: np.ndarray) -> csr_matrix:
    """[documents, COLUMNS] of length one: how often an expression occurs, weighed by how few documents have it."""
    rows, columns, counts = [], [], []
    for row, document in enumerate(documents.tolist()):
        sentences = corpus.document(document)
        ids = np.concatenate([corpus.sentence("source", index) for index in sentences]).astype(np.int64)
        found, times = np.unique((ids[:-1] * 40_503 + ids[1:]) % COLUMNS, return_counts=True)
        rows.append(np.full(len(found), row))
        columns.append(found)
        counts.append(times)
    column = np.concatenate(columns)
    having = np.bincount(column, minlength=COLUMNS)
    kept = (having >= FEWEST) & (having <= max(FEWEST, COMMON * len(documents)))
    has_weight = kept[column]
    weights = (1 + np.log(np.concatenate(counts)[has_weight])) * np.log(len(documents) / having[column[has_weight]])
    places = np.concatenate(rows)[has_weight], column[has_weight]
    table = csr_matrix((weights.astype(np.float32), places), (len(documents), COLUMNS))
    lengths = np.sqrt(np.asarray(table.multiply(table).sum(1)))[:, 0]
    return (diags(1 / np.maximum(lengths, 1e-9)) @ table).tocsr()


@dataclass(frozen=True)
class Sentence:
    """What the sentence model says of one pair; W + 1 steps, the last of which predicts the end.

    approved: what others may point at; its keys are also what its own steps ask with
    final [W + 1, d] in half precision; normaliser, highest [W + 1]: of the logits
    """

    source: Sequence[int]
    labels: Tensor
    previous: Tensor
    final: Tensor
    normaliser: Tensor
    highest: Tensor
    approved: ApprovedKeys


@dataclass(frozen=True)
class Steps:
    """T steps that have something to read: features [T, f] of what they find, and the probabilities [T] that the model
    (own, as a logarithm) and the places found (said) give to the reference."""

    features: Tensor
    own: Tensor
    said: Tensor

    def __getitem__(self, rows: Tensor) -> Steps:
        return Steps(self.features[rows], self.own[rows], self.said[rows])

    @classmethod
    def of_all(cls, parts: Sequence[Steps]) -> Steps:
        return cls(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def gain(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Nats gained [T] with the shares of these logits [T, 1], and the shares."""
        share = logits.sigmoid()[:, 0]
        mixed = (1 - share) * self.own.exp() + share * self.said
        return mixed.clamp_min(1e-9).log() - self.own.clamp_min(-20.0), share


class SimulatedTranslator:
    """A translator who has confirmed the references of documents one after the other, in runs that belong together.

    start: the pointer's keys start from these documents; advance: is called for each document that was read.
    """

    def __init__(
        self,
        sentence: SentenceModel,
        pipeline: TextPipeline,
        pointer: MemoryPointer,
        stage: MemoryStageSection,
        corpus: ParallelCorpus,
        runs: Sequence[Sequence[int]],
        *,
        start: bool = False,
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        self.sentence, self.pipeline, self.stage = sentence, pipeline, stage
        weight, bias = sentence.output()
        self.weight, self.bias = weight.detach(), bias.detach()
        if start:
            pointer.start_from(self._sample([(corpus, d) for run in runs for d in run]))
        self.runs = [[self._read(corpus, d, pointer, advance) for d in run] for run in runs]
        self.places = [(run, d) for run in range(len(runs)) for d in range(len(self.runs[run]))]

    def __len__(self) -> int:
        return len(self.places)

    def steps(self, pointer: MemoryPointer, document: int, kind: Kind, chance: random.Random) -> Steps | None:
        """The steps of a document that have anything to read; None if none has."""
        run, index = self.places[document]
        current = self.runs[run][index]
        memory = self._memory(run, index, kind, chance)
        first = len(memory)
        if kind == "random" and chance.random() < GROWING:
            first = 0
        pool = memory if kind == "random" else [*memory, *current]
        search = Sentences([sentence.source for sentence in pool])
        sentences, readers = [], []
        for position, sentence in enumerate(current):
            visible = range(min(len(pool), first + position))
            numbers = search.nearest(sentence.source, pointer.section.candidates, visible)
            if numbers:
                sentences.append(sentence)
                distances = [float(len(visible) - 1 - number) for number in numbers]
                of_document = [kind != "random" and number >= len(memory) for number in numbers]
                readers.append(Reader(sentence.source, numbers, distances, of_document))
        if not readers:
            return None
        places = ApprovedPlaces([sentence.approved for sentence in pool], pointer).places(readers)
        assert places is not None
        layout = Layout.of([len(sentence.labels) for sentence in sentences], device=self.weight.device)
        queries = torch.cat([sentence.approved.keys for sentence in sentences])
        previous, labels, final, normaliser, highest = (
            torch.cat([getattr(sentence, name) for sentence in sentences])
            for name in ("previous", "labels", "final", "normaliser", "highest")
        )

        def look_up(ids: Tensor) -> LookedUp:
            kept = layout.padded_index
            logits = torch.einsum("td,tnd->tn", final.float(), self.weight[ids[kept]]) + self.bias[ids[kept]]
            found = logits.new_zeros(ids.shape).index_copy(0, kept, logits - normaliser[:, None])
            return LookedUp(found, highest.new_zeros(len(ids)).index_copy(0, kept, highest))

        found = pointer.find(layout.pad(queries), layout.pad(previous), places, look_up)
        kept = layout.padded_index
        said = (found.weights * (found.ids == layout.pad(labels).flatten()[:, None])).sum(-1)[kept]
        own = torch.cat([sentence.approved.expected for sentence in sentences])
        return Steps(found.features[kept], own, said)

    def _memory(self, run: int, document: int, kind: Kind, chance: random.Random) -> list[Sentence]:
        """What is approved before a document begins."""
        if kind == "past":
            return []
        if kind == "random" and len(self.runs) > 1:
            other = self.runs[chance.choice([number for number in range(len(self.runs)) if number != run])]
            start = chance.randrange(max(1, len(other) - self.stage.before))
            return [sentence for d in other[start : start + self.stage.before + 1] for sentence in d]
        before = self.runs[run][max(0, document - self.stage.before) : document]
        return [sentence for d in before for sentence in d]

    def _sample(self, documents: Sequence[tuple[ParallelCorpus, int]]) -> Tensor:
        """[n, d] decoder states of some of these documents."""
        few = documents[:: max(1, len(documents) // 60)]
        found = [states.attended for corpus, d in few for _, states, _ in self._decoded(_pairs(corpus, d))]
        every = torch.cat(found)
        return every[:: max(1, len(every) // SAMPLE)].float()

    def _read(
        self, corpus: ParallelCorpus, document: int, pointer: MemoryPointer, advance: Callable[[], None]
    ) -> list[Sentence]:
        pairs = _pairs(corpus, document)
        found: dict[int, Sentence] = {}
        for part, states, target in self._decoded(pairs):
            found.update(zip(part, self._sentences([pairs[i] for i in part], states, target, pointer), strict=True))
        advance()
        return [found[index] for index in range(len(pairs))]

    @torch.inference_mode()
    def _decoded(self, pairs: Sequence[Pair]) -> Iterator[tuple[list[int], DecoderStates, Target]]:
        order = sorted(range(len(pairs)), key=lambda index: len(pairs[index][1]))
        device = self.weight.device
        while order:
            count = max(1, PART_TOKENS // (len(pairs[order[0]][1]) + 1))
            part, order = order[:count], order[count:]
            source = pack_source([pairs[index][0] for index in part]).to(device)
            packed, labels = pack_target([pairs[index][1] for index in part])
            target = packed.to(device)
            encoded = self.sentence.encode(source.tokens, source.layout)
            states = self.sentence.decode(target.tokens, target.layout, encoded, source.layout)
            yield part, states, (target.tokens, labels.to(device), target.layout.host_lengths)

    @torch.inference_mode()
    def _sentences(
        self, pairs: Sequence[Pair], states: DecoderStates, target: Target, pointer: MemoryPointer
    ) -> Iterator[Sentence]:
        tokens, labels, lengths = target
        logits = torch.addmm(self.bias, states.final, self.weight.t()).float()
        normaliser = logits.logsumexp(-1)
        highest, favourite = logits.max(-1)
        own = logits.gather(1, labels[:, None])[:, 0] - normaliser
        columns = (
            labels, tokens, states.final.half(), normaliser, highest - normaliser, pointer.keys(states), own, favourite,
        )  # fmt: skip
        split = zip(*(column.split(lengths) for column in columns), strict=True)
        for (source, words), (said, read, final, total, best, keys, expected, wanted) in zip(pairs, split, strict=True):
            approved = ApprovedKeys.of(keys, expected, wanted, source, words, self.pipeline.continuing(words, "target"))
            yield Sentence(source, said, read, final, total, best, approved)


Pair = tuple[list[int], list[int]]
"""Source and target of a sentence."""
Target = tuple[Tensor, Tensor, list[int]]
"""Words read and words to be said at all steps, and how many steps each sentence has."""


def _pairs(corpus: ParallelCorpus, document: int) -> list[Pair]:
    return [
        (corpus.sentence("source", index).tolist(), corpus.sentence("target", index).tolist())
        for index in corpus.document(document)
    ]
