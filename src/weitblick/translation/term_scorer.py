"""What a search for terms asks of a model: how it reads translations, how probable they are, how they might go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from weitblick.model.batch import Layout, Packed, runs
from weitblick.model.context import PART_TOKENS
from weitblick.model.transformer import Transformer
from weitblick.text.base import BOS, EOS
from weitblick.translation.beam import Hypothesis
from weitblick.translation.beginnings import Beginnings
from weitblick.translation.forced import Forced
from weitblick.translation.searching import batches_by_length, search_batch

if TYPE_CHECKING:
    from weitblick.translation.driver import Passes

BEAM_OF_RESTS = 2
"""Hypotheses of a sentence whose beginning is given."""


class Reading(NamedTuple):
    """weights [Wt, Ws]: attention of the words of a target to those of its source; states [Wt + 1, d]: the decoder's
    at each step, which the output projection reads."""

    weights: np.ndarray
    states: Tensor


class TermScorer:
    """Answers for the units of some passes. A Transformer reads every beginning of a translation once, however often
    it is asked about; other models, and one that does not read the ends of sources, read whole translations."""

    def __init__(self, passes: Passes) -> None:
        self.passes, self.model, self.options = passes, passes.model, passes.options
        sentence = passes.model.sentence
        self._beginnings: Beginnings | None = None
        if isinstance(sentence, Transformer) and sentence.source_end:
            self._beginnings = Beginnings(sentence, passes.sources, passes.encoder_states)

    @torch.no_grad()
    def read(self, numbers: Sequence[int], targets: Sequence[Sequence[int]]) -> list[Reading]:
        """What the sentence model reads and thinks at every word of some targets, each of the unit with this number."""
        if self._beginnings is not None:
            weights = self._beginnings.weights(numbers, targets)
            steps = self._beginnings.steps(numbers, targets)
            return [
                Reading(self._of_words(own, number, ids), self._beginnings.states(rows).final)
                for own, number, ids, rows in zip(weights, numbers, targets, steps, strict=True)
            ]
        found: list[Reading] = []
        sources = self.passes.sources
        for chosen, own in self._parts(numbers, targets):
            source, target = sources.pack(chosen), sources.choose(chosen).pack_targets(range(len(own)), own)
            encoded = self.passes.encoder_states.index_select(0, sources.rows(chosen))
            layouts = target.layout, encoded, source.layout
            states, shares = self.model.sentence.decode_with_weights(target.tokens, *layouts)
            every = zip(shares.float().cpu().numpy(), states.final.split(target.layout.host_lengths), strict=True)
            for number, ids, (rows, steps_of) in zip(chosen, own, every, strict=True):
                found.append(Reading(self._of_words(rows, number, ids), steps_of))
        return found

    def _of_words(self, weights: np.ndarray, number: int, ids: Sequence[int]) -> np.ndarray:
        """Without the end of either side, and without a symbol before the source that asks for a form of address."""
        length = len(self.passes.sources.ids[number])
        return weights[: len(ids), length - len(self.passes.units[number].source) : length]

    def score_alternatives(
        self, numbers: Sequence[int], targets: Sequence[Sequence[int]], begun: Sequence[int]
    ) -> list[float]:
        """Log-probabilities of some targets without their ends, each of the unit with this number, from the words on
        that are not `begun`; without context and pointer. Many targets of a unit begin alike."""
        if self._beginnings is None:
            scores = self.passes.score(numbers, targets, alone=True)
            return [sum(words[first:-1]) for words, first in zip(scores, begun, strict=True)]
        steps = self._beginnings.steps(numbers, [target[:-1] for target in targets])
        rows = [row for own, first in zip(steps, begun, strict=True) for row in own[first:]]
        words = [word for target, first in zip(targets, begun, strict=True) for word in target[first:]]
        values = iter(self._beginnings.log_probabilities(rows, words))
        return [sum(next(values) for _ in target[first:]) for target, first in zip(targets, begun, strict=True)]

    @torch.no_grad()
    def score(
        self, numbers: Sequence[int], targets: Sequence[Sequence[int]], begun: Sequence[int]
    ) -> list[list[float]]:
        """Log-probabilities of the words of some targets and of their ends, each of the unit with this number, from the
        words on that are not `begun`; with context and pointer."""
        context = self.passes.with_pointer(self.passes.context)
        at_output = context is None or context.bank is None or self.model.choice_words is not None
        if self._beginnings is None or not at_output:
            scores = self.passes.score(numbers, targets)
            return [words[first:] for words, first in zip(scores, begun, strict=True)]
        steps = self._beginnings.steps(numbers, targets)
        readers = self.passes.readers
        found: list[list[float]] = []
        sizes = [len(own) - first for own, first in zip(steps, begun, strict=True)]
        for part in runs(sizes, PART_TOKENS):
            rows = [row for n in part for row in steps[n][begun[n] :]]
            read = [word for n in part for word in [BOS, *targets[n]][begun[n] :]]
            asked = [word for n in part for word in [*targets[n], EOS][begun[n] :]]
            units = np.repeat([numbers[n] for n in part], [sizes[n] for n in part])
            places = readers.documents[units].tolist(), readers.positions[units].tolist()
            layout = Layout.of([1] * len(rows), *places, readers.device)  # as many hypotheses at one step of a search
            states = self._beginnings.states(rows)
            target = Packed(torch.tensor(read, device=readers.device), layout)
            words = self.model.decode(
                target, states.final, layout, context, only_where_decided=True, states=states
            ).words
            values = words.log_probabilities(torch.tensor(asked, device=readers.device))
            found += [own.tolist() for own in values.split([sizes[n] for n in part])]
        return found

    @torch.no_grad()
    def search_from(
        self,
        numbers: Sequence[int],
        prefixes: Sequence[Sequence[int]],
        scores: Sequence[Sequence[float]],
        ends: Sequence[bool],
        barred: Tensor,
    ) -> list[list[Hypothesis]]:
        """Hypotheses that begin with these words, each of the unit with this number; scores: the log-probabilities of
        these words; ends, barred: as of `Forced`."""
        passes = self.passes
        readers = passes.readers.choose(numbers)
        states = passes.encoder_states.index_select(0, passes.readers.rows(numbers))
        context, search = passes.with_pointer(passes.context), self.options.search
        search = replace(search, beam=min(search.beam, BEAM_OF_RESTS), n_best=1)
        found: dict[int, list[Hypothesis]] = {}
        for batch in batches_by_length(readers, range(len(numbers)), max(1, self.options.batch_tokens // search.beam)):
            given = [prefixes[n] for n in batch], [scores[n] for n in batch], [ends[n] for n in batch]
            forced = Forced.of(*given, barred)
            hypotheses = search_batch(self.model, readers, batch, states, context, self.options, search, forced=forced)
            found.update(zip(batch, hypotheses, strict=True))
        return [found[index] for index in range(len(numbers))]

    def _parts(
        self, numbers: Sequence[int], targets: Sequence[Sequence[int]]
    ) -> Iterator[tuple[list[int], list[Sequence[int]]]]:
        """Units and targets, some thousand words at a time."""
        lengths = self.passes.sources.lengths
        sizes = [len(target) + int(lengths[number]) for number, target in zip(numbers, targets, strict=True)]
        for part in runs(sizes, PART_TOKENS):
            yield [numbers[n] for n in part], [targets[n] for n in part]
