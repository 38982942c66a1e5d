"""What can be asked of a translation: each option named, described and limited once, for every way to ask.

The command line takes help and limits from `OPTIONS`, the HTTP interface as well, `Translator`'s methods take
`TranslationKeywords`, and a server tells requests apart by `TranslationOptions.settings`. Nothing here needs PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from weitblick.common.errors import UserError

if TYPE_CHECKING:
    from weitblick.common.recipe import GenerationSection
    from weitblick.fast.shortlist import Shortlist
    from weitblick.memory.store import Memory
    from weitblick.memory.terms import Terms
    from weitblick.model.batch import IdLists
    from weitblick.model.document_model import DocumentModel
    from weitblick.model.modifiers import Allowed
    from weitblick.model.sentence_model import SentenceModel
    from weitblick.translation.beam import SearchOptions

Formality = Literal["auto", "formal", "informal"]

MOST_HYPOTHESES = 64
"""Of a sentence: more find nothing better, and take gigabytes."""


class TranslationKeywords(TypedDict, total=False):
    """The fields of `TranslationOptions`, as keywords of `Translator`'s methods."""

    beam: int | None
    length_penalty: float | None
    n_best: int
    context: bool
    passes: int
    batch_tokens: int
    memory: Memory | None
    shortlist: Shortlist | None
    terms: Terms | None
    formality: Formality


@dataclass(frozen=True)
class Option:
    """What an option does, and the least and the most that it can be; None: no limit, or no number."""

    help: str
    least: int | None = None
    most: int | None = None


def _described(help: str, least: int | None = None, most: int | None = None) -> dict[str, Option]:
    return {"option": Option(help, least, most)}


@dataclass(frozen=True)
class TranslationOptions:
    """What is asked of a translation; `OPTIONS` describes each field. None: as the model prefers, or nothing."""

    beam: int | None = field(
        default=None,
        metadata=_described(
            "Hypotheses per sentence; 1 is greedy search; the model's own, usually 4, if absent.", 1, MOST_HYPOTHESES
        ),
    )
    length_penalty: float | None = field(
        default=None,
        metadata=_described(
            "Scores are log-probabilities over length ** this; the model's own, usually 1, if absent.", 0
        ),
    )
    n_best: int = field(
        default=1,
        metadata=_described(
            "The N best translations of each sentence: NUMBER ||| TEXT ||| SCORES, or jsonl.", 1, MOST_HYPOTHESES
        ),
    )
    context: bool = field(default=True, metadata=_described("false translates every sentence on its own"))
    passes: int = field(default=2, metadata=_described("Passes over a document where translations are context.", 1))
    batch_tokens: int = field(default=4096, metadata=_described("Tokens computed at a time.", 1))
    memory: Memory | None = field(
        default=None,
        metadata=_described(
            "Approved translations that decide how the rest is translated: TMX, JSONL, TSV, ...; may be repeated."
        ),
    )
    shortlist: Shortlist | None = field(
        default=None, metadata=_described("Choose among the words of `weitblick data shortlist` only: faster.")
    )
    terms: Terms | None = field(
        default=None, metadata=_described("Terms that the translation keeps, each in the form that fits.")
    )
    formality: Formality = field(
        default="auto",
        metadata=_described(
            "How people are addressed: formal (German Sie), informal (du), or auto: as the model does it, but in one "
            "way throughout a document."
        ),
    )

    def __post_init__(self) -> None:
        for name, limits in OPTIONS.items():
            value = getattr(self, name)
            if limits.least is not None and value is not None and not value >= limits.least:
                raise UserError(f"{name} {value} is not possible", remedy=f"use {limits.least} or more")
            if limits.most is not None and value is not None and value > limits.most:
                raise UserError(f"{name} {value} is too much", remedy=f"use {limits.most} or less")
        if self.formality not in get_args(Formality):
            raise UserError(f"formality {self.formality!r} is none", remedy=f"use {', '.join(get_args(Formality))}")
        if self.beam is not None and self.n_best > self.beam:
            raise UserError(
                f"the {self.n_best} best of {self.beam} hypotheses cannot be given",
                remedy="ask for at most as many as the beam holds",
            )

    def of(self, generation: GenerationSection) -> TranslationOptions:
        """The options, with the model's defaults for those not given."""
        beam = generation.beam if self.beam is None else self.beam
        penalty = generation.length_penalty if self.length_penalty is None else self.length_penalty
        if (beam, penalty) == (self.beam, self.length_penalty):
            return self
        return replace(self, beam=beam, length_penalty=penalty)

    def settings(self) -> list[Any]:
        """The values of all options, to tell one request from another: memories and shortlists by their identity."""
        values = (getattr(self, name) for name in OPTIONS)
        return [value if value is None or isinstance(value, int | float | str) else id(value) for value in values]

    def passes_of(self, model: DocumentModel) -> int:
        """How often a model goes over a document: more than once only where it reads translations."""
        return self.passes if self.context and model.reads_translations else 1

    def allowed(self, sources: IdLists, model: SentenceModel) -> Allowed | None:
        """What a batch of sentences may use; None: every word."""
        if self.shortlist is None:
            return None
        return self.shortlist.allow(sources, model, model.generation.forbidden)

    @property
    def search(self) -> SearchOptions:
        """How sentences are searched, once the options are those of a model (`of`)."""
        from weitblick.translation.beam import SearchOptions

        assert self.beam is not None
        assert self.length_penalty is not None
        return SearchOptions(self.beam, self.length_penalty, self.n_best)

    @property
    def first_search(self) -> SearchOptions:
        """Of passes before the last: only the best translation counts."""
        return replace(self.search, n_best=1)


OPTIONS: dict[str, Option] = {one.name: one.metadata["option"] for one in fields(TranslationOptions)}
