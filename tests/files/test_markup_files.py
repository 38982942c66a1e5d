"""Word, OpenDocument, XLIFF, HTML: every tag comes back, around the words it was around; other libraries read it."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import docx
import pytest
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from file_translators import amnesia, reversed_words, translated, translated_bytes, upper
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from lxml import html as lxml_html

from weitblick.common.errors import UserError
from weitblick.files.formats import read_file

XLIFF = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="x" source-language="en" target-language="de" datatype="plaintext">
    <body>
      <trans-unit id="1">
        <source>The house is <g id="1">not yet</g> built<x id="2"/>, see <x id="3"/> here.</source>
      </trans-unit>
      <trans-unit id="2" approved="yes">
        <source>Report</source>
        <target state="final">Bericht</target>
      </trans-unit>
      <trans-unit id="3" translate="no"><source>Do not</source></trans-unit>
      <trans-unit id="4"><source>I <bpt id="1">&lt;b></bpt>vote<ept id="1">&lt;/b></ept> to <ph id="3">%s</ph>.</source>
        <target/></trans-unit>
      <trans-unit id="5"><source>A &amp; B</source><target state="new">A &amp; B</target></trans-unit>
      <group translate="no"><trans-unit id="6"><source>Nor this</source></trans-unit></group>
    </body>
  </file>
</xliff>
"""
XLIFF2 = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">
 <file id="f1">
  <unit id="1">
   <segment id="s1">
    <source>The <pc id="1">house</pc> is not yet <ph id="2"/> built.</source>
   </segment>
   <segment state="final"><source>Yes.</source><target>Ja.</target></segment>
  </unit>
  <unit id="2" translate="no"><segment><source>Nothing</source></segment></unit>
 </file>
</xliff>
"""
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>The report</title>
<style>p { color: red }</style><script>var a = "vote <b>";</script></head>
<body class=main>
  <p>
    The house is <b>not yet</b> built on <a href="/x?a=1&amp;b=2">the hill</a>.<br>We vote tomorrow.
  <ul><li>First point<li translate="no">Do not touch <i>this</i></ul>
  <p class="notranslate">Nor this.</p>
  <p>Press <kbd>Ctrl+C</kbd> to stop &copy; this, <span class="notranslate">Weitblick</span> says.</p>
  <img src="a.png" alt="A house"> <button>Save it</button><!-- a comment -->
  <pre>some code here</pre>
</body></html>
"""


def word_file(path: Path) -> Path:
    document = docx.Document()
    document.add_heading("The protection of workers", 1)
    paragraph = document.add_paragraph("The house is not yet ")
    paragraph.add_run("built").bold = True
    paragraph.add_run(" on the hill. We ")
    paragraph.add_run("vote").italic = True
    paragraph.add_run(" tom")
    paragraph.add_run("orrow.")
    document.add_paragraph("See ")._p.append(_link(document))
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Country", "99"
    document.sections[0].header.paragraphs[0].text = "A header"
    document.sections[0].footer.paragraphs[0].text = "A footer"
    lines = document.add_paragraph("Name:\tthe first line")
    lines.add_run().add_break()
    lines.add_run("The second line.")
    document.save(str(path))
    return path


def _link(document: docx.document.Document) -> OxmlElement:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink"
    link = OxmlElement("w:hyperlink")
    link.set(qn("r:id"), document.part.relate_to("https://example.org/x", kind, is_external=True))
    run, text = OxmlElement("w:r"), OxmlElement("w:t")
    text.text = "the report"
    run.append(text)
    link.append(run)
    return link


def test_word_keeps_runs_links_tables_headers(tmp_path: Path) -> None:
    path = word_file(tmp_path / "a.docx")
    data = translated_bytes(path, None, upper)
    before, after = docx.Document(str(path)), docx.Document(io.BytesIO(data))
    assert [p.text for p in after.paragraphs] == [p.text.upper() for p in before.paragraphs]
    assert [p.style.name for p in after.paragraphs] == [p.style.name for p in before.paragraphs]
    runs = after.paragraphs[1].runs
    assert [r.text for r in runs if r.bold] == ["BUILT"]
    assert [r.text for r in runs if r.italic] == ["VOTE"]
    assert [h.text for h in after.paragraphs[2].hyperlinks] == ["THE REPORT"]
    assert after.paragraphs[2].hyperlinks[0].address == "https://example.org/x"
    assert [c.text for c in after.tables[0].rows[0].cells] == ["COUNTRY", "99"]
    assert after.sections[0].header.paragraphs[0].text == "A HEADER"
    assert after.sections[0].footer.paragraphs[0].text == "A FOOTER"


def test_bold_goes_with_its_word(tmp_path: Path) -> None:
    data = translated_bytes(word_file(tmp_path / "a.docx"), None, reversed_words)
    runs = docx.Document(io.BytesIO(data)).paragraphs[1].runs
    assert [r.text for r in runs if r.bold] == ["built"]
    assert runs[0].text.startswith("hill. the on ")


def test_word_parts_that_are_not_translated_stay(tmp_path: Path) -> None:
    path = word_file(tmp_path / "a.docx")
    file = read_file(path)
    assert file.rendered(file.document)[0] == path.read_bytes()
    before = zipfile.ZipFile(path)
    after = zipfile.ZipFile(io.BytesIO(translated_bytes(path, None, upper)))
    assert before.namelist() == after.namelist()
    changed = {name for name in before.namelist() if before.read(name) != after.read(name)}
    assert changed == {"word/document.xml", "word/header1.xml", "word/footer1.xml"}


BOX = (
    '<w:r><w:pict><v:shape xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox><w:txbxContent><w:p><w:r><w:t>In a box'
    "</w:t></w:r></w:p></w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
)
FIELD = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>{}</w:instrText></w:r>'
    '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>{}</w:t></w:r>'
    '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
)


def with_paragraph(path: Path, content: str) -> Path:
    """A Word file whose only paragraph has this content."""
    docx.Document().save(str(path))
    package = zipfile.ZipFile(path)
    parts = {name: package.read(name) for name in package.namelist()}
    body = parts["word/document.xml"].decode()
    parts["word/document.xml"] = re.sub("<w:sectPr", f"<w:p>{content}</w:p><w:sectPr", body, count=1).encode()
    with zipfile.ZipFile(path, "w") as out:
        for name, data in parts.items():
            out.writestr(name, data)
    return path


def document_xml(data: bytes) -> str:
    return zipfile.ZipFile(io.BytesIO(data)).read("word/document.xml").decode()


def test_text_boxes_and_fields(tmp_path: Path) -> None:
    text = "<w:r><w:t xml:space='preserve'>{} </w:t></w:r>"
    link, page = FIELD.format('HYPERLINK "x"', "the link"), FIELD.format("PAGE", "7")
    content = text.format("See") + link + text.format(" on page") + page + text.format(" again.") + BOX
    path = with_paragraph(tmp_path / "a.docx", content)
    assert read_file(path).document.sources == ["See the link on page 7 again.", "In a box"]
    for translate in (upper, reversed_words, amnesia):
        xml = document_xml(translated_bytes(path, None, translate))
        etree.fromstring(xml.encode())
        assert xml.count("fldCharType") == 6
        assert re.findall('fldCharType="(.)', xml).count("b") == 2
        assert xml.count(BOX.split("<w:p>")[0]) == 1
    assert "IN A BOX" in document_xml(translated_bytes(path, None, upper))


def test_equal_neighbours_are_one_run(tmp_path: Path) -> None:
    runs = "".join(
        f'<w:r w:rsidR="{n}"><w:rPr><w:lang w:val="en-US"/></w:rPr><w:t>{c}</w:t></w:r>' for n, c in enumerate("word")
    )
    xml = document_xml(translated_bytes(with_paragraph(tmp_path / "a.docx", runs), None, upper))
    assert '<w:r><w:t xml:space="preserve">WORD</w:t></w:r>' in xml


def test_xliff_targets(tmp_path: Path) -> None:
    result = translated(tmp_path / "a.xlf", XLIFF, reversed_words)
    root = etree.fromstring(result.encode())
    name = "{urn:oasis:names:tc:xliff:document:1.2}"
    units = {unit.get("id"): unit for unit in root.iter(f"{name}trans-unit")}
    first = units["1"].find(f"{name}target")
    assert first.get("state") == "needs-review-translation"
    assert first.find(f"{name}g").text in ("yet not", "not yet")
    assert sorted(x.get("id") for x in first.iter(f"{name}x")) == ["2", "3"]
    assert units["2"].find(f"{name}target").text == "Bericht"
    assert units["3"].find(f"{name}target") is None
    assert units["6"].find(f"{name}target") is None
    fourth = units["4"].find(f"{name}target")
    assert [child.tag.removeprefix(name) for child in fourth] in (["ph", "bpt", "ept"], ["bpt", "ept", "ph"])
    assert units["5"].find(f"{name}target").text == "B & A"
    removed = re.sub(r'\s*<target state="needs-review-translation">.*?</target>', "", result)
    assert removed == re.sub(r'\s*<target(/>| state="new">.*?</target>)', "", XLIFF)


def test_xliff_2(tmp_path: Path) -> None:
    result = translated(tmp_path / "a.xlf", XLIFF2, reversed_words)
    name = "{urn:oasis:names:tc:xliff:document:2.0}"
    segments = list(etree.fromstring(result.encode()).iter(f"{name}segment"))
    assert [segment.get("state") for segment in segments] == ["initial", "final", None]
    assert segments[0].find(f"{name}target/{name}pc").text == "house"
    assert segments[0].find(f"{name}target/{name}ph") is not None
    assert segments[1].find(f"{name}target").text == "Ja."
    assert segments[2].find(f"{name}target") is None


@pytest.mark.parametrize("content", [XLIFF, XLIFF2])
def test_approved_units_are_locked(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.xlf").write_text(content, encoding="utf-8")
    file = read_file(tmp_path / "a.xlf")
    locked = [sentence for sentence in file.document.sentences if sentence.status == "locked"]
    assert [(s.source, s.target) for s in locked] in ([("Report", "Bericht")], [("Yes.", "Ja.")])
    assert file.rendered(file.document)[0] == content.encode()


def test_html_keeps_tags_scripts_and_what_is_not_translated(tmp_path: Path) -> None:
    result = translated(tmp_path / "p.html", PAGE, reversed_words)
    for kept in (
        '<script>var a = "vote <b>";</script>',
        "<style>p { color: red }</style>",
        '<li translate="no">Do not touch <i>this</i></ul>',
        '<p class="notranslate">Nor this.</p>',
        "<kbd>Ctrl+C</kbd>",
        '<span class="notranslate">Weitblick</span>',
        '<img src="a.png" alt="house A">',
        "<pre>some code here</pre>",
        '<a href="/x?a=1&amp;b=2">',
        "<!-- a comment -->",
        "</b>",
        "<br>",
    ):
        assert result.count(kept) == 1, kept
    assert "<title>report The</title>" in result
    tags = [
        sorted(e.tag for e in lxml_html.fromstring(page).iter() if isinstance(e.tag, str)) for page in (PAGE, result)
    ]
    assert tags[0] == tags[1]


MARKED = st.recursive(
    st.sampled_from(["we", "go", "home.", "Now", "<br/>", "&amp;", "%s", "x"]),
    lambda inner: st.builds(
        lambda tag, parts: f"<{tag}>{' '.join(parts)}</{tag}>",
        st.sampled_from(["b", "i", "a", "kbd"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=40)
@given(st.lists(MARKED, min_size=1, max_size=6).map(" ".join))
def test_markup_stays_well_formed(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    page = f"<html><body><p>{content}</p></body></html>"
    path = tmp_path_factory.mktemp("h") / "x.html"
    path.write_text(page, encoding="utf-8")
    file = read_file(path)
    assert file.rendered(file.document)[0] == page.encode()
    count = lambda text: sorted(e.tag for e in etree.fromstring(text).iter())  # noqa: E731
    for translate in (reversed_words, upper, amnesia):
        assert count(translated(path, None, translate)) == count(page)


def test_dangerous_xml_is_refused(tmp_path: Path) -> None:
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
    outside = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    for evil in (laughs, outside):
        (tmp_path / "a.xlf").write_text(XLIFF.replace("<xliff", evil + "<xliff", 1), encoding="utf-8")
        with pytest.raises(UserError, match="entities"):
            read_file(tmp_path / "a.xlf")


def test_damaged_and_dangerous_packages_are_refused(tmp_path: Path) -> None:
    path = word_file(tmp_path / "a.docx")
    whole = path.read_bytes()
    for name, data, message in (
        ("short.docx", whole[: len(whole) // 2], "not a complete"),
        ("text.docx", b"only text", "not a complete"),
        ("old.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "password"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "formats: srt"),
        ("a.pdf", b"%PDF-1.7\n\0", "formats: srt"),
        ("a.bin", b"\x7fELF\0\0", "binary"),
        ("other.docx", _zip({"a.txt": b"x"}), "no Word document"),
        (
            "bomb.docx",
            _zip({"[Content_Types].xml": b"<x/>", "word/document.xml": bytes(40 << 20)}),
            "more than is safe",
        ),
        ("sheet.xlsx", _zip({"xl/workbook.xml": b"<x/>"}), "Excel"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UserError, match=message):
            read_file(tmp_path / name)


def _zip(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in parts.items():
            package.writestr(name, data)
    return out.getvalue()


def test_attributes_that_people_read(tmp_path: Path) -> None:
    page = (
        '<p title="A title">See <a href="x" title="R&amp;D and more">this page</a> and '
        '<img alt="A house" src="y"> now.</p>'
        '<input type="submit" value="Send it"><input value="stays"><meta name="description" content="About us">'
        '<p translate="no" title="Stays">Stays</p><p>The word<sup>1</sup> here.</p>'
    )
    result = translated(tmp_path / "a.html", page, upper)
    for wanted in ('title="A TITLE"', 'title="R&amp;D AND MORE"', 'alt="A HOUSE"', 'value="SEND IT"', 'value="stays"'):
        assert result.count(wanted) == 1, wanted
    assert 'content="ABOUT US"' in result
    assert '<p translate="no" title="Stays">Stays</p><p>THE WORD<sup>1</sup> HERE.</p>' in result


def test_raised_and_hidden_runs_are_marks(tmp_path: Path) -> None:
    run = "<w:r><w:rPr>{}</w:rPr><w:t xml:space='preserve'>{}</w:t></w:r>"
    raised = '<w:vertAlign w:val="superscript"/>'
    runs = [("<w:vanish/>", "hid"), ("", "The note"), (raised, "1"), ("", " is.")]
    content = "".join(run.format(*one) for one in runs)
    path = with_paragraph(tmp_path / "a.docx", content)
    assert read_file(path).document.sources == ["The note is."]
    xml = document_xml(translated_bytes(path, None, upper))
    texts = re.findall(r"<w:t [^>]*>([^<]*)<", xml)
    assert texts == ["hid", "THE NOTE", "1", " IS."]


def test_comments_scripts_in_them_and_fallbacks(tmp_path: Path) -> None:
    hidden = '<!--[if lt IE 9]><script src="x.js"></script><p>Old.</p><![endif]-->'
    page = f"{hidden}<video><track src=x>No video here.</video><p>A house <img src=y> stands.</p><!-- <script> -->"
    wanted = f"{hidden}<video><track src=x>NO VIDEO HERE.</video><p>A HOUSE <img src=y> STANDS.</p><!-- <script> -->"
    assert translated(tmp_path / "a.html", page, upper) == wanted


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.docm", b"application/vnd.ms-word.document.macroEnabled.main+xml"),
        ("a.dotx", b"application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml"),
    ],
)
def test_word_files_with_macros_and_templates(tmp_path: Path, name: str, kind: bytes) -> None:
    with zipfile.ZipFile(word_file(tmp_path / "a.docx")) as package:
        parts = {part: package.read(part) for part in package.namelist()}
    plain = b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(plain, kind)
    assert b"THE PROTECTION OF WORKERS" in document_xml(translated_bytes(tmp_path / name, _zip(parts), upper)).encode()


def test_segments_that_are_still_empty(tmp_path: Path) -> None:
    unit = (
        '<xliff version="1.2"><file><body><trans-unit id="1"><source>A test. It works.</source>'
        '<seg-source><mrk mtype="seg" mid="1">A <g id="2">test</g>.</mrk> <mrk mtype="seg" mid="2">It works.</mrk>'
        '</seg-source><target><mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2">Es geht.</mrk></target>'
        "</trans-unit></body></file></xliff>"
    )
    result = translated(tmp_path / "a.sdlxliff", unit, upper)
    assert '<mrk mtype="seg" mid="1">A <g id="2">TEST</g>.</mrk> <mrk mtype="seg" mid="2">Es geht.</mrk>' in result
