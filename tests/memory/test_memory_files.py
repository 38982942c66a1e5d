"""Memories from files, TMX above all: what is wrong with a file is said in one line."""

from __future__ import annotations

import pytest

from weitblick.common.errors import UserError
from weitblick.documents.corpora.formats import read_documents, write_documents
from weitblick.documents.document import Document, Sentence
from weitblick.memory.store import Memory

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
<header creationtool="x" srclang="{source}" segtype="sentence" o-tmf="x" adminlang="en" datatype="plaintext"/>
<body>
<tu tuid="1"><tuv xml:lang="en-GB"><seg>The <bpt i="1">&lt;b&gt;</bpt>report<ept i="1">&lt;/b&gt;</ept> &amp; more.
</seg></tuv><tuv xml:lang="de-DE"><seg>Der Bericht &amp; mehr.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Only English.</seg></tuv></tu>
<tu><tuv xml:lang="fr"><seg>Oui.</seg></tuv><tuv xml:lang="en"><seg>Yes.</seg></tuv>
<tuv xml:lang="de"><seg>Ja.</seg></tuv></tu>
</body>
</tmx>
"""


def write(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_tmx_is_read_in_the_wanted_languages(tmp_path, encoding):
    path = write(tmp_path / "a.tmx", TMX.format(source="en"), encoding)
    pairs = list(Memory.read(path, ("en", "de")))
    assert [(p.source, p.target, p.origin) for p in pairs] == [
        ("The report & more.", "Der Bericht & mehr.", "a.tmx:6"),
        ("Yes.", "Ja.", "a.tmx:9"),
    ]


def test_tmx_round_trip(tmp_path):
    documents = [
        Document(
            "one", (Sentence("A < B & C", "Ä", "locked", "7"), Sentence("Second.", "Zweiter.")), {"languages": "en de"}
        ),
        Document("two", (Sentence("Third.", "Dritter.", "draft"),)),
    ]
    write_documents(documents, [tmp_path / "x.tmx"])
    back = list(read_documents([tmp_path / "x.tmx"]))
    assert [(d.id, d.sentences) for d in back] == [(d.id, d.sentences) for d in documents]
    write_documents(back, [tmp_path / "y.tmx"])
    assert (tmp_path / "y.tmx").read_bytes() == (tmp_path / "x.tmx").read_bytes()


def test_drafts_are_not_approved(tmp_path):
    sentences = (Sentence("A.", "Ah.", "draft"), Sentence("B.", "Beh.", "locked"), Sentence("C.", "Ceh."))
    write_documents([Document("1", sentences)], [tmp_path / "x.jsonl"])
    assert [pair.source for pair in Memory.read([tmp_path / "x.jsonl"], ("en", "de"))] == ["B.", "C."]


def test_units_without_the_target_language_are_left_out_wherever_they_stand(tmp_path):
    text = TMX.format(source="*all*").replace('"de-DE"', '"it"')
    assert [pair.source for pair in Memory.read(write(tmp_path / "a.tmx", text), ("en", "de"))] == ["Yes."]


BAD = [
    ("broken.tmx", TMX.format(source="en").replace("</tuv></tu>", "</tu>", 1), r"broken.tmx:7: is no well-formed TMX"),
    ("other.tmx", TMX.format(source="de"), "from de, not from en"),
    ("bomb.tmx", TMX.format(source="en").replace('"tmx14.dtd"', '"x" [<!ENTITY a "b">]'), "declares the entity"),
    ("none.tmx", TMX.format(source="en").replace('"en', '"es').replace('"de', '"it'), "holds es"),
    ("one.txt", "Only one side.\n", "one.txt:1: has no target side"),
    ("empty.tmx", "", "no well-formed TMX"),
    ("empty.tsv", "", "holds no document"),
    ("missing.tmx", None, "no such file"),
    ("a.xlf", "<xliff/>", "a.xlf: is XLIFF, which is not read as a memory; give TMX"),
    ("a.XLSX", "PK", "a.XLSX: is a spreadsheet"),
    ("a.jsonl", '{"source": "Yes.", "target": "Ja."}', "a.jsonl:1: has no `format_version`"),
    ("french.tmx", TMX.format(source="en").replace('"de', '"it'), "french.tmx:6: has no target side"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD, ids=[row[0] for row in BAD])
def test_a_bad_memory_is_one_line(tmp_path, name, text, message):
    if text is not None:
        write(tmp_path / name, text)
    with pytest.raises(UserError, match=message) as caught:
        Memory.read(tmp_path / name, ("en", "de"))
    assert "\n" not in str(caught.value)


def test_two_columns_are_source_and_target_perhaps_below_a_title(tmp_path):
    path = write(tmp_path / "a.tsv", "source\ttarget\nYes.\tJa.\nNo.\tNein.\n")
    assert [(p.source, p.target, p.origin) for p in Memory.read(path, ("en", "de"))] == [
        ("Yes.", "Ja.", "a.tsv:2"),
        ("No.", "Nein.", "a.tsv:3"),
    ]
    path = write(tmp_path / "b.tsv", "one\tYes.\tJa.\n")
    assert [(p.source, p.target) for p in Memory.read(path, ("en", "de"))] == [("Yes.", "Ja.")]


def test_a_file_for_each_side(tmp_path):
    sides = [write(tmp_path / "a.en", "Yes.\nNo.\n"), write(tmp_path / "a.de", "Ja.\nNein.\n")]
    other = write(tmp_path / "b.tsv", "Why?\tWarum?\n")
    memory = Memory.read([other, *sides], ("en", "de"))
    assert [(p.source, p.target) for p in memory] == [("Why?", "Warum?"), ("Yes.", "Ja."), ("No.", "Nein.")]
    with pytest.raises(UserError, match="has no target side"):
        Memory.read(sides[::-1], ("en", "de"))


def test_every_file_of_a_folder_is_checked_on_its_own(tmp_path):
    with Memory.open(tmp_path / "m") as memory:
        memory.extend((f"Sentence {n}.", f"Satz {n}.", f"good.tmx:{n}") for n in range(1000))
        memory.extend([("Ja.", "Yes.", "turned.tsv:1"), ("Nein.", "No.", "turned.tsv:2")])
    seen = []
    Memory.read(tmp_path / "m", ("en", "de"), seen.append)
    assert [source for source, _, _ in seen[-1]] == ["Ja.", "Nein."]
    assert all(where.startswith("good.tmx") for _, _, where in seen[-2])


def test_every_file_is_checked(tmp_path):
    paths = [write(tmp_path / "a.tsv", "Yes.\tJa.\n"), write(tmp_path / "b.tsv", "Ja.\tYes.\n")]
    seen = []
    Memory.read(paths, ("en", "de"), seen.append)
    assert [pairs[0][2] for pairs in seen] == ["a.tsv:1", "b.tsv:1"]


def test_a_folder_without_a_memory_and_standard_input_are_refused(tmp_path):
    with pytest.raises(UserError, match="is a folder without a memory; make one: weitblick memory add"):
        Memory.read(tmp_path, ("en", "de"))
    with pytest.raises(UserError, match="--memory: standard input is not read as a memory"):
        Memory.read("-", ("en", "de"))
