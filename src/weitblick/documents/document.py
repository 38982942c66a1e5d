"""Documents and sentences: a corpus is a sequence of documents, a document a sequence of sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

TargetStatus = Literal["draft", "locked"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A source sentence and, where there is one, its target.

    `status` tells what the target is when a document is translated: a `draft` may be improved, a `locked` one is a
    human's and never changed; None is a reference. `metadata` (speaker, paragraph, trailing white space, ...) is
    carried untouched from reader to writer.
    """

    source: str
    target: str | None = None
    status: TargetStatus | None = None
    id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """Sentences that belong together, in order."""

    id: str
    sentences: tuple[Sentence, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sources(self) -> list[str]:
        return [sentence.source for sentence in self.sentences]

    @property
    def targets(self) -> list[str | None]:
        return [sentence.target for sentence in self.sentences]
