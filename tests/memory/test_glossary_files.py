"""Glossaries as other programs export them, and files that are none."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from weitblick.common.errors import UserError
from weitblick.memory.glossary_files import read_terms

LANGUAGES = ("en", "de")
COD = [("cod", "Dorsch"), ("quota", "Quote")]


def found(path: Path) -> list[tuple[str, str]]:
    return [(term.source, term.target) for term in read_terms(path, LANGUAGES)]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("two columns.tsv", "cod\tDorsch\nquota\tQuote\n", COD),
        ("titles.csv", "source,target\ncod,Dorsch\nquota,Quote\n", COD),
        ("semicolons.csv", "German;English;Note\nDorsch;cod;fish\nQuote;quota;\n", COD),
        ("regions.csv", "en-GB,de-DE\ncod,Dorsch\nquota,Quote\n", COD),
        ("deepl.csv", "cod,Dorsch,en,de\nquota,Quote,EN,DE\n", COD),
        ("quoted.csv", 'source,target\n"fish, fresh",Frischfisch\n', [("fish, fresh", "Frischfisch")]),
        ("half empty.csv", "en,de\ncod,Dorsch\nhake,\nquota,Quote\n", COD),
        ("forbidden.csv", "en,de,forbidden\ncod,Kabeljau,yes\ncod,Dorsch,no\nquota,Quote,\n", COD),
        ("kept.csv", "source,target,do not translate\nWeitblick,,yes\n", [("Weitblick", "Weitblick")]),
    ],
)
def test_tables(tmp_path: Path, name: str, text: str, expected: list[tuple[str, str]]) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert found(tmp_path / name) == expected


def test_case_of_a_column(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("source,target,case sensitive\nApple,Apple Inc.,yes\n", encoding="utf-8")
    (term,) = read_terms(tmp_path / "g.csv", LANGUAGES)
    assert term.cased


TBX = """<?xml version="1.0"?><martif type="TBX"><text><body>
<termEntry id="1"><langSet xml:lang="en-US"><tig><term>cod</term></tig><tig><term>codfish</term></tig></langSet>
<langSet xml:lang="de"><tig><term>Dorsch</term></tig><tig><term>Kabeljau</term>
<termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></tig></langSet></termEntry>
<termEntry id="2"><langSet xml:lang="en"><tig><term>hake</term></tig></langSet></termEntry></body></text></martif>"""


def test_tbx(tmp_path: Path) -> None:
    (tmp_path / "g.tbx").write_text(TBX, encoding="utf-8")
    assert found(tmp_path / "g.tbx") == [("cod", "Dorsch"), ("codfish", "Dorsch")]


def test_tbx_of_version_3(tmp_path: Path) -> None:
    entry = "<langSec xml:lang='{}'><termSec><term>{}</term></termSec></langSec>"
    text = f"<conceptEntry id='1'>{entry.format('en', 'cod')}{entry.format('de', 'Dorsch')}</conceptEntry>"
    start = "<tbx xmlns='urn:iso:std:iso:30042:ed-2'><text><body>"
    (tmp_path / "g.tbx").write_text(f"{start}{text}</body></text></tbx>", encoding="utf-8")
    assert found(tmp_path / "g.tbx") == [("cod", "Dorsch")]


SPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def sheet(path: Path, rows: str, strings: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", f"<worksheet {SPACE}><sheetData>{rows}</sheetData></worksheet>")
        archive.writestr("xl/sharedStrings.xml", f"<sst {SPACE}>{strings}</sst>")


def test_xlsx(tmp_path: Path) -> None:
    rows = '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>'
    rows += '<row r="2"><c r="A2" t="s"><v>2</v></c><c r="C2" t="inlineStr"><is><t>Dorsch</t></is></c></row>'
    strings = (
        "".join(f"<si><t>{text}</t></si>" for text in ("English", "German"))
        + "<si><r><t>co</t></r><r><t>d</t></r></si>"
    )
    sheet(tmp_path / "g.xlsx", rows, strings)
    assert found(tmp_path / "g.xlsx") == [("cod", "Dorsch")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("one.tsv", b"cod\n"),
        ("empty.csv", b""),
        ("no.xlsx", b"PK\x03\x04 no archive"),
        ("no.tbx", b"<martif><text>"),
        ("other.tbx", b"<martif><text/></martif>"),
        ("old.xls", b"\xd0\xcf"),
        ("three.tsv", b"a\tb\tc\n"),
    ],
)
def test_what_is_no_glossary_is_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=name.replace(".", r"\.")) as error:
        found(tmp_path / name)
    assert "\n" not in str(error.value)
