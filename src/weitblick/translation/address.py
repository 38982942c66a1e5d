"""One form of address throughout a document: *Sie*, or *du* and *ihr*.

A model that knows the symbols of the forms (`text.address`) can be asked for one, sentence by sentence. What a user
asks for holds for every sentence. Without a wish (`auto`) every sentence is translated as it is, and where the
translations of one document address people in both ways, those in the minority are translated again, asked for the
other one; where no hypothesis has it, once more, with the words of the form that is not wanted forbidden. What a person
has confirmed decides first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Protocol

from weitblick.common.errors import UserError
from weitblick.text.address import FORM_WORDS, OTHERS, SYMBOLS_OF_FORMS, Form, forms_of_address
from weitblick.text.base import TextPipeline
from weitblick.text.units import Unit
from weitblick.translation.beam import Hypothesis
from weitblick.translation.options import Formality

OTHER_FORM: dict[Form, Form] = {"formal": "informal", "informal": "formal"}
SHOWS_NONE = 1  # as good as the form that is wanted, where that is not found


class Searcher(Protocol):
    """What is asked of the passes over a document."""

    @property
    def units(self) -> Sequence[Unit]: ...
    def targets(self) -> list[list[int]]: ...
    def search_variants(
        self, numbers: Sequence[int], sources: Sequence[list[int]], forbidden: tuple[int, ...] = ()
    ) -> list[list[Hypothesis]]:
        """All hypotheses of a search for some units with these sources, without forbidden words."""


class Address:
    """The forms of address of one model's translations. formality: what is asked for."""

    def __init__(self, pipeline: TextPipeline, symbols: Mapping[Form, int], formality: Formality) -> None:
        self.pipeline, self.symbols, self.formality = pipeline, symbols, formality
        self._settled: dict[int, Form] = {}  # the form of each document

    @classmethod
    def of(cls, pipeline: TextPipeline, formality: Formality) -> Address | None:
        """None if the model knows no forms of address and none is asked for."""
        symbols = symbols_of(pipeline)
        if symbols is None and formality != "auto":
            raise UserError(
                f"--formality {formality}: this model knows no forms of address",
                remedy="leave it out, or take a model whose text.symbols name ⟦formal⟧ and ⟦informal⟧",
            )
        return None if symbols is None else cls(pipeline, symbols, formality)

    def source(self, unit: Unit) -> list[int]:
        """What the model reads of a unit: its source, behind the symbol of the form that is asked for."""
        return unit.source if self.formality == "auto" else [self.symbols[self.formality], *unit.source]

    def follow(self, searcher: Searcher, found: Mapping[int, list[Hypothesis]]) -> dict[int, list[Hypothesis]]:
        """Hypotheses of those units whose translations address people in another way than was asked for, or than the
        rest of their document does: those come first that do not."""
        units = searcher.units
        shown = self._shown(units, {number: own[0].ids for number, own in found.items() if own})
        wanted = {number: self._wanted(searcher, units[number].document, shown) for number in shown if shown[number]}
        wrong = {number: form for number, form in wanted.items() if shown[number] != {form}}
        asked = self._search(searcher, wrong, found)
        for form, words in self._other_words.items():
            numbers = [number for number, own in wrong.items() if own == form]
            left = {n: form for n in numbers if self._must_forbid(units[n], form, asked[n][0])}
            asked |= self._search(searcher, left, asked, words)
        return asked

    def _search(
        self,
        searcher: Searcher,
        wanted: Mapping[int, Form],
        found: Mapping[int, list[Hypothesis]],
        forbidden: tuple[int, ...] = (),
    ) -> dict[int, list[Hypothesis]]:
        """Hypotheses of some units that are asked for a form, with those found before: as many as these, the ones that
        show this form alone first, then those that show none, each in their order."""
        if not wanted:
            return {}
        units = searcher.units
        sources = [[self.symbols[form], *units[number].source] for number, form in wanted.items()]
        searched = searcher.search_variants(list(wanted), sources, forbidden)
        return {
            number: sorted([*own, *found[number]], key=partial(self._rank, units[number], form))[: len(found[number])]
            for (number, form), own in zip(wanted.items(), searched, strict=True)
        }

    def _rank(self, unit: Unit, form: Form, hypothesis: Hypothesis) -> int:
        """0 if it shows this form alone, SHOWS_NONE if none, 2 if both, 3 if the other one."""
        (text,) = self.pipeline.decode_target([hypothesis.ids])
        shown = forms_of_address(unit.text, text, self.pipeline.target_language)
        return 0 if shown == {form} else SHOWS_NONE if not shown else 2 if form in shown else 3

    def _must_forbid(self, unit: Unit, form: Form, best: Hypothesis) -> bool:
        """Whether a translation shows the other form, by words that are surely that: *Sie* may be *they*, too."""
        is_clear = form == "formal" or not OTHERS.search(unit.text)
        return is_clear and self._rank(unit, form, best) > SHOWS_NONE

    @cached_property
    def _other_words(self) -> dict[Form, tuple[int, ...]]:
        """For each form, the ids of the words of the other one, as far as they are words of the vocabulary."""
        patterns, tokens = FORM_WORDS[self.pipeline.target_language].words, self.pipeline.target_vocabulary.tokens
        return {
            form: tuple(id for id, token in enumerate(tokens) if patterns[other].fullmatch(token.removeprefix("▁")))
            for form, other in OTHER_FORM.items()
        }

    def _wanted(self, searcher: Searcher, document: int, shown: Mapping[int, frozenset[Form]]) -> Form:
        """The form that is asked for, or else that of a document in which one is shown: what was confirmed, then what
        most sentences have, then the formal one. It is settled once for all searches in the document."""
        if self.formality != "auto":
            return self.formality
        if document not in self._settled:
            numbers = [number for number, unit in enumerate(searcher.units) if unit.document == document]
            targets = searcher.targets()
            rest = self._shown(searcher.units, {n: targets[n] for n in numbers if n not in shown})
            own = {number: shown.get(number) or rest.get(number, frozenset()) for number in numbers}
            confirmed = most_common(own[number] for number in numbers if searcher.units[number].locked)
            form = confirmed or most_common(own.values())
            assert form is not None  # one of them is why the document is looked at
            self._settled[document] = form
        return self._settled[document]

    def _shown(self, units: Sequence[Unit], targets: Mapping[int, list[int]]) -> dict[int, frozenset[Form]]:
        """The forms that each of these translations shows."""
        texts = self.pipeline.decode_target(list(targets.values()))
        language = self.pipeline.target_language
        return {
            number: forms_of_address(units[number].text, text, language)
            for number, text in zip(targets, texts, strict=True)
        }


def symbols_of(pipeline: TextPipeline) -> dict[Form, int] | None:
    """The ids of the symbols that ask for a form of address; None if the model does not know them."""
    vocabulary = pipeline.source_vocabulary
    if pipeline.target_language not in FORM_WORDS or not all(own in vocabulary for own in SYMBOLS_OF_FORMS.values()):
        return None
    return {form: vocabulary.id(symbol) for form, symbol in SYMBOLS_OF_FORMS.items()}


def most_common(shown: Iterable[frozenset[Form]]) -> Form | None:
    """The form that is shown most often; the formal one of equals, None of none."""
    counts = Counter(form for forms in shown for form in forms)
    return max(sorted(counts), key=lambda form: counts[form], default=None)
