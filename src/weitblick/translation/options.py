"""What can be asked of a translation, with the defaults of the command and of the Python interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from weitblick.errors import UserError
from weitblick.translation.beam import SearchOptions


class Wishes(TypedDict, total=False):
    """The keywords of `Translator`'s methods: any field of `TranslationOptions`."""

    beam: int
    length_penalty: float
    n_best: int
    context: bool
    passes: int
    batch_tokens: int


@dataclass(frozen=True)
class TranslationOptions:
    """beam: hypotheses per sentence, 1 is greedy; length_penalty: exponent of the length that scores are divided by;
    n_best: translations to give of each sentence; context: false translates every sentence on its own; passes: over a
    document, where translations are context of each other; batch_tokens: source tokens times beam at a time."""

    beam: int = 4
    length_penalty: float = 1.0
    n_best: int = 1
    context: bool = True
    passes: int = 2
    batch_tokens: int = 4096

    def __post_init__(self) -> None:
        if self.passes < 1:
            raise UserError(f"{self.passes} passes translate nothing", remedy="use 1 or more")
        if self.batch_tokens < 1:
            raise UserError(f"batches of {self.batch_tokens} tokens hold no sentence", remedy="use 1 or more")
        _ = self.search  # checks the rest

    @property
    def search(self) -> SearchOptions:
        return SearchOptions(self.beam, self.length_penalty, self.n_best)

    @property
    def first_search(self) -> SearchOptions:
        """Of passes before the last: only the best translation counts."""
        return SearchOptions(self.beam, self.length_penalty)
