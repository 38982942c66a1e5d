"""Plain text: a line in, a line out; nothing that is no text is lost, whatever a translator does."""

from __future__ import annotations

from pathlib import Path

import pytest
from file_translators import amnesia, each, reversed_words, translated, upper
from hypothesis import given, settings
from hypothesis import strategies as st

from weitblick.files.blocks import WORD, Code, Pieces
from weitblick.files.formats import format_of, read_file
from weitblick.text.carried import carried_spans, lost_numbers

LETTER = """Dear Sir,

I thank you for the report. It is very good. We will support
it in the vote tomorrow, because it helps everybody who works
in small companies.

  - The first point is the budget.
  - The second one is the climate. It is more important.
    1) See https://example.org/report_2.pdf for details.

\tYours,
John Smith
"""


def test_sentences_of_a_line_are_translated_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text(LETTER, encoding="utf-8")
    sources = read_file(tmp_path / "letter.txt").document.sources
    assert sources[1:4] == [
        "I thank you for the report.",
        "It is very good.",
        "We will support it in the vote tomorrow, because it helps everybody who works in small companies.",
    ]
    assert "The second one is the climate." in sources
    assert "It is more important." in sources


def test_a_line_for_a_line(tmp_path: Path) -> None:
    lines = translated(tmp_path / "letter.txt", LETTER, upper).split("\n")
    assert len(lines) == len(LETTER.split("\n"))
    assert [not line.strip() for line in lines] == [not line.strip() for line in LETTER.split("\n")]
    assert lines[6] == "  - THE FIRST POINT IS THE BUDGET."
    assert lines[7] == "  - THE SECOND ONE IS THE CLIMATE. IT IS MORE IMPORTANT."
    assert lines[8] == "    1) SEE https://example.org/report_2.pdf FOR DETAILS."
    assert lines[10] == "\tYOURS,"
    assert max(len(line) for line in lines[2:5]) < 75


def test_a_sentence_a_line_stays_one(tmp_path: Path) -> None:
    text = "This is a sentence that is about as long as any.\nAnd here is another one.\nA third one.\n"
    assert translated(tmp_path / "x.txt", text, upper) == text.upper()


ITEMS = ["{name}", "%s", "%(count)d", "https://example.org/x?y=1#z", "bob@example.com", "snake_case", "f()", "{0:.2f}"]


@pytest.mark.parametrize("item", [*ITEMS, "--output", "A5-0123/2003", "10:30", "/usr/share/x.txt", "${HOME}", "&amp;"])
def test_what_is_no_text_comes_out_once(tmp_path: Path, item: str) -> None:
    text = f"Please open {item} before you go."
    for translate in (reversed_words, amnesia, upper):
        assert translated(tmp_path / "x.txt", text, translate).count(item) == 1


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([*ITEMS, "we", "open", "it", "X1", "Paris", "12"]), min_size=2, max_size=9))
def test_many_items_in_a_sentence(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    text = "Now " + " ".join(words) + " again."
    path = tmp_path_factory.mktemp("t") / "x.txt"
    for translate in (reversed_words, amnesia, each(lambda source: f"{source} {source}")):
        result = translated(path, text, translate)
        for item in ITEMS:
            assert result.count(item) == text.count(item), result


@settings(deadline=None, max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_identity_is_identity(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("t") / "x.txt"
    path.write_bytes(text.encode("utf-8"))
    file = read_file(path)
    assert file.rendered(file.document)[0] == text.encode("utf-8")
    lines = translated(path, None, upper).split("\n")
    assert len(lines) == len(text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"))


def test_ordinary_text_is_not_protected() -> None:
    text = "He said: and/or 50% of the 1st and 20th (about 3 km) -- well, McDonald's PhDs, e.g. here. Really? Yes!"
    assert [text[start:end] for start, end in carried_spans(text)] == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("It is in C:\\temp.", ["C:\\temp"]),
        ("It has 100 m² and E = mc2, or a < b.", ["100 m²", "E = mc2", "a < b"]),
        ("It is 2 = 200 m².", ["2 = 200 m²"]),
        ("Johnson & Johnson make bread & butter.", ["&"]),
    ],
)
def test_what_is_protected(text: str, kept: list[str]) -> None:
    assert [text[start:end] for start, end in carried_spans(text)] == kept


def test_words_of_another_script_are_protected() -> None:
    pieces = Pieces()
    pieces.text("This man said ")
    pieces.code(Code("open", "<b>"))
    pieces.text("שלום עולם")
    pieces.code(Code("close", "</b>"))
    pieces.text(" to all of us in 東京.")
    text, codes = pieces.content()
    assert text == f"This man said {WORD} to all of us in {WORD}."
    assert [(code.kind, code.shown, code.at) for code in codes] == [
        *(("open", "", 14), ("word", "שלום עולם", 14), ("close", "", 15), ("word", "東京", 32))
    ]


def test_text_of_another_script_stays_and_an_ampersand_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("Time & money are short\n\nשלום עולם\n\nWait...\n\n...for it\n", encoding="utf-8")
    assert read_file(path).masked().sources == ["Time and money are short", "Wait...", "for it"]
    finished = each(lambda source: source.upper().strip(".") + ".")
    assert translated(path, None, finished) == "TIME AND MONEY ARE SHORT\n\nשלום עולם\n\nWAIT...\n\n...FOR IT\n"


def test_sentences_without_spaces_between_them(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("我很好。他来了！", encoding="utf-8")
    file = read_file(tmp_path / "x.txt", language="zh")
    assert file.document.sources == ["我很好。", "他来了！"]
    english = {"我很好。": "I am fine.", "他来了！": "He came!"}
    document = each(english.__getitem__)(file.document)
    assert file.rendered(document)[0].decode() == "I am fine. He came!"


def test_numbers_are_checked() -> None:
    assert lost_numbers("In 1999 it was 1,234.5 of 3.", "1999 waren es 1.234,5 von drei.") == []
    assert lost_numbers("In 1999 it was 42.", "Es war 24.") == ["1999", "42"]


def test_lost_numbers_are_reported(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("It was in 1999.", encoding="utf-8")
    file = read_file(tmp_path / "x.txt")
    _, notes = file.unmasked(amnesia(file.masked()))
    assert notes == ["sentence 1: the number 1999 is not in the translation"]


def test_white_space_collapses_across_codes() -> None:
    pieces = Pieces(collapse=True)
    pieces.text(" a \n b ")
    pieces.text("  c\u00a0 d")
    assert pieces.content()[0] == " a b c\u00a0 d"


def test_a_text_with_addresses_is_no_corpus(tmp_path: Path) -> None:
    for name, text, expected in (
        ("x.txt", "This is a sentence.\nAnd here is another one.\n", None),
        ("x.txt", "This is a sentence.\nSee https://example.org for another one.\n", "txt"),
        ("x.en", "This is a sentence.\nSee https://example.org for another one.\n", None),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert format_of(tmp_path / name) == expected
