"""Raters' answers, unblinded and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weitblick.errors import UserError
from weitblick.files import check_format_version, read_json
from weitblick.judgement.agreement import Agreement, agreement
from weitblick.judgement.form import FORMAT_VERSION, Key
from weitblick.judgement.sign_test import SignTest, sign_test

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
