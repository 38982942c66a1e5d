"""A document in translation, some sentences at a time, so that others may have the model in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from weitblick.documents.document import Document
from weitblick.text.units import split_documents
from weitblick.translation.beam import Hypothesis
from weitblick.translation.driver import Found, Passes
from weitblick.translation.kept_states import KeptStates
from weitblick.translation.options import TranslationOptions
from weitblick.translation.results import Translation, join_documents
from weitblick.translation.translator import Translator

if TYPE_CHECKING:
    from weitblick.translation.term_search import TermSearch

STEP_TOKENS = 512
"""Source tokens of a step: how long others wait for their turn, against what large batches save."""
FIRST_SENTENCES = 1
"""Sentences of the first step, each later step may have twice as many: the first result comes soon."""

Finished = dict[int, tuple[Translation, ...]]
"""Sentences that a step has finished, by index: their translations, best first; none where nothing was translated."""


class DocumentJob:
    """The chosen sentences of one document, in the order of importance given (all of them in reading order without).

    Sources are encoded once, and every step translates some more sentences, with the whole document as context. What
    comes out is what `Translator.translations` gives, sentence by sentence.
    """

    def __init__(
        self,
        translator: Translator,
        document: Document,
        options: TranslationOptions,
        order: Sequence[int] | None = None,
        kept: KeptStates | None = None,
    ) -> None:
        self.translator, self.document, self.options = translator, document, options
        self.order = list(range(len(document.sentences))) if order is None else list(dict.fromkeys(order))
        self.units = split_documents([document], translator.pipeline, translator.warn)
        self._members: dict[int, list[int]] = {index: [] for index in self.order}
        for number, unit in enumerate(self.units):
            if unit.sentence in self._members and not unit.locked:
                self._members[unit.sentence].append(number)
        self.chosen = [index for index in self.order if self._members[index]]
        terms, address = translator.term_search(options), translator.address(options)
        self.passes = Passes(translator.model, self.units, options, kept=kept, term_search=terms, address=address)

    def steps(self) -> Iterator[Finished]:
        """After each step the sentences that it has finished. Every chosen sentence comes exactly once."""
        yield self.nothing_to_translate()
        if self.chosen:
            self.point_for(self.chosen)
            groups = list(self._groups(self.chosen))
            finished = iter(groups)
            for found in self.passes.steps([self.units_of(group) for group in groups]):
                yield self._join(next(finished), found) if found else {}

    def nothing_to_translate(self) -> Finished:
        """Chosen sentences that are locked, or have no words."""
        return {index: () for index in self.order if not self._members[index]}

    def units_of(self, sentences: Sequence[int]) -> list[int]:
        """The numbers of the units of these sentences."""
        return [number for index in sentences for number in self._members[index]]

    def point_for(self, sentences: Sequence[int]) -> None:
        """From now on these sentences, and no others, point at what is approved."""
        concerned = {*self.units_of(sentences), *(number for number, unit in enumerate(self.units) if unit.locked)}
        units = [self.units[number] for number in sorted(concerned)]
        self.passes.pointer = self.translator.pointer_for(units, self.options)

    def prepare(self) -> Iterator[Finished]:
        """All that comes before the last search, in steps that finish no sentence."""
        for _ in self.passes.prepare(self.units_of(self.chosen)):
            yield {}

    def search(self, sentences: Sequence[int]) -> Iterator[Finished]:
        """The last search of these sentences, in steps."""
        for group in self._groups(sentences):
            yield self._join(group, self.passes.search_last(self.units_of(group)))

    def with_terms(self, search: TermSearch, sentences: Sequence[int]) -> Finished:
        """Those of some sentences whose drafts change for the sake of a term, and nothing else in them. The job is
        prepared."""
        units = {index: self._members[index] for index in sentences if self._members[index]}
        drafts = {
            number: [Hypothesis(list(self.units[number].given or ()), 0.0, 0.0, [])]
            for members in units.values()
            for number in members
            if self.units[number].given
        }
        found = search.follow(self.passes, drafts)
        changed = [
            index
            for index, members in units.items()
            if all(number in drafts for number in members)
            and any(use.changed for number in members if number in found for use in found[number][0].terms)
        ]
        return self._join(changed, drafts | found)

    def _groups(self, sentences: Sequence[int]) -> Iterator[list[int]]:
        """Sentences in their order, a few at first, then of about STEP_TOKENS a group."""
        most = FIRST_SENTENCES
        group: list[int] = []
        tokens = 0
        for index in sentences:
            size = sum(len(self.units[number].source) + 1 for number in self._members[index])
            if group and (tokens + size > STEP_TOKENS or len(group) >= most):
                yield group
                most, group, tokens = 2 * most, [], 0
            group.append(index)
            tokens += size
        if group:
            yield group

    def _join(self, group: Sequence[int], found: Found) -> Finished:
        """The translations of whole sentences from those of their parts."""
        part = replace(self.document, sentences=tuple(self.document.sentences[index] for index in group))
        numbers = [(place, number) for place, index in enumerate(group) for number in self._members[index]]
        units = [replace(self.units[number], document=0, sentence=place) for place, number in numbers]
        hypotheses = [found[number] for _, number in numbers]
        (translated,) = join_documents([part], units, hypotheses, self.translator.pipeline)
        return dict(zip(group, translated.translations, strict=True))
