"""What somebody types is kept to the letter, and the rest of the sentence is translated anew behind it.

`SentenceCompleter` holds all that does not change while somebody types in a sentence: its encoder states, the
translations around it as context, and the pointer to what is approved. A completion then is one greedy search whose
first words are given. The last word that was typed may be the beginning of one: its pieces are not given, but chosen
among those that spell it (`Spelling`), so that *Fang* may become *Fangquote*, whatever pieces that word has.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from weitblick.documents.document import Document
from weitblick.model.batch import Layout
from weitblick.model.output import NEVER_PRODUCED, NOT_FIRST, WordDistribution
from weitblick.text.base import BOS, EOS, UNK
from weitblick.text.units import Unit, split_documents
from weitblick.translation.beam import Hypothesis
from weitblick.translation.driver import Passes
from weitblick.translation.forced import BEGINS_A_WORD, continuing_pieces
from weitblick.translation.kept_states import KeptStates
from weitblick.translation.options import TranslationOptions

if TYPE_CHECKING:
    from weitblick.memory.terms import Term
    from weitblick.translation.translator import Translator

LAST_WORD = re.compile(r"[^\W_]+\Z")
BYTE = re.compile("<0x[0-9A-F]{2}>")
CONTINUED = "@@"
SHORTEST_TERM_BEGINNING = 2
"""Letters of a word that may be the beginning of a term."""


@dataclass(frozen=True)
class Completion:
    """begun: how the model reads what was typed; whole: that with the rest behind it."""

    begun: str
    whole: str


class PieceSpellings:
    """How the pieces of a target vocabulary are spelled, with a space where a word begins or ends."""

    def __init__(self, translator: Translator) -> None:
        tokens = translator.pipeline.target_vocabulary.tokens[: len(translator.model.sentence.output()[0])]
        self.marks_beginnings = any(token.startswith(BEGINS_A_WORD) for token in tokens)
        self._texts = ["" if number <= UNK else self._text(token) for number, token in enumerate(tokens)]
        self._sorted = sorted((text, number) for number, text in enumerate(self._texts) if text)
        self._numbers = dict(self._sorted)

    def _text(self, token: str) -> str:
        if self.marks_beginnings:
            return "" if BYTE.fullmatch(token) else token.replace(BEGINS_A_WORD, " ")
        return token.removesuffix(CONTINUED) if token.endswith(CONTINUED) else f"{token} "

    def of(self, number: int) -> str:
        """The letters of one piece; none of one that stands for a byte."""
        return self._texts[number]

    def fitting(self, letters: str) -> list[int]:
        """The ids of pieces that say the first of these letters, or all of them and more."""
        begins = [letters[:end] for end in range(1, len(letters))]
        shorter = [self._numbers[text] for text in begins if text in self._numbers]
        first = bisect_left(self._sorted, (letters, -1))
        longer = takewhile(lambda own: own[0].startswith(letters), islice(self._sorted, first, None))
        return shorter + [number for _, number in longer]


class SentenceCompleter:
    """One sentence of a document, to be completed from any beginning: `prepare` first, then `complete` as often as
    somebody types. Other sentences are context as they stand, those without a translation are none."""

    def __init__(
        self,
        translator: Translator,
        document: Document,
        index: int,
        options: TranslationOptions,
        kept: KeptStates | None = None,
        spellings: PieceSpellings | None = None,
    ) -> None:
        self._spellings = spellings or PieceSpellings(translator)
        self.model, self.pipeline = translator.model, translator.pipeline
        self.units = split_documents([document], self.pipeline, lambda _: None)
        own = [number for number, unit in enumerate(self.units) if unit.sentence == index]
        self.number = own[0] if len(own) == 1 else None
        options = replace(options, beam=1, n_best=1)
        self._translator = translator
        self._passes = Passes(self.model, self.units, options, kept=kept)
        self._terms = translator.term_search(options)

    def prepare(self) -> Iterator[None]:
        """All that is the same for every beginning, with a pause wherever others may come in."""
        if self.number is None:
            return
        passes = self._passes
        concerned = [unit for number, unit in enumerate(self.units) if unit.locked or number == self.number]
        passes.pointer = self._translator.pointer_for(concerned, passes.options)
        yield from passes.prepare_given()
        with torch.no_grad():
            context = passes.with_pointer(passes.context)
            packed = passes.readers.pack([self.number])
            own = passes.encoder_states.index_select(0, passes.readers.rows([self.number]))
            self._states, _ = self.model.encode(packed, context, states=own)
        self._layout, self._context = packed.layout, context

    @torch.no_grad()
    def complete(self, typed: str) -> Completion | None:
        """What was typed with the rest of the sentence; None if there is nothing to say."""
        if self.number is None:
            return None
        beginning = self._beginning(typed)
        begun, whole = self._continued(beginning)
        if whole is None and beginning.letters:  # no pieces spell it: the word is given as it would be encoded
            beginning = Beginning(typed, "", beginning.closed)
            begun, whole = self._continued(beginning)
        if whole is None:
            return None
        texts = self.pipeline.decode_target([begun, whole], [self._unit.text] * 2)
        found = Completion((texts[0] + beginning.letters).strip(), texts[1])
        return self._with_terms(found, whole) if found.whole.startswith(found.begun) else None

    @property
    def _unit(self) -> Unit:
        assert self.number is not None
        return self.units[self.number]

    def _beginning(self, typed: str) -> Beginning:
        """What was typed, as words that are given and letters that the next ones have to spell."""
        last = LAST_WORD.search(typed)
        if last is None or not (self._spellings.marks_beginnings or typed[: last.start()].strip()):
            return Beginning(typed, "", typed[-1:].isspace())
        given, letters = typed[: last.start()], last[0]
        if self.pipeline.is_spelled_out(self.pipeline.encode_target([letters])[0]):
            return Beginning(typed, "", False)
        if self._spellings.marks_beginnings and (not given.strip() or given[-1:].isspace()):
            letters = " " + letters
        return Beginning(given.rstrip(), letters, False)

    def _continued(self, beginning: Beginning) -> tuple[list[int], list[int] | None]:
        """The ids of what is given, and of all with the rest behind it; None if no piece goes on with it."""
        given = self.pipeline.encode_target([beginning.given])[0] if beginning.given.strip() else []
        if len(given) > self.pipeline.longest_sentence:
            return given, None
        ids: list[int] = []
        letters = self._with_term(given, beginning)
        cache = self.model.sentence.start(self._states, self._layout)
        tokens = torch.full((1,), BOS, device=self._states.device)
        layout = Layout(torch.ones_like(tokens), self._layout.documents, self._layout.positions)
        search = self._passes.options.search
        limit = max(int(search.most_words(self._layout.lengths - 1)), len(given) + search.length_slack)
        unread = None if self.model.choice_words is not None else self._passes.context  # nobody asks what was given
        for step in range(limit):
            words = self.model.step(tokens, cache, layout, unread if step < len(given) else self._context)
            if step < len(given):
                chosen = given[step]
            elif letters:
                spelled = self._spelled(words, letters)
                if spelled is None:
                    return given, None
                chosen, letters = spelled, letters[len(self._spellings.of(spelled)) :]
            else:
                chosen = self._best(words, step, beginning.closed and step == len(given))
            if chosen == EOS:
                break
            ids.append(chosen)
            tokens = torch.full_like(tokens, chosen)
        return given, ids

    def _spelled(self, words: WordDistribution, letters: str) -> int | None:
        fitting = self._spellings.fitting(letters)
        return fitting[int(words.table(slice(0, 1))[0, fitting].argmax())] if fitting else None

    def _best(self, words: WordDistribution, step: int, closed: bool) -> int:
        """The most probable word; closed: of those that do not go on with the word before."""
        if closed:
            return int(words.table(slice(0, 1))[0].masked_fill(self._continuing, -torch.inf).argmax())
        generation = self.model.sentence.generation
        found = words.best(2, NEVER_PRODUCED if step else NOT_FIRST, self._forbidden, generation.renormalize)
        return int(found.ids[0, 0])

    @cached_property
    def _continuing(self) -> Tensor:
        return continuing_pieces(self.pipeline, len(self.model.sentence.output()[0]), self._states.device)

    @cached_property
    def _forbidden(self) -> Tensor | None:
        forbidden = self.model.sentence.generation.forbidden
        return torch.tensor(forbidden, device=self._states.device) if forbidden else None

    # Terms

    def _missing_terms(self, said: str) -> list[Term]:
        if self._terms is None:
            return []
        language = self.pipeline.target_language
        found = {term for own in self._terms.occurrences(self._unit) for term in own.terms if not term.refused}
        return [term for term in found if not term.is_said(said, language)]

    def _with_term(self, given: Sequence[int], beginning: Beginning) -> str:
        """The letters that come next: of a term that is not said yet and begins with them, the form that fits best."""
        letters, word = beginning.letters, beginning.letters.strip()
        if len(word) < SHORTEST_TERM_BEGINNING or self.number is None:
            return letters
        language = self.pipeline.target_language
        forms = [
            form
            for term in self._missing_terms(beginning.given)
            for form in term.forms(language)
            if form.startswith(word)
        ]
        if not forms:
            return letters
        space = letters[: len(letters) - len(word)]
        texts = [f"{beginning.given}{space}{form}" for form in forms]
        ids = self.pipeline.encode_target(texts)
        scored = self._passes.score([self.number] * len(ids), ids)
        fits = [sum(own[len(given) : -1]) / max(1, len(own) - 1 - len(given)) for own in scored]
        return space + max(zip(fits, forms, strict=True))[1]

    def _with_terms(self, found: Completion, ids: list[int]) -> Completion:
        """With the terms of the sentence behind what was typed, where that leaves what was typed as it is."""
        if self._terms is None or self.number is None:
            return found
        hypothesis = Hypothesis(ids, 0.0, 0.0, [])
        settled = {self.number: len(found.begun)}
        changed = self._terms.follow(self._passes, {self.number: [hypothesis]}, settled).get(self.number)
        if not changed:
            return found
        (text,) = self.pipeline.decode_target([changed[0].ids], [self._unit.text])
        return replace(found, whole=text) if text.startswith(found.begun) else found


@dataclass(frozen=True)
class Beginning:
    """given: text whose words stand; letters: what the words behind it begin with; closed: no word goes on there."""

    given: str
    letters: str
    closed: bool
