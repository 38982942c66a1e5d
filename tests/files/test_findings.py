"""What was found broken in files of real programs: each stays mended."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import docx
import polib
import pytest
from file_translators import each, translated, translated_bytes, upper

from weitblick.common.errors import UserError
from weitblick.files.encoding import unwritable
from weitblick.files.formats import read_file

RUSSIAN = "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
ARABIC = (
    "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 && n%100<=99 ? 4 : 5);"
)


def catalogue(forms: str, count: int) -> str:
    empty = "\n".join(f'msgstr[{number}] ""' for number in range(count))
    return f"""msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: {forms}\\n"

msgid "One file"
msgid_plural "%d files"
{empty}
"""


@pytest.mark.parametrize(
    ("forms", "singular", "count"),
    [(ARABIC, 1, 6), (RUSSIAN, 0, 3), ("nplurals=2; plural=(n == 1 ? 1 : 0);", 1, 2), ("nplurals=2; plural=)(;", 0, 2)],
)
def test_plural_forms_follow_the_formula_of_the_header(tmp_path: Path, forms: str, singular: int, count: int) -> None:
    found = polib.pofile(translated(tmp_path / "a.po", catalogue(forms, count), each(str)))
    texts = next(entry.msgstr_plural for entry in found if entry.msgid)
    assert texts == {number: "One file" if number == singular else "%d files" for number in range(count)}


def test_a_tab_in_a_message_stays(tmp_path: Path) -> None:
    source = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "Name:\\tValue"\nmsgstr ""\n'
    (entry,) = polib.pofile(translated(tmp_path / "a.po", source, upper))
    assert entry.msgstr == "NAME:\tVALUE"


@pytest.mark.parametrize("times", ["-00:00:01,500 --> 00:00:01,000", "-00:00:02,000 --> -00:00:01,000"])
def test_a_cue_before_the_film_begins_is_a_cue(tmp_path: Path, times: str) -> None:
    source = f"1\n{times}\nGood day\n\n2\n00:00:02,000 --> 00:00:03,000\nSee you\n"
    assert translated(tmp_path / "a.srt", source, upper) == source.replace("Good day", "GOOD DAY").replace(
        "See you", "SEE YOU"
    )


def test_text_behind_a_drawing_is_translated(tmp_path: Path) -> None:
    head = "[Script Info]\nScriptType: v4.00+\n\n[Events]\nFormat: Layer, Start, End, Style, Text\n"
    line = "Dialogue: 0,0:00:01.00,0:00:02.00,Default,{{\\p1}}m 0 0 l 10 -5 b{{\\p0}}{}\n"
    drawing = "Dialogue: 0,0:00:03.00,0:00:04.00,Default,{\\an5\\p2}m 0 0 l 10 10\n"
    source = head + line.format("Good day") + drawing
    assert translated(tmp_path / "a.ass", source, upper) == head + line.format("GOOD DAY") + drawing


def odt(tmp_path: Path, paragraph: str) -> Path:
    names = ["office", "text", "loext"]
    spaces = " ".join(f'xmlns:{name}="urn:{name}"' for name in names)
    content = f"<office:document-content {spaces}><text:p>{paragraph}</text:p></office:document-content>"
    path = tmp_path / "a.odt"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        package.writestr("content.xml", content)
    return path


@pytest.mark.parametrize("name", ["text:text-input", "loext:content-control", "text:placeholder"])
def test_fields_and_controls_of_odt_are_translated(tmp_path: Path, name: str) -> None:
    path = odt(tmp_path, f"Dear <{name} text:description='x'>valued customer</{name}>, hello.")
    data = translated_bytes(path, None, upper)
    content = zipfile.ZipFile(io.BytesIO(data)).read("content.xml").decode()
    assert f"DEAR <{name} text:description='x'>VALUED CUSTOMER</{name}>, HELLO." in content


def test_the_space_behind_a_ruby_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    document = docx.Document()
    paragraph = document.add_paragraph("Read ")
    ruby = (
        '<w:r xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:ruby><w:rt><w:r><w:t>kanji</w:t>'
        "</w:r></w:rt><w:rubyBase><w:r><w:t>漢字</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    )
    paragraph._p.append(docx.oxml.parse_xml(ruby))
    paragraph.add_run(" with care.")
    document.save(str(path))
    assert read_file(path).document.sources == ["Read 漢字 with care."]
    data = translated_bytes(path, None, each(lambda source: source.replace("Read", "Lies").replace("with care", "gut")))
    xml = zipfile.ZipFile(io.BytesIO(data)).read("word/document.xml").decode()
    texts = [node.text for node in ElementTree.fromstring(xml).iter() if node.tag.endswith("}t")]
    assert "".join(filter(None, texts)) == "Lies kanji漢字 gut."


@pytest.mark.parametrize("character", ["\x00", "\x0b", "\x1f", "\ufffe", "\ud800"])
@pytest.mark.parametrize("format", ["docx", "odt", "xliff", "tmx"])
def test_characters_that_xml_cannot_hold_are_named_with_their_places(format: str, character: str) -> None:
    assert unwritable(format, f"ab{character}c\t\n") == [(2, character)]


def test_plain_formats_hold_control_characters_but_nul() -> None:
    assert unwritable("txt", "a\x0bb") == []
    assert unwritable("json", "a\0b\ud800") == [(3, "\ud800")]
    assert unwritable("srt", "a\0b\ud800") == [(1, "\0"), (3, "\ud800")]


def test_no_file_is_written_that_could_not_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    document = docx.Document()
    document.add_paragraph("Good day.")
    document.save(str(path))
    with pytest.raises(UserError, match=r"sentence 1: docx cannot hold U\+000B \(character 6\)"):
        translated_bytes(path, None, each(lambda source: "Guten\x0bTag."))


def test_what_an_encoding_cannot_hold_is_said(tmp_path: Path) -> None:
    source = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\nmsgid "Good day"\nmsgstr ""\n'
    with pytest.raises(UserError, match=r"😀 \(U\+1F600\) cannot be written in the file's encoding, iso8859-1"):
        translated_bytes(tmp_path / "a.po", source, each(lambda source: f"{source} 😀"))


def confirmed(path: Path, targets: list[str], locked: bool = True) -> str:
    """A file written with these targets, which a human has confirmed."""
    file = read_file(path)
    sentences = tuple(
        replace(sentence, target=target, status="locked" if locked else None)
        for sentence, target in zip(file.document.sentences, targets, strict=True)
    )
    return file.rendered(replace(file.document, sentences=sentences))[0].decode()


UNIT = """<xliff version="1.2"><file original="a" source-language="en" target-language="de" datatype="plaintext"><body>
<trans-unit id="1"><source>Display shows %d errors in {device}.</source></trans-unit></body></file></xliff>"""


def test_confirmed_text_goes_out_as_it_stands_and_is_marked(tmp_path: Path) -> None:
    path = tmp_path / "a.xlf"
    path.write_text(UNIT)
    target = "Das Display zeigt Fehler in {gerät}."
    found = confirmed(path, [target])
    assert f'<target state="translated">{target}</target>' in found
    assert '<trans-unit id="1">' in found
    draft = confirmed(path, [target], locked=False)
    assert 'state="needs-review-translation"' in draft
    assert "%d" in draft


@pytest.mark.parametrize("flags", ["", "#, fuzzy\n", "#, fuzzy, c-format\n", "#, c-format\n"])
def test_a_confirmed_message_is_not_fuzzy(tmp_path: Path, flags: str) -> None:
    path = tmp_path / "a.po"
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    path.write_text(f'{head}{flags}msgid "Welcome back %s!"\nmsgstr ""\n')
    (entry,) = polib.pofile(confirmed(path, ["Willkommen zurück!"]))
    assert (entry.msgstr, entry.fuzzy) == ("Willkommen zurück!", False)
    assert ("c-format" in entry.flags) == ("c-format" in flags)
    (entry,) = polib.pofile(confirmed(path, ["Willkommen zurück!"], locked=False))
    assert entry.fuzzy
    assert "%s" in entry.msgstr


def test_a_plural_message_is_fuzzy_until_all_its_forms_are_confirmed(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    text = catalogue("nplurals=2; plural=(n != 1);", 2).replace('msgid "One', '#, fuzzy\nmsgid "One')
    path.write_text(text)
    file = read_file(path)
    one, two = (replace(s, target="%d x", status="locked") for s in file.document.sentences)
    for sentences, fuzzy in (((one, two), False), ((one, replace(two, status=None)), True)):
        data, _ = file.rendered(replace(file.document, sentences=sentences))
        assert [entry.fuzzy for entry in polib.pofile(data.decode())] == [fuzzy]
