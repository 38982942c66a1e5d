"""Glossaries are read by column, and what a translation did not use is found, inflected forms accepted."""

from __future__ import annotations

from itertools import pairwise, product
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weitblick.common.errors import UserError
from weitblick.documents.document import Document, Sentence
from weitblick.memory.glossary import Glossary, GlossaryCheck
from weitblick.memory.terms import Term, Terms, says


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
def test_an_index_finds_what_each_term_alone_finds_unless_a_longer_one_has_its_words(words, terms):
    text = " ".join(words)
    alone = {
        (one.start, one.end, term)
        for term in terms
        for one in Terms([Term(term, "x", "")]).occurrences(text)
    }  # fmt: skip
    together = [(one.start, one.end) for one in Terms([Term(term, "x", "") for term in terms]).occurrences(text)]
    assert set(together) <= {(start, end) for start, end, _ in alone}
    assert all(one[1] <= other[0] for one, other in pairwise(together))
    for start, end, _ in alone:
        assert any(first < end and start < last for first, last in together)


def test_an_index_looks_at_few_of_a_hundred_thousand_terms(monkeypatch):
    words = ["".join(letters) for letters in product(ascii_lowercase, repeat=4)][:100_000]
    glossary = Glossary([Term(f"{word}xxxx {word}", f"Ziel {word}", "") for word in words])
    looked_at = []
    monkeypatch.setattr(Terms, "_fits", lambda terms, term, source, own: looked_at.append(term) or True)
    check = GlossaryCheck(glossary)
    sentences = tuple(Sentence(f"Some {word}xxxx {word} is here.", "Nichts.") for word in words[:50])
    check(Document("1", sentences))
    assert check.occurrences == len(check.missed) == 50
    assert len(looked_at) == 50


def test_what_was_followed_is_told():
    check = GlossaryCheck(Glossary([Term("cod", "Dorsch", "g:1"), Term("house", "Haus", "g:2")]))
    check(Document("1", (Sentence("The cod.", "Der Dorsch."), Sentence("Two houses.", "Zwei Häuser."))))
    check(Document("2", (Sentence("A cod.", "Ein Kabeljau."),)))
    lines = list(check.lines())
    assert lines[0] == "glossary: 2 of 3 terms translated as it says"
    assert "glossary: cod -> Dorsch (g:1) followed in 1 of 2 places" in lines
    assert "glossary: house -> Haus (g:2) followed in 1 of 1 places" in lines
    assert lines[-1] == "glossary: sentence 1 of document 2 does not say cod -> Dorsch (g:1)"


def test_contradictions_are_told_and_the_project_s_own_wins():
    terms = [Term("cod", "Dorsch", "a:1"), Term("cod", "Kabeljau", "b:2")]
    (line,) = Glossary(terms).contradictions()
    assert "Dorsch (a:1)" in line
    assert "Kabeljau (b:2)" in line
    (found,) = Terms([*terms, Term("cod", "Skrei", "row 3", kind="key")]).occurrences("A cod.")
    assert [term.target for term in found.terms] == ["Skrei"]


def test_a_first_line_may_name_the_columns(tmp_path):
    (tmp_path / "terms.tsv").write_text("Source\tTarget\ncod\tDorsch\n", encoding="utf-8")
    assert [term.source for term in Glossary.read([tmp_path / "terms.tsv"]).terms] == ["cod"]


@pytest.mark.parametrize("text", ["cod\n", "cod\tDorsch\tKabeljau\n", "", "\tDorsch\n"])
def test_a_bad_glossary_is_one_line(tmp_path, text):
    (tmp_path / "terms.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"terms\.tsv"):
        Glossary.read([tmp_path / "terms.tsv"])
