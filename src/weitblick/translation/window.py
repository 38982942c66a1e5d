"""Some documents translated together: passes over all of their sentences, in batches of sentences of like length."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from weitblick.model.context import Context
from weitblick.model.document_model import DocumentModel
from weitblick.model.sources import Sources
from weitblick.model.words import Pointer
from weitblick.translation.beam import Hypothesis, SearchOptions
from weitblick.translation.options import TranslationOptions
from weitblick.translation.passes import batches_by_length, pointing, search_batch
from weitblick.translation.progress import report
from weitblick.translation.track import Track
from weitblick.translation.translation_states import TranslationStates
from weitblick.translation.units import Unit
from weitblick.translation.verification import Verification, changed_by_context, is_greedy, worth_verifying

Found = list[list[Hypothesis]]


@torch.no_grad()
def translate_units(
    model: DocumentModel,
    units: Sequence[Unit],
    options: TranslationOptions,
    reads: Sequence[int] | None = None,
    pointer: Pointer | None = None,
    known: Found | None = None,
    first_found: Found | None = None,
) -> Found:
    """The hypotheses of every unit, best first; none for locked ones. `reads`, a control: for each document the one
    whose context its sentences read, if that is not their own; `pointer`: to what is approved; `known`: what the first
    of several passes finds, if it was made before; `first_found`: is filled with what it found, if it is made here."""
    window = _Window(model, units, options.of(model.sentence.generation), reads, pointer)
    if first_found is not None:
        first_found[:] = window.found
    if not window.free:
        return window.found
    if options.context and model.reads_translations:
        window.several_passes(known, first_found)
    else:
        window.one_pass()
    return window.found


class _Window:
    """Units that are translated together, and what has been found for each."""

    def __init__(
        self,
        model: DocumentModel,
        units: Sequence[Unit],
        options: TranslationOptions,
        reads: Sequence[int] | None,
        pointer: Pointer | None,
    ) -> None:
        self.model, self.units, self.options, self.pointer = model, units, options, pointer
        device = next(model.parameters()).device
        places = [unit.document for unit in units], [unit.position for unit in units]
        self.sources = Sources([unit.source for unit in units], *places, device)
        self.readers = self.sources if reads is None else self.sources.reading([reads[unit.document] for unit in units])
        self.free = [index for index, unit in enumerate(units) if not unit.locked]
        self.approved = torch.tensor([unit.locked for unit in units], device=device)
        self.found: Found = [[] for _ in units]

    def one_pass(self) -> None:
        """Of a model that reads sources, or nothing."""
        states = self.sources.encode(self.model.sentence)
        context = self.model.context_of(self.sources, states, approved=self.approved) if self.options.context else None
        self._search(self.model, self.readers, self.free, states, pointing(context, self.pointer), self.options.search)

    def several_passes(self, known: Found | None, first_found: Found | None) -> None:
        """Of a model that reads translations: those of the pass before."""
        states = self.sources.encode(self.model.sentence)
        verifying = worth_verifying(self.model, self.options)
        verification = None
        if verifying and self.model.frozen is None:
            greedy = is_greedy(self.options)
            verification = Verification(self.model, self.readers, self.found, greedy, self.pointer)
        translations = TranslationStates(self.model, self.sources, states, verification)
        self._first_pass(states, translations, known)
        if first_found is not None:
            first_found[:] = self.found
        for number in range(2, self.options.passes + 1):
            targets = self._targets()
            offered = translations.context(targets, self.approved)
            context, chosen = pointing(offered, self.pointer), self.free
            if verifying:
                if verification is not None:
                    changed = verification.changed(offered.bank)
                else:
                    changed = self._changed_by(context, states, targets)
                chosen = [index for index in self.free if index in changed or not self.found[index]]
            last = number == self.options.passes
            search = self.options.search if last else self.options.first_search
            self._search(self.model, self.readers, chosen, states, context, search)

    def _first_pass(self, states: Tensor, translations: TranslationStates, known: Found | None) -> None:
        """Of what has no draft. Where context states are frozen, by the model that they come from."""
        undrafted = [index for index in self.free if not self.units[index].given]
        if known is not None:
            for index in undrafted:
                self.found[index] = known[index]
            return
        first = self.model.first_pass()
        if first is self.model:
            context = pointing(None, self.pointer)
        else:
            states, context = self.sources.encode(first.sentence), None
        if self.options.passes > 1:
            self._search(first, self.sources, undrafted, states, context, self.options.first_search, translations)
        else:
            self._search(first, self.sources, undrafted, states, context, self.options.search)

    def _targets(self) -> list[list[int]]:
        """What every unit is translated by so far."""
        return [
            hypotheses[0].ids if hypotheses else unit.given or []
            for unit, hypotheses in zip(self.units, self.found, strict=True)
        ]

    def _changed_by(self, context: Context | None, states: Tensor, targets: Sequence[list[int]]) -> set[int]:
        """Units whose translations would change with this context, by a pass over all words."""
        before = pointing(None, self.pointer) if self.model.frozen is None else None  # as in the first pass
        greedy = is_greedy(self.options)
        parts = changed_by_context(self.model, self.readers, states, targets, before, context, greedy)
        return {index for part in parts for index in part}

    def _search(
        self,
        model: DocumentModel,
        sources: Sources,
        chosen: Sequence[int],
        states: Tensor,
        context: Context | None,
        search: SearchOptions,
        translations: TranslationStates | None = None,
    ) -> None:
        """One pass over the chosen units; what is found takes the place of what was. translations: to be told their
        states."""
        for batch in batches_by_length(sources, chosen, max(1, self.options.batch_tokens // search.beam)):
            track = None if translations is None else Track()
            results = search_batch(model, sources, batch, states, context, self.options, search, track)
            for index, hypotheses in zip(batch, results, strict=True):
                self.found[index] = hypotheses
            if translations is not None and track is not None and track.states is not None:
                translations.hear(batch, [hypotheses[0].ids for hypotheses in results], track.states)
            report(len(batch))
