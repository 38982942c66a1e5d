"""The files of shared tasks and of OPUS are read as their publishers write them, and hostile ones refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from weitblick.common.errors import UserError
from weitblick.documents.corpora.formats import read_documents


def mteval(language: str, texts: list[list[str]]) -> str:
    documents = "\n".join(
        f'<doc docid="{number}" genre="lectures">\n<title>Talk {number}</title>\n'
        + "\n".join(f'<seg id="{position}"> {text} </seg>' for position, text in enumerate(document, 1))
        + "\n</doc>"
        for number, document in enumerate(texts, 1)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n'
        f'<srcset setid="dev" srclang="{language}">\n{documents}\n</srcset>\n</mteval>\n'
    )


def test_ted_xml() -> None:
    Path("a.en.xml").write_text(mteval("en", [["R&D &amp; more", "a < b"], ["c"]]))
    Path("a.de.xml").write_text(mteval("de", [["F&amp;E", "A"], ["C"]]))
    documents = list(read_documents(["a.en.xml", "a.de.xml"]))
    assert [(d.id, d.sources, d.targets) for d in documents] == [
        ("1", ["R&D & more", "a < b"], ["F&E", "A"]),
        ("2", ["c"], ["C"]),
    ]
    assert documents[0].metadata["title"] == "Talk 1"
    assert documents[0].sentences[1].id == "2"


@pytest.mark.parametrize(
    ("source", "target", "complaint"),
    [
        ([["a", "b"]], [["A"]], "source has 2, target has none"),
        ([["a"]], [["A", "B"]], "source has none, target has 2"),
        ([["a"], ["b"]], [["A"]], "document '2' is missing in t.xml"),
    ],
)
def test_sets_that_differ_are_named(source: list[list[str]], target: list[list[str]], complaint: str) -> None:
    Path("s.xml").write_text(mteval("en", source))
    Path("t.xml").write_text(mteval("de", target))
    with pytest.raises(UserError, match=complaint):
        list(read_documents(["s.xml", "t.xml"]))


def test_a_set_cut_short_is_an_error() -> None:
    Path("s.xml").write_text(mteval("en", [["a"], ["b"]])[:-60])
    with pytest.raises(UserError, match="ends inside the <doc>"):
        list(read_documents(["s.xml"]))


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;&b;">]>',
        '<!DOCTYPE a [\n<!ENTITY b SYSTEM "file:///etc/passwd">\n]>',
    ],
)
def test_entities_are_refused(declaration: str) -> None:
    Path("s.xml").write_text(f'<?xml version="1.0"?>\n{declaration}\n' + mteval("en", [["&c; &b;"]]))
    with pytest.raises(UserError, match=r"s\.xml:2: declares entities"):
        list(read_documents(["s.xml"], "ted-xml"))


def test_ted_tags() -> None:
    head = "<url>http://x/{0}</url>\n<keywords>k</keywords>\n<talkid>{0}</talkid>\n<title>T {0}</title>\n"
    tail = "<reviewer></reviewer>\n<translator>N</translator>\n"
    talks = [("7", ["One &amp; two.", "<i>three</i>"]), ("9", ["Four."])]
    for name in ("train.tags.en-de.en", "train.tags.en-de.de"):
        Path(name).write_text("".join(head.format(id) + "\n".join(text) + "\n" + tail for id, text in talks))
    documents = list(read_documents(["train.tags.en-de.en", "train.tags.en-de.de"]))
    assert [(d.id, d.sources) for d in documents] == [("7", ["One & two.", "<i>three</i>"]), ("9", ["Four."])]
    assert documents[1].metadata["title"] == "T 9"
    assert documents[0].targets == documents[0].sources


def test_wmt_sgm() -> None:
    page = (
        '<refset setid="n" srclang="any" trglang="de">\n<doc sysid="ref" docid="bbc.1" origlang="en">\n'
        "<hl>\n{}\n</hl>\n<p>\n{}\n</p>\n</doc>\n</refset>\n"
    )
    Path("s.sgm").write_text(page.format('<seg id="1">A & B</seg>', '<seg id="2">C</seg>'))
    Path("t.sgm").write_text(page.format('<seg id="1">a und b</seg>', '<seg id="2">c</seg>'))
    (document,) = read_documents(["s.sgm", "t.sgm"])
    assert (document.id, document.sources, document.targets) == ("bbc.1", ["A & B", "C"], ["a und b", "c"])


def test_wmt_xml_takes_the_reference_in_the_language() -> None:
    Path("a.xml").write_text(
        """<?xml version='1.0' encoding='UTF-8'?>
<dataset id="w"><collection id="c">
<doc origlang="en" id="d1" domain="news">
<src lang="en"><p><seg id="1">One</seg><seg id="2">Two</seg></p><p><seg id="3">Three</seg></p></src>
<ref lang="cs" translator="A"><p><seg id="1">Jedna</seg><seg id="2">Dve</seg></p><p><seg id="3">Tri</seg></p></ref>
<ref lang="de" translator="B"><p><seg id="1">Eins</seg><seg id="2">Zwei</seg></p><p><seg id="3">Drei</seg></p></ref>
<hyp system="x"><p><seg id="1">?</seg></p></hyp>
</doc></collection></dataset>
"""
    )
    (document,) = read_documents(["a.xml"], languages=("en", "de"))
    assert document.targets == ["Eins", "Zwei", "Drei"]
    assert [s.metadata["paragraph"] for s in document.sentences] == [1, 1, 2]
    assert next(read_documents(["a.xml"])).targets[0] == "Jedna"


def test_news_commentary_ids_and_starts() -> None:
    Path("nc").write_text("a\tA\nb\tB\n\t\nc\tC\n\n")
    assert [d.targets for d in read_documents(["nc"], "news-commentary")] == [["A", "B"], ["C"]]
    Path("ids").write_text("4 ||| a ||| A\n4 ||| b ||| B\n5 ||| c ||| C\n")
    assert [(d.id, d.targets) for d in read_documents(["ids"])] == [("4", ["A", "B"]), ("5", ["C"])]
    Path("s").write_text("a\nb\nc\n")
    Path("s.starts").write_text("0\n2\n")
    assert [d.sources for d in read_documents(["s", "s", "s.starts"])] == [["a", "b"], ["c"]]
    for wrong, complaint in (("1\n", "not 0"), ("0\n2\n2\n", "starts:3"), ("0\n7\n", "start 7 lies behind")):
        Path("s.starts").write_text(wrong)
        with pytest.raises(UserError, match=complaint):
            list(read_documents(["s", "s.starts"]))


@pytest.mark.parametrize("enclosing", [True, False])
def test_opus_turns_are_documents(enclosing: bool) -> None:
    def file(language: str, per_turn: tuple[int, ...]) -> str:
        lines, id = ["<?xml version='1.0'?>", "<document>", '<CHAPTER ID="1">', '<s id="1">Agenda</s>'], 1
        for number, count in enumerate(per_turn):
            lines.append(f'<SPEAKER ID="{number}" NAME="N{number}"' + (">" if enclosing else "/>"))
            for _ in range(count):
                id += 1
                lines.append(f'<P><s id="{id}"><w>{language}</w><w>{id}</w></s></P>')
            lines += ["</SPEAKER>"] if enclosing else []
        return "\n".join([*lines, "</CHAPTER>", "</document>"])

    for language in ("de", "en"):
        Path(language).mkdir()
        Path(language, "ep-1.xml").write_text(file(language, (7, 2, 6)))
    links = "\n".join(f'<link xtargets="{n};{n}" />' for n in range(1, 15) if n != 3)
    Path("de-en.xml").write_text(
        "<?xml version='1.0'?>\n<!DOCTYPE cesAlign PUBLIC '-//CES//DTD XML cesAlign//EN' ''>\n<cesAlign>\n"
        f'<linkGrp targType="s" fromDoc="de/ep-1.xml.gz" toDoc="en/ep-1.xml.gz">\n<link xtargets="3;" />\n{links}\n'
        '<link xtargets="15 16;15 16" />\n</linkGrp>\n</cesAlign>\n'
    )
    documents = list(read_documents(["de-en.xml"], languages=("en", "de")))
    # 6 linked sentences of the first turn and 5 links of the third, of which the last joins two sentences
    assert [d.metadata["speaker"] for d in documents] == ["N0"]
    assert documents[0].sources == [f"en {n}" for n in (2, 4, 5, 6, 7, 8)]
    assert documents[0].targets == [f"de {n}" for n in (2, 4, 5, 6, 7, 8)]
    Path("de/ep-1.xml").unlink()
    with pytest.raises(UserError, match=r"de-en\.xml:4: de/ep-1\.xml\.gz is not below"):
        list(read_documents(["de-en.xml"]))
