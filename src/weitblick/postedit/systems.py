"""The columns of a post-editing experiment: what each sentence has before it when it is translated.

`none` is the model as it is. Of the others every sentence sees approved pairs, which are references:

    approved   the sentences before it in its document
    project    and those of the documents before
    random     as many pairs as `project`, of other documents
    machine    the pairs of `project`, translated by the model itself instead of a human
    adapt      the sentences before it, each by one step of gradient descent on all weights, anew with each document
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

from weitblick.documents.document import Document
from weitblick.memory import Memory
from weitblick.memory.selection import Sentences
from weitblick.postedit.adaptation import LEARNING_RATE, Adaptation
from weitblick.translation.approvals import ApprovedPair, Origin, stored_candidates
from weitblick.translation.options import TranslationOptions
from weitblick.translation.progress import reporting
from weitblick.translation.translator import Translator, windows
from weitblick.translation.units import join_documents, split_documents
from weitblick.translation.window import translate_units

SYSTEMS = ("none", "approved", "project", "random", "machine", "adapt")
POINTING = ("approved", "project", "random", "machine")

Progress = Callable[[str, int], None]
Pairs = list[tuple[str, str]]
"""The sentences of a document with their translations."""


class Simulation:
    """Documents with references, translated under every system."""

    def __init__(
        self,
        translator: Translator,
        documents: Sequence[Document],
        options: TranslationOptions,
        *,
        memory: Memory | None = None,
        before: int = 5,
        seed: int = 1,
        rate: float = LEARNING_RATE,
        progress: Progress = lambda name, count: None,
    ) -> None:
        self.translator, self.documents, self.options = translator, documents, options
        self.memory, self.before, self.seed, self.rate, self.progress = memory, before, seed, rate, progress
        self.references: list[Pairs] = [[(s.source, s.target or "") for s in d.sentences] for d in documents]
        self._encoded: dict[str, list[int]] = {}
        self.random_order = random.Random(seed).sample(range(len(documents)), len(documents))

    def translate(self, name: str, machine: Sequence[Sequence[str]] | None = None) -> list[list[str]]:
        """The translations of every document under a system; `machine`: those of `none`."""
        if name == "none":
            return self._with_candidates(name, None)
        if name == "adapt":
            return self._adapted()
        pairs = self.references
        if name == "machine":
            assert machine is not None
            pairs = [
                [(source, target) for (source, _), target in zip(own, translated, strict=True)]
                for own, translated in zip(self.references, machine, strict=True)
            ]
        return self._with_candidates(name, pairs)

    def _with_candidates(self, name: str, pairs: Sequence[Pairs] | None) -> list[list[str]]:
        approvals = self.translator.approvals if pairs is not None else None
        found: list[list[str]] = []
        plain = [_without_targets(document) for document in self.documents]
        for window in windows(plain):
            first = len(found)
            units = split_documents(window, self.translator.pipeline, self.translator.warn)
            pointer = None
            if approvals is not None and pairs is not None:
                chosen = [
                    self._candidates(name, pairs, first + number, approvals.most) for number in range(len(window))
                ]
                candidates = [chosen[unit.document][unit.sentence] for unit in units]
                pointer = approvals.pointer_to(units, candidates, self.memory)
            with reporting(lambda count: self.progress(name, count)):
                hypotheses = translate_units(self.translator.model, units, self.options, pointer=pointer)
            translated = join_documents(window, units, hypotheses, self.translator.pipeline)
            found += [[sentence.target or "" for sentence in one.document.sentences] for one in translated]
        return found

    def work(self, name: str) -> int:
        """How many sentences a system has to translate, in all passes."""
        passes = self.options.passes if self.options.context and self.translator.model.reads_translations else 1
        return sum(map(len, self.references)) * (1 if name == "adapt" else passes)

    def _candidates(self, name: str, pairs: Sequence[Pairs], document: int, most: int) -> list[list[ApprovedPair]]:
        """What each sentence of a document may look at."""
        own = self.references[document]
        before = self._before(name, pairs, document)
        pool = before if name == "random" else [*before, *pairs[document]]
        search = Sentences([self._pieces(source) for source, _ in pool])
        origins = [Origin(*pair, sentence=None if n < len(before) else n - len(before)) for n, pair in enumerate(pool)]
        # A random memory grows with that of `project`, sentence by sentence.
        first, last = (self._earlier(document), len(pool)) if name == "random" else (len(before), math.inf)
        seen = [int(min(last, first + index)) for index in range(len(own))]
        kept = stored_candidates(self.memory, [source for source, _ in own], most, seen)
        rows = []
        for (source, _), visible, stored in zip(own, seen, kept, strict=True):
            room = max(most // 2, most - len(stored))
            numbers = search.nearest(self._pieces(source), room, range(visible))
            near = [ApprovedPair(*pool[n], float(visible - 1 - n), origins[n]) for n in numbers]
            usable = [candidate for candidate in near if candidate.source.strip() and candidate.target.strip()]
            rows.append(usable + stored[: most - len(usable)])
        return rows

    def _pieces(self, source: str) -> list[int]:
        """What candidates are looked for by, as in translating and in training."""
        if source not in self._encoded:
            self._encoded[source] = self.translator.pipeline.encode_source([source])[0]
        return self._encoded[source]

    def _before(self, name: str, pairs: Sequence[Pairs], document: int) -> Pairs:
        first = max(0, document - self.before)
        if name == "approved":
            return []
        if name != "random":
            return [pair for number in range(first, document) for pair in pairs[number]]
        wanted = self._earlier(document) + len(pairs[document]) - 1
        strangers: Pairs = []
        for number in self._strangers(document):
            if len(strangers) >= wanted:
                break
            strangers += pairs[number]
        return strangers[: max(0, wanted)]

    def _earlier(self, document: int) -> int:
        """Pairs that a project has when a document begins."""
        return sum(len(self.references[number]) for number in range(max(0, document - self.before), document))

    def _strangers(self, document: int) -> list[int]:
        """Documents that do not belong to the project of one, in random order, beginning at another place for each;
        those that follow it, which may be of the same debate, only after all others."""
        place = self.random_order.index(document)
        others = self.random_order[place + 1 :] + self.random_order[:place]
        far = [n for n in others if not document - self.before <= n <= document + self.before]
        return far + [n for n in others if document < n <= document + self.before]

    def without_strangers(self) -> int:
        """Documents for which `random` has nothing to read."""
        return sum(not self._strangers(number) for number in range(len(self.documents)))

    def _adapted(self) -> list[list[str]]:
        """One step of gradient descent after each sentence, with its reference. Of a memory, the pairs that are best
        for the sentences of a document come first."""
        adaptation = Adaptation(self.translator, self.options, self.rate)
        found = []
        for document in self.documents:
            translated = []
            for text in adaptation.translate(document, self._best_of_memory(document)):
                translated.append(text)
                self.progress("adapt", 1)
            found.append(translated)
        return found

    def _best_of_memory(self, document: Document) -> Pairs:
        if self.memory is None:
            return []
        best = self.memory.candidates(list(document.sources), 1)
        return list(dict.fromkeys((pair.source, pair.target) for pairs in best for pair in pairs))


def _without_targets(document: Document) -> Document:
    return Document(document.id, tuple(type(s)(s.source) for s in document.sentences), document.metadata)


def chosen_systems(names: str | None) -> list[str]:
    """The systems named, in the order of the table; `none` is always among them."""
    from weitblick.errors import UserError

    wanted = set(SYSTEMS) if names is None else {name.strip() for name in names.split(",") if name.strip()}
    if unknown := sorted(wanted - set(SYSTEMS)):
        raise UserError(f"unknown system {unknown[0]!r}", where="--systems", remedy=f"use {', '.join(SYSTEMS)}")
    return [name for name in SYSTEMS if name in wanted | {"none"}]


Translated = Mapping[str, Sequence[Sequence[str]]]
