"""Table cells without a word: rows that a rule translates, and no model."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import docx
from file_translators import each

from weitblick.documents.document import Document
from weitblick.files.formats import read_file
from weitblick.files.masked_document import align_by_places
from weitblick.files.translation import translate_file
from weitblick.workbench.transfer import read_again

CELLS = ["Weight", "1,204", "$3.50", "12/31/2024", "A5-0123/2003", "–"]
GERMAN = ["WEIGHT", "1.204", "3,50\u00a0$", "31.12.2024", "A5-0123/2003", "–"]


def word_table(path: Path) -> Path:
    document = docx.Document()
    document.add_paragraph("12,345")  # outside of tables nobody is shown a number alone
    table = document.add_table(1, len(CELLS))
    for cell, text in zip(table.rows[0].cells, CELLS, strict=True):
        cell.text = text
    document.save(str(path))
    return path


def test_numbers_in_word_tables_are_rows_in_the_conventions_of_the_target(tmp_path: Path) -> None:
    file = read_file(word_table(tmp_path / "a.docx"), target_language="de")
    assert [(row.source, row.target) for row in file.document.sentences] == [
        ("Weight", None),
        *zip(CELLS[1:-1], GERMAN[1:-1], strict=True),
    ]
    seen: list[str] = []

    def model(document: Document) -> Document:
        seen.extend(row.source for row in document.sentences if row.status != "locked")
        return each(str.upper)(document)

    data, notes = translate_file(file, model, align_by_places)
    table = docx.Document(io.BytesIO(data)).tables[0]
    assert [cell.text for cell in table.rows[0].cells] == GERMAN
    assert docx.Document(io.BytesIO(data)).paragraphs[0].text == "12,345"
    assert seen == ["Weight"]
    assert notes == []


def test_what_a_person_makes_of_a_number_counts(tmp_path: Path) -> None:
    file = read_file(word_table(tmp_path / "a.docx"), target_language="de")
    rows = list(file.document.sentences)
    rows[1] = replace(rows[1], target="rund 1200", status="locked")
    data, _ = file.rendered(replace(file.document, sentences=tuple(rows)))
    assert docx.Document(io.BytesIO(data)).tables[0].rows[0].cells[1].text == "rund 1200"


def test_numbers_in_tables_of_open_document_are_rows(tmp_path: Path) -> None:
    spaces = " ".join(f'xmlns:{name}="urn:{name}"' for name in ("office", "text", "table"))
    cells = "".join(f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in ("Weight", "1,204"))
    path = tmp_path / "a.odt"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        package.writestr("content.xml", f"<office:document-content {spaces}>{cells}</office:document-content>")
    data, _ = translate_file(read_file(path, target_language="de"), each(str.upper), align_by_places)
    content = zipfile.ZipFile(io.BytesIO(data)).read("content.xml").decode()
    assert "<text:p>1.204</text:p>" in content


def test_a_document_from_before_numbers_were_rows_is_read_without_them(tmp_path: Path) -> None:
    data = word_table(tmp_path / "a.docx").read_bytes()
    assert read_again("a.docx", data, ["Weight"], "en").document.sources == ["Weight"]
    assert read_again("a.docx", data, CELLS[:-1], "en").document.sources == CELLS[:-1]
