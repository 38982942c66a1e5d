"""A small valid input for every reader: what attacks start from."""

from __future__ import annotations

import io
import json
import zipfile

CORPORA: dict[str, tuple[str, ...]] = {
    "text": ("One house.\nIt is old.\n\nA second text.\n", "Ein Haus.\nEs ist alt.\n\nEin zweiter Text.\n"),
    "d-lines": ("<d>\nOne house.\nIt is old.\n<d>\nA text.\n", "<d>\nEin Haus.\nEs ist alt.\n<d>\nEin Text.\n"),
    "jsonl": (
        '{"format_version": 1, "id": "a", "sentences": [{"source": "One house.", "target": "Ein Haus."},'
        ' {"source": "It.", "target": "Es.", "status": "locked", "metadata": {"n": 1.5}}], "metadata": {"x": [1]}}\n',
    ),
    "tsv": ("document\tsource\ttarget\na\tOne house.\tEin Haus.\na\tIt is old.\tEs ist alt.\nb\tText.\tText.\n",),
    "tmx": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header srclang="en" datatype="plaintext" '
        'segtype="sentence" adminlang="en" creationtool="x" creationtoolversion="1" o-tmf="x"/><body>\n'
        '<tu tuid="1"><tuv xml:lang="en"><seg>One <ph>{0}</ph> house &amp; &#228;.</seg></tuv>'
        '<tuv xml:lang="de"><seg>Ein Haus.</seg></tuv></tu>\n</body></tmx>\n',
    ),
    "docids": ("One house.\nIt is old.\nText.\n", "Ein Haus.\nEs ist alt.\nText.\n", "a\na\nb\n"),
    "prose": ("One house. It is old.\n\nA second paragraph, e.g. this.\n",),
    "starts": ("One house.\nIt is old.\nText.\n", "Ein Haus.\nEs ist alt.\nText.\n", "0\n2\n"),
    "ids": ("0 ||| One house. ||| Ein Haus.\n0 ||| It. ||| Es.\n1 ||| Text. ||| Text.\n",),
    "news-commentary": ("One house.\tEin Haus.\nIt.\tEs.\n\t\nText.\tText.\n",),
    "ted-xml": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<mteval><srcset setid="x" srclang="english">\n<doc docid="1" '
        'genre="lectures"><url>http://x</url>\n<talkid>1</talkid><title>T</title>\n<seg id="1"> One house. </seg>\n'
        '<seg id="2">It.</seg>\n</doc></srcset></mteval>\n',
    ),
    "ted-tags": ("<url>http://x</url>\n<talkid>1</talkid>\n<title>T</title>\nOne house.\nIt.\n",),
    "wmt-sgm": (
        '<srcset setid="x" srclang="any">\n<doc sysid="s" docid="d" genre="news" origlang="en">\n<p>\n'
        '<seg id="1">One house.</seg>\n<seg id="2">It.</seg>\n</p>\n</doc>\n</srcset>\n',
    ),
    "wmt-xml": (
        '<?xml version=\'1.0\' encoding=\'utf-8\'?>\n<dataset id="x"><doc origlang="en" id="d">\n<src lang="en"><p>'
        '<seg id="1">One house.</seg>\n</p></src>\n<ref lang="de" translator="A"><p><seg id="1">Ein Haus.</seg>\n</p>'
        "</ref></doc></dataset>\n",
    ),
    "opus": (
        '<?xml version="1.0"?>\n<cesAlign version="1.0"><linkGrp targType="s" fromDoc="en/a.xml.gz" '
        'toDoc="de/a.xml.gz"><link xtargets="1;1" id="SL1"/><link xtargets="2 3;2" id="SL2"/></linkGrp></cesAlign>\n',
    ),
}


def _zip(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in files.items():
            package.writestr(name, content)
    return data.getvalue()


_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DOCX = {
    "[Content_Types].xml": '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/'
    'content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>',
    "_rels/.rels": '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
    'relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
    'officeDocument" Target="word/document.xml"/></Relationships>',
    "word/document.xml": f'<?xml version="1.0"?><w:document xmlns:w="{_WORD}"><w:body><w:p><w:r><w:t>One </w:t></w:r>'
    "<w:r><w:rPr><w:b/></w:rPr><w:t>house.</w:t></w:r></w:p><w:p><w:r><w:t>It is old.</w:t></w:r></w:p></w:body>"
    "</w:document>",
}
ODT = {
    "mimetype": "application/vnd.oasis.opendocument.text",
    "content.xml": '<?xml version="1.0"?><office:document-content '
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text><text:p>One '
    '<text:span text:style-name="B">house</text:span>.</text:p></office:text></office:body></office:document-content>',
    "META-INF/manifest.xml": '<?xml version="1.0"?><manifest:manifest '
    'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
}
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def _relations(**targets: str) -> str:
    found = "".join(
        f'<Relationship Id="r{n}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets.items(), 1)
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{found}</Relationships>'
    )


PPTX = {
    "[Content_Types].xml": "<Types/>",
    "_rels/.rels": _relations(officeDocument="ppt/presentation.xml"),
    "ppt/presentation.xml": f'<p:presentation xmlns:p="p" xmlns:r="{_OFFICE}"><p:sldIdLst><p:sldId id="256" r:id="r1"/>'
    "</p:sldIdLst></p:presentation>",
    "ppt/_rels/presentation.xml.rels": _relations(slide="slides/slide1.xml"),
    "ppt/slides/slide1.xml": f'<p:sld xmlns:p="p" xmlns:a="{_DRAWING}"><p:sp><p:txBody><a:p><a:r><a:t>One </a:t></a:r>'
    '<a:r><a:rPr b="1"/><a:t>house.</a:t></a:r><a:br/><a:fld type="slidenum"><a:t>1</a:t></a:fld></a:p></p:txBody>'
    "</p:sp></p:sld>",
    "ppt/slides/_rels/slide1.xml.rels": _relations(chart="../charts/chart1.xml"),
    "ppt/charts/chart1.xml": "<c:chartSpace xmlns:c='c'><c:strCache><c:pt><c:v>Fish</c:v></c:pt><c:pt><c:v>Fish</c:v>"
    "</c:pt></c:strCache></c:chartSpace>",
}
XLSX = {
    "[Content_Types].xml": "<Types/>",
    "_rels/.rels": _relations(officeDocument="xl/workbook.xml"),
    "xl/workbook.xml": f'<workbook xmlns="{_SHEETS}" xmlns:r="{_OFFICE}"><sheets><sheet name="S" sheetId="1" r:id="r1"'
    "/></sheets><definedNames><definedName name='N'>T[Old house]</definedName></definedNames></workbook>",
    "xl/_rels/workbook.xml.rels": _relations(worksheet="worksheets/sheet1.xml", sharedStrings="sharedStrings.xml"),
    "xl/sharedStrings.xml": f'<sst xmlns="{_SHEETS}"><si><t>Old house</t></si><si><r><t>One </t></r><r><rPr><b/></rPr>'
    "<t>house.</t></r></si></sst>",
    "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_SHEETS}"><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c>'
    '<c r="B1" t="s"><v>1</v></c></row><row r="2"><c r="A2" t="inlineStr"><is><t>Yes</t></is></c><c r="B2"><f>SUM(T['
    'Old house],A2="No")</f></c></row></sheetData><dataValidations><dataValidation type="list" prompt="Choose">'
    '<formula1>"Yes,No"</formula1></dataValidation></dataValidations><headerFooter><oddHeader>&amp;LPage &amp;P'
    "</oddHeader></headerFooter></worksheet>",
    "xl/worksheets/_rels/sheet1.xml.rels": _relations(table="../tables/table1.xml"),
    "xl/tables/table1.xml": f'<table xmlns="{_SHEETS}" id="1" name="T" displayName="T" ref="A1:A2"><tableColumns '
    'count="1"><tableColumn id="1" name="Old house"/></tableColumns></table>',
}
PACKAGES = {"letter.docx": DOCX, "letter.odt": ODT, "deck.pptx": PPTX, "book.xlsx": XLSX}
FILES: dict[str, bytes] = {
    "film.srt": b"1\n00:00:01,000 --> 00:00:03,000\n<i>One</i> house.\n\n2\n00:00:04,000 --> 00:00:06,000\nIt.\n",
    "film.vtt": b"WEBVTT\n\nSTYLE\n::cue {}\n\n1\n00:01.000 --> 00:03.000 align:start\n<v A>One house.</v>\n\n"
    b"00:04.000 --> 00:06.000\nIt is.\n",
    "film.ass": b"[Script Info]\nTitle: x\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname, Fontsize\n"
    b"Style: Default,Arial,20\n\n[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, "
    b"Text\nDialogue: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,{\\i1}One{\\i0} house.\\NIt is.\n",
    **{name: _zip(parts) for name, parts in PACKAGES.items()},
    "words.xlf": b'<?xml version="1.0"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file '
    b'original="x" source-language="en" target-language="de" datatype="plaintext"><body><trans-unit id="1"><source>One '
    b'<g id="1">house</g><x id="2"/>.</source></trans-unit></body></file></xliff>\n',
    "words2.xlf": b'<?xml version="1.0"?>\n<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" '
    b'srcLang="en" trgLang="de"><file id="f"><unit id="1"><segment><source>One <pc id="1">house</pc>.</source>'
    b"</segment></unit></file></xliff>\n",
    "words.po": b'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n#, c-format\nmsgid "One %s."\n'
    b'msgstr ""\n\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n',
    "page.md": b"# One house\n\nIt is *old* and `x` [link](http://x).\n\n- a\n- b\n\n| a | b |\n|---|---|\n| c | d |\n",
    "page.html": b'<!DOCTYPE html><html><head><meta charset="utf-8"><title>One</title></head><body><p>One <b>house</b>'
    b"&amp; it.<br>Yes.</p><table><tr><td>x</td></tr></table></body></html>\n",
    "letter.txt": b"Dear you,\n\nOne house. It is old.\n\nYours\n",
}
GLOSSARY = "house\tHaus\nold\talt\n"
SUITE = (
    json.dumps(
        {
            "format_version": 1,
            "id": "1",
            "source": ["One house.", "It is old."],
            "target": ["Ein Haus.", "Es ist alt."],
            "sentence": 1,
            "contrastive": ["Er ist alt.", "Sie ist alt."],
        }
    )
    + "\n"
)
STUDY = "name: x\nrecipes: {a: recipe.yaml}\n"
