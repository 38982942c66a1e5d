"""Glossaries are read by column, and what a translation did not use is found, inflected forms accepted."""

from __future__ import annotations

import time
from itertools import product
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weitblick.documents.document import Document, Sentence
from weitblick.errors import UserError
from weitblick.memory.glossary import Glossary, GlossaryCheck, Term
from weitblick.memory.terms import Terms, says


@pytest.mark.parametrize(
    ("text", "term", "expected"),
    [
        ("des Berichterstatters", "Berichterstatter", True),
        ("die Fischereien", "Fischerei", True),
        ("Berichte", "Berichterstatter", False),
        ("the cod quotas", "cod quota", True),
        ("codes", "cod", True),
        ("the code is long", "codfish", False),
        ("Ein Kabeljaubestand", "bestand", False),
    ],
)
def test_a_term_may_be_inflected(text, term, expected):
    assert says(text, term) is expected


def test_what_was_not_used_is_found(tmp_path):
    (tmp_path / "terms.tsv").write_text("cod\tDorsch\nquota\tQuote\n", encoding="utf-8")
    (tmp_path / "keep.txt").write_text("Weitblick\n", encoding="utf-8")
    glossary = Glossary.read([tmp_path / "terms.tsv"], [tmp_path / "keep.txt"])
    document = Document(
        "1",
        (
            Sentence("The cod quota.", "Die Dorschquote."),
            Sentence("Quotas for cod.", "Quoten für Dorsche."),
            Sentence("Weitblick is here.", "Fernsicht ist da."),
        ),
    )
    occurrences, missed = glossary.check(document)
    assert [(miss.sentence, miss.term.source) for miss in missed] == [(3, "Weitblick")]  # Dorschquote says both
    assert occurrences == 5


def missed(terms: list[tuple[str, str]], source: str, target: str) -> tuple[int, list[str]]:
    glossary = Glossary([Term(*term, f"g:{number}") for number, term in enumerate(terms, 1)])
    occurrences, found = glossary.check(Document("1", (Sentence(source, target),)))
    return occurrences, [f"{miss.term.source} -> {miss.term.target}" for miss in found]


@pytest.mark.parametrize(
    ("terms", "source", "target", "expected"),
    [
        ([("IT", "IT")], "It works, and it is fast.", "Es funktioniert.", (0, [])),
        ([("US", "USA")], "It helps us.", "Es hilft uns.", (0, [])),
        ([("IT", "IT")], "The IT sector.", "Der it Sektor.", (1, ["IT -> IT"])),
        ([("C++", "C++")], "In C++, say.", "In C++, sagt man.", (1, [])),
        ([("[a-z]*", "[a-z]*")], "Type [a-z]* now.", "Nun [a-z] tippen.", (1, ["[a-z]* -> [a-z]*"])),
        ([("(", "(")], "Type (now.", "Nun ( tippen.", (1, [])),
        ([("cod", "Dorsch"), ("cod", "Kabeljau")], "The cod.", "Der Kabeljau.", (1, [])),
        ([("cod", "Dorsch"), ("cod", "Dorsch")], "The cod.", "Der Fisch.", (1, ["cod -> Dorsch"])),
        (
            [("Common Fisheries Policy", "Gemeinsame Fischereipolitik")],
            "Of the common  fisheries policies.",
            "Der Gemeinsamen Fischereipolitik.",
            (1, []),
        ),
    ],
)
def test_capitals_signs_alternatives_and_several_words(terms, source, target, expected):
    assert missed(terms, source, target) == expected


WORDS = ["cod", "Cods", "quota", "IT", "it", ".NET", "C++", "ÄRGER", "ärgern", "x.y", "("]
TEXT = st.lists(st.sampled_from(WORDS), max_size=6)


@given(TEXT, st.lists(TEXT.filter(bool).map(" ".join), max_size=4, unique=True))
def test_an_index_finds_what_a_search_for_each_term_finds(words, terms):
    text = " ".join(words)
    assert set(Terms(terms).found_in(text)) == {term for term in terms if says(text, term)}


def test_thousands_of_terms_take_no_time():
    words = ["".join(letters) for letters in product(ascii_lowercase, repeat=3)]  # 17,576
    glossary = Glossary([Term(f"{word}xxxx {word}", f"Ziel {word}", "") for word in words])
    document = Document("1", tuple(Sentence(f"Some {word}xxxx {word} is here.", "Nichts.") for word in words[:500]))
    check = GlossaryCheck(glossary)
    begun = time.monotonic()
    check(document)
    assert check.occurrences == len(check.missed) == 500
    assert time.monotonic() - begun < 10  # a search for each term takes minutes


def test_a_first_line_may_name_the_columns(tmp_path):
    (tmp_path / "terms.tsv").write_text("Source\tTarget\ncod\tDorsch\n", encoding="utf-8")
    assert [term.source for term in Glossary.read([tmp_path / "terms.tsv"]).terms] == ["cod"]


@pytest.mark.parametrize("text", ["cod\n", "cod\tDorsch\tKabeljau\n", "", "\tDorsch\n"])
def test_a_bad_glossary_is_one_line(tmp_path, text):
    (tmp_path / "terms.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"terms\.tsv"):
        Glossary.read([tmp_path / "terms.tsv"])
