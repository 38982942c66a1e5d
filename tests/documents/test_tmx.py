"""TMX as other tools write it: languages, codes, white space, what they mark as unconfirmed, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from weitblick.common.errors import UserError
from weitblick.documents.corpora.formats import read_documents, write_documents
from weitblick.documents.document import Document, Sentence

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header creationtool="x" srclang="{}" segtype="sentence"><prop type="name">x</prop></header><body>
"""


def units(*bodies: str, source: str = "en") -> str:
    return HEAD.format(source) + "".join(f"<tu>{body}</tu>\n" for body in bodies) + "</body></tmx>\n"


def variant(language: str, text: str) -> str:
    return f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>'


def read(text: str) -> list[Sentence]:
    Path("x.tmx").write_text(text, encoding="utf-8")
    return [sentence for d in read_documents(["x.tmx"], languages=("en", "de")) for sentence in d.sentences]


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ("Line one<ph>&lt;br/&gt;</ph>line two.", "Line one line two."),
        ("One.<ph x='1'/>Two.", "One. Two."),
        ("Press <ph/> now", "Press now"),
        ("Hello <bpt i='1'>{b</bpt>you<ept i='1'>}</ept>, <hi>friend</hi>", "Hello you, friend"),
        ("<ut>{\\b </ut>wo<it pos='begin'>x</it>rd", "word"),
        ("<ph/> start and end <ph/>", "start and end"),
        ("\n   broken\n   for the eye\n  ", "broken for the eye"),
        ("10\u00a0euros,  two spaces", "10\u00a0euros,  two spaces"),
        ("10&nbsp;euros", "10\u00a0euros"),
    ],
)
def test_what_is_in_a_segment(segment, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (sentence,) = read(units(variant("EN-gb", segment) + variant("de-AT", segment)))
    assert sentence.source == sentence.target == text


def test_of_several_variants_the_first_that_says_something(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    both = variant("DE", "Zuerst.") + variant("en", "First.") + variant("DE", "Zweitens.")
    empty = variant("en", "Second.") + variant("de", "") + variant("de", "Zweitens.")
    assert [s.target for s in read(units(both, empty, variant("en", "Third.") + variant("de", "")))] == [
        "Zuerst.",
        "Zweitens.",
        "",
    ]


def test_what_trados_has_not_confirmed_is_a_draft(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pair = variant("en", "Yes.") + variant("de", "Ja.")
    levels = ("ApprovedTranslation", "Translated", "Draft", "RejectedTranslation", "RejectedSignOff")
    found = read(units(*(f'<prop type="x-ConfirmationLevel">{level}</prop>{pair}' for level in levels)))
    assert [sentence.status for sentence in found] == [None, None, "draft", "draft", "draft"]


def test_no_source_language_is_any(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.tmx").write_text(units(variant("en", "Yes.") + variant("de", "Ja."), source=""), encoding="utf-8")
    (document,) = read_documents(["x.tmx"], languages=("en", "de"))
    assert document.metadata["srclang"] == "*all*"


def test_white_space_and_signs_come_back_as_they_were(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [" two  spaces ", "10\u00a0%", "a\tb", 'a "<&>" b', "a\rb", "\u3000wide", ""]
    document = Document("d", tuple(Sentence(text, text) for text in texts), {"languages": "en de"})
    write_documents([document], ["x.tmx"])
    (back,) = read_documents(["x.tmx"])
    assert [(s.source, s.target) for s in back.sentences] == [(text, text) for text in texts]


def test_regions_come_back_as_they_were(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.tmx").write_text(units(variant("en-GB", "Yes.") + variant("de-AT", "Ja.")), encoding="utf-8")
    write_documents(read_documents(["x.tmx"]), ["y.tmx"])
    assert '<tuv xml:lang="de-AT"><seg>Ja.</seg></tuv>' in Path("y.tmx").read_text(encoding="utf-8")
    write_documents(read_documents(["y.tmx"]), ["z.tmx"])
    assert Path("z.tmx").read_bytes() == Path("y.tmx").read_bytes()


@pytest.mark.parametrize("sentence", [Sentence("a\x01", "b"), Sentence("a", "\uffff"), Sentence("a", "b", id="\x02")])
def test_what_xml_cannot_hold_is_refused(sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"x\.tmx:5: a control character cannot be written as tmx"):
        write_documents([Document("d", (sentence,), {"languages": "en de"})], ["x.tmx"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html>\n<body/></html>", r"x\.tmx:1: is no TMX: it begins with <html>"),
        (units(variant("en", "a &unknown; b")), r"x\.tmx:4: uses the entity 'unknown'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        read(text)
