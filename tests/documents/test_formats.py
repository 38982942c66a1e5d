"""Every writable format gives back what it took, or refuses it; translations keep the layout of their input."""

from __future__ import annotations

import gzip
import io
import lzma
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weitblick.common.errors import UserError
from weitblick.documents.corpora.formats import CORPUS_FORMATS, Corpus, guess_format, read_documents, write_translations
from weitblick.documents.corpora.formats import write_documents as write
from weitblick.documents.document import Document, Sentence

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@st.composite
def corpora(draw: st.DrawFn) -> list[Document]:
    with_target = draw(st.booleans())
    documents = []
    for number in range(draw(st.integers(1, 3))):
        sentences = tuple(
            Sentence(draw(TEXT), draw(TEXT) if with_target else None) for _ in range(draw(st.integers(1, 3)))
        )
        documents.append(Document(str(number + 1), sentences))
    return documents


def text_of(documents: list[Document]) -> list[list[tuple[str, str | None]]]:
    return [[(s.source, s.target) for s in document.sentences] for document in documents]


OUTPUTS = {"text": 2, "d-lines": 2, "docids": 3, "tsv": 1, "jsonl": 1}


@pytest.mark.parametrize("format", OUTPUTS)
@given(documents=corpora())
@settings(max_examples=50, deadline=None)
def test_what_is_written_is_read_again_or_refused(format: str, documents: list[Document]) -> None:
    has_target = documents[0].sentences[0].target is not None
    with tempfile.TemporaryDirectory() as folder:
        count = OUTPUTS[format] - (0 if has_target or OUTPUTS[format] == 1 else 1)
        paths = [Path(folder) / f"{part}.{format}" for part in range(count)]
        try:
            write(documents, paths, format)
        except UserError:
            assert not list(Path(folder).iterdir())
            held = [text for d in documents for s in d.sentences for text in (s.source, s.target) if text is not None]
            plain = all(text.strip() and text.isprintable() and text[0] != "<" for text in held)
            assert not plain, "a plain sentence was refused"
        else:
            assert text_of(list(read_documents(paths, format))) == text_of(documents)


def test_jsonl_is_exact() -> None:
    documents = [
        Document(
            "a b",
            (
                Sentence("", ""),
                Sentence("x\ty\nz", None, id="s", metadata={"speaker": "Ä", "n": [1, None]}),
                Sentence("d", "D", "draft"),
                Sentence("l", "L", "locked"),
            ),
            {"blank_lines_after": 3},
        ),
        Document("empty", ()),
    ]
    write(documents, ["a.jsonl"])
    assert list(read_documents(["a.jsonl"])) == documents


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"id": "1", "sentences": []}', "has no `format_version`"),
        ('{"format_version": 2, "id": "1", "sentences": []}', "format_version is 2"),
        ('{"format_version": 1, "sentences": []}', "`id`"),
        ('{"format_version": 1, "id": "1", "sentences": [{"source": "a", "status": "final"}]}', "status"),
        ('{"format_version": 1, "id": "1", "sentences": [{"source": "a", "status": "locked"}]}', "no target"),
        ('{"format_version": 1, "id": "1", "sentences": [{"source": "a", "tgt": "b"}]}', "'tgt'"),
        ('{"format_version": 1, "id": "1", "sentences": [{"source": "\\u0000"}]}', "NUL"),
        ('{"format_version": 1, "id": "1", "sentences": [{"source": "\\ud800"}]}', "surrogate"),
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
    ],
)
def test_jsonl_names_the_line_of_a_wrong_document(line: str, complaint: str) -> None:
    good = '{"format_version": 1, "id": "0", "sentences": [{"source": "a"}]}'
    Path("a.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(UserError, match=r"a\.jsonl:2:") as error:
        list(read_documents(["a.jsonl"]))
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    "content",
    ["a\n", "\n\na\nb\n\n\n\nc\n\nd\n\n", "a\n\n\n", "\na\n \t\nb\n"],
)
def test_translated_text_has_a_line_for_every_line(content: str) -> None:
    Path("in.en").write_text(content)
    write_translations(translated(read_documents(["in.en"])), "out.de", "text")
    expected = [line.upper() if line.strip() else "" for line in content.split("\n")]
    assert Path("out.de").read_text().split("\n") == expected


@pytest.mark.parametrize("content", ["<d>\na\n\nb\n<d>\nc\n", "a\n<d>\n<d>\nb\n<d>\n", "\na\n<d>\nb\n"])
def test_translated_d_lines_have_a_line_for_every_line(content: str) -> None:
    Path("in.en").write_text(content)
    write_translations(translated(read_documents(["in.en"], "d-lines")), "out.de", "d-lines")
    assert Path("out.de").read_text() == content.upper().replace("<D>", "<d>")


def translated(documents: object) -> list[Document]:
    return [
        replace(d, sentences=tuple(replace(s, target=s.source.upper()) for s in d.sentences))
        for d in documents  # type: ignore[attr-defined]
    ]


def test_translations_of_other_formats_keep_their_shape() -> None:
    Path("a.tsv").write_text("id\tsource\nx\tone\nx\ttwo\ny\tthree\n")
    write_translations(translated(read_documents(["a.tsv"])), "out.tsv", "tsv")
    assert Path("out.tsv").read_text() == "id\tsource\ttarget\nx\tone\tONE\nx\ttwo\tTWO\ny\tthree\tTHREE\n"
    Path("s.en").write_text("one\n\nthree\n")
    Path("s.docids").write_text("x\nx\ny\n")
    write_translations(translated(read_documents(["s.en", "s.docids"])), "s.de", "docids")
    assert Path("s.de").read_text() == "ONE\n\nTHREE\n"
    write([Document("1", (Sentence("a", metadata={"speaker": "A"}),))], ["a.jsonl"])
    write_translations(translated(read_documents(["a.jsonl"])), "b.jsonl", "jsonl")
    assert next(read_documents(["b.jsonl"])).sentences[0] == Sentence("a", "A", metadata={"speaker": "A"})


@pytest.mark.parametrize(
    ("documents", "paths", "place"),
    [
        ([["a"], ["b", ""]], ["o.txt"], "o.txt:4: an empty sentence"),
        ([["a"], ["b", "c\td"]], ["o.tsv"], "o.tsv:3: a tab"),
        ([["a", "b\nc"]], ["o.txt"], "o.txt:2: a line break"),
        ([["a", "<d>"]], ["o.txt"], "o.txt:2: a sentence <d>"),
        ([["a"], []], ["o.txt"], "o.txt:2: document '1'"),
    ],
)
def test_a_writer_refuses_by_line_and_leaves_nothing(documents: list[list[str]], paths: list[str], place: str) -> None:
    corpus = [Document(str(n), tuple(map(Sentence, texts))) for n, texts in enumerate(documents)]
    with pytest.raises(UserError) as error:
        write(corpus, paths)
    assert str(error.value).startswith(place)
    assert not list(Path().iterdir())


def test_targets_are_not_lost_silently() -> None:
    with pytest.raises(UserError, match="second output"):
        write([Document("1", (Sentence("a", "b"),))], ["o.txt"])
    with pytest.raises(UserError, match="without a target"):
        write([Document("1", (Sentence("a"),))], ["o.en", "o.de"])


def test_equal_ids_do_not_merge() -> None:
    twins = [Document("x", (Sentence("a"),)), Document("x", (Sentence("b"),))]
    with pytest.raises(UserError, match="second document with the id 'x'"):
        write(twins, ["o.tsv"])
    Path("a.tsv").write_text("x\ta\ny\tb\nx\tc\n")
    with pytest.raises(UserError, match=r"a\.tsv:3: document 'x' has ended before"):
        list(read_documents(["a.tsv"]))


def test_compression_byte_order_mark_and_line_ends() -> None:
    plain = "Grüße\nb\n\nc\n"
    Path("a").write_bytes(b"\xef\xbb\xbf" + plain.replace("\n", "\r\n").encode())
    Path("b.gz").write_bytes(gzip.compress(plain.encode()))
    Path("c.xz").write_bytes(lzma.compress(plain.encode()))
    wanted = [["Grüße", "b"], ["c"]]
    for path in ("a", "b.gz", "c.xz"):
        assert [d.sources for d in read_documents([path])] == wanted
    write(read_documents(["a"]), ["out.en.xz"])
    assert lzma.decompress(Path("out.en.xz").read_bytes()).decode() == plain


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"<d>\na\n<d>\nb\n")))  # type: ignore[arg-type]
    monkeypatch.setattr("sys.stdin", stdin)
    assert guess_format(["-"]) == "d-lines"
    write(read_documents(["-"]), ["-"], "text")
    assert capsys.readouterr().out == "a\n\nb\n"


@pytest.mark.parametrize(
    ("source", "target", "place"),
    [
        ("a\nb\n", "a\nb\nc\n", "t:3: has no counterpart: s ends after 2 lines"),
        ("a\nb\nc\n", "a\nb\n", "s:3: has no counterpart: t ends after 2 lines"),
        ("a\n\nb\n", "a\nb\nb\n", "t:2: a blank line"),
        ("a\nb\nb\n", "a\n\nb\n", "t:2: a blank line (a document boundary), but not in s"),
        ("<d>\na\n<d>\nb\n", "<d>\na\nb\nb\n", "t:3: <d>"),
    ],
)
def test_sides_that_differ_are_named_by_their_first_line(source: str, target: str, place: str) -> None:
    Path("s").write_text(source)
    Path("t").write_text(target)
    with pytest.raises(UserError) as error:
        list(read_documents(["s", "t"]))
    assert str(error.value).startswith(place)


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.en", "Hello\n", "text"),
        ("a.en", "\n\n<d>\nHello\n", "d-lines"),
        ("a.jsonl", "", "jsonl"),
        ("a", '{"format_version": 1, "id": "1", "sentences": []}\n', "jsonl"),
        ("a.tsv.gz", "", "tsv"),
        ("a", "3 ||| Hello ||| Hallo\n", "ids"),
        ("a.xml", '<?xml version="1.0"?>\n<mteval>\n', "ted-xml"),
        ("a.xml", '<?xml version="1.0"?>\n<!DOCTYPE x SYSTEM "y">\n<dataset id="1">\n', "wmt-xml"),
        ("a.xml", '<?xml version="1.0"?>\n<cesAlign>\n', "opus"),
        ("a.sgm", "", "wmt-sgm"),
        ("train.tags.en-de.en", "", "ted-tags"),
    ],
)
def test_formats_are_guessed(name: str, content: str, format: str) -> None:
    data = content.encode()
    Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert guess_format([name]) == format
    assert Corpus([name]).format.name == format


def test_a_translation_of_a_read_only_format_is_text() -> None:
    Path("a").write_text("0 ||| one ||| eins\n1 ||| two ||| zwei\n")
    write_translations(translated(read_documents(["a"])), "out", "ids")
    assert Path("out").read_text() == "ONE\n\nTWO\n"


def test_sentences_know_their_lines() -> None:
    Path("a").write_text("\na\nb\n\n\nc\n")
    assert [located.lines for located in Corpus(["a"]).located()] == [(2, 3), (6,)]


def test_unknown_and_read_only_formats_are_named() -> None:
    Path("a").write_text("a\n")
    with pytest.raises(UserError, match="did you mean jsonl"):
        list(read_documents(["a"], "jsnl"))
    with pytest.raises(UserError, match="read only"):
        write([], ["b"], "opus")
    assert {"text", "d-lines", "jsonl", "tsv", "tmx", "docids", "prose"} == {
        n for n, f in CORPUS_FORMATS.items() if f.write
    }


def test_a_number_without_end_is_no_json(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"format_version": ' + "9" * 5000 + ', "sentences": []}\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.jsonl:1: not JSON"):
        list(read_documents([path]))
