"""A deck and a workbook with much in them, made by python-pptx and openpyxl."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches


def parts_of(data: bytes | Path) -> dict[str, bytes]:
    """The parts of a package."""
    with zipfile.ZipFile(data if isinstance(data, Path) else io.BytesIO(data)) as package:
        return {name: package.read(name) for name in package.namelist()}


def with_parts(path: Path, changed: Mapping[str, bytes]) -> Path:
    """The package with parts added or exchanged."""
    parts = parts_of(path) | dict(changed)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in parts.items():
            out.writestr(name, data)
    return path


def deck(path: Path) -> Path:
    """Three slides (the second one hidden, the third moved to the front): runs, a group, a table, a chart, notes."""
    show: Any = Presentation()
    first = show.slides.add_slide(show.slide_layouts[1])
    first.shapes.title.text = "The protection of workers"
    body = first.placeholders[1].text_frame
    paragraph = body.paragraphs[0]
    paragraph.add_run().text = "The house is not yet "
    bold = paragraph.add_run()
    bold.text, bold.font.bold = "built", True
    paragraph.add_run().text = " on the hill. We vote tomorrow."
    linked = body.add_paragraph()
    linked.add_run().text = "See "
    link = linked.add_run()
    link.text, link.hyperlink.address = "the report", "https://example.org/x"
    body.add_paragraph().text = "One line\vand another one"
    group = first.shapes.add_group_shape()
    group.shapes.add_textbox(Inches(1), Inches(5), Inches(3), Inches(1)).text_frame.text = "Text in a group"
    table = first.shapes.add_table(2, 2, Inches(1), Inches(5), Inches(5), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "Country", "Quota"
    table.cell(1, 0).text, table.cell(1, 1).text = "Norway", "1,204"
    first.notes_slide.notes_text_frame.text = "Do not forget the fish."
    second = show.slides.add_slide(show.slide_layouts[5])
    second.shapes.title.text = "A hidden slide"
    second._element.set("show", "0")
    third = show.slides.add_slide(show.slide_layouts[5])
    third.shapes.title.text = "Catches by sea"
    data = CategoryChartData()
    data.categories = ["North Sea", "Baltic Sea", "2024"]
    data.add_series("Cod", (1, 2, 3))
    data.add_series("North Sea", (4, 5, 6))
    chart = third.shapes.add_chart(
        XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(2), Inches(6), Inches(4), data
    ).chart
    chart.has_title, chart.has_legend = True, True
    chart.chart_title.text_frame.text = "Fish in tonnes"
    chart.value_axis.has_title = True
    chart.value_axis.axis_title.text_frame.text = "Weight of the catch"
    order = show.slides._sldIdLst
    order.insert(0, order[2])
    show.save(str(path))
    return path


FOOTER = (
    '<p:sp><p:nvSpPr><p:cNvPr id="90" name="Footer"/><p:cNvSpPr/><p:nvPr><p:ph type="{}" idx="9"/></p:nvPr></p:nvSpPr>'
    "<p:spPr/><p:txBody><a:bodyPr/><a:p>{}</a:p></p:txBody></p:sp>"
)


def deck_with(path: Path, xml: str) -> Path:
    """A deck of one slide with these shapes."""
    show: Any = Presentation()
    show.slides.add_slide(show.slide_layouts[6])
    show.save(str(path))
    slide = parts_of(path)["ppt/slides/slide1.xml"].decode()
    return with_parts(path, {"ppt/slides/slide1.xml": slide.replace("</p:spTree>", f"{xml}</p:spTree>").encode()})


def shape(paragraph: str) -> str:
    """A shape with one paragraph."""
    return (
        '<p:sp><p:nvSpPr><p:cNvPr id="7" name="Box"/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody>'
        f"<a:bodyPr/><a:p>{paragraph}</a:p></p:txBody></p:sp>"
    )


def book(path: Path) -> Path:
    """Two sheets: a table with formulas, equal cells, runs, a list of choices, a note, headers, a chart, a name."""
    work = openpyxl.Workbook()
    sheet = work.active
    sheet.title = "Catch"
    for row in (
        ["Country", "Net weight", "Gross weight", "Open"],
        ["Norway", 12, 15, "Yes"],
        ["Denmark", 7, 9, "No"],
        ["Norway", 3, 4, "Perhaps"],
    ):
        sheet.append(row)
    sheet.add_table(Table(displayName="Fish", ref="A1:D4"))
    sheet["F1"], sheet["F2"] = "Sum of the weight", "=SUM(Fish[Net weight])"
    sheet["F3"], sheet["F4"] = '=COUNTIF(Fish[Open],"Yes")', "=SUM(Fish[[Net weight]:[Gross weight]])"
    sheet["F5"] = CellRichText("The house is ", TextBlock(InlineFont(b=True), "not built"), " yet.")
    sheet["F6"] = "First line\nsecond line of it"
    sheet["F7"] = "Yes & no < maybe"
    choices = DataValidation(type="list", formula1='"Yes,No,Perhaps,Ask again"', promptTitle="Please choose")
    choices.prompt = "One of the four answers"
    sheet.add_data_validation(choices)
    choices.add("D2:D4")
    sheet["A2"].comment = Comment("A small country with many fish.", "Anna")
    sheet.oddHeader.left.text, sheet.oddHeader.left.font = "Our catch", "Arial,Bold"
    sheet.oddFooter.center.text = "Page &P of &N"
    chart = BarChart()
    chart.title = "Weight by country"
    chart.add_data(Reference(sheet, min_col=2, max_col=3, min_row=1, max_row=4), titles_from_data=True)
    chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=4))
    sheet.add_chart(chart, "H2")
    other = work.create_sheet("Notes")
    other["A1"], other["A2"], other["B2"] = "Remarks", "Norway", 5
    other["A3"] = "=VLOOKUP(A2,Catch!A2:B4,2,FALSE)"
    other.sheet_state = "hidden"
    work.defined_names["Total"] = DefinedName("Total", attr_text="SUM(Fish[Gross weight])")
    work.save(str(path))
    return path


def with_shared_strings(path: Path) -> Path:
    """The workbook with its strings where Excel keeps them: in one part, equal ones once."""
    parts, strings = parts_of(path), dict[str, int]()

    def share(found: re.Match[str]) -> str:
        return f't="s"><v>{strings.setdefault(found[1], len(strings))}</v></c>'

    for name in [name for name in parts if name.startswith("xl/worksheets/sheet")]:
        parts[name] = re.sub(r't="inlineStr"><is>(.*?)</is></c>', share, parts[name].decode(), flags=re.DOTALL).encode()
    items = "".join(f"<si>{string}</si>" for string in strings)
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    relation = f'<Relationship Id="rId99" Type="{kind}" Target="sharedStrings.xml"/></Relationships>'
    type_ = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    override = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{type_}"/></Types>'
    rels, types = "xl/_rels/workbook.xml.rels", "[Content_Types].xml"
    parts[rels] = parts[rels].replace(b"</Relationships>", relation.encode())
    parts[types] = parts[types].replace(b"</Types>", override.encode())
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    parts["xl/sharedStrings.xml"] = f'<sst xmlns="{main}">{items}</sst>'.encode()
    return with_parts(path, parts)


def cell_xml(data: bytes, place: str, sheet: str = "xl/worksheets/sheet1.xml") -> str:
    """A cell as it stands in a sheet."""
    found = re.search(rf'<c r="{place}".*?</c>', parts_of(data)[sheet].decode(), re.DOTALL)
    assert found
    return found[0]
