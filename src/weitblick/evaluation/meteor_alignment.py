"""METEOR's words and their alignment: tokenisation (`-norm` of Meteor 1.5), possible matches, the best of them.

Matches of its patterns consume their neighbours on purpose (`a-b-c` loses only its first dash): that is how the
reference implementation counts words, and the numbers of the literature were made with it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from weitblick.common.errors import UserError
from weitblick.common.files import read_lines

# Latin and Cyrillic letters; everything else that is no digit is punctuation to METEOR
LETTERS = "A-Za-zŠŽšžŸÀ-ÖØ-öø-žЀ-ӿԀ-ԧꙀ-ꙮ꙾-ꚗᴀ-ᵿ"
WORD = "0-9" + LETTERS
ASCII_SPACE = " \t\n\x0b\f\r"

_OTHER = re.compile(rf"([^{WORD}{ASCII_SPACE}.'`,\-‘’])")
_DOTS = re.compile(r"\.{2,}")
_COMMAS = tuple(re.compile(pattern) for pattern in (r"([^0-9]),([^0-9])", r"([0-9]),([^0-9])", r"([^0-9]),([0-9])"))
_SINGLE_QUOTES = re.compile("[`‘’]")
_DOUBLE_QUOTES = re.compile("[“”]|''")
_INNER_DASH = re.compile(rf"([{WORD}.])-([{WORD}])")
_SPACES = re.compile("[ \u2000-\u200a\u202f\u205f\u3000\u00a0]+")
_LETTER = re.compile(f"[{LETTERS}]")
_ENGLISH_APOSTROPHES = (
    (re.compile(rf"([^{LETTERS}])'([^{LETTERS}])"), r"\1 ' \2"),
    (re.compile(rf"([^{LETTERS}0-9])'([{LETTERS}])"), r"\1 ' \2"),
    (re.compile(rf"([{LETTERS}])'([^{LETTERS}])"), r"\1 ' \2"),
    (re.compile(rf"([{LETTERS}])'([{LETTERS}])"), r"\1 '\2"),
    (re.compile(r"([0-9])'(s)"), r"\1 '\2"),
)


def normalise(line: str, language: str) -> list[str]:
    """The words METEOR compares."""
    text = _OTHER.sub(r" \1 ", f" {line} ")
    # runs of dots are one word: kept from the rules for single dots by a character no text holds
    text = _DOTS.sub(lambda run: " " + "\ufdd0" * len(run[0]) + " ", text)
    for pattern in _COMMAS:
        text = pattern.sub(r"\1 , \2", text)
    text = _DOUBLE_QUOTES.sub(' " ', _SINGLE_QUOTES.sub("'", text))
    text = _INNER_DASH.sub(r"\1 \2", text.replace("–", "-").replace("--", "-"))
    if language == "en":
        for pattern, replacement in _ENGLISH_APOSTROPHES:
            text = pattern.sub(replacement, text)
    else:
        text = text.replace("'", " ' ")
    words = re.split(f"[{ASCII_SPACE}]+", text.strip(ASCII_SPACE))
    text = " ".join(
        _split_full_stop(word, words[i + 1] if i + 1 < len(words) else "", language) for i, word in enumerate(words)
    )
    return _SPACES.sub(" ", text.replace("\ufdd0", ".")).lower().split()


def _split_full_stop(word: str, following: str, language: str) -> str:
    """A final dot is a word of its own unless it belongs to an abbreviation; `U.S.` is written `US`."""
    if len(word) < 2 or not word.endswith("."):
        return word
    stem = word[:-1]
    if "." in stem and _LETTER.search(stem):
        return word.replace(".", "")
    always, before_numbers = _abbreviations(language)
    if stem in always or "a" <= following[:1] <= "z" or (stem in before_numbers and following[:1].isdecimal()):
        return word
    return f"{stem} ."


@cache
def _abbreviations(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Moses' non-breaking prefixes: those that never end a sentence, and those that do not before a number."""
    from sacremoses.corpus import NonbreakingPrefixes

    entries = [entry.split() for entry in NonbreakingPrefixes().words(language)]
    numeric = {entry[0] for entry in entries if "#NUMERIC_ONLY#" in entry}
    return frozenset(entry[0] for entry in entries if entry) - numeric, frozenset(numeric)


# Which words of a hypothesis may be matched with which of the reference: same form, same stem, paraphrases.

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


# METEOR's alignment: the most matches, in the fewest chunks, over the least distance, found by beam search.
#
# The search walks over the reference. Where a word has exactly one possible match, and so have all words of that
# match, there is nothing to search. Two details are the reference implementation's, kept because the published numbers
# have them: a match counts with the whole part of its weighted length (a stem match therefore never displaces an exact
# one), and the distance of a match is charged to the alternatives tried after it at the same word.

BEAM_SIZE = 40
NOWHERE = -1

# one integer orders partial alignments: matches (more is better), then chunks, then distance
_MATCH, _CHUNK = 1 << 48, 1 << 24


# A partial alignment as a plain tuple, since millions of them are made:
#   cost, end of the open chunk in the hypothesis, next free word of the reference,
#   used words of the hypothesis and of the reference as bits, and the chosen matches as a linked list
_Path = tuple[int, int, int, int, int, Any]


class _Option(NamedTuple):
    """A match with what the search needs to know of it."""

    match: Match
    start: int
    end: int
    resume: int
    used_hypothesis: int
    used_reference: int
    gain: int
    distance: int


class Alignment(NamedTuple):
    matches: list[Match]
    chunks: int


def align(candidates: Sequence[Sequence[Match]], hypothesis_length: int, weights: Sequence[float]) -> Alignment:
    """The best alignment among `candidates`, the possible matches that begin at each word of the reference."""
    fixed = _unambiguous(candidates, hypothesis_length)
    if sum(map(len, candidates)) == len(fixed):
        matches = [fixed[position] for position in sorted(fixed)]
        return Alignment(matches, count_chunks(matches))
    certain = {position: _option(match, weights) for position, match in fixed.items()}
    paths = [_reserve(certain.values())]
    for position, matches_here in enumerate(candidates):
        if position in certain:
            paths = [_take(path, certain[position]) for path in paths]
        else:
            paths = _branch(paths, position, [_option(match, weights) for match in matches_here])
        if len(paths) > 1:
            paths.sort(key=itemgetter(0))
            del paths[BEAM_SIZE:]
    # the chunk that is still open counts, too
    best = min(paths, key=lambda path: path[0] + (path[1] != NOWHERE) * _CHUNK)
    matches, link = [], best[-1]
    while link is not None:
        match, link = link
        matches.append(match)
    matches.reverse()
    return Alignment(matches, count_chunks(matches))


def _option(match: Match, weights: Sequence[float]) -> _Option:
    weight = weights[match.module]
    return _Option(
        match,
        match.other,
        match.other + match.other_length,
        match.start + match.length,
        _bits(match.other, match.other_length),
        _bits(match.start, match.length),
        _MATCH * (int(match.length * weight) + int(match.other_length * weight)),
        abs(match.start - match.other),
    )


def _reserve(certain: Iterable[_Option]) -> _Path:
    """The start of the search, in which the words of certain matches are not to be had for others."""
    used_hypothesis = used_reference = 0
    for option in certain:
        used_hypothesis |= option.used_hypothesis
        used_reference |= option.used_reference
    return (0, NOWHERE, 0, used_hypothesis, used_reference, None)


def _branch(paths: list[_Path], position: int, options: Sequence[_Option]) -> list[_Path]:
    """Every path with each match that is still possible at `position`, and without any."""
    grown: list[_Path] = []
    for path in paths:
        cost, last, resume, used_hypothesis, used_reference, chosen = path
        if resume > position:
            grown.append(path)
            continue
        closed = cost if last == NOWHERE else cost + _CHUNK
        for match, start, end, after, ours, theirs, gain, distance in options:
            if used_hypothesis & ours or used_reference & theirs:
                continue
            grown.append(
                (
                    (cost if last == start else closed) - gain,
                    end,
                    after,
                    used_hypothesis | ours,
                    used_reference | theirs,
                    (match, chosen),
                )
            )
            cost, closed = cost + distance, closed + distance
        grown.append((closed, NOWHERE, position + 1, used_hypothesis, used_reference, chosen))
    return grown


def _take(path: _Path, option: _Option) -> _Path:
    cost, last, _, used_hypothesis, used_reference, chosen = path
    closed = 0 if last in (NOWHERE, option.start) else _CHUNK
    cost += closed - option.gain + option.distance
    return (cost, option.end, option.resume, used_hypothesis, used_reference, (option.match, chosen))


def _unambiguous(candidates: Sequence[Sequence[Match]], hypothesis_length: int) -> dict[int, Match]:
    """The matches whose words on both sides take part in no other match, by their place in the reference."""
    ours, theirs = [0] * hypothesis_length, [0] * len(candidates)
    for options in candidates:
        for match in options:
            for place in range(match.other, match.other + match.other_length):
                ours[place] += 1
            for place in range(match.start, match.start + match.length):
                theirs[place] += 1
    return {
        options[0].start: options[0]
        for options in candidates
        if len(options) == 1
        and all(count == 1 for count in ours[options[0].other : options[0].other + options[0].other_length])
        and all(count == 1 for count in theirs[options[0].start : options[0].start + options[0].length])
    }


def _bits(start: int, length: int) -> int:
    return ((1 << length) - 1) << start


def count_chunks(matches: Sequence[Match]) -> int:
    """Runs of matches that are adjacent and in the same order on both sides; `matches` in reference order."""
    chunks, next_reference, next_hypothesis = 0, NOWHERE, NOWHERE
    for match in matches:
        if (match.start, match.other) != (next_reference, next_hypothesis):
            chunks += 1
        next_reference, next_hypothesis = match.start + match.length, match.other + match.other_length
    return chunks
