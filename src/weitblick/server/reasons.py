"""What has just been approved changes a draft where it is the reason, and nowhere else.

A search that begins again for the sake of one word comes out with other words at other places, too: a comma, a synonym,
a turn of phrase that is no better than the one before. People would have to read all of it. So the old draft stays, but
for the changes that have a reason:

- a word that the approved translation has, for a word that the approved source has;
- a pronoun in place of another one, where context decides between them and what is approved is context;
- what stands beside one of these (articles, endings), or has changed places with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from weitblick.server.consistency import Vocabulary
from weitblick.translation.alignment import Alignment, word_spans
from weitblick.translation.job import NewPair

BESIDE = 2
"""Words between two changes that belong together: an adjective, say, between a new article and a new noun."""
FROM = 0.2
"""Share of a word that must come from a source word: of a compound several have one."""


@dataclass(frozen=True)
class Change:
    """Words [first, last) of a draft became the words [begin, end) of what is said now."""

    first: int
    last: int
    begin: int
    end: int


@dataclass(frozen=True)
class Reasons:
    """Newly approved pairs, the words of both languages, and the pronouns between which context decides."""

    new: Sequence[NewPair]
    source: Vocabulary
    target: Vocabulary
    pronouns: frozenset[str] = field(default_factory=frozenset)

    @property
    def telling(self) -> list[NewPair]:
        """The pairs with the words of their translations that can be a reason, if they have any: it is these that a
        draft must be pulled to for a new search to be worth while."""
        return [replace(pair, target=" ".join(self.target.spoken(pair.target)) or pair.target) for pair in self.new]

    def mended(self, source: str, before: str, after: str, alignment: Alignment) -> str:
        """The draft `before`, with those changes that `after` has a reason for. `alignment`: of source and `after`."""
        draft, said = _Text(before, self.target), _Text(after, self.target)
        changes = _changes(draft.words, said.words)
        fetched = self._fetched(source, said, alignment)
        chosen = {change for change in changes if self._has_reason(change, draft, said, fetched)}
        if not chosen:
            return before
        chosen |= {change for change in changes if any(_between(change, other) <= BESIDE for other in chosen)}
        while more := [c for c in changes if c not in chosen and _moved(c, chosen, draft, said)]:
            chosen.update(more)
        return _spliced(draft, said, changes, chosen)

    def _fetched(self, source: str, said: _Text, alignment: Alignment) -> set[int]:
        """Words that stand in an approved translation, for a source word that stands in its source."""
        if alignment.target != said.spans:
            return set()
        stems = [self.source.of(source[start:end]) for start, end in alignment.source]
        found: set[int] = set()
        for pair in self.new:
            ours, theirs = self.source.terms(pair.source), self.target.terms(pair.target)
            columns = [place for place, stem in enumerate(stems) if stem in ours]
            if columns:
                shares = alignment.weights[:, columns].max(1)
                found |= {n for n, stem in enumerate(said.stems) if stem in theirs and shares[n] >= FROM}
        return found

    def _has_reason(self, change: Change, draft: _Text, said: _Text, fetched: set[int]) -> bool:
        old, new = range(change.first, change.last), range(change.begin, change.end)
        if any(n in fetched and said.stems[n] not in {draft.stems[m] for m in old} for n in new):
            return True
        is_read = any(pair.index is not None for pair in self.new)
        one = len(old) == len(new) == 1
        return one and is_read and {draft.words[old[0]], said.words[new[0]]} <= self.pronouns


class _Text:
    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self.text, self.spans = text, word_spans(text)
        self.words = [text[start:end] for start, end in self.spans]
        self.stems = [vocabulary.of(word) if vocabulary.can_be_term(word) else "" for word in self.words]

    def piece(self, first: int, last: int) -> str:
        """Some words, and the white space before each."""
        start = self.spans[first - 1][1] if first else 0
        return self.text[start : self.spans[last - 1][1]] if first < last else ""

    def telling(self, first: int, last: int) -> set[str]:
        return {stem for stem in self.stems[first:last] if stem}


def _changes(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [Change(*places) for kind, *places in matcher.get_opcodes() if kind != "equal"]


def _between(one: Change, other: Change) -> int:
    """How many words stand between two changes."""
    return max(one.first - other.last, other.first - one.last)


def _moved(change: Change, chosen: set[Change], draft: _Text, said: _Text) -> bool:
    """Whether a telling word went from here to a chosen change, or from there to here: alone it would be said twice,
    or not at all."""
    lost, gained = draft.telling(change.first, change.last), said.telling(change.begin, change.end)
    for other in chosen:
        if lost & said.telling(other.begin, other.end) or gained & draft.telling(other.first, other.last):
            return True
    return False


def _spliced(draft: _Text, said: _Text, changes: Sequence[Change], chosen: set[Change]) -> str:
    parts, place = [], 0
    for change in changes:
        parts.append(draft.piece(place, change.first))
        taken = change in chosen
        parts.append(said.piece(change.begin, change.end) if taken else draft.piece(change.first, change.last))
        place = change.last
    parts.append(draft.piece(place, len(draft.words)))
    return "".join(parts).strip()
