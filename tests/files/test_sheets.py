"""Excel files: what is translated, what must follow it, and that everything else stays."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from file_translators import amnesia, each, reversed_words, translated_bytes, upper
from hypothesis import example, given, settings
from hypothesis import strategies as st
from office_files import book, cell_xml, parts_of, with_parts, with_shared_strings
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table

from weitblick.common.errors import UserError
from weitblick.files.formats import format_of, read_file
from weitblick.files.formulas import compared_texts, with_columns


def opened(data: bytes, **options: Any) -> Any:
    return openpyxl.load_workbook(io.BytesIO(data), **options)


def sheet_of(path: Path, *rows: list[Any]) -> tuple[Any, Any]:
    work = openpyxl.Workbook()
    for row in rows:
        work.active.append(row)
    return work, work.active


@pytest.fixture(params=["inline", "shared"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A workbook with its strings in the cells, as openpyxl writes them, and with shared ones, as Excel does."""
    made = book(tmp_path / "a.xlsx")
    return with_shared_strings(made) if request.param == "shared" else made


def test_cells_in_the_order_of_sheets_and_rows(path: Path) -> None:
    assert format_of(path) == "xlsx"
    file = read_file(path)
    assert [(s.id, s.source) for s in file.document.sentences] == [
        ("Catch!A1", "Country"),
        ("Catch!B1", "Net weight"),
        ("Catch!C1", "Gross weight"),
        ("Catch!D1", "Open"),
        ("Catch!F1", "Sum of the weight"),
        ("Catch!A2", "Norway"),
        ("Catch!A3", "Denmark"),
        ("Catch!D3", "No"),
        ("Catch!D4", "Perhaps"),
        ("Catch!F5", "The house is not built yet."),
        ("Catch!F6", "First line second line of it"),
        ("Catch!F7", "Yes & no < maybe"),
        ("Catch!validation 1", "Ask again"),
        ("Catch!validation 1", "Please choose"),
        ("Catch!validation 1", "One of the four answers"),
        ("Catch!oddHeader", "Our catch"),
        ("Catch!oddFooter", "Page ⟦1⟧ of ⟦2⟧"),
        (None, "Weight by country"),
        ("Catch!A2 note", "A small country with many fish."),
        ("Notes!A1", "Remarks"),
    ]
    assert file.notes == ["formulas compare cells with “Yes”: these cells stay as they are"]


def test_cells_lists_notes_headers(path: Path) -> None:
    work = opened(translated_bytes(path, None, upper), rich_text=True)
    sheet = work["Catch"]
    assert [cell.value for cell in sheet["A"][:4]] == ["COUNTRY", "NORWAY", "DENMARK", "NORWAY"]
    assert [cell.value for cell in sheet["D"][:4]] == ["OPEN", "Yes", "NO", "PERHAPS"]
    assert [cell.value for cell in sheet["B"][:4]] == ["NET WEIGHT", 12, 7, 3]
    assert [str(piece) for piece in sheet["F5"].value] == ["THE HOUSE IS ", "NOT BUILT", " YET."]
    assert sheet["F5"].value[1].font.b
    assert sheet["F6"].value == "FIRST LINE\nSECOND LINE OF IT"
    choices = sheet.data_validations.dataValidation[0]
    assert choices.formula1 == '"Yes,NO,PERHAPS,ASK AGAIN"'
    assert (choices.promptTitle, choices.prompt) == ("PLEASE CHOOSE", "ONE OF THE FOUR ANSWERS")
    assert sheet["A2"].comment.text == "A SMALL COUNTRY WITH MANY FISH."
    assert (sheet.oddHeader.left.text, sheet.oddHeader.left.font) == ("OUR CATCH", "Arial,Bold")
    assert sheet.oddFooter.center.text == "PAGE &P OF &N"
    assert work.sheetnames == ["Catch", "Notes"]
    assert work["Notes"]["A2"].value == "NORWAY"


@pytest.mark.parametrize("translate", [upper, reversed_words, amnesia])
def test_tables_and_formulas_follow_their_headers(path: Path, translate: Any) -> None:
    work = opened(translated_bytes(path, None, translate))
    sheet = work["Catch"]
    names = [cell.value for cell in sheet[1][:4]]
    assert [column.name for column in sheet.tables["Fish"].tableColumns] == names
    assert len(set(names)) == 4
    assert sheet["F2"].value == f"=SUM(Fish[{names[1]}])"
    assert sheet["F3"].value == f'=COUNTIF(Fish[{names[3]}],"Yes")'
    assert sheet["F4"].value == f"=SUM(Fish[[{names[1]}]:[{names[2]}]])"
    assert work.defined_names["Total"].attr_text == f"SUM(Fish[{names[2]}])"
    assert work["Notes"]["A3"].value == "=VLOOKUP(A2,Catch!A2:B4,2,FALSE)"


def test_columns_that_get_the_same_name_are_numbered_and_reported(tmp_path: Path) -> None:
    file = read_file(book(tmp_path / "a.xlsx"))
    data, notes = file.rendered(amnesia(file.document))
    assert [cell.value for cell in opened(data)["Catch"][1][:3]] == [f"Ganz vergessen{n}" for n in ("", "2", "3")]
    assert any("same name" in note for note in notes)


def test_everything_else_stays(path: Path) -> None:
    file = read_file(path)
    assert file.rendered(file.document)[0] == path.read_bytes()
    data = translated_bytes(path, None, upper)
    assert data == translated_bytes(path, None, upper)
    before, after = parts_of(path), parts_of(data)
    assert list(before) == list(after)
    strings = "xl/sharedStrings.xml" if "xl/sharedStrings.xml" in before else "xl/worksheets/sheet2.xml"
    assert {name for name in before if before[name] != after[name]} == {
        *(strings, "xl/worksheets/sheet1.xml", "xl/tables/table1.xml", "xl/charts/chart1.xml"),
        *("xl/workbook.xml", "xl/comments/comment1.xml"),
    }


CACHE = (
    '<c:tx><c:strRef><c:f>Catch!$A$2</c:f><c:strCache><c:ptCount val="1"/><c:pt idx="0"><c:v>Norway</c:v></c:pt>'
    "</c:strCache></c:strRef></c:tx><c:numCache><c:pt><c:v>7</c:v></c:pt></c:numCache>"
)


def with_change(path: Path, part: str, old: str, new: str) -> Path:
    text = parts_of(path)[part].decode()
    assert old in text
    return with_parts(path, {part: text.replace(old, new, 1).encode()})


def test_copies_of_cells_follow(path: Path) -> None:
    """What charts, filters and formulas remember of a cell is what the cell says now."""
    chart = '<chartSpace xmlns="http://schemas.openxmlformats.org/drawingml/2006/chart">'
    with_change(path, "xl/charts/chart1.xml", chart, chart + CACHE.replace("c:", ""))
    sheet = "xl/worksheets/sheet2.xml"
    shown = '<c r="C1" t="str"><f>A2</f><v>Norway</v></c><c r="D1" t="str"><f>IF(B2,"Norway")</f><v>Norway</v></c>'
    own = '<c r="E1" t="inlineStr"><is><t>Norway</t></is></c></row>'
    with_change(path, sheet, "</row>", shown + own)
    filtered = '<filterColumn colId="0"><filters><filter val="Norway"/></filters></filterColumn>'
    with_change(path, sheet, "<pageMargins", f'<autoFilter ref="A1:B2">{filtered}</autoFilter><pageMargins')
    assert "Norway" not in [s.source for s in read_file(path).document.sentences if s.id == "Notes!E1"]
    after = parts_of(translated_bytes(path, None, each(lambda text: text.replace("Norway", "Norwegen"))))
    assert CACHE.replace("c:", "").replace("Norway", "Norwegen") in after["xl/charts/chart1.xml"].decode()
    text = after[sheet].decode()
    assert shown.replace("<v>Norway", "<v>Norwegen", 1) in text
    assert "<is><t>Norwegen</t></is>" in text
    assert '<filter val="Norwegen"/>' in text


@pytest.mark.parametrize(
    ("formula", "texts"),
    [
        ('IF(A1="Yes","High","Low")', {"yes"}),
        ('COUNTIF(A:A,">=Open")', {"open"}),
        ('SUM(("x y"<>B1)*1)&" Total"', {"x y"}),
        ('VLOOKUP("Fish",A1:B9,2,FALSE)', {"fish"}),
        ('MATCH(A1,{"One","Two"},0)', {"one", "two"}),
        ('IF(A1>5,"Total","")', set()),
    ],
)
def test_texts_that_formulas_compare_with(formula: str, texts: set[str]) -> None:
    assert compared_texts(formula) == texts


@pytest.mark.parametrize(
    ("formula", "renamed"),
    [
        ("SUM(Fish[Net])", "SUM(Fish[Netto '[t']])"),
        ("fish[[#This Row],[net]]", "fish[[#This Row],[Netto '[t']]]"),
        ("Fish[@Net]+Fish[@[Net]]", "Fish[@[Netto '[t']]]+Fish[@[Netto '[t']]]"),
        ("Fish[[#Totals],[Net]:[Gross '# 1]]", "Fish[[#Totals],[Netto '[t']]:[Brutto]]"),
        ('INDIRECT("Fish[Net]")&"[Net]"', 'INDIRECT("Fish[Netto \'[t\']]")&"[Net]"'),
        ("[1]Net!A1+'Fish[Net]'!B2+Meat[Net]+Fish[#All]", "[1]Net!A1+'Fish[Net]'!B2+Meat[Net]+Fish[#All]"),
    ],
)
def test_columns_in_formulas(formula: str, renamed: str) -> None:
    columns = {"fish": {"net": "Netto [t]", "gross # 1": "Brutto"}}
    assert with_columns(formula, columns) == renamed


def test_what_excel_has_no_room_for_stays_and_is_reported(tmp_path: Path) -> None:
    work, sheet = sheet_of(tmp_path, ["A cell"])
    choices = DataValidation(type="list", formula1='"Red,Green,Blue"', promptTitle="A title")
    sheet.add_data_validation(choices)
    choices.add("B1")
    sheet.oddHeader.center.text = "A header"
    work.save(str(tmp_path / "a.xlsx"))
    file = read_file(tmp_path / "a.xlsx")
    for filler, left in (("x" * 40_000, True), ("x" * 100, True), ("a, b", False), ("x", False)):
        targets = tuple(replace(s, target=f"{s.source} {filler}", status="locked") for s in file.document.sentences)
        data, notes = file.rendered(replace(file.document, sentences=targets))
        after = opened(data).active
        rule = after.data_validations.dataValidation[0]
        fits = filler == "x"
        assert rule.formula1 == ('"Red x,Green x,Blue x"' if fits else '"Red,Green,Blue"')
        assert rule.promptTitle == ("A title" if left else f"A title {filler}")
        assert after["A1"].value == ("A cell" if len(filler) > 32_000 else f"A cell {filler}")
        assert after.oddHeader.center.text == ("A header" if len(filler) > 32_000 else f"A header {filler}")
        wanted = {"x" * 40_000: {"A1", "validation", "oddHeader"}, "x" * 100: {"validation"}, "a, b": {"validation"}}
        assert {re.sub(r".*!(\w+).*", r"\1", note) for note in notes} == wanted.get(filler, set())


def test_rich_notes_keep_their_author_and_conversations_stay(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx")
    part = "xl/comments/comment1.xml"
    text = parts_of(path)[part].decode()
    run = '<r><rPr><b/></rPr><t>Anna:</t></r><r><t xml:space="preserve">\nMany fish.</t></r>'
    rich = re.sub("<text>.*</text>", lambda _: f"<text>{run}</text>", text, flags=re.DOTALL)
    with_parts(path, {part: rich.encode()})
    assert "Many fish." in read_file(path).document.sources
    after = parts_of(translated_bytes(path, None, upper))[part].decode()
    assert re.findall("<t[^>]*>([^<]*)</t>", after) == ["Anna:", "\n", "MANY FISH."]
    with_parts(path, {part: text.replace(">Anna<", ">tc={1}<").encode()})
    assert not any("fish." in source for source in read_file(path).document.sources)


def test_escapes_and_spaces_of_strings(tmp_path: Path) -> None:
    work, _ = sheet_of(tmp_path, [" Spaces around ", "A_x005F_x000D_B stays", "One_x000D_\nline"])
    work.save(str(tmp_path / "a.xlsx"))
    with_shared_strings(tmp_path / "a.xlsx")
    strings = "xl/sharedStrings.xml"
    before = parts_of(tmp_path / "a.xlsx")[strings].decode()
    after = parts_of(translated_bytes(tmp_path / "a.xlsx", None, each(lambda text: text.replace("a", "ä"))))[strings]
    assert after.decode() == before.replace("around", "äround").replace("Spaces", "Späces").replace("stays", "stäys")


TEXT = st.text("abcXÄßéЖ漢 ,'&<>\"_*-()", max_size=12)


def letters(text: str) -> Counter[str]:
    return Counter(sign for sign in text if sign.isalnum())


@settings(max_examples=20, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=5), st.sampled_from(["", " &<>\"'", " _x000D_"]))
@example(["a", "aЖ"], "")
@example(["_é<X>>_ß*ß"], "")
def test_text_survives(tmp_path_factory: pytest.TempPathFactory, texts: list[str], more: str) -> None:
    """Confirmed text goes out as it stands, in the cell that it translates and its equals; every other cell stays."""
    path = tmp_path_factory.mktemp("book") / "a.xlsx"
    work, _ = sheet_of(path, texts)
    work.save(str(path))
    file = read_file(with_shared_strings(path) if len(texts) % 2 else path)
    sentences = tuple(
        replace(s, target=f"Übersetzt {number}{more}.", status="locked")
        for number, s in enumerate(file.document.sentences)
    )
    units = {sentence.id: sentence for sentence in sentences}
    assert len(units) == len(sentences)  # a cell is one unit
    data = file.rendered(replace(file.document, sentences=sentences))[0]
    cells = next(opened(data).active.iter_rows(max_col=len(texts)))
    for text, cell in zip(texts, cells, strict=True):
        unit = units.get(f"Sheet!{cells[texts.index(text)].coordinate}")
        if unit is None:
            assert cell.value == (text or None)
            continue
        value = cell.value.replace("_x005F_", "_")
        if unit.source in text:
            assert value == text.replace(unit.source, unit.target, 1)
        else:  # marks inside are not shown with the unit: they stay around it, or go with the words that they marked
            before, found, after = value.partition(unit.target)
            assert found
            assert letters(before + unit.source + after) == letters(text)


def test_tables_of_numbers_and_other_files(tmp_path: Path) -> None:
    work, sheet = sheet_of(tmp_path, ["SKU", "2024"], [1, 2])
    sheet.add_table(Table(displayName="T", ref="A1:B2"))
    work.save(str(tmp_path / "a.xlsm"))
    with_shared_strings(tmp_path / "a.xlsm")
    with_parts(tmp_path / "a.xlsm", {"xl/vbaProject.bin": b"code"})
    data = translated_bytes(tmp_path / "a.xlsm", None, each(lambda text: "Artikel"))
    assert [column.name for column in opened(data).active.tables["T"].tableColumns] == ["Artikel", "2024"]
    assert parts_of(data)["xl/vbaProject.bin"] == b"code"
    assert "<v>1</v>" in cell_xml(data, "B1")
    whole = (tmp_path / "a.xlsm").read_bytes()
    for content, message in (
        (whole[:-40], "not a complete"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "password"),
        (with_parts(tmp_path / "a.xlsm", {"xl/sharedStrings.xml": b"<sst>"}).read_bytes(), "not well-formed"),
        (with_parts(tmp_path / "a.xlsm", {"x": bytes(40 << 20)}).read_bytes(), "more than is safe"),
    ):
        (tmp_path / "b.xlsx").write_bytes(content)
        with pytest.raises(UserError, match=message):
            read_file(tmp_path / "b.xlsx")
    for name in ("a.xlsb", "a.xls", "a.ppt"):
        (tmp_path / name).write_bytes(b"\0\1\2")
        with pytest.raises(UserError, match="not read"):
            read_file(tmp_path / name)
