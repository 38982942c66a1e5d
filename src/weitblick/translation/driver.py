"""The passes over documents: how sentences are translated with the rest of their documents in view.

A model that reads sources, or nothing but the sentence, goes over the sentences once. One that reads translations:

1. encodes all sources;
2. translates every sentence without context; sentences that have a draft keep that for now;
3. takes the translations so far, and what is approved, as context;
4. verifies which translations this context would change (`verification`; where context is read everywhere: all);
5. searches these again, with context. Steps 3 to 5 make one more pass; as a rule there is one of them.

`Passes.steps` does this as a generator, a batch at a time: `translate` drains it, the server lets others have the model
between two steps (`document_job`), and a stream feeds it one sentence with the context that it has kept. What is
approved is read through the pointer in every pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from weitblick.common.errors import UserError
from weitblick.model.concatenation import SOURCE_SEPARATOR, Concatenation
from weitblick.model.context import Context, Sources
from weitblick.model.document_model import DocumentModel
from weitblick.model.output import Pointer
from weitblick.text.units import Unit
from weitblick.translation.beam import Hypothesis, SearchOptions
from weitblick.translation.decision_bounds import DecisionBounds
from weitblick.translation.kept_states import BestStates, KeptStates, TranslationStates, encode_sources
from weitblick.translation.options import TranslationOptions
from weitblick.translation.searching import (
    batches_by_length,
    concatenated_units,
    current_only,
    report,
    reporting,
    search_batch,
    without_separators,
)
from weitblick.translation.verification import Verification, changed_by_context, is_greedy, worth_verifying

if TYPE_CHECKING:
    from weitblick.translation.address import Address
    from weitblick.translation.term_search import TermSearch


Found = dict[int, list[Hypothesis]]
"""Hypotheses of units, best first, by the unit's number."""


def translate_units(
    model: DocumentModel,
    units: Sequence[Unit],
    options: TranslationOptions,
    pointer: Pointer | None = None,
    reads: Sequence[int] | None = None,
    term_search: TermSearch | None = None,
    address: Address | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of every unit, best first; none for locked ones. pointer, reads, term_search, address: as of
    `Passes`. A model that reads concatenated sentences has neither pointer nor form of address, unless it is to
    translate every sentence on its own."""
    concatenation = Concatenation.of(model.section)
    if options.context and concatenation is not None:
        _refuse_what_concatenation_lacks(options)
        found = _translate_concatenated(model, concatenation, units, options, reads)
        return Passes(model, units, replace(options, context=False), term_search=term_search).follow_terms(found)
    passes = Passes(model, units, options, pointer=pointer, reads=reads, term_search=term_search, address=address)
    return passes.translate()


def _refuse_what_concatenation_lacks(options: TranslationOptions) -> None:
    for wanted, name in ((options.memory is not None, "memory"), (options.formality != "auto", "formality")):
        if wanted:
            raise UserError(
                f"{name}: a model that reads sentences behind one another does not follow that",
                remedy="leave it out, or translate sentences on their own (--no-context)",
            )


def _translate_concatenated(
    model: DocumentModel,
    concatenation: Concatenation,
    units: Sequence[Unit],
    options: TranslationOptions,
    reads: Sequence[int] | None,
) -> list[list[Hypothesis]]:
    """The hypotheses of units that are read behind those before them. A unit whose translation cannot be told from
    those of the sentences before is translated alone."""
    alone = replace(options, context=False)
    joined = concatenated_units(concatenation, units, reads)
    found = translate_units(model, joined, alone)
    if not concatenation.both_sides:
        return found
    separators = [unit.source.count(SOURCE_SEPARATOR) for unit in joined]
    cut = [current_only(own, count) for own, count in zip(found, separators, strict=True)]
    unclear = [index for index, (own, unit) in enumerate(zip(cut, units, strict=True)) if not own and not unit.locked]
    again = translate_units(model, [units[index] for index in unclear], alone) if unclear else []
    for index, own in zip(unclear, again, strict=True):
        cut[index] = current_only(own, 0) or without_separators(own)
    return cut


class Passes:
    """The passes over the units of some documents.

    pointer         to what is approved
    past            a context that is there already, as of a stream; the units are not context of each other then
    reads           a control: for each document the one whose context its sentences read, if not their own
    first_found     what the first of several passes finds, if it was made before; in the end, what it has found
    kept            states of earlier jobs on the same documents
    term_search     follows terms in what the last search finds
    address         asks for a form of address, or for one throughout a document
    """

    def __init__(
        self,
        model: DocumentModel,
        units: Sequence[Unit],
        options: TranslationOptions,
        *,
        pointer: Pointer | None = None,
        past: Context | None = None,
        reads: Sequence[int] | None = None,
        first_found: Mapping[int, list[Hypothesis]] | None = None,
        kept: KeptStates | None = None,
        term_search: TermSearch | None = None,
        address: Address | None = None,
    ) -> None:
        self.model, self.units, self.pointer, self.kept = model, units, pointer, kept
        self.options = options.of(model.sentence.generation)
        device = next(model.parameters()).device
        places = [unit.document for unit in units], [unit.position for unit in units]
        ids = [unit.source if address is None else address.source(unit) for unit in units]
        self.sources = Sources(ids, *places, device)
        self.readers = self.sources if reads is None else self.sources.reading([reads[unit.document] for unit in units])
        self.term_search, self.address = term_search, address
        self.bounds = DecisionBounds.of(model)
        self.free = [number for number, unit in enumerate(units) if not unit.locked]
        self.encoder_states: Tensor  # [T, d] of all sources, without context
        self.past = past
        self.context: Context | None = None
        self.first_found = first_found
        self.found: Found = {}  # the latest translations
        self.settled: Found = {}  # those of them that stand before the last search

    def translate(self) -> list[list[Hypothesis]]:
        """Makes all passes without a pause: the hypotheses of every unit, best first; none for locked ones."""
        found: Found = {}
        for finished in self.steps([self.free] if self.free else []):
            found |= finished
        return [found.get(number, []) for number in range(len(self.units))]

    def steps(self, groups: Sequence[Sequence[int]]) -> Iterator[Found]:
        """After each step what it has finished: nothing at first, then the units of one group after the other."""
        if groups:
            for _ in self.prepare([number for group in groups for number in group]):
                yield {}
        for group in groups:
            yield self.search_last(group)

    @torch.no_grad()
    def prepare(self, chosen: Sequence[int]) -> Iterator[None]:
        """All that comes before the last search of the chosen units, with a pause wherever others may come in."""
        self.encoder_states = yield from encode_sources(self.sources, self.model.sentence, self.kept)
        if not self.options.context or self.past is not None:
            self.context = self.past
        elif self.model.reads_translations:
            yield from self._read_translations(chosen)
        else:
            self.context = self.model.context_of(self.sources, self.encoder_states)

    @torch.no_grad()
    def prepare_given(self) -> Iterator[None]:
        """As `prepare`, with the translations that units have been given as context: nothing is searched before."""
        self.encoder_states = yield from encode_sources(self.sources, self.model.sentence, self.kept)
        if not self.options.context or self.past is not None:
            self.context = self.past
        elif self.model.reads_translations:
            self.translations = TranslationStates(self.model, self.sources, self.encoder_states, kept=self.kept)
            yield from self.translations.compute(self.targets())
            self.context = self.translations.context(self.targets())
        else:
            self.context = self.model.context_of(self.sources, self.encoder_states)

    def _read_translations(self, chosen: Sequence[int]) -> Iterator[None]:
        """The passes of a model that reads translations, but for the last search."""
        verification = self._verification()
        on_states = None if verification is None else verification.add
        self.translations = TranslationStates(
            self.model, self.sources, self.encoder_states, on_states=on_states, kept=self.kept
        )
        yield from self._first_pass()
        if self.options.passes == 1:
            self.settled = {number: self.found.get(number, []) for number in self.free}
        for number in range(2, self.options.passes + 1):
            yield from self.translations.compute(self.targets())
            self.context = self.translations.context(self.targets())
            if number < self.options.passes:
                for batch in self._batches(chosen):
                    self._search(batch, self.options.first_search)
                    yield
            elif worth_verifying(self.model, self.options):
                yield from self._verify(verification)

    def _first_pass(self) -> Iterator[None]:
        """Translates what has no draft, without context; with frozen context states, by the model they come from."""
        undrafted = [number for number in self.free if not self.units[number].given]
        first, several = self.model.first_pass(), self.options.passes > 1
        if self.first_found is not None:
            self.found.update({number: self.first_found[number] for number in undrafted})
            return
        states, context = self.encoder_states, self.with_pointer(None)
        if first is not self.model:
            states, context = (yield from encode_sources(self.sources, first.sentence, self.kept)), None
        search = self.options.first_search if several else self.options.search
        for batch in self._batches(undrafted):
            best = BestStates() if several else None
            found = search_batch(first, self.sources, batch, states, context, self.options, search, best)
            self.found.update(zip(batch, found, strict=True))
            if best is not None and best.states is not None:
                self.translations.add(batch, [hypotheses[0].ids for hypotheses in found], best.states)
            yield
        self.first_found = dict(self.found)

    def _verification(self) -> Verification | None:
        """What verifies first translations by the states of the search that finds them, where it can."""
        if self.model.frozen is not None or not worth_verifying(self.model, self.options):
            return None
        return Verification(self.model, self.readers, self.found, is_greedy(self.options), self.pointer)

    def _verify(self, verification: Verification | None) -> Iterator[None]:
        """Settles the first translations that this context would not change."""
        assert self.context is not None
        if verification is not None:
            parts = verification.changed(self.context.bank)
        else:
            before = self.with_pointer(None) if self.model.frozen is None else None  # as in the first pass
            context, greedy = self.with_pointer(self.context), is_greedy(self.options)
            parts = changed_by_context(
                self.model, self.readers, self.encoder_states, self.targets(), before, context, greedy
            )
        changed: set[int] = set()
        for part in parts:
            changed.update(number for number in part if self._may_decide(number))
            yield
        self.settled = {number: found for number, found in self.found.items() if number not in changed}
        report(len(self.settled))

    @torch.no_grad()
    def search_last(self, group: Sequence[int]) -> Found:
        """The last search of some units, with all of their context; what is settled stands."""
        for batch in self._batches([number for number in group if number not in self.settled]):
            self._search(batch, self.options.search)
            self._keep_told(batch)
        found = {number: self.settled[number] if number in self.settled else self.found[number] for number in group}
        if self.address is not None:
            found |= self.address.follow(self, found)
        return found if self.term_search is None else found | self.term_search.follow(self, found)

    @torch.no_grad()
    def follow_terms(self, found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """The hypotheses of all units, found by whatever search, with their terms followed."""
        if self.term_search is None:
            return found
        self.encoder_states = self.sources.encode(self.model.sentence)
        given = {number: own for number, own in enumerate(found) if own}
        changed = given | self.term_search.follow(self, given)
        return [changed.get(number, []) for number in range(len(found))]

    def search_variants(
        self, numbers: Sequence[int], sources: Sequence[list[int]], forbidden: tuple[int, ...] = ()
    ) -> list[list[Hypothesis]]:
        """All hypotheses of a search for some units with these sources, without forbidden words (see `address`)."""
        chosen = self.readers.choose(numbers)
        asked = Sources(sources, chosen.documents.tolist(), chosen.positions.tolist(), chosen.device)
        states, context = asked.encode(self.model.sentence), self.with_pointer(self.context)
        search = replace(self.options.search, n_best=self.options.search.beam, forbidden=forbidden)
        found: Found = {}
        with reporting(None):  # these units have been counted
            for batch in batches_by_length(
                asked, range(len(numbers)), max(1, self.options.batch_tokens // search.beam)
            ):
                hypotheses = search_batch(self.model, asked, batch, states, context, self.options, search)
                found.update(zip(batch, hypotheses, strict=True))
        return [found[index] for index in range(len(numbers))]

    @torch.no_grad()
    def score(
        self,
        numbers: Sequence[int],
        targets: Sequence[Sequence[int]],
        alone: bool = False,
    ) -> list[list[float]]:
        """Log-probabilities of the words of some targets and of their ends, each of the unit with this number. alone:
        without context and pointer."""
        found: list[list[float]] = []
        context = None if alone else self.with_pointer(self.context)
        for chosen, own in self._parts(numbers, targets):
            source, readers = self.readers.pack(chosen), self.readers.choose(chosen)
            states = self.encoder_states.index_select(0, self.readers.rows(chosen))
            states, _ = self.model.encode(source, context, states=states)
            target = readers.pack_targets(range(len(own)), own)
            words = self.model.decode(target, states, source.layout, context, only_where_decided=True).words
            values = words.log_probabilities(target.next_tokens())
            found += [row.tolist() for row in values.split(target.layout.host_lengths)]
        return found

    def _parts(
        self, numbers: Sequence[int], targets: Sequence[Sequence[int]]
    ) -> Iterator[tuple[list[int], list[Sequence[int]]]]:
        """Units and targets, some thousand words at a time."""
        sizes = [
            len(target) + int(self.sources.lengths[number]) for number, target in zip(numbers, targets, strict=True)
        ]
        for part in Sources(targets, [0] * len(targets), [0] * len(targets)).parts(np.array(sizes)):
            yield [numbers[n] for n in part], [targets[n] for n in part]

    def _search(self, batch: Sequence[int], search: SearchOptions) -> None:
        for decided in (True, False):
            own = [number for number in batch if self._may_decide(number) == decided]
            if not own:
                continue
            context = self.with_pointer(self.context if decided else None)
            found = search_batch(self.model, self.readers, own, self.encoder_states, context, self.options, search)
            self.found.update(zip(own, found, strict=True))

    def _may_decide(self, number: int) -> bool:
        return self.bounds is None or self.bounds.may_decide(self.units[number].text)

    def _keep_told(self, batch: Sequence[int]) -> None:
        """Goes back to the first translations of those units in which context has changed a pronoun that the source
        tells."""
        if self.bounds is None or self.first_found is None:
            return
        for number in batch:
            first, last, source = self.first_found.get(number), self.found[number], self.units[number].text
            if first and last and not self.bounds.keeps_told(source, first[0].ids, last[0].ids):
                self.found[number] = first

    def _batches(self, chosen: Sequence[int]) -> Iterator[list[int]]:
        return batches_by_length(self.sources, chosen, max(1, self.options.batch_tokens // self.options.search.beam))

    def targets(self) -> list[list[int]]:
        """What every unit is translated by so far."""
        return [
            self.found[number][0].ids if number in self.found else unit.given or []
            for number, unit in enumerate(self.units)
        ]

    def with_pointer(self, context: Context | None) -> Context | None:
        """A context that points at what is approved, too."""
        return context if self.pointer is None else replace(context or Context(), pointer=self.pointer)
