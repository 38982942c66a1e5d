"""What a person confirmed goes out as it stands, in every format, with its state: read again with another library."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

import docx
import polib
import pysubs2
import pytest
import srt
import webvtt
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from lxml import etree
from lxml import html as lxml_html
from markdown_it import MarkdownIt

from weitblick.files.formats import read_file
from weitblick.files.translatable_file import TranslatableFile

State = str | None


@dataclass(frozen=True)
class Sample:
    """A file of two rows to translate, and how another library reads their translations and states."""

    name: str
    data: bytes
    read: Callable[[bytes], list[tuple[str, State]]]
    confirmed: State = None
    reviewed: State = None
    edges: bool = True  # whether white space at the edges of a text is text


def word_file() -> bytes:
    document = docx.Document()
    document.add_paragraph("Good day, friend.")
    paragraph = document.add_paragraph("See ")
    paragraph.add_run("the new").bold = True
    paragraph.add_run(" {name} at a@b.com now.")
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def open_document() -> bytes:
    stream = io.BytesIO()
    spaces = 'xmlns:office="urn:office" xmlns:text="urn:text"'
    with zipfile.ZipFile(stream, "w") as package:
        package.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        package.writestr(
            "content.xml",
            f"<office:document-content {spaces}><text:p>Good day, friend.</text:p>"
            "<text:p>See <text:span>the new</text:span> {name} now.</text:p></office:document-content>",
        )
    return stream.getvalue()


def read_word(data: bytes) -> list[tuple[str, State]]:
    return [(paragraph.text, None) for paragraph in docx.Document(io.BytesIO(data)).paragraphs]


def read_open_document(data: bytes) -> list[tuple[str, State]]:
    root = etree.fromstring(zipfile.ZipFile(io.BytesIO(data)).read("content.xml"))
    return [("".join(one.itertext()), None) for one in root.iter("{urn:text}p")]


XLIFF_1 = """<xliff version="1.2"><file original="a" source-language="en" datatype="plaintext"><body>
<trans-unit id="1"><source>Good day, friend.</source></trans-unit>
<trans-unit id="2" approved="yes"><source>See <g id="1">the new</g> {name} now<x id="2"/>.</source>
<target state="final">Alt.</target></trans-unit></body></file></xliff>"""
XLIFF_2 = """<xliff version="2.0" srcLang="en"><file id="f">
<unit id="1"><segment><source>Good day, friend.</source></segment></unit>
<unit id="2"><segment><source>See <pc id="1">the new</pc> {name} now.</source></segment></unit></file></xliff>"""


def read_xliff_1(data: bytes) -> list[tuple[str, State]]:
    units = etree.fromstring(data).iter("trans-unit")
    found = [(unit, unit.find("target")) for unit in units]
    return [("".join(target.itertext()), f"{target.get('state')} {unit.get('approved')}") for unit, target in found]


def read_xliff_2(data: bytes) -> list[tuple[str, State]]:
    segments = etree.fromstring(data).iter("segment")
    return [("".join(one.find("target").itertext()), one.get("state")) for one in segments]


PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

#, fuzzy
msgid "Good day, friend."
msgstr "Guten"

#, c-format
msgid "See the new %s now."
msgstr ""
"""
CUES = (
    "1\n00:00:01,000 --> 00:00:02,000\nGood day, friend.\n\n2\n00:00:09,000 --> 00:00:12,000\nSee <i>the new</i> one.\n"
)
VTT = "WEBVTT\n\n" + CUES.replace(",000", ".000")
ASS = """[Script Info]
ScriptType: v4.00+

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,Good day, friend.
Dialogue: 0,0:00:09.00,0:00:12.00,Default,,0,0,0,,See {\\i1}the new{\\i0} one.
"""
HTML = "<html><body><p>Good day, friend.</p><p>See <b>the new</b> one.</p></body></html>"


class _Text(HTMLParser):
    """The text of each paragraph."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.paragraphs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "p":
            self.paragraphs.append("")

    def handle_data(self, data: str) -> None:
        if self.paragraphs:
            self.paragraphs[-1] += data.replace("\n", " ")


def read_markdown(data: bytes) -> list[tuple[str, State]]:
    parser = _Text()
    parser.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(data.decode()))
    return [(text.rstrip(" "), None) for text in parser.paragraphs]


def read_po(data: bytes) -> list[tuple[str, State]]:
    return [(entry.msgstr, "fuzzy" if entry.fuzzy else "") for entry in polib.pofile(data.decode()) if entry.msgid]


def read_srt(data: bytes) -> list[tuple[str, State]]:
    return [cell(re.sub("</?i>", "", one.content)) for one in srt.parse(data.decode())]  # the tags of the sample


def read_vtt(data: bytes) -> list[tuple[str, State]]:
    return [cell(html.unescape(re.sub("</?i>", "", one.raw_text))) for one in webvtt.from_string(data.decode())]


def read_ass(data: bytes) -> list[tuple[str, State]]:
    texts = [one.text for one in pysubs2.SSAFile.from_string(data.decode(), format_="ass")]
    return [cell(re.sub(r"\{[^{}]*\}", "", text).replace("\\N", "\n").replace("\\h", "\u00a0")) for text in texts]


def cell(text: str) -> tuple[str, State]:
    return text.replace("\n", " "), None


SAMPLES = [
    Sample("a.docx", word_file(), read_word),
    Sample("a.odt", open_document(), read_open_document),
    Sample("1.xlf", XLIFF_1.encode(), read_xliff_1, "translated", "final yes"),
    Sample("2.xlf", XLIFF_2.encode(), read_xliff_2, "translated", "final"),
    Sample("a.po", PO.encode(), read_po, "", ""),
    Sample("a.srt", CUES.encode(), read_srt, edges=False),
    Sample("a.vtt", VTT.encode(), read_vtt, edges=False),
    Sample("a.ass", ASS.encode(), read_ass, edges=False),
    Sample(
        "a.html",
        HTML.encode(),
        lambda d: [(p.text_content(), None) for p in lxml_html.fromstring(d.decode()).iter("p")],
    ),
    Sample("a.md", b"Good day, friend.\n\nSee *the new* one.\n", read_markdown, edges=False),
    Sample(
        "a.json",
        b'{"a": "Good day, friend.", "b": "See the new {name}."}',
        lambda d: [cell(v) for v in json.loads(d).values()],
    ),
    Sample(
        "a.csv",
        b"id,en,de\n1,Good day,\n2,See the new one,\n",
        lambda d: [cell(r[2]) for r in csv.reader(io.StringIO(d.decode(), newline=""))][1:],
    ),
    Sample(
        "a.txt",
        b"Good day, my friend\n\nSee the new house and say hello\n",
        lambda d: [cell(line) for line in d.decode().split("\n") if line],
    ),
]
SIGNS = [*"&{}%*_\\\"'#`]|\t,;=+–\u00a0\u200d\u2028ſ😀𝔄", " ", "  ", "    ", "**", "~~", "- ", "1. ", "!["]
WORDS = ["Haus", "Äpfel", "1,204", "日本", "שלום", "the new", "Alt.", "{name}", "%s", "⟦1⟧", "&amp;", "&#9;", "-->"]
MARKUP = ["<b>", "</b>", "<x/>", "[a](b)", "https://a.de/?b=1&c=2", "a@b.com", "\\N", "</target>", "]]>", "<!--"]
PIECES = st.sampled_from([*SIGNS, *WORDS, *MARKUP])
EDITS = st.lists(PIECES | st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).map("".join)


def rendered(file: TranslatableFile, edits: list[str], reviewed: bool = False, status: str | None = "locked") -> bytes:
    sentences = tuple(
        replace(sentence, target=edit, status=status)  # type: ignore[arg-type]
        for sentence, edit in zip(file.document.sentences, edits, strict=True)
    )
    return file.rendered(replace(file.document, sentences=sentences), reviewed=range(2) if reviewed else ())[0]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
@settings(max_examples=60, deadline=None)
@given(edits=st.tuples(EDITS, EDITS), reviewed=st.booleans())
@example(edits=("&", "#"), reviewed=False)  # in emphasis at the start of a line of Markdown
def test_confirmed_text_and_state_come_back(
    tmp_path: Path, sample: Sample, edits: tuple[str, str], reviewed: bool
) -> None:
    path = tmp_path / sample.name
    path.write_bytes(sample.data)
    file = read_file(path)
    assume(all(edit.strip() and not file.unwritable(edit) for edit in edits))
    found = sample.read(rendered(file, list(edits), reviewed))
    expected = [edit if sample.edges else edit.strip() for edit in edits]
    assert [text if sample.edges else text.strip() for text, _ in found] == expected
    states = [state.removesuffix(" None").removesuffix(" no") if state else state for _, state in found]
    assert states == [sample.reviewed if reviewed else sample.confirmed] * 2


CLINGING = ["X_- rays and )<A signs are high", "Price* of fish is ~high", "a*b {name}*c are here"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "{0}\n\n{1}\n\n{2}\n"),
        ("a.json", '{{"a": "{0}", "b": "{1}", "c": "{2}"}}'),
        ("a.csv", "id,en,de\n1,{0},\n2,{1},\n3,{2},\n"),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n{0}.\n\n2\n00:00:09,000 --> 00:00:12,000\n{1}.\n"),
        ("a.po", 'msgid "{0}"\nmsgstr ""\n\nmsgid "{1}"\nmsgstr ""\n'),
    ],
)
@pytest.mark.parametrize("others", [None, "locked"])
def test_signs_that_cling_to_words_of_the_source_stay_out_of_confirmed_text(
    tmp_path: Path, name: str, content: str, others: str | None
) -> None:
    path = tmp_path / name
    path.write_text(content.format(*CLINGING), encoding="utf-8")
    file = read_file(path)
    sentences = [replace(one, target="Ganz anders gesagt", status=others) for one in file.document.sentences]
    sentences[0] = replace(sentences[0], target="Übersetzt 0.", status="locked")
    text = file.rendered(replace(file.document, sentences=tuple(sentences)))[0].decode()
    assert "Übersetzt 0." in text
    assert text.count("Ganz anders gesagt") == (len(sentences) - 1 if others == "locked" else 0)


def test_a_confirmed_sentence_of_one_word_is_in_one_cue(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_text(
        "1\n00:00:01,000 --> 00:00:02,000\nCome over here\n\n2\n00:00:02,100 --> 00:00:03,000\nright now.\n"
    )
    file = read_file(path)
    (sentence,) = file.document.sentences
    for status, said in (("locked", ["Komm!", ""]), (None, ["Komm!", "Komm!"])):
        document = replace(file.document, sentences=(replace(sentence, target="Komm!", status=status),))
        cues = list(srt.parse(file.rendered(document)[0].decode()))
        assert [cue.content.strip() for cue in cues] == said


def test_an_edit_of_a_translated_unit_keeps_its_inline_tags(tmp_path: Path) -> None:
    unit = '<trans-unit id="1"><source>{}</source><target state="translated">{}</target></trans-unit>'
    body = unit.format('Press <x id="7"/> now or <ph id="8">OK</ph>.', 'Jetzt <ph id="8">OK</ph> oder <x id="7"/>.')
    path = tmp_path / "a.xlf"
    path.write_text(f'<xliff version="1.2"><file source-language="en"><body>{body}</body></file></xliff>')
    file = read_file(path)
    (sentence,) = file.document.sentences
    assert (sentence.source, sentence.target) == ("Press ⟦1⟧ now or OK.", "Jetzt OK oder ⟦1⟧.")
    edited = replace(sentence, target="Nun OK oder ⟦1⟧!")
    text = file.rendered(replace(file.document, sentences=(edited,)))[0].decode()
    assert 'Nun <ph id="8">OK</ph> oder <x id="7"/>!</target>' in text


def test_drafts_do_not_look_like_confirmed_ones_in_xliff(tmp_path: Path) -> None:
    for name, content, read, draft in (
        ("1.xlf", XLIFF_1, read_xliff_1, "needs-review-translation"),
        ("2.xlf", XLIFF_2, read_xliff_2, "initial"),
    ):
        (tmp_path / name).write_text(content)
        file = read_file(tmp_path / name)
        states = [state or "" for _, state in read(rendered(file, ["Guten Tag.", "Siehe {name}."], status=None))]
        assert all(state.split()[0] == draft for state in states), states
