"""The most probable of many ways to say a term: what cannot win any more is not read to its end.

A candidate costs what its words cost, and words behind it that all candidates have in common only add to that. So the
words in which candidates differ are scored first, then the rest of the best, and of others only where these have cost
less so far than the best do in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weitblick.text.base import EOS, TextPipeline
from weitblick.translation.term_cases import TermCase
from weitblick.translation.term_places import Candidate
from weitblick.translation.term_scorer import TermScorer

MOST_FIRST = 3
"""Words with which replacements at one place may begin: articles, or forms of the term."""
WORDS_BEHIND = 3
"""Words behind a term that have a say in its form."""
NEARLY_BEST = 1.0
"""Nats by which a candidate may cost more than the best, to be read to its end at once."""


@dataclass
class _Alternatives:
    """Candidates for one place, as words: those from `start` up to `common` before the end of each are different;
    wanted: how many of the best are asked for; costs: what they cost so far, in nats, and `whole`: in all."""

    case: TermCase
    candidates: Sequence[Candidate]
    rows: list[list[int]]
    wanted: int
    start: int = 0
    common: int = 0
    costs: dict[int, float] = field(default_factory=dict)
    whole: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start = _common_beginning(self.rows)
        shortest = min(map(len, self.rows)) - self.start
        self.common = min(_common_beginning([row[::-1] for row in self.rows]), shortest)

    def head(self, place: int) -> list[int]:
        """The words of a candidate up to those that all end with."""
        return self.rows[place][: len(self.rows[place]) - self.common]

    def promising(self) -> list[int]:
        """Candidates that may be among the best, and have not been read to their end."""
        left = sorted((cost, place) for place, cost in self.costs.items() if place not in self.whole)
        if not self.whole:
            most = left[: self.wanted][-1][0] + NEARLY_BEST
            return [place for cost, place in left if cost <= most]
        bound = sorted(self.whole.values())[: self.wanted][-1]
        return [place for cost, place in left if cost < bound]

    def best(self) -> list[Candidate]:
        return [self.candidates[place] for place in sorted(self.whole, key=lambda place: self.whole[place])]


def best_candidates(
    scorer: TermScorer,
    pipeline: TextPipeline,
    cases: Sequence[TermCase],
    offered: Sequence[Sequence[Candidate]],
    wanted: Sequence[int],
) -> list[list[Candidate]]:
    """Of the candidates for each place the most probable ones, the best first: as many as are wanted, perhaps more."""
    ids = iter(pipeline.encode_target([one.until(WORDS_BEHIND) for own in offered if len(own) > 1 for one in own]))
    asked: dict[int, _Alternatives] = {}
    for place, (case, own, count) in enumerate(zip(cases, offered, wanted, strict=True)):
        if len(own) > 1:
            asked[place] = _Alternatives(case, own, [next(ids) for _ in own], count)
    every = list(asked.values())
    _score(scorer, [(own, place) for own in every for place in _likely(scorer, own)], heads=True)
    for _ in range(2):
        _score(scorer, [(own, place) for own in every for place in own.promising()], heads=False)
    return [asked[place].best() if place in asked else list(own) for place, own in enumerate(offered)]


def _score(scorer: TermScorer, tried: Sequence[tuple[_Alternatives, int]], heads: bool) -> None:
    """What candidates cost by the words in which they differ, or by those behind them."""
    if not tried:
        return
    numbers = [own.case.number for own, _ in tried]
    rows = [own.head(place) if heads else own.rows[place] for own, place in tried]
    begun = [own.start if heads else len(own.head(place)) for own, place in tried]
    for (own, place), score in zip(tried, scorer.score_alternatives(numbers, rows, begun), strict=True):
        if heads:
            own.costs[place] = own.candidates[place].penalty - score
        else:
            own.whole[place] = own.costs[place] - score


def _likely(scorer: TermScorer, own: _Alternatives) -> list[int]:
    """The candidates that are worth a trial: with the likeliest words where they begin to differ, in the translation as
    it was, or the word that stood there."""
    case, rows, start = own.case, own.rows, own.start
    firsts = [row[start] if start < len(row) else EOS for row in rows]
    different = list(dict.fromkeys(firsts))
    if len(different) <= MOST_FIRST or case.states is None or rows[0][:start] != case.ids[:start]:
        return list(range(len(rows)))
    weight, bias = scorer.model.sentence.output()
    logits = weight[different] @ case.states[start] + bias[different]
    best = {different[place] for place in logits.topk(MOST_FIRST).indices.tolist()} | {*case.ids[start : start + 1]}
    return [place for place, first in enumerate(firsts) if first in best]


def _common_beginning(rows: Sequence[Sequence[int]]) -> int:
    """How many words all rows begin with."""
    shortest = min(map(len, rows))
    first = rows[0]
    return next((n for n in range(shortest) if any(row[n] != first[n] for row in rows)), shortest)
