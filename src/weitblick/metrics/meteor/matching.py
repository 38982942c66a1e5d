"""Which words of a hypothesis may be matched with which of the reference: same form, same stem, paraphrases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from weitblick.errors import UserError
from weitblick.files import read_lines

EXACT, STEM, PARAPHRASE = "exact", "stem", "paraphrase"
SNOWBALL_NAMES = {"de": "german", "en": "english"}


class Match(NamedTuple):
    """Words `start..start+length` of the reference with words `other..other+other_length` of the hypothesis.

    `module` is the position of the kind of match among those in use.
    """

    start: int
    length: int
    other: int
    other_length: int
    module: int


class Stemmer:
    """Snowball stems, each word only once."""

    def __init__(self, language: str) -> None:
        import snowballstemmer

        self._stemmer = snowballstemmer.stemmer(SNOWBALL_NAMES[language])
        self._known: dict[str, str] = {}

    def stem(self, word: str) -> str:
        if word not in self._known:
            self._known[word] = self._stemmer.stemWord(word)
        return self._known[word]


class Paraphrases:
    """A table in Meteor's format: a probability, a phrase and its paraphrase on a line each."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._table: dict[str, list[str]] = defaultdict(list)
        self._longest = 0
        for phrase, other in self._entries():
            self._table[phrase].append(other)
            self._longest = max(self._longest, phrase.count(" ") + 1)

    def _entries(self) -> Iterator[tuple[str, str]]:
        lines = read_lines(self.path)
        number = 1
        while entry := list(islice(lines, 3)):
            if len(entry) < 3 or not all(text.strip() for text in entry) or not _is_number(entry[0]):
                raise UserError(
                    f"not a paraphrase entry: {' / '.join(entry)!r}",
                    where=self.path,
                    line=number,
                    remedy="each entry is a probability, a phrase and its paraphrase on a line each",
                )
            yield " ".join(entry[1].split()), " ".join(entry[2].split())
            number += 3

    def at(self, words: Sequence[str], start: int) -> Iterator[tuple[int, list[str]]]:
        """The paraphrases of phrases that begin at `start`: (length of the phrase, words of the paraphrase)."""
        for length in range(1, min(self._longest, len(words) - start) + 1):
            for other in self._table.get(" ".join(words[start : start + length]), ()):
                yield length, other.split(" ")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class Matcher:
    """All possible matches of two sentences, by the modules in use."""

    def __init__(self, language: str, paraphrases: Paraphrases | None = None) -> None:
        self._stemmer = Stemmer(language)
        self._paraphrases = paraphrases
        self.modules = (EXACT, STEM) if paraphrases is None else (EXACT, STEM, PARAPHRASE)

    def matches(self, hypothesis: Sequence[str], reference: Sequence[str]) -> list[list[Match]]:
        """For each word of the reference the matches that begin there, in order of module, then of hypothesis."""
        found: list[list[Match]] = [[] for _ in reference]
        for position, others in enumerate(_same(hypothesis, reference)):
            found[position].extend(Match(position, 1, other, 1, 0) for other in others)
        if list(hypothesis) == list(reference):
            return found
        stems = [self._stemmer.stem(word) for word in hypothesis], [self._stemmer.stem(word) for word in reference]
        for position, others in enumerate(_same(*stems)):
            found[position].extend(
                Match(position, 1, other, 1, 1) for other in others if hypothesis[other] != reference[position]
            )
        if self._paraphrases is not None:
            self._add_paraphrases(self._paraphrases, hypothesis, reference, found)
        return found

    @staticmethod
    def _add_paraphrases(
        table: Paraphrases, hypothesis: Sequence[str], reference: Sequence[str], found: list[list[Match]]
    ) -> None:
        """The table is read in both directions."""
        for start in range(len(reference)):
            for length, other in table.at(reference, start):
                for place in _places(other, hypothesis):
                    found[start].append(Match(start, length, place, len(other), 2))
        for start in range(len(hypothesis)):
            for length, other in table.at(hypothesis, start):
                for place in _places(other, reference):
                    found[place].append(Match(place, len(other), start, length, 2))


def _same(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[list[int]]:
    """For each of `theirs` the positions of the same string among `ours`."""
    places: dict[str, list[int]] = defaultdict(list)
    for position, word in enumerate(ours):
        places[word].append(position)
    return (places.get(word, []) for word in theirs)


def _places(phrase: Sequence[str], words: Sequence[str]) -> Iterator[int]:
    size = len(phrase)
    return (i for i, word in enumerate(words) if word == phrase[0] and words[i : i + size] == phrase)
