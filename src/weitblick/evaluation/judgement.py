"""What raters' answers say: preferences, the two-sided sign test, and how far raters agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from weitblick.common.errors import UserError
from weitblick.common.files import check_format_version, read_json
from weitblick.evaluation.judgement_form import FORMAT_VERSION, Key


@dataclass(frozen=True)
class SignTest:
    """`x` of `n` judgements prefer the system; a tie counts half for each side."""

    x: float
    n: int
    p: float


def sign_test(x: float, n: int) -> SignTest:
    """Two-sided binomial test against 1/2.

    Ties split evenly may leave half a judgement; it is moved toward n/2, so that splitting never makes a
    difference look more significant.
    """
    from scipy.stats import binomtest

    if n < 1:
        raise UserError(f"n is {n}", remedy="give at least one judgement")
    if not 0 <= x <= n or (2 * x) % 1:
        raise UserError(f"x is {x:g} of n = {n}", remedy="x counts judgements from 0 to n, ties as halves")
    whole = math.floor(x) if x > n / 2 else math.ceil(x)
    return SignTest(x, n, float(binomtest(whole, n, 0.5).pvalue))


# How far raters agree: plain agreement, Cohen's kappa for two raters, Fleiss' kappa for any number.


@dataclass(frozen=True)
class Agreement:
    """`plain` is the share of pairs of raters who gave the same answer; a kappa is None where chance explains all."""

    raters: int
    items: int
    plain: float
    cohen: float | None
    fleiss: float | None


def agreement(answers: Sequence[Sequence[str]], categories: Sequence[str]) -> Agreement | None:
    """`answers[r][i]`: what rater r said of item i. None for fewer than two raters or no item."""
    raters = len(answers)
    items = len(answers[0]) if answers else 0
    if raters < 2 or items == 0:
        return None
    by_item = np.array([[column.count(c) for c in categories] for column in zip(*answers, strict=True)])
    same = (by_item * (by_item - 1)).sum() / (items * raters * (raters - 1))
    shares = by_item.sum(axis=0) / (items * raters)
    return Agreement(raters, items, float(same), _mean_cohen(answers), _kappa(same, float((shares**2).sum())))


def _mean_cohen(answers: Sequence[Sequence[str]]) -> float | None:
    """Cohen's kappa, its mean over the pairs of raters where there are more than two."""
    values = [_cohen(first, second) for first, second in combinations(answers, 2)]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _cohen(first: Sequence[str], second: Sequence[str]) -> float | None:
    size = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / size
    ours, theirs = Counter(first), Counter(second)
    return _kappa(observed, sum(ours[c] * theirs[c] for c in ours) / size**2)


def _kappa(observed: float, expected: float) -> float | None:
    return None if np.isclose(expected, 1.0) else float((observed - expected) / (1 - expected))


# Raters' answers, unblinded and counted.

QUESTIONS = ("adequacy", "fluency")
LEFT, RIGHT, TIE = "left", "right", "tie"
FIRST, SECOND = "first", "second"


@dataclass(frozen=True)
class Answers:
    """One rater's answers: item -> question -> left, right or tie."""

    rater: str
    path: Path
    choices: dict[str, dict[str, str]]


@dataclass(frozen=True)
class Preference:
    """All raters' judgements of one question.

    wins, ties  judgements: one for each rater and document
    test        by document, which counts for the system that most of its raters prefer, and as a tie if neither does:
                raters who read the same document are no independent trials. `test.x` is the second system of the key.
    """

    question: str
    wins: dict[str, int]
    ties: int
    test: SignTest
    agreement: Agreement | None


def read_answers(path: Path, key: Key) -> Answers:
    value = read_json(path)
    if not isinstance(value, dict) or not isinstance(value.get("answers"), dict):
        raise UserError("is not a file of answers", where=path, remedy="name the file that the form has saved")
    check_format_version(value, FORMAT_VERSION, path)
    if value.get("form_id") != key.form_id:
        raise UserError(
            f"answers form {value.get('form_id')!r}, the key is of {key.form_id!r}",
            where=path,
            remedy="read the answers with the key of their own form",
        )
    choices = {}
    for item in key.left:
        given = value["answers"].get(item)
        choices[item] = {question: _choice(given, item, question, path) for question in QUESTIONS}
    return Answers(str(value.get("rater") or path.stem), path, choices)


def _choice(given: object, item: str, question: str, path: Path) -> str:
    choice = given.get(question) if isinstance(given, dict) else None
    if choice not in (LEFT, RIGHT, TIE):
        problem = "is missing" if choice is None else f"is {choice!r}"
        raise UserError(
            f"item {item}: {question} {problem}",
            where=path,
            remedy=f"open the form again and answer with {LEFT}, {RIGHT} or {TIE}",
        )
    return str(choice)


def judge_answers(key: Key, raters: Sequence[Answers]) -> list[Preference]:
    """One preference for each question, over all judgements of all raters."""
    if not raters:
        raise UserError("no answers", remedy="name at least one file of answers")
    _check_distinct(raters)
    return [_preference(question, key, raters) for question in QUESTIONS]


def _preference(question: str, key: Key, raters: Sequence[Answers]) -> Preference:
    preferred = [[_side(a.choices[item][question], item, key) for item in key.left] for a in raters]
    flat = [choice for row in preferred for choice in row]
    decided = [_majority(choices) for choices in zip(*preferred, strict=True)]
    test = sign_test(decided.count(SECOND) + decided.count(TIE) / 2, len(decided))
    wins = {key.systems[0]: flat.count(FIRST), key.systems[1]: flat.count(SECOND)}
    return Preference(question, wins, flat.count(TIE), test, agreement(preferred, [FIRST, SECOND, TIE]))


def _majority(choices: Sequence[str]) -> str:
    lead = choices.count(SECOND) - choices.count(FIRST)
    return SECOND if lead > 0 else FIRST if lead < 0 else TIE


def _check_distinct(raters: Sequence[Answers]) -> None:
    """One rater counts once: neither a file nor a name may come twice."""
    for number, answers in enumerate(raters):
        for other in raters[:number]:
            if answers.path.resolve() == other.path.resolve() or answers.rater == other.rater:
                raise UserError(
                    f"is of rater {answers.rater!r}, as is {other.path}",
                    where=answers.path,
                    remedy="name each rater's answers once",
                )


def _side(choice: str, item: str, key: Key) -> str:
    """Which of the key's systems is preferred, whichever side it was shown on."""
    if choice == TIE:
        return TIE
    first_is_left = key.left[item] == key.systems[0]
    return FIRST if (choice == LEFT) == first_is_left else SECOND
