"""Paired differences: who wins which items, and how sure that is."""

from __future__ import annotations

import pytest

from weitblick.documents.contrast import ContrastItem
from weitblick.evaluation.contrast import compare_correct, document_of, summarise
from weitblick.evaluation.pronouns import by_article, judge_pronouns, pronoun_of


def test_a_clear_difference() -> None:
    first, second = [True] * 30 + [False] * 10, [False] * 20 + [True] * 10 + [False] * 10
    found = compare_correct(first, second, [str(number) for number in range(40)])
    assert (found.difference.mean, found.better, found.worse) == (0.5, 20, 0)
    assert 0 < found.difference.low < 0.5 < found.difference.high < 1
    assert found.p == pytest.approx(2 * 0.5**20, rel=1e-3)
    other = compare_correct(second, first, [str(number) for number in range(40)])
    assert (other.difference.mean, other.better, other.worse, other.p) == (-0.5, 0, 20, found.p)


def test_no_difference() -> None:
    found = compare_correct([True, False], [True, False], ["1", "2"])
    assert (found.difference.mean, found.difference.low, found.difference.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_items_of_one_document_are_drawn_together() -> None:
    first, second = [True] * 20 + [False] * 20, [False] * 20 + [True] * 20
    alone = compare_correct(first, second, [str(number) for number in range(40)])
    together = compare_correct(first, second, ["a"] * 20 + ["b"] * 20)
    assert (together.difference.low, together.difference.high) == (-1.0, 1.0)
    assert alone.difference.high < 0.5


def test_items_of_a_document_are_told_by_their_ids() -> None:
    assert [document_of(name) for name in ("12.7", "12.8", "a.b.1", "15")] == ["12", "12", "a.b", "15"]


@pytest.mark.parametrize(
    ("before", "first", "last"),
    [
        ("Die Kommission hat den Bericht gelesen.", "sie", "er"),
        ("Das neue Parlament tagt.", "es", "es"),
        ("Wir danken.", None, None),
        (None, None, None),
    ],
)
def test_article_rules(before: str | None, first: str | None, last: str | None) -> None:
    item = ContrastItem(source=("A.", "It."), target=(before, "Es."), sentence=1, reference="Es.", contrastive=("Er.",))
    assert (by_article(item, "first"), by_article(item, "last")) == (first, last)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Er ist gut.", "er"),
        ("Wir haben ihn.", "er"),
        ("Das ist gut, wenn sie kommt.", None),
        ("Das Parlament weiß, dass es gut ist.", "es"),
        ("Gut.", None),
    ],
)
def test_said_pronoun(text: str, said: str | None) -> None:
    assert pronoun_of(text) == said


def test_words_decide_items() -> None:
    items = [
        ContrastItem(source=("It.",), sentence=0, reference="Es.", contrastive=("Er.",), pronoun=pronoun)
        for pronoun in ("er", "sie", "es")
    ]
    found = summarise(judge_pronouns(items, ["er", "es", None])).overall
    assert (found.items, found.correct, found.ties) == (3, 1, 1)
