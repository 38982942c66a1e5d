"""Formatting that a person has placed: it is where it was put, goes with its words, and others make room for it."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weitblick.files.formats import read_file
from weitblick.files.inline_marks import PlacedFormat, follow
from weitblick.files.translatable_file import TranslatableFile

WORDS = ["Das", "rote", "Haus", "{count}", "hat", "viele", "große", "helle", "Räume", "für", "Gäste"]
TARGET = " ".join(WORDS)


def html_file(folder: Path, body: str) -> TranslatableFile:
    path = folder / "a.html"
    path.write_text(f"<p>{body}</p>", encoding="utf-8")
    return read_file(path, language="en")


def rendered(file: TranslatableFile, target: str, *placed: PlacedFormat, confirmed: bool = True) -> str:
    (sentence,) = file.document.sentences
    document = replace(
        file.document, sentences=(replace(sentence, target=target, status="locked" if confirmed else "draft"),)
    )
    return file.rendered(document, placed={0: placed})[0].decode()


def of_words(mark: int, first: int, last: int) -> PlacedFormat:
    start = len(" ".join(WORDS[:first])) + bool(first)
    return PlacedFormat(mark, start, len(" ".join(WORDS[:last])))


BODIES = (
    "The <b>red</b> house {count} has <i>many</i> big bright <u>rooms</u> for guests",
    "The <b>red house {count}</b> has <i>many</i> big bright <u>rooms</u> for guests",
)


@given(
    spans=st.lists(st.integers(0, len(WORDS)), min_size=6, max_size=6, unique=True),
    order=st.permutations(range(3)),
    chosen=st.sets(st.integers(0, 2), min_size=1),
    confirmed=st.booleans(),
    body=st.sampled_from(BODIES),
)
def test_formatting_stands_where_it_was_placed(
    tmp_path_factory: pytest.TempPathFactory,
    spans: list[int],
    order: list[int],
    chosen: set[int],
    confirmed: bool,
    body: str,
) -> None:
    file = html_file(tmp_path_factory.mktemp("placed"), body)
    edges = sorted(spans)
    placed = [of_words(order[n], *edges[2 * n : 2 * n + 2]) for n in range(3) if order[n] in chosen]
    page = rendered(file, TARGET, *placed, confirmed=confirmed)
    assert re.sub("<[^>]*>", "", page) == TARGET
    for one in placed:
        tag = "biu"[one.mark]
        assert f"<{tag}>{TARGET[one.start : one.end]}</{tag}>" in re.sub(rf"<(?!/?{tag}>)[^>]*>", "", page)
    assert all(page.count(f"<{tag}>") == page.count(f"</{tag}>") == 1 for tag in "biu")


def test_formatting_within_formatting(tmp_path: Path) -> None:
    """The outer one reaches as far as what was placed inside it."""
    file = html_file(tmp_path, "The <b>red <i>old</i></b> house.")
    page = rendered(file, "Das rote alte Haus.", PlacedFormat(1, 14, 18))
    assert re.search(r"<b>.*<i>Haus</i></b>\.", page)
    page = rendered(file, "Das rote alte Haus.", PlacedFormat(0, 4, 18), PlacedFormat(1, 4, 8))
    assert "<b><i>rote</i> alte Haus</b>" in page


def test_marks_of_word_files_are_placed(tmp_path: Path) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("The committee has ")
    paragraph.add_run("adopted").bold = True
    paragraph.add_run(" the quotas.")
    document.save(str(tmp_path / "a.docx"))
    file = read_file(tmp_path / "a.docx", language="en")
    ((mark,),) = file.marks()
    assert file.document.sentences[0].source[mark.start : mark.end] == "adopted"
    target = "Der Ausschuss hat die Quoten angenommen."
    sentences = (replace(file.document.sentences[0], target=target, status="locked"),)
    data, _ = file.rendered(replace(file.document, sentences=sentences), placed={0: [PlacedFormat(0, 22, 28)]})
    runs = docx.Document(io.BytesIO(data)).paragraphs[0].runs
    assert [(run.text, bool(run.bold)) for run in runs] == [
        ("Der Ausschuss hat die ", False),
        ("Quoten", True),
        (" angenommen.", False),
    ]


@pytest.mark.parametrize(
    ("after", "there"),
    [
        ("Das sehr rote Haus", "rote"),
        ("Das rötliche Haus", "rötliche"),
        ("Das rote, alte Haus", "rote"),
        ("Ein rote Haus", "rote"),
        ("Das r Haus", "r"),
        ("Das Haus", None),
        ("Etwas ganz anderes", None),
        ("", None),
    ],
)
def test_placed_formatting_goes_with_its_words(after: str, there: str | None) -> None:
    moved = follow([PlacedFormat(0, 4, 8)], "Das rote Haus", after)
    assert [after[one.start : one.end] for one in moved] == ([] if there is None else [there])


@given(before=st.text("ab ", min_size=1, max_size=12), after=st.text("ab ", max_size=12), data=st.data())
def test_placed_formatting_is_always_within_the_text(before: str, after: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(before) - 1))
    end = data.draw(st.integers(start + 1, len(before)))
    for one in follow([PlacedFormat(0, start, end)], before, after):
        assert 0 <= one.start < one.end <= len(after)
