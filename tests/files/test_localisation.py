"""JSON and CSV of localisation, ICU messages, tags and signs in texts, second chances for words that were lost."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from file_translators import amnesia, each, reversed_words, translated, upper
from hypothesis import given, settings
from hypothesis import strategies as st

from weitblick.common.errors import UserError
from weitblick.files.formats import read_file

MESSAGES = """{
  "title": "The report",
  "greeting": "Hello {name}, you have {count, plural, one {# new message} other {# new messages}}.",
  "nested": {"list": ["First point", 5, null], "url": "https://example.org", "html": "Click <b>here</b> now."},
  "lines": "He said \\"yes\\"\\nand left.",
  "@title": {"description": "Not shown"},
  "chrome": {"message": "Hello world", "description": "Nor this"}
}
"""
TABLE = """key,en,de,notes
title,The report,,first page
save,"Save it, please",,button
open,Open,Öffnen,menu
lines,"First line.
Second line.",,
quote,"He said ""yes"" again.",,
"""


def test_json_keeps_keys_numbers_and_placeholders(tmp_path: Path) -> None:
    after = json.loads(translated(tmp_path / "en.json", MESSAGES, upper))
    before = json.loads(MESSAGES)
    assert after["greeting"] == "HELLO {name}, YOU HAVE {count, plural, one {# NEW MESSAGE} other {# NEW MESSAGES}}."
    assert after["nested"] == {
        "list": ["FIRST POINT", 5, None],
        "url": "https://example.org",
        "html": "CLICK <b>HERE</b> NOW.",
    }
    assert after["lines"] == 'HE SAID "YES"\nAND LEFT.'
    assert after["@title"] == before["@title"]
    assert after["chrome"] == {"message": "HELLO WORLD", "description": "Nor this"}


@pytest.mark.parametrize("translate", [reversed_words, amnesia])
def test_cases_of_a_message_stay_cases(tmp_path: Path, translate: object) -> None:
    greeting = json.loads(translated(tmp_path / "en.json", MESSAGES, translate))["greeting"]  # type: ignore[arg-type]
    assert greeting.count("{count, plural, one {") == greeting.count("other {") == 1
    assert greeting.count("{name}") == 1
    assert greeting.count("#") == 2
    assert greeting.count("{") == greeting.count("}")


KEYS = st.text("abcdef.@ ", min_size=1, max_size=5)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.sampled_from(["We go home.", "A\nB", "%s of"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None, max_examples=60)
@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_json_round_trip(tmp_path_factory: pytest.TempPathFactory, value: object, indent: int, plain: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    path = tmp_path_factory.mktemp("json") / "x.json"
    path.write_bytes(data)
    file = read_file(path)
    assert file.rendered(file.document)[0] == data
    for translate in (upper, amnesia):
        shape = json.loads(translated(path, None, translate))
        assert _shape(shape) == _shape(value)


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return {key: _shape(one) for key, one in value.items()}
    return [_shape(one) for one in value] if isinstance(value, list) else "" if isinstance(value, str) else value


def test_csv_fills_empty_targets(tmp_path: Path) -> None:
    after = list(csv.DictReader(io.StringIO(translated(tmp_path / "t.csv", TABLE, upper))))
    assert [row["de"] for row in after] == [
        *("THE REPORT", "SAVE IT, PLEASE", "Öffnen", "FIRST LINE.\nSECOND LINE.", 'HE SAID "YES" AGAIN.')
    ]
    before = list(csv.DictReader(io.StringIO(TABLE)))
    assert [{**row, "de": ""} for row in after] == [{**row, "de": ""} for row in before]


def test_csv_without_targets_is_replaced(tmp_path: Path) -> None:
    result = translated(tmp_path / "t.csv", 'id;text\n1;We go.\n2;"Now; or ""later"""\n', upper)
    assert result == 'id;text\n1;WE GO.\n2;"NOW; OR ""LATER"""\n'


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.text('ab ,;"\n', max_size=8), min_size=3, max_size=3), max_size=6),
    st.sampled_from(",;\t"),
    st.sampled_from(["\n", "\r\n"]),
)
def test_csv_round_trip(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], delimiter: str, line_end: str
) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerows([["key", "source", "target"], *rows])
    data = out.getvalue().replace("\n", line_end).encode()
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    path.write_bytes(data)
    file = read_file(path)
    assert file.rendered(file.document)[0] == data
    result = translated(path, None, upper)
    after = list(csv.reader(io.StringIO(result, newline=""), delimiter=delimiter))
    assert [row[:2] for row in after[1:]] == [row[:2] for row in rows]
    assert all(new[2] == old[2] for old, new in zip(rows, after[1:], strict=True) if old[2].strip())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '{"a": "b"', "a.json:1: is not JSON"),
        ("a.json", "[" * 100_000 + "]" * 100_000, "is not JSON"),
        ("a.csv", "one,two\nthree,four\n", "names no column of texts"),
        ("a.csv", 'source,target\n"a" b,c\n', "a.csv:2: is not CSV"),
    ],
)
def test_what_is_damaged_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_file(tmp_path / name)


@pytest.mark.parametrize(
    "text",
    [
        "See <b>the report</b> & the C++ code, 5 * 3 = 15, for $1,500 or +49 30 1234567.",
        "R&D costs 30 € at 20 °C → more, #topic @name, a <file> and <br/> %{name} $t(key).",
        "{a} {b} and {c}{d} go.",
    ],
)
@pytest.mark.parametrize("translate", [reversed_words, amnesia, upper])
def test_signs_survive(tmp_path: Path, text: str, translate: object) -> None:
    result = translated(tmp_path / "a.txt", text, translate)  # type: ignore[arg-type]
    kept = ["<b>", "</b>", "&", "C++", "5 * 3 = 15", "$1,500", "+49 30 1234567", "R&D", "30 €", "20 °C", "→", "#topic"]
    kept += ["@name", "<file>", "<br/>", "%{name}", "$t(key)", "{a}", "{b}", "{c}", "{d}"]
    assert [one for one in kept if one in text and result.count(one) != text.count(one)] == []


def test_numbers_are_read_as_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("You have %d new messages from %s %s.", encoding="utf-8")
    source = read_file(tmp_path / "a.txt").masked().sources[0]
    assert source == "You have 37 new messages from K2."


def test_lost_words_have_a_second_chance(tmp_path: Path) -> None:
    forgetful = each(lambda source: source.replace("K1", "").replace("G1", "hier G1"))
    assert translated(tmp_path / "a.txt", "See {name} now.", forgetful) == "See hier {name} now."


def test_capital_letters_are_read_as_a_sentence(tmp_path: Path) -> None:
    seen: list[str] = []

    def note(source: str) -> str:
        seen.append(source)
        return "Das Protokoll der Sitzung"

    assert translated(tmp_path / "a.txt", "MINUTES OF THE MEETING", each(note)) == "DAS PROTOKOLL DER SITZUNG"
    assert seen == ["Minutes of the meeting"]


def test_a_sentence_ends_behind_an_address(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Write to a@example.org. We answer. See [the door slams] now.", encoding="utf-8")
    file = read_file(tmp_path / "a.txt")
    assert file.document.sources[0] == "Write to a@example.org."
    assert file.masked().sources[2] == "See (the door slams) now."
    data, _ = file.unmasked(replace(file.masked(), sentences=each(str)(file.masked()).sentences))
    assert data.sentences[2].target == "See [the door slams] now."


UNITS = """<xliff version="1.2"><file><body>
<trans-unit id="1"><source>{N, plural, =1 {one &#39;vote&#39;} other {<x id="I"/> votes}}</source></trans-unit>
<trans-unit id="2"><source>Updated <x id="ICU" equiv-text="{n, plural, other {...}}"/> today</source></trans-unit>
<trans-unit id="3"><source>Hello <x id="START_TAG"/>my friend<x id="CLOSE_TAG"/>.</source></trans-unit>
</body></file></xliff>
"""


def test_cases_in_units_and_cells(tmp_path: Path) -> None:
    result = translated(tmp_path / "a.xlf", UNITS, upper)
    for wanted in (
        "{N, plural, =1 {ONE 'VOTE'} other {<x id=\"I\"/> VOTES}}</target>",
        '>UPDATED <x id="ICU" equiv-text="{n, plural, other {...}}"/> TODAY</target>',
        '>HELLO <x id="START_TAG"/>MY FRIEND<x id="CLOSE_TAG"/>.</target>',
    ):
        assert result.count(wanted) == 1, wanted
    table = (
        'id,en,de\n1,"You {n, plural, one {# ""big"" vote} other {go}} now",\n2,"{n, select, a {Go} other {Stay}}",\n'
    )
    rows = list(csv.reader(translated(tmp_path / "a.csv", table, upper).splitlines()))
    assert rows[1][2] == 'YOU {n, plural, one {# "BIG" VOTE} other {GO}} NOW'
    assert rows[2] == ["2", "{n, select, a {Go} other {Stay}}", "{n, select, a {GO} other {STAY}}"]


def test_quoted_braces_of_messages(tmp_path: Path) -> None:
    result = translated(tmp_path / "a.arb", "{\"a\": \"It is '{'not'}' an argument, {user}!\"}", upper)
    assert json.loads(result)["a"] == "IT IS '{'NOT'}' AN ARGUMENT, {user}!"
