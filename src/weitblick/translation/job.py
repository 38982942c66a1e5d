"""A document in translation, some sentences at a time, so that others may have the model in between."""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from weitblick.batches.batch import pack_target
from weitblick.documents.document import Document
from weitblick.model.context import Context
from weitblick.model.document_model import DocumentModel
from weitblick.model.sources import Sources
from weitblick.model.words import Pointer
from weitblick.sentence.sentence_model import SentenceModel
from weitblick.translation.beam import Hypothesis, SearchOptions
from weitblick.translation.kept import KeptStates
from weitblick.translation.options import TranslationOptions
from weitblick.translation.passes import batches_by_length, pointing, search_batch
from weitblick.translation.portions import blocks, groups
from weitblick.translation.translation_states import TranslationStates
from weitblick.translation.translator import Translator
from weitblick.translation.units import Translation, Unit, join_documents, split_documents
from weitblick.translation.verification import (
    Verification,
    changed_by_context,
    is_greedy,
    worth_verifying,
)

LIFTED, CLOSE = 0.5, 3.0
"""Nats by which approved translations must lift a word, and by which it may then still be behind the draft's, for the
draft to be searched again: with a beam, what is behind at one step may be before at the end."""

Finished = dict[int, tuple[Translation, ...]]
Found = dict[int, list[Hypothesis]]
_Heard = tuple[Sequence[int], Verification]
"""Units whose translations were read, and who listened."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class NewPair:
    """A pair that was approved after the drafts of a document were made. Where it is a sentence of that document,
    `index` says which, and `before` what stood there."""

    source: str
    target: str
    index: int | None = None
    before: str = ""


class DocumentJob:
    """The chosen sentences of one document, in the order of importance given (all of them in reading order without).

    Sources are encoded once, and every step translates some more sentences, with the whole document as context. What
    comes out is what `Translator.translations` gives, sentence by sentence.

    `pulled_only`: drafts are translated again only where approved translations put another word before one of theirs,
    the most pulled first; the others come out with no translation. That is for a model and a document that made these
    drafts, with more approved since. `new`: what that is, if it is known; then only its own words count, only in the
    sentences `concerned` (all without), and drafts that read a new sentence as context are looked at after these.
    """

    def __init__(
        self,
        translator: Translator,
        document: Document,
        options: TranslationOptions,
        order: Sequence[int] | None = None,
        kept: KeptStates | None = None,
        *,
        pulled_only: bool = False,
        new: Sequence[NewPair] = (),
        concerned: Collection[int] | None = None,
    ) -> None:
        self.translator, self.document, self.options = translator, document, options
        self.pulled_only, self.new, self.concerned = pulled_only, tuple(new), concerned
        self.kept = kept or KeptStates(0)
        self.order = list(range(len(document.sentences))) if order is None else list(dict.fromkeys(order))

    def steps(self) -> Iterator[Finished]:
        """After each step, the sentences that it finished, by index: their translations, best first, none where there
        was nothing to translate. Every chosen sentence comes exactly once."""
        units = split_documents([self.document], self.translator.pipeline, self.translator.warn)
        members: dict[int, list[int]] = {index: [] for index in self.order}
        for number, unit in enumerate(units):
            if unit.sentence in members and not unit.locked:
                members[unit.sentence].append(number)
        chosen = [index for index in self.order if members[index]]
        yield {index: () for index in self.order if not members[index]}
        if not chosen:
            return
        options = self.options.of(self.translator.model.sentence.generation)
        free = [number for index in chosen for number in members[index]]
        passes = _Passes(self.translator, units, options, self.kept)
        if not self.pulled_only:
            passes.point_for(free)
        yield from _pauses(passes.prepare(free))
        if not self.pulled_only:
            yield from self._search(chosen, passes, members, units, options.search)
            return
        concerned = [index for index in chosen if self.concerned is None or index in self.concerned]
        words, unpulled = self._new_words(), [index for index in chosen if index not in set(concerned)]
        for block in blocks(concerned):
            passes.point_for([number for index in block for number in members[index]])
            pulled = passes.pulled(block, members, words)
            unpulled += [index for index in block if index not in pulled]
            yield {}
            yield from self._search(pulled, passes, members, units, options.search)
        reading = yield from _pauses(passes.reading_otherwise(self._before(units)))
        again = [index for index in unpulled if not reading.isdisjoint(members[index])]
        yield {index: () for index in unpulled if index not in again}
        passes.point_for([number for index in again for number in members[index]])
        yield from self._search(again, passes, members, units, options.search)

    def _search(
        self,
        sentences: Sequence[int],
        passes: _Passes,
        members: dict[int, list[int]],
        units: Sequence[Unit],
        search: SearchOptions,
    ) -> Iterator[Finished]:
        for group in groups(sentences, members, units):
            found = passes.translate([number for index in group for number in members[index]], search)
            yield self._join(group, members, units, found)

    def _new_words(self) -> Tensor | None:
        """Ids of the words of new translations; None: of all that is approved."""
        if not self.new:
            return None
        pipeline = self.translator.pipeline
        ids = [word for words in pipeline.encode_target([pair.target for pair in self.new]) for word in words]
        return torch.tensor(sorted(set(ids)), device=next(self.translator.model.parameters()).device)

    def _before(self, units: Sequence[Unit]) -> dict[int, list[int]]:
        """Of the units of new sentences, the ids of what stood there before."""
        texts = {pair.index: pair.before for pair in reversed(self.new) if pair.index is not None}
        pipeline = self.translator.pipeline
        ids = dict(zip(texts, pipeline.encode_target(list(texts.values())), strict=True))
        places: dict[int, list[int]] = {}
        for number, unit in enumerate(units):
            if unit.sentence in ids:
                places[number] = ids.pop(unit.sentence)[: pipeline.longest_sentence]
        return places

    def _join(
        self, group: Sequence[int], members: dict[int, list[int]], units: Sequence[Unit], found: Found
    ) -> Finished:
        """The translations of whole sentences from those of their parts."""
        part = replace(self.document, sentences=tuple(self.document.sentences[index] for index in group))
        numbers = [(place, number) for place, index in enumerate(group) for number in members[index]]
        chosen = [replace(units[number], document=0, sentence=place) for place, number in numbers]
        hypotheses = [found[number] for _, number in numbers]
        (translated,) = join_documents([part], chosen, hypotheses, self.translator.pipeline)
        return dict(zip(group, translated.translations, strict=True))


class _Passes:
    """What all steps share: the states of all sources, and what the document offers as context."""

    def __init__(
        self, translator: Translator, units: Sequence[Unit], options: TranslationOptions, kept: KeptStates
    ) -> None:
        self.translator, self.model = translator, translator.model
        self.units, self.options, self.kept = units, options, kept
        device = next(self.model.parameters()).device
        places = [unit.document for unit in units], [unit.position for unit in units]
        self.sources = Sources([unit.source for unit in units], *places, device)
        self.approved = torch.tensor([unit.locked for unit in units], device=device)
        self.pointer: Pointer | None = None
        self.context: Context | None = None
        self.settled: Found = {}  # translations of a first pass that stand

    def point_for(self, chosen: Sequence[int]) -> None:
        """From now on these units, and no others, point at what is approved."""
        concerned = {*chosen, *(number for number, unit in enumerate(self.units) if unit.locked)}
        self.pointer = self.translator.pointer_for([self.units[number] for number in sorted(concerned)], self.options)
        self.context = pointing(None if self.context is None else replace(self.context, pointer=None), self.pointer)

    def prepare(self, chosen: Sequence[int]) -> Generator[None, None, None]:
        """Everything before the last pass over the chosen units, with a pause wherever others may come in."""
        self.states = yield from self._encoded(self.model.sentence)
        if not self.options.context:
            return
        if not self.model.reads_translations:
            with torch.no_grad():
                context = self.model.context_of(self.sources, self.states, approved=self.approved)
            self.context = pointing(context, self.pointer)
            return
        targets = yield from self._drafts()
        for number in range(2, self.options.passes + 1):
            given = [targets.get(unit, []) for unit in range(len(self.units))]
            heard: list[_Heard] | None = [] if self.settled and self.model.frozen is None else None
            self.context = pointing((yield from self._offered(given, heard)), self.pointer)
            if number == self.options.passes:  # the last pass is that of the steps
                yield from self._verify(given, heard)
                return
            for batch in self._batches(chosen):
                found = self._pass(self.model, batch, self.states, self.context, self.options.first_search)
                targets |= {unit: hypotheses[0].ids for unit, hypotheses in found.items()}
                yield

    def _verify(self, targets: Sequence[list[int]], heard: Sequence[_Heard] | None) -> Iterator[None]:
        """First translations that context would not change are settled; heard: who listened when these were read."""
        for changed in self._changed(targets) if heard is None else self._changed_as_heard(heard):
            for number in changed:
                self.settled.pop(number, None)
            yield

    def _changed(self, targets: Sequence[list[int]]) -> Iterator[list[int]]:
        if self.settled:
            before, greedy = pointing(None, self.pointer), is_greedy(self.options)
            yield from changed_by_context(self.model, self.sources, self.states, targets, before, self.context, greedy)

    def _changed_as_heard(self, heard: Sequence[_Heard]) -> Iterator[list[int]]:
        bank = None if self.context is None else self.context.bank
        for chosen, verification in heard:
            with torch.no_grad():
                yield [chosen[number] for number in verification.changed(bank)]

    def translate(self, chosen: Sequence[int], search: SearchOptions) -> Found:
        found: Found = {number: self.settled[number] for number in chosen if number in self.settled}
        for batch in self._batches([number for number in chosen if number not in self.settled]):
            found |= self._pass(self.model, batch, self.states, self.context, search)
        return found

    def _offered(
        self, targets: Sequence[list[int]], heard: list[_Heard] | None = None
    ) -> Generator[None, None, Context | None]:
        """The context that these translations are of each other; what one of them offers is computed once, unless
        somebody is to listen: `heard` gets those who did."""
        model, sources = self.model, self.sources
        if model.context is None:
            return None
        keys = [(id(model), *map(tuple, pair)) for pair in zip(sources.ids, targets, strict=True)]
        known = {}
        if heard is None:
            known = {number: states for number, key in enumerate(keys) if (states := self.kept.get(key)) is not None}
        missing = [number for number in range(len(sources)) if number not in known]
        lengths = sources.lengths[missing] + [len(targets[number]) + 1 for number in missing]
        for part in sources.parts(lengths):
            chosen = [missing[number] for number in part]
            for number, states in zip(chosen, self._offered_by(chosen, targets, heard), strict=True):
                known[number] = states
                self.kept.put(keys[number], states)
            yield
        offered = torch.cat([known[number] for number in range(len(sources))])
        width = offered.shape[1] // 2
        layout = sources.layout([len(target) + 1 for target in targets])
        with torch.no_grad():
            bank = model.context.prepare(offered[:, :width], offered[:, width:], layout)
        return Context(layout, bank, self.approved)

    @torch.no_grad()
    def _offered_by(
        self, chosen: Sequence[int], targets: Sequence[list[int]], heard: list[_Heard] | None
    ) -> Sequence[Tensor]:
        """Keys and values side by side [T, 2d] of each of these units."""
        places = [self.units[number].document for number in chosen], [self.units[number].position for number in chosen]
        part = Sources([self.sources.ids[number] for number in chosen], *places, self.sources.device)
        own = self.states.index_select(0, self.sources.rows(chosen))
        listener = None
        if heard is not None:
            found = [self.settled.get(number, []) for number in chosen]
            listener = Verification(self.model, part, found, is_greedy(self.options), self.pointer)
            heard.append((chosen, listener))
        states = TranslationStates(self.model, part, own, listener)
        return [torch.cat(pair, 1) for pair in states.offered([targets[number] for number in chosen])]

    def pulled(self, sentences: Sequence[int], members: dict[int, list[int]], words: Tensor | None = None) -> list[int]:
        """Those of the sentences whose drafts memory pulls at, to one of these words if they are given: first the one
        of those that are sure to change which is searched soonest, then the most pulled."""
        if self.pointer is None:
            return []
        numbers = [number for index in sentences for number in members[index]]
        known = [number for number in numbers if self.units[number].given]
        pulls = dict.fromkeys(numbers, math.inf) | dict(zip(known, self._pulls(known, words), strict=True))
        most = {index: max(pulls[number] for number in members[index]) for index in sentences}
        found = sorted((index for index in sentences if most[index] > -CLOSE), key=lambda index: -most[index])
        sure = [index for index in found if most[index] > 0]
        if sure:
            first = min(sure, key=lambda index: sum(len(self.units[number].source) for number in members[index]))
            found.remove(first)
            found.insert(0, first)
        return found

    @torch.no_grad()
    def _pulls(self, chosen: Sequence[int], wanted: Tensor | None) -> list[float]:
        """Of units with drafts, by how many nats a word that the pointer lifts comes before one of the draft's, at most
        (below zero: behind it): one pass over all words, no search."""
        if not chosen:
            return []
        source = self.sources.pack(chosen)
        places = [self.units[number].document for number in chosen], [self.units[number].position for number in chosen]
        target, labels = pack_target([self.units[number].given or [] for number in chosen], *places)
        states = self.states.index_select(0, self.sources.rows(chosen))
        read, _ = self.model.encode(source, self.context, states=states)
        target = target.to(self.sources.device)
        words = self.model.decode(target, read, source.layout, self.context, sparing=True).words
        labels = labels.to(self.sources.device)
        parts = []
        for rows in words.softmax.chunks():
            table, own, label = words.table(rows), words.own_table(rows), labels[rows][:, None]
            ids = torch.arange(table.shape[1], device=label.device) if wanted is None else wanted
            mixed = table[:, ids]
            lifted = (mixed > own[:, ids] + LIFTED) & (ids != label)
            parts.append(mixed.masked_fill(~lifted, -math.inf).amax(-1) - table.gather(1, label)[:, 0])
        steps = [len(self.units[number].given or []) + 1 for number in chosen]
        return [float(pull.max()) for pull in torch.cat(parts).split(steps)]

    def reading_otherwise(self, before: dict[int, list[int]]) -> Generator[None, None, set[int]]:
        """Units whose drafts context would change now that some units are not what they were `before`. Where context
        is read everywhere nearly every draft changes a little, and all are searched again."""
        if not before or not self.model.reads_translations or not self.options.context:
            return set()
        if self.model.decides is None:
            return set(range(len(self.units)))
        targets = [unit.given or [] for unit in self.units]
        then = yield from self._offered([before.get(number, target) for number, target in enumerate(targets)])
        now = None if self.context is None else replace(self.context, pointer=None)
        found: set[int] = set()
        for part in changed_by_context(self.model, self.sources, self.states, targets, then, now):
            found.update(part)
            yield
        return found

    def _encoded(self, model: SentenceModel) -> Generator[None, None, Tensor]:
        key = (id(model), tuple(map(tuple, self.sources.ids)))
        known = self.kept.get(key)
        if known is not None:
            return known
        parts = []
        for part in self.sources.parts(self.sources.lengths):
            with torch.no_grad():
                packed = self.sources.pack(part)
                parts.append(model.encode(packed.tokens, packed.layout))
            yield
        states = torch.cat(parts)
        self.kept.put(key, states)
        return states

    def _drafts(self) -> Generator[None, None, dict[int, list[int]]]:
        """Target ids of every unit: the ones given, or those of a first pass without context."""
        targets = {number: unit.given for number, unit in enumerate(self.units) if unit.given}
        first = self.model.first_pass()
        states = self.states if first is self.model else (yield from self._encoded(first.sentence))
        free = [number for number, unit in enumerate(self.units) if not unit.locked and number not in targets]
        for batch in self._batches(free):
            context = pointing(None, self.pointer) if first is self.model else None
            found = self._pass(first, batch, states, context, self.options.first_search)
            targets |= {number: hypotheses[0].ids for number, hypotheses in found.items()}
            if worth_verifying(self.model, self.options):
                self.settled |= found
            yield
        return targets

    def _pass(
        self, model: DocumentModel, batch: Sequence[int], states: Tensor, context: Context | None, search: SearchOptions
    ) -> Found:
        found = search_batch(model, self.sources, batch, states, context, self.options, search)
        return dict(zip(batch, found, strict=True))

    def _batches(self, chosen: Sequence[int]) -> Iterator[list[int]]:
        return batches_by_length(self.sources, chosen, max(1, self.options.batch_tokens // self.options.search.beam))


def _pauses(steps: Generator[None, None, Result]) -> Generator[Finished, None, Result]:
    """Steps that finish no sentence, and what comes of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        yield {}
