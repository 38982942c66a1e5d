"""What is checked (rows), what is found (findings), and what is ignored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from weitblick.documents.document import Document, Sentence

if TYPE_CHECKING:
    from weitblick.memory.glossary import Glossary

LINE, LINES = 42, 2
FASTEST = 20.0
"""Characters of a subtitle's line, its lines, and the characters a second that a grown-up reads with ease."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What there is room for. `seconds`: how long a subtitle is seen; `lines`: how it is divided, if that is known."""

    characters: int | None = None
    seconds: float | None = None
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A text and its translation. `number` counts from 1, as people do; `name` is what the file calls the row.

    `source_tags` and `target_tags` are the inline codes of a file that do not stand in the texts; None: not known.
    """

    number: int
    source: str
    target: str
    name: str | None = None
    source_tags: tuple[str, ...] | None = None
    target_tags: tuple[str, ...] | None = None
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that looks wrong: in which row, by which rule, which words, and what there is to say about them."""

    row: int
    rule: str
    words: str
    message: str

    def as_json(self) -> dict[str, Any]:
        """The finding as the command line and the API give it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ignored:
    """Findings that somebody does not want to see: of a rule; in one row, about the same words, or everywhere."""

    rule: str
    row: int | None = None
    words: str | None = None

    def covers(self, finding: Finding) -> bool:
        """Whether a finding is one of them."""
        return (
            finding.rule == self.rule
            and self.row in (None, finding.row)
            and (self.words is None or self.words == finding.words)
        )


MissedTerms = Callable[[str, str], Iterable[tuple[str, str]]]
"""A source and its translation to the terms that are not in the translation: each with the translation it should have;
a term that is to stay as it is is its own."""


def missed_terms(glossary: Glossary) -> MissedTerms:
    """A function from a source and its translation to the terms that are missing in it, inflected forms accepted."""

    def missed(source: str, target: str) -> list[tuple[str, str]]:
        _, found = glossary.check(Document("1", (Sentence(source, target),)))
        return [(miss.term.source, miss.term.target) for miss in found]

    return missed


@dataclass(frozen=True)
class CheckOptions:
    """What rows are checked for: their languages (None: not known), terms, and what is ignored."""

    source_language: str | None = None
    target_language: str | None = None
    missed_terms: MissedTerms | None = None
    longest: int | None = None
    ignored: Collection[Ignored] = field(default_factory=tuple)


RowRule = Callable[[Row, CheckOptions], Iterable[tuple[str, str]]]
"""The words of one row that look wrong, each with what there is to say."""


def without_ignored(findings: Iterable[Finding], ignored: Collection[Ignored]) -> Iterator[Finding]:
    """Findings without those that are ignored."""
    return (finding for finding in findings if not any(one.covers(finding) for one in ignored))
