"""METEOR's alignment: the most matches, in the fewest chunks, over the least distance, found by beam search.

The search walks over the reference. Where a word has exactly one possible match, and so have all words of that match,
there is nothing to search. Two details are the reference implementation's, kept because the published numbers have
them: a match counts with the whole part of its weighted length (a stem match therefore never displaces an exact one),
and the distance of a match is charged to the alternatives tried after it at the same word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from weitblick.metrics.meteor.matching import Match

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
