"""Tables of approved pairs: columns by titles or by their number, and quotation marks as spreadsheets write them."""

from __future__ import annotations

import pytest

from weitblick.common.errors import UserError
from weitblick.memory.store import Memory


def pairs(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return [(p.source, p.target, p.origin) for p in Memory.read(path, ("en", "de"))]


@pytest.mark.parametrize(
    "text",
    [
        "source\ttarget\tnote\nYes.\tJa.\tchecked by me\n",
        "DE\tremark\tEN\nJa.\t-\tYes.\n",
        "id\tsource\ttarget\n1\tYes.\tJa.\n",
        "\n1\tYes.\tJa.\n",
        "Yes.\t\nYes.\tJa.\r\n\t\n",
    ],
)
def test_columns_are_known_by_titles_or_number(tmp_path, text):
    assert pairs(tmp_path / "a.tsv", text) == [("Yes.", "Ja.", "a.tsv:2")]


def test_a_document_may_come_again(tmp_path):
    found = pairs(tmp_path / "a.tsv", "x\tYes.\tJa.\ny\tNo.\tNein.\nx\tWhy?\tWarum?\n")
    assert [source for source, _, _ in found] == ["Yes.", "No.", "Why?"]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ('"He said ""yes""."', 'He said "yes".'),
        ('"Yes," he said.', '"Yes," he said.'),
        ('"Yes."', '"Yes."'),
        ('"', '"'),
        ('""', '""'),
        ('"a" and "b"', '"a" and "b"'),
    ],
)
def test_doubled_quotation_marks_are_those_of_spreadsheets(tmp_path, cell, text):
    assert pairs(tmp_path / "a.tsv", f"{cell}\t{cell}\n") == [(text, text, "a.tsv:1")]


@pytest.mark.parametrize(
    "text",
    [
        'source,target\n"Yes, ""sir"".",Ja.\n',
        '"Yes, ""sir"".";Ja.\n',
        'DE,note,EN\nJa.,"two\nlines","Yes, ""sir""."\n',
    ],
)
def test_csv_is_quoted_and_separated_as_spreadsheets_do(tmp_path, text):
    ((source, target, _),) = pairs(tmp_path / "a.csv", text)
    assert (source, target) == ('Yes, "sir".', "Ja.")


def test_csv_that_is_none_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"a\.csv:2: is no CSV"):
        pairs(tmp_path / "a.csv", 'Yes.,Ja.\n"No.,Nein.\n')
    with pytest.raises(UserError, match=r"a\.csv:2: has 3 columns, not 2 as before"):
        pairs(tmp_path / "a.csv", "Yes.,Ja.\nNo, no.,Nein.\n")


def test_unicode_text_of_a_spreadsheet(tmp_path):
    assert pairs(tmp_path / "a.txt", "Yes.\tJä.\r\n", "utf-16") == [("Yes.", "Jä.", "a.txt:1")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Yes.\tJa.\nNo.\n", r"a\.tsv:2: has 1 column, not 2 as before"),
        ("a\tb\tc\td\n", r"a\.tsv:1: has 4 columns, and nothing says which are source and target"),
        ("id\tsource\n1\tYes.\n", r"a\.tsv:2: has no target side"),
        ("Yes.\t\n", r"a\.tsv: holds no approved pair"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        pairs(tmp_path / "a.tsv", text)
