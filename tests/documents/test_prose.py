"""Prose is cut into sentences and put together again."""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pysbd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weitblick.common.errors import UserError
from weitblick.documents.corpora.formats import read_documents, write_documents, write_translations
from weitblick.documents.corpora.prose import ONE_SENTENCE, sentence_splitter, split_exactly

LETTER = """

  Dear Mr. Smith, it rained.  We stayed in.
Yours

A second paragraph.   It has two sentences.


"""


def test_prose_comes_back_with_its_paragraphs_and_spaces() -> None:
    Path("letter.txt").write_text(LETTER)
    (document,) = read_documents(["letter.txt"], "prose")
    assert document.sources == [
        "Dear Mr. Smith, it rained.",
        "We stayed in.",
        "Yours",
        "A second paragraph.",
        "It has two sentences.",
    ]
    write_documents([document], ["back.txt"], "prose")
    assert Path("back.txt").read_text() == LETTER
    done = replace(document, sentences=tuple(replace(s, target=s.source.upper()) for s in document.sentences))
    write_translations([done], "out.txt", "prose")
    assert Path("out.txt").read_text() == LETTER.upper()


def test_wrapped_lines_are_one_paragraph_and_others_are_not() -> None:
    wrapped = (
        "It was the best of times, it was the worst of\ntimes, and it was late. Nobody had slept at all\nthat night."
    )
    verse = "Roses are red\nviolets are blue"
    Path("a.txt").write_text(f"{wrapped}\n\n{verse}\n")
    (document,) = read_documents(["a.txt"], "prose")
    assert document.sources == [
        "It was the best of times, it was the worst of times, and it was late.",
        "Nobody had slept at all that night.",
        "Roses are red",
        "violets are blue",
    ]
    assert [s.metadata["paragraph"] for s in document.sentences] == [1, 1, 2, 3]


def test_a_long_paragraph_is_cut_only_between_sentences() -> None:
    sentence = "The committee has considered the proposal of the council with great care."
    Path("a.txt").write_text(" ".join([sentence] * 150) + "\n")
    (document,) = read_documents(["a.txt"], "prose")
    assert document.sources == [sentence] * 150


@given(st.text(st.sampled_from("aB .!?\"\t'“”ß1…")))
def test_splitting_loses_nothing(text: str) -> None:
    pieces = list(split_exactly(text, sentence_splitter("de")))
    assert "".join(sentence + space for sentence, space in pieces) == text
    assert all(sentence == sentence.strip() for sentence, _ in pieces)


@pytest.mark.parametrize("language", ["de", "de-AT", "xx"])
def test_a_language_without_rules_is_split_all_the_same(language: str) -> None:
    Path("a.txt").write_text("Es war z.B. kalt. Wir gingen.\n")
    (document,) = read_documents(["a.txt"], "prose", languages=(language, "en"))
    assert document.sources[-1] == "Wir gingen."


def test_two_sides_of_prose_must_agree() -> None:
    Path("a.txt").write_text("One. Two.\n\nThree.\n")
    Path("b.txt").write_text("Eins. Zwei.\n\nDrei.\n")
    (document,) = read_documents(["a.txt", "b.txt"], "prose", languages=("en", "de"))
    assert document.targets == ["Eins.", "Zwei.", "Drei."]
    Path("b.txt").write_text("Eins.\n\nZwei. Drei.\n")
    with pytest.raises(UserError, match=r"b\.txt:3: the sides do not have the same sentences"):
        list(read_documents(["a.txt", "b.txt"], "prose"))


def test_a_second_document_is_refused() -> None:
    Path("a").write_text("a\n\nb\n")
    with pytest.raises(UserError, match="one file for each document"):
        write_documents(read_documents(["a"]), ["o.txt"], "prose")


@pytest.mark.parametrize("language", ["de", "en"])
def test_what_is_taken_for_one_sentence_is_one_for_pysbd(language: str) -> None:
    """Abbreviations, initials, list-like beginnings and names with marks among plain words, in random order."""
    segmenter = pysbd.Segmenter(language=language, clean=False)
    words = ["Mr", "e", "g", "i", "v", "a", "No", "Yahoo", "Dr", "Jan", "St", "I", "vs", "etc", "Der", "Haus", "geht"]
    chooser = random.Random(1)
    taken = 0
    for _ in range(300):
        text = chooser.choice(words)
        for word in chooser.choices(words, k=chooser.randint(0, 8)):
            text += chooser.choice([" ", ", ", "-", " - ", "'", "’"]) + word
        text += chooser.choice(["", ".", "!", "?", " .", ". ", "..", ". A"])
        if ONE_SENTENCE.fullmatch(text):
            taken += 1
            assert [part.strip() for part in segmenter.segment(text)] == [text]
    assert taken > 100


def test_threads_split_without_disturbing_each_other() -> None:
    texts = [" ".join(f"This is No. {number} of Mr. {name}." for number in range(20)) for name in "ABCD"]
    split = sentence_splitter("en")
    expected = [split(text) for text in texts]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            for _ in range(3):
                assert list(pool.map(split, texts)) == expected
    finally:
        sys.setswitchinterval(interval)


@given(
    st.lists(
        st.sampled_from(["Mr. Smith", "He came.", "e.g. this", "No!", "(Yes?)", "“Go.”", "1. One", " ", "\t", "a"])
    )
)
def test_sentences_are_those_of_pysbd_itself(parts: list[str]) -> None:
    text = " ".join(parts)
    if text and not ONE_SENTENCE.fullmatch(text):
        assert sentence_splitter("en")(text) == pysbd.Segmenter(language="en", clean=False).segment(text)
