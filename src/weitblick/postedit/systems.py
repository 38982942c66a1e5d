"""The columns of a post-editing experiment: what each sentence has before it when it is translated.

`none` is the model as it is. Of the others every sentence sees approved pairs, which are references:

    approved   the sentences before it in its document
    project    and those of the documents before
    random     as many pairs as `project`, of other documents
    machine    the pairs of `project`, translated by the model itself instead of a human
    adapt      the sentences before it, each by one step of gradient descent on all weights, anew with each document
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from weitblick.batches.batch import pack_pairs
from weitblick.documents.document import Document
from weitblick.memory import Memory
from weitblick.memory.selection import Sentences
from weitblick.model.approved import Place
from weitblick.translation.approvals import ApprovedPair, Origin, stored_candidates
from weitblick.translation.options import TranslationOptions
from weitblick.translation.translator import Translator, windows
from weitblick.translation.units import join_documents, split_documents
from weitblick.translation.window import translate_units

SYSTEMS = ("none", "approved", "project", "random", "machine", "adapt")
POINTING = ("approved", "project", "random", "machine")
LEARNING_RATE = 0.01
"""Of `adapt`: plain gradient descent on the mean negative log-likelihood of an approved sentence."""

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
        self.memory, self.before, self.rate, self.progress = memory, before, rate, progress
        self.references: list[Pairs] = [[(s.source, s.target or "") for s in d.sentences] for d in documents]
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
                wanted: dict[Place, list[ApprovedPair]] = {}
                for number in range(len(window)):
                    members = [unit for unit in units if unit.document == number]
                    chosen = self._candidates(name, pairs, first + number, approvals.most)
                    wanted |= {(number, unit.position): chosen[unit.sentence] for unit in members}
                pointer = approvals.pointer_to(wanted, self.memory)
            hypotheses = translate_units(self.translator.model, units, self.options, pointer=pointer)
            translated = join_documents(window, units, hypotheses, self.translator.pipeline)
            for one in translated:
                found.append([sentence.target or "" for sentence in one.document.sentences])
                self.progress(name, len(found[-1]))
        return found

    def _candidates(self, name: str, pairs: Sequence[Pairs], document: int, most: int) -> list[list[ApprovedPair]]:
        """What each sentence of a document may look at."""
        own = self.references[document]
        before = self._before(name, pairs, document)
        pool = before if name == "random" else [*before, *pairs[document]]
        search = Sentences([source.split() for source, _ in pool])
        rows = []
        for index, (source, _) in enumerate(own):
            # A random memory is as large as that of `project`, and as new.
            visible = len(pool) if name == "random" else len(before) + index
            stored = stored_candidates(self.memory, source, most, visible)
            room = max(most // 2, most - len(stored))
            numbers = search.nearest(source.split(), room, range(visible))
            near = [ApprovedPair(*pool[n], float(visible - 1 - n), Origin(*pool[n])) for n in numbers]
            usable = [candidate for candidate in near if candidate.source.strip() and candidate.target.strip()]
            rows.append(usable + stored[: most - len(usable)])
        return rows

    def _before(self, name: str, pairs: Sequence[Pairs], document: int) -> Pairs:
        first = max(0, document - self.before)
        if name == "approved":
            return []
        if name != "random":
            return [pair for number in range(first, document) for pair in pairs[number]]
        wanted = sum(len(pairs[number]) for number in range(first, document)) + len(pairs[document]) - 1
        far = (n for n in self._strangers(document) if not first <= n <= document + self.before)
        strangers: Pairs = []
        for number in far:
            if len(strangers) >= wanted:
                break
            strangers += pairs[number]
        return strangers[: max(0, wanted)]

    def _strangers(self, document: int) -> Iterator[int]:
        """All documents in random order, beginning at another place for each document."""
        place = self.random_order.index(document)
        return iter(self.random_order[place + 1 :] + self.random_order[:place])

    def _adapted(self) -> list[list[str]]:
        """One step of gradient descent after each sentence, with its reference."""
        original = self.translator.model
        found = []
        for document in self.documents:
            model = copy.deepcopy(original)
            adapted = Translator(model, self.translator.pipeline, warn=self.translator.warn)
            translated = []
            for sentence in document.sentences:
                alone = Document(document.id, (type(sentence)(sentence.source),))
                translated.append(adapted.translate_window([alone], self.options)[0].document.sentences[0].target or "")
                self._step(adapted, sentence.source, sentence.target or "")
            found.append(translated)
            self.progress("adapt", len(translated))
        return found

    def _step(self, translator: Translator, source: str, target: str) -> None:
        pipeline, model = translator.pipeline, translator.model
        longest = pipeline.longest_sentence
        ids = pipeline.encode_source([source])[0][:longest], pipeline.encode_target([target])[0][:longest]
        if not all(ids):
            return
        device = next(model.parameters()).device
        pairs = pack_pairs([ids[0]], [ids[1]]).to(device)
        with torch.enable_grad():
            memory = model.sentence.encode(pairs.source.tokens, pairs.source.layout)
            words = model.decode(pairs.target, memory, pairs.source.layout).words
            loss, _ = words.loss(pairs.labels, 0.0)
            parameters = list(model.sentence.parameters())
            gradients = torch.autograd.grad(loss / len(pairs.labels), parameters, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                if gradient is not None:
                    parameter.sub_(self.rate * gradient)


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
