"""Glossaries are read by column, and what a translation did not use is found, inflected forms accepted."""

from __future__ import annotations

import pytest

from weitblick.documents.document import Document, Sentence
from weitblick.errors import UserError
from weitblick.memory.glossary import Glossary, says


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
    missed = [(miss.sentence, miss.term.source) for miss in glossary.missed(document)]
    assert missed == [(3, "Weitblick")]  # Dorschquote says both
    assert glossary.occurrences(document) == 5


@pytest.mark.parametrize("text", ["cod\n", "cod\tDorsch\tKabeljau\n", "", "\tDorsch\n"])
def test_a_bad_glossary_is_one_line(tmp_path, text):
    (tmp_path / "terms.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"terms\.tsv"):
        Glossary.read([tmp_path / "terms.tsv"])
