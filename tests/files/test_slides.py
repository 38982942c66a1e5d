"""PowerPoint files: what is translated, in which order, and that everything else stays."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from file_translators import amnesia, reversed_words, translated_bytes, upper
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from office_files import FOOTER, deck, deck_with, parts_of, shape, with_parts
from pptx import Presentation

from weitblick.common.errors import UserError
from weitblick.files.formats import format_of, read_file


def opened(data: bytes) -> Any:
    return Presentation(io.BytesIO(data))


def paragraphs(slide: Any) -> list[str]:
    return [p.text for one in slide.shapes if one.has_text_frame for p in one.text_frame.paragraphs]


def slide_xml(data: bytes, part: str = "ppt/slides/slide1.xml") -> str:
    return parts_of(data)[part].decode()


def test_slides_in_the_order_in_which_they_are_shown(tmp_path: Path) -> None:
    path = deck(tmp_path / "a.pptx")
    assert format_of(path) == "pptx"
    assert read_file(path).document.sources == [
        *("Catches by sea", "Fish in tonnes", "Cod", "North Sea", "Baltic Sea", "Weight of the catch"),
        *("The protection of workers", "The house is not yet built on the hill.", "We vote tomorrow."),
        *("See the report", "One line and another one", "Text in a group", "Country", "Quota", "Norway"),
        *("Do not forget the fish.", "A hidden slide"),
    ]


def test_runs_links_groups_tables_notes(tmp_path: Path) -> None:
    path = deck(tmp_path / "a.pptx")
    before, after = Presentation(str(path)), opened(translated_bytes(path, None, upper))
    for old, new in zip(before.slides, after.slides, strict=True):
        assert paragraphs(new) == [text.upper() for text in paragraphs(old)]
    body = after.slides[1].placeholders[1].text_frame
    assert [run.text for run in body.paragraphs[0].runs if run.font.bold] == ["BUILT"]
    assert [(run.text, run.hyperlink.address) for run in body.paragraphs[1].runs] == [
        ("SEE ", None),
        ("THE REPORT", "https://example.org/x"),
    ]
    group, table = list(after.slides[1].shapes)[2:4]
    assert group.shapes[0].text_frame.text == "TEXT IN A GROUP"
    assert [[cell.text for cell in row.cells] for row in table.table.rows] == [
        ["COUNTRY", "QUOTA"],
        ["NORWAY", "1,204"],
    ]
    assert after.slides[1].notes_slide.notes_text_frame.text == "DO NOT FORGET THE FISH."
    assert after.slides[2]._element.get("show") == "0"


def test_bold_goes_with_its_word(tmp_path: Path) -> None:
    after = opened(translated_bytes(deck(tmp_path / "a.pptx"), None, reversed_words))
    runs = after.slides[1].placeholders[1].text_frame.paragraphs[0].runs
    assert [run.text for run in runs if run.font.bold] == ["built"]
    assert runs[0].text == "hill. the on "


@pytest.mark.parametrize("translate", [upper, reversed_words])
def test_a_chart_and_its_workbook_say_the_same(tmp_path: Path, translate: Any) -> None:
    after = opened(translated_bytes(deck(tmp_path / "a.pptx"), None, translate))
    chart = after.slides[0].shapes[1].chart
    cells = openpyxl.load_workbook(io.BytesIO(chart.part.chart_workbook.xlsx_part.blob)).active
    categories, series = list(chart.plots[0].categories), [one.name for one in chart.plots[0].series]
    assert [cells.cell(row, 1).value for row in (2, 3, 4)] == categories
    assert [cells.cell(1, column).value for column in (2, 3)] == series
    assert categories[0] == series[1] != "North Sea"
    assert chart.chart_title.text_frame.text != "Fish in tonnes"
    assert [cells.cell(2, column).value for column in (2, 3)] == [1, 4]


def test_a_chart_whose_workbook_is_damaged(tmp_path: Path) -> None:
    path = deck(tmp_path / "a.pptx")
    name = next(name for name in parts_of(path) if name.endswith(".xlsx"))
    file = read_file(with_parts(path, {name: b"no zip file"}))
    assert len(file.notes) == 1
    assert name in file.notes[0]
    data = translated_bytes(path, None, upper)
    assert parts_of(data)[name] == b"no zip file"
    assert opened(data).slides[0].shapes[1].chart.plots[0].categories[0] == "NORTH SEA"


def test_everything_else_stays(tmp_path: Path) -> None:
    path = deck(tmp_path / "a.pptx")
    file = read_file(path)
    assert file.rendered(file.document)[0] == path.read_bytes()
    data = translated_bytes(path, None, upper)
    assert data == translated_bytes(path, None, upper)
    before, after = parts_of(path), parts_of(data)
    assert list(before) == list(after)
    changed = {re.sub(r"\d+", "", name) for name in before if before[name] != after[name]}
    assert changed == {
        *("ppt/slides/slide.xml", "ppt/notesSlides/notesSlide.xml", "ppt/charts/chart.xml"),
        "ppt/embeddings/Microsoft_Excel_Sheet.xlsx",
    }


FIELD = '<a:fld id="{B}" type="slidenum"><a:rPr lang="en-US"/><a:t>7</a:t></a:fld>'


def test_footers_stay_and_fields_are_words(tmp_path: Path) -> None:
    text = '<a:r><a:rPr lang="en-US" dirty="0"/><a:t>{}</a:t></a:r>'
    shapes = [FOOTER.format(kind, text.format("Left alone")) for kind in ("ftr", "dt", "sldNum")]
    shapes.append(shape(text.format("This is page ") + FIELD + text.format(" of the deck") + "<a:endParaRPr/>"))
    path = deck_with(tmp_path / "a.pptx", "".join(shapes))
    assert read_file(path).document.sources == ["This is page 7 of the deck"]
    for translate in (upper, reversed_words, amnesia):
        xml = slide_xml(translated_bytes(path, None, translate))
        etree.fromstring(xml.encode())
        assert xml.count(FIELD) == 1
        assert xml.count("Left alone") == 3
        assert xml.count("<a:endParaRPr/></a:p>") == 1


def test_equal_neighbours_are_one_run_and_notes_marks(tmp_path: Path) -> None:
    run = '<a:r><a:rPr lang="en-US"{}/><a:t>{}</a:t></a:r>'
    pieces = [('dirty="0"', "Wo"), ('err="1"', "rd"), ('baseline="30000"', "1"), ("", " here")]
    path = deck_with(tmp_path / "a.pptx", shape("".join(run.format(f" {a}" if a else "", t) for a, t in pieces)))
    assert read_file(path).document.sources == ["Word here"]
    xml = slide_xml(translated_bytes(path, None, upper))
    assert re.findall("<a:r>.*?</a:r>", xml) == [
        "<a:r><a:t>WORD</a:t></a:r>",
        '<a:r><a:rPr baseline="30000"/><a:t>1</a:t></a:r>',
        "<a:r><a:t> HERE</a:t></a:r>",
    ]


DATA = (
    '<dgm:dataModel xmlns:dgm="d" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dgm:ptLst><dgm:pt><dgm:t>'
    "<a:bodyPr/><a:p><a:r><a:t>Catch the fish</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst><dgm:extLst>"
    '<dsp:dataModelExt xmlns:dsp="s" relId="rId9"/></dgm:extLst></dgm:dataModel>'
)
DRAWN = (
    '<dsp:drawing xmlns:dsp="s" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dsp:txBody><a:p><a:pPr/>'
    '<a:r><a:rPr sz="20"/><a:t>Catch </a:t></a:r><a:r><a:rPr sz="20"/><a:t>the fish</a:t></a:r></a:p></dsp:txBody>'
    "</dsp:drawing>"
)
RELATION = '<Relationship Id="{}" Type="http://x/relationships/{}" Target="../diagrams/{}"/>'


def test_smartart_and_its_drawing_say_the_same(tmp_path: Path) -> None:
    path = deck_with(tmp_path / "a.pptx", '<p:x><dgm:relIds xmlns:dgm="d" r:dm="rId8"/></p:x>')
    rels = "ppt/slides/_rels/slide1.xml.rels"
    more = RELATION.format("rId8", "diagramData", "data1.xml") + RELATION.format(
        "rId9", "diagramDrawing", "drawing1.xml"
    )
    parts = {
        "ppt/diagrams/data1.xml": DATA.encode(),
        "ppt/diagrams/drawing1.xml": DRAWN.encode(),
        rels: parts_of(path)[rels].replace(b"</Relationships>", f"{more}</Relationships>".encode()),
    }
    with_parts(path, parts)
    assert read_file(path).document.sources == ["Catch the fish"]
    after = parts_of(translated_bytes(path, None, reversed_words))
    assert after["ppt/diagrams/data1.xml"].decode() == DATA.replace("Catch the fish", "fish the Catch")
    assert (
        '<a:pPr/><a:r><a:rPr sz="20"/><a:t>fish the Catch</a:t></a:r></a:p>'
        in after["ppt/diagrams/drawing1.xml"].decode()
    )


LETTERS = st.text("abcXÄßéЖ漢 ,'&<>\"_*-()", max_size=12)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(LETTERS, st.sampled_from([None, True])), min_size=1, max_size=4))
def test_text_survives(tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[str, bool | None]]) -> None:
    path = tmp_path_factory.mktemp("deck") / "a.pptx"
    run = "<a:r>{}<a:t>{}</a:t></a:r>"
    escaped = [(text.replace("&", "&amp;").replace("<", "&lt;"), bold) for text, bold in runs]
    deck_with(path, shape("".join(run.format('<a:rPr b="1"/>' if bold else "", text) for text, bold in escaped)))
    file = read_file(path)
    targets = tuple(replace(s, target=f"{s.source} x", status="locked") for s in file.document.sentences)
    data = file.rendered(replace(file.document, sentences=targets))[0]
    again = [s.source for s in read_file_bytes(path, data)]
    assert len(again) >= len(targets)
    text = "".join(paragraphs(opened(data).slides[0]))
    for sentence in targets:
        assert " ".join(sentence.target.split()) in " ".join(text.split()), (sentence.target, text)


def read_file_bytes(path: Path, data: bytes) -> Any:
    path.write_bytes(data)
    return read_file(path).document.sentences


def test_confirmed_text_goes_out_as_it_stands(tmp_path: Path) -> None:
    file = read_file(deck_with(tmp_path / "a.pptx", shape("<a:r><a:t>Write to a@example.com now.</a:t></a:r>")))
    confirmed = "Schreiben Sie „uns“ & <allen> _x000D_."
    sentences = tuple(replace(s, target=confirmed, status="locked") for s in file.document.sentences)
    data = file.rendered(replace(file.document, sentences=sentences))[0]
    assert "_x005F_x000D_" in slide_xml(data)
    assert [s.source for s in read_file_bytes(tmp_path / "b.pptx", data)] == [confirmed]


def test_templates_shows_and_macros_are_read(tmp_path: Path) -> None:
    path = deck(tmp_path / "a.pptx")
    types = parts_of(path)["[Content_Types].xml"]
    macro = types.replace(
        b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
        b"application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
    )
    with_parts(path, {"[Content_Types].xml": macro, "ppt/vbaProject.bin": b"code"}).rename(tmp_path / "a.pptm")
    data = translated_bytes(tmp_path / "a.pptm", None, upper)
    assert parts_of(data)["ppt/vbaProject.bin"] == b"code"
    assert b"CATCHES" in b"".join(parts_of(data).values())


def test_damaged_decks_are_refused(tmp_path: Path) -> None:
    whole = deck(tmp_path / "a.pptx").read_bytes()
    missing = with_parts(deck(tmp_path / "b.pptx"), {"ppt/slides/slide1.xml": b"<p:sld"}).read_bytes()
    entity = with_parts(deck(tmp_path / "c.pptx"), {"ppt/slides/slide1.xml": b"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"})
    for data, message in (
        (whole[: len(whole) // 2], "not a complete"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "password"),
        (missing, "not well-formed"),
        (entity.read_bytes(), "entities"),
        (with_parts(deck(tmp_path / "d.pptx"), {"x": bytes(40 << 20)}).read_bytes(), "more than is safe"),
    ):
        (tmp_path / "x.pptx").write_bytes(data)
        with pytest.raises(UserError, match=message):
            read_file(tmp_path / "x.pptx")
    deck(tmp_path / "e.pptx").rename(tmp_path / "e.xlsx")
    with pytest.raises(UserError, match="no Excel workbook"):
        read_file(tmp_path / "e.xlsx")
