"""Approved translations for the sentences at hand: which are worth a look, and their keys, computed once for each pair.

What is approved are the locked sentences of a document and the pairs of a memory. Of these every sentence gets a few
candidates by the words they share; the pointer (`memory.pointer`) then chooses among their words at every step.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakSet

import numpy as np
import torch

from weitblick.common.errors import UserError
from weitblick.common.recipe import MemorySection
from weitblick.memory.bounds import MOST_NEEDED, source_words, target_words
from weitblick.memory.keys import ApprovedKeys, Place, Reader
from weitblick.memory.matches import Pair, Sentences
from weitblick.memory.pointer import MemoryPointer
from weitblick.memory.reading_pointer import Approved, ApprovedSentence, approved_keys
from weitblick.memory.store import Memory
from weitblick.model.batch import pack_pairs
from weitblick.model.document_model import DocumentModel
from weitblick.text.base import TextPipeline
from weitblick.text.units import Unit

NO_POINTER = "this model cannot use approved translations: it has no pointer to them"
HOW_TO_TRAIN = "train one: weitblick train recipes/imported/memory.yaml stage1=MODEL data.train=... data.dev=..."
Borrow = Callable[[], MemoryPointer | None]
"""A pointer for a model that has none; None where there is nothing to take over."""
KEY_FORMAT = b"6"
"""Of what is stored with a pair: `_packed`."""
MOST_KEPT = 5000
"""Pairs whose keys stay in RAM."""
MOST_NEARER = 20
"""Approvals of a document that stand before those of a memory: how many more there are says nothing."""
TURNED = 1.0
"""Nats a token by which pairs are more probable the other way round, if they run that way."""
FEWEST_TOKENS, STRANGE, SURE = 40, 0.72, 0.25
"""Targets of so many tokens that are hardly more probable than chance (this share of its nats), though the model knows
well what it would say, are in another language. With the shipped model German news has .33 of them, German terms
without a sentence .54, French and English .81 and more."""


@dataclass(frozen=True)
class Origin:
    """Where a fetched word can come from: an approved pair of a memory, or a locked sentence of the document."""

    source: str
    target: str
    pair: int | None = None
    sentence: int | None = None
    name: str = ""


@dataclass(frozen=True)
class ApprovedPair:
    """An approved pair that a sentence may look at, and how far away its approval is: 0 is the nearest."""

    origin: Origin
    distance: float

    @property
    def text(self) -> tuple[str, str]:
        """Source and target."""
        return self.origin.source, self.origin.target

    @property
    def own(self) -> bool:
        """Whether it belongs to the document of the sentence."""
        return self.origin.sentence is not None


class Approvals:
    """Makes the pointer of some sentences. One for each loaded model: it keeps the keys that it has computed. borrow:
    what gives a model without a pointer one, the first time that it is needed."""

    def __init__(self, model: DocumentModel, pipeline: TextPipeline, borrow: Borrow | None = None) -> None:
        if model.pointer is None and borrow is None:
            raise UserError(NO_POINTER, remedy=HOW_TO_TRAIN)
        self.model, self.pipeline = model, pipeline
        self._borrow, self._borrowed = borrow, False
        self._kept: OrderedDict[tuple[str, str], ApprovedKeys] = OrderedDict()
        self._fingerprint: str | None = None
        self._checked: WeakSet[Memory] = WeakSet()

    @property
    def pointer(self) -> MemoryPointer:
        """The model's own, or what it has borrowed."""
        if self.model.pointer is None:
            raise UserError(NO_POINTER, remedy=HOW_TO_TRAIN)
        pointer: MemoryPointer = self.model.pointer
        return pointer

    def ready(self) -> bool:
        """Whether there is a pointer. A model without one borrows it."""
        if self.model.pointer is None and self._borrow is not None:
            self.model.pointer = self._borrow()
            self._borrowed = self.model.pointer is not None
        return self.model.pointer is not None

    @property
    def most(self) -> int:
        """Candidates that a sentence gets at most."""
        section: MemorySection = MemorySection() if self.model.pointer is None else self.pointer.section
        return section.candidates

    def pointer_for(self, units: Sequence[Unit], memory: Memory | None = None, locked: bool = True) -> Approved | None:
        """What the free ones of these units may point at: the memory and, if wanted, the locked units of their
        documents; None where nothing is approved."""
        if memory is not None and memory not in self._checked:
            self.check(memory.sample())
            self.trust(memory)
        approved: dict[int, list[Unit]] = {}
        for unit in units:
            if locked and unit.locked and unit.given:
                approved.setdefault(unit.document, []).append(unit)
        if not approved and (memory is None or not len(memory)):
            return None
        if not self.ready() and memory is None:
            return None
        near = {document: Sentences([unit.source for unit in own]) for document, own in approved.items()}
        free = [unit for unit in units if not unit.locked]
        stored = stored_candidates(
            memory, [unit.text for unit in free], self.most, [len(approved.get(unit.document, [])) for unit in free]
        )
        candidates = [
            self._candidates(unit, approved.get(unit.document, []), near.get(unit.document), own)
            for unit, own in zip(free, stored, strict=True)
        ]
        return self.pointer_to(free, candidates, memory)

    def trust(self, memory: Memory) -> None:
        """A memory whose direction is known: what people confirm, sentence by sentence, is not judged."""
        self._checked.add(memory)

    def pointer_to(
        self, units: Sequence[Unit], candidates: Sequence[Sequence[ApprovedPair]], memory: Memory | None = None
    ) -> Approved | None:
        """The pointer of sentences whose candidates are known."""
        numbers: dict[tuple[str, str], int] = {}
        origins: list[Origin] = []
        readers: dict[Place, Reader] = {}
        for unit, offered in zip(units, candidates, strict=True):
            own = _without_conflicts(offered)
            for candidate in own:
                if candidate.text not in numbers:
                    numbers[candidate.text] = len(numbers)
                    origins.append(candidate.origin)
            readers[unit.document, unit.position] = Reader(
                unit.source, [numbers[c.text] for c in own], [c.distance for c in own], [c.own for c in own]
            )
        if not numbers:
            return None
        keys = self._keys(list(numbers), origins, memory)
        stems = [source_words(self.pipeline, own.source).stems for own in keys]
        bounded = {}
        for unit in units:
            place, present = (unit.document, unit.position), frozenset(source_words(self.pipeline, unit.source).stems)
            bounded[place] = _bounded(readers[place], keys, stems, present)
        return Approved(self.pointer, keys, bounded, origins)

    def _candidates(
        self, unit: Unit, locked: Sequence[Unit], near: Sentences | None, stored: Sequence[ApprovedPair]
    ) -> list[ApprovedPair]:
        """The best of the document and of a memory, half of the places for each as long as there are enough."""
        room = max(self.most // 2, self.most - len(stored))
        own = [locked[number] for number in near.nearest(unit.source, room)] if near is not None else []
        found = [
            ApprovedPair(
                Origin(one.text, one.target or "", sentence=one.sentence),
                float(abs(one.position - unit.position) - 1),
            )
            for one in own
        ]
        known = {one.text for one in found}  # a memory may hold what the document has approved
        return found + [one for one in stored if one.text not in known][: self.most - len(found)]

    def _keys(
        self, pairs: Sequence[tuple[str, str]], origins: Sequence[Origin], memory: Memory | None
    ) -> list[ApprovedKeys]:
        missing = [number for number, pair in enumerate(pairs) if pair not in self._kept]
        if self._borrowed:  # its keys are of this process only
            memory = None
        if memory is not None and memory.folder is not None:
            missing = self._stored(missing, pairs, origins, memory)
        self._compute(missing, pairs)
        if memory is not None and memory.folder is not None:
            new = {id: _packed(self._kept[pairs[n]]) for n in missing if (id := origins[n].pair) is not None}
            if new:
                memory.store_keys(new, self.fingerprint)
        found = [self._kept[pair] for pair in pairs]
        for pair in pairs:
            self._kept.move_to_end(pair)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    def _stored(
        self, missing: Sequence[int], pairs: Sequence[tuple[str, str]], origins: Sequence[Origin], memory: Memory
    ) -> list[int]:
        """Takes what an earlier process has computed; gives what is still missing."""
        by_id = {id: number for number in missing if (id := origins[number].pair) is not None}
        for id, data in memory.keys(list(by_id), self.fingerprint).items():
            self._kept[pairs[by_id[id]]] = _unpacked(data, self.pointer.section.dimension)
        return [number for number in missing if pairs[number] not in self._kept]

    def _compute(self, numbers: Sequence[int], pairs: Sequence[tuple[str, str]]) -> None:
        longest = self.pipeline.longest_sentence
        sources = self.pipeline.encode_source([pairs[number][0] for number in numbers])
        targets = self.pipeline.encode_target([pairs[number][1] for number in numbers])
        approved = [
            self._approved(source[:longest], target[:longest]) for source, target in zip(sources, targets, strict=True)
        ]
        language = self.pipeline.target_language
        computed = approved_keys(self.model.sentence, self.pointer, approved, language)
        for number, keys in zip(numbers, computed, strict=True):
            self._kept[pairs[number]] = keys

    def _approved(self, source: list[int], target: list[int]) -> ApprovedSentence:
        words = source_words(self.pipeline, source), target_words(self.pipeline, target)
        return ApprovedSentence(source, target, self.pipeline.continuing(target, "target"), *words)

    @property
    def fingerprint(self) -> str:
        """Tells models apart whose keys differ."""
        if self._fingerprint is None:
            digest = hashlib.sha256(KEY_FORMAT)
            for part in (self.model.sentence, self.pointer.key):
                for parameter in part.parameters():
                    digest.update(parameter.detach().cpu().float().numpy().tobytes())
            self._fingerprint = digest.hexdigest()[:32]
        return self._fingerprint

    def check(self, pairs: Sequence[tuple[str, str, str]]) -> None:
        """Pairs (source, target, where) that run the other way, or whose targets are in another language, are refused,
        as far as the model can tell."""
        here, there = self.pipeline.source_language, self.pipeline.target_language
        given = self._likelihood([(source, target) for source, target, _ in pairs])
        if given is None:
            return
        turned = self._likelihood([(target, source) for source, target, _ in pairs])
        where = pairs[0][2] or "the memory"
        if turned is not None and turned.said > given.said + TURNED:
            raise UserError(
                f"runs the other way: the model translates from {here} to {there}",
                where=where,
                remedy="give a memory of that direction",
            )
        chance = math.log(len(self.model.sentence.output()[1]))
        if given.tokens >= FEWEST_TOKENS and given.said < -STRANGE * chance < -SURE * chance < given.expected:
            raise UserError(
                f"its translations are no translations from {here} to {there}, as far as the model can tell",
                where=where,
                remedy=f"give a memory of pairs from {here} to {there}",
            )

    @torch.no_grad()
    def _likelihood(self, pairs: Sequence[tuple[str, str]]) -> _Likelihood | None:
        """How probable the model finds the targets of some pairs; None if no pair has words on both sides."""
        longest = self.pipeline.longest_sentence
        encoded = [
            (source[:longest], target[:longest])
            for source, target in zip(
                self.pipeline.encode_source([s for s, _ in pairs]),
                self.pipeline.encode_target([t for _, t in pairs]),
                strict=True,
            )
            if source and target
        ]
        if not encoded:
            return None
        device = next(self.model.parameters()).device
        packed = pack_pairs([s for s, _ in encoded], [t for _, t in encoded]).to(device)
        states = self.model.sentence.encode(packed.source.tokens, packed.source.layout)
        words = self.model.decode(packed.target, states, packed.source.layout).words
        own = words.look_up(packed.labels[:, None])
        said, expected = own.log_probabilities, own.highest
        return _Likelihood(len(said), float(said.mean()), float(expected.mean()))


@dataclass(frozen=True)
class _Likelihood:
    """Of so many target tokens: mean log-probabilities of what is said, and of what the model would have said."""

    tokens: int
    said: float
    expected: float


def _bounded(
    reader: Reader, keys: Sequence[ApprovedKeys], stems: Sequence[Sequence[str]], present: frozenset[str]
) -> Reader:
    """A reader that takes words only from places whose source words its sentence has, by their stems; one without any
    such place reads nothing."""
    opened = [keys[number].open_to(stems[number], present) for number in reader.numbers]
    if not any(own.any() for own in opened):
        return Reader(reader.source, (), (), (), closed=bool(reader.numbers))
    return replace(reader, open=opened)


def _without_conflicts(candidates: Sequence[ApprovedPair]) -> list[ApprovedPair]:
    """Of several translations of one sentence the nearest: the others have been given up."""
    nearest: dict[str, ApprovedPair] = {}
    for one in candidates:
        source = one.origin.source
        if source not in nearest or one.distance < nearest[source].distance:
            nearest[source] = one
    return list(nearest.values())


def stored_candidates(
    memory: Memory | None, sources: Sequence[str], most: int, nearer: Sequence[int]
) -> list[list[ApprovedPair]]:
    """Pairs of a memory for each sentence, the latest nearest; what its own document has approved (`nearer`, how many)
    is before."""
    if memory is None:
        return [[] for _ in sources]
    return [
        _by_rank(pairs, min(before, MOST_NEARER))
        for pairs, before in zip(memory.candidates(sources, most), nearer, strict=True)
    ]


def _by_rank(pairs: Sequence[Pair], nearer: int) -> list[ApprovedPair]:
    order = {pair.id: number for number, pair in enumerate(sorted(pairs, key=lambda pair: -pair.rank))}
    return [
        ApprovedPair(Origin(pair.source, pair.target, pair.id, name=pair.origin), float(nearer + order[pair.id]))
        for pair in pairs
    ]


def _packed(keys: ApprovedKeys) -> bytes:
    """How long source and target are; words as 32-bit, `inside` and keys as 8-bit integers, what a level of these is
    worth as a 32-bit float, `expected` as 16-bit ones, the source words needed as 16-bit integers."""
    assert keys.needed is not None
    columns = (
        np.asarray(keys.source, dtype="<i4"),
        np.asarray(keys.words, dtype="<i4"),
        np.asarray(keys.inside, dtype=np.uint8),
        keys.levels.cpu().numpy(),
        keys.level.cpu().numpy().astype("<f4"),
        keys.expected.detach().cpu().numpy().astype("<f2"),
        keys.favourite.detach().cpu().numpy().astype("<i4"),
        keys.needed.astype("<i2"),
    )
    counts = np.asarray([len(keys.source), len(keys.words)], dtype="<i4")
    return b"".join(column.tobytes() for column in (counts, *columns))


def _unpacked(data: bytes, dimension: int) -> ApprovedKeys:
    before, count = (int(number) for number in np.frombuffer(data, "<i4", 2))
    kinds = ("<i4", "<i4", "u1", "i1", "<f4", "<f2", "<i4", "<i2")
    places = count + 1
    sizes = (before, count, count, places * dimension, places, places, places, places * MOST_NEEDED)
    parts: list[np.ndarray] = []
    start = 8
    for kind, size in zip(kinds, sizes, strict=True):
        parts.append(np.frombuffer(data, kind, size, start))
        start += parts[-1].nbytes
    source, words, inside, levels, level, expected, favourite, needed = parts
    return ApprovedKeys(
        torch.from_numpy(levels.reshape(count + 1, dimension).copy()),
        torch.from_numpy(level.astype(np.float32)),
        torch.from_numpy(expected.astype(np.float32)),
        torch.from_numpy(favourite.astype(np.int64)),
        source.tolist(),
        words.tolist(),
        inside.astype(bool).tolist(),
        needed.reshape(places, MOST_NEEDED),
    )
