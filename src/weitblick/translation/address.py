"""One form of address throughout a document: *Sie*, or *du* and *ihr*.

A model that knows the symbols of the forms (`text.address`) can be asked for one, sentence by sentence. What a user
asks for holds for every sentence. Without a wish (`auto`) every sentence is translated as it is, and where the
translations of one document address people in both ways, those in the minority are translated again, asked for the
other one. What a person has confirmed decides first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from weitblick.common.errors import UserError
from weitblick.text.address import FORM_WORDS, SYMBOLS_OF_FORMS, Form, forms_of_address
from weitblick.text.base import TextPipeline
from weitblick.text.units import Unit
from weitblick.translation.beam import Hypothesis
from weitblick.translation.options import Formality


class Searcher(Protocol):
    """What is asked of the passes over a document."""

    @property
    def units(self) -> Sequence[Unit]: ...
    def targets(self) -> list[list[int]]: ...
    def search_variants(self, numbers: Sequence[int], sources: Sequence[list[int]]) -> list[list[Hypothesis]]:
        """All hypotheses of a search for some units with these sources."""


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
        if not wrong:
            return {}
        sources = [[self.symbols[form], *units[number].source] for number, form in wrong.items()]
        searched = searcher.search_variants(list(wrong), sources)
        return {
            number: self._ranked(units[number], form, [*own, *found[number]])[: len(found[number])]
            for (number, form), own in zip(wrong.items(), searched, strict=True)
        }

    def _ranked(self, unit: Unit, form: Form, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Hypotheses that show this form alone first, then those that show none, each in their order."""
        texts = self.pipeline.decode_target([own.ids for own in hypotheses])
        shown = [forms_of_address(unit.text, text, self.pipeline.target_language) for text in texts]
        ranks = [0 if own == {form} else 1 if not own else 2 if form in own else 3 for own in shown]
        return [hypotheses[index] for index in sorted(range(len(ranks)), key=lambda index: ranks[index])]

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
