"""Contrastive suites. An item is a document, one of its sentences, its reference translation and wrong variants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator, model_validator

from weitblick.common.errors import parse_json

FORMAT_VERSION: Literal[1] = 1
FURTHEST = 4  # distances from here on are one group
DISTANCES = ("0", "1", "2", "3", ">3")

Direction = Literal["past", "future"]


class ContrastItem(BaseModel):
    """One line of a suite. Only source, sentence, reference and contrastive are required; what is not known is None.

    `sentence` is the index of the tested sentence. `distance` counts the sentences from it to the one that decides it,
    backwards if `direction` is past, forwards if it is future. `pronoun` is the tested word of the reference in its
    plainest form. An item has an `unseen_antecedent` if training shows its antecedent with its article but never as an
    antecedent. `target` is the translation of every sentence, None where one is not known.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    format_version: Literal[1] = FORMAT_VERSION
    id: str = ""
    source: tuple[str, ...] = Field(min_length=1)
    target: tuple[str | None, ...] | None = None
    sentence: int = Field(ge=0)
    reference: str
    contrastive: tuple[str, ...] = Field(min_length=1)
    distance: int | None = Field(None, ge=0)
    phenomenon: str | None = None
    direction: str | None = None
    pronoun: str | None = None
    unseen_antecedent: bool | None = None

    _where: str = PrivateAttr("")
    _line: int | None = PrivateAttr(None)

    @field_validator("id", mode="before")
    @classmethod
    def _any_id(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) else value

    @model_validator(mode="after")
    def _check(self) -> ContrastItem:
        sentences = len(self.source)
        if self.sentence >= sentences:
            raise ValueError(
                f"field 'sentence' is {self.sentence}, but 'source' has {sentences} sentences (the first is 0)"
            )
        if self.target is not None and len(self.target) != sentences:
            raise ValueError(f"field 'target' has {len(self.target)} sentences, but 'source' has {sentences}")
        if not self.reference.strip():
            raise ValueError("field 'reference' is empty")
        return self

    @property
    def where(self) -> str:
        """The file it was read from."""
        return self._where

    @property
    def line(self) -> int | None:
        return self._line

    def at(self, where: str | Path, line: int | None = None) -> ContrastItem:
        """The item, known to stand there; without an id of its own it is called by its line."""
        found = self if self.id else self.model_copy(update={"id": str(line or "")})
        found._where, found._line = str(where), line
        return found

    @property
    def distance_group(self) -> str | None:
        if self.distance is None:
            return None
        return str(self.distance) if self.distance < FURTHEST else DISTANCES[-1]

    @property
    def chance(self) -> float:
        """Accuracy of guessing among the reference and its variants."""
        return 1 / (1 + len(self.contrastive))

    def crop(self, sentences: int) -> ContrastItem:
        """The item with at most so many sentences before and after the tested one."""
        first = max(0, self.sentence - sentences)
        kept = slice(first, self.sentence + sentences + 1)
        target = None if self.target is None else self.target[kept]
        return self.model_copy(
            update={"source": self.source[kept], "target": target, "sentence": self.sentence - first}
        )

    def to_line(self) -> str:
        return json.dumps(self.model_dump(), ensure_ascii=False) + "\n"

    @classmethod
    def from_line(cls, text: str, where: str | Path, line: int) -> ContrastItem:
        remedy = "an item needs source, sentence, reference and contrastive"
        return parse_json(cls, text, where, line=line, remedy=remedy).at(where, line)
