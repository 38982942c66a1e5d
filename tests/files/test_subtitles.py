"""Subtitles: sentences over several cues, one cue out for each cue in, everything but the text as it was."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pysubs2
import pytest
import srt
import webvtt
from file_translators import reversed_words, translated, upper
from hypothesis import given, settings
from hypothesis import strategies as st

from weitblick.common.errors import UserError
from weitblick.files.formats import read_file
from weitblick.files.subtitles import LINE, fit_lines, goes_on

FILM = """1
00:00:01,000 --> 00:00:03,000
{\\an8}The committee has not yet

2
00:00:03,100 --> 00:00:05,000
presented its <i>proposal</i> on the rights
of workers.

3
00:00:06,000 --> 00:00:08,000
- Have you read it?
- Yes, I have.

4
00:00:07,000 --> 00:00:08,500
♪ ♪

5
00:00:20,000 --> 00:00:22,000
A new <b>start</b>, see https://example.org/a?b=1.
"""

TALK = """WEBVTT - a talk
Kind: captions

NOTE nothing
of this

STYLE
::cue { color: lime }

intro
00:01.000 --> 00:04.000 align:start position:10%
<v Mary>Ladies &amp; gentlemen, I thank <c.loud>the rapporteur</c> for

00:04.000 --> 00:06.500
<v Mary>the work that she has done.

00:06.500 --> 00:09.000
<v Bob>No, &lt;really&gt;.
"""

ASS = """[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize
Style: Default,Arial,20

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,{\\i1}We must protect{\\i0} the rights\\Nof all, even
Dialogue: 0,0:00:03.00,0:00:05.00,Default,,0,0,0,,{\\pos(10,10)}those of the children.
Comment: 0,0:00:03.00,0:00:05.00,Default,,0,0,0,,not this
Dialogue: 0,0:00:07.00,0:00:08.00,Default,,0,0,0,,{\\p1}m 0 0 l 10 10{\\p0}
"""


def test_sentence_over_cues_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "film.srt").write_text(FILM, encoding="utf-8")
    sources = read_file(tmp_path / "film.srt").document.sources
    assert sources[0] == "The committee has not yet presented its proposal on the rights of workers."
    assert sources[1:3] == ["Have you read it?", "Yes, I have."]
    assert sources[3] == "A new start, see https://example.org/a?b=1."


def test_srt_keeps_all_but_its_text(tmp_path: Path) -> None:
    result = translated(tmp_path / "film.srt", FILM, reversed_words)
    before, after = list(srt.parse(FILM)), list(srt.parse(result))
    assert [(s.index, s.start, s.end) for s in before] == [(s.index, s.start, s.end) for s in after]
    assert all(cue.content.strip() for cue in after)
    assert after[0].content.startswith("{\\an8}")
    assert after[2].content.count("\n- ") == 1
    assert after[3].content == "♪ ♪"
    for code in ("<i>", "</i>", "<b>", "</b>", "https://example.org/a?b=1"):
        assert result.count(code) == FILM.count(code)
    assert "<b>start</b>" in after[4].content
    assert "<i>proposal</i>" in result


def test_webvtt_keeps_all_but_its_text(tmp_path: Path) -> None:
    result = translated(tmp_path / "talk.vtt", TALK, reversed_words)
    head = TALK[: TALK.index("<v Mary>")]
    assert result.startswith(head)
    before, after = webvtt.from_string(TALK), webvtt.from_string(result)
    assert [(c.start, c.end, c.identifier, c.voice) for c in before] == [
        (c.start, c.end, c.identifier, c.voice) for c in after
    ]
    assert "&lt;really&gt;" in result
    assert "<c.loud>" in result
    assert all(caption.text.strip() for caption in after)


def test_ass_keeps_all_but_its_text(tmp_path: Path) -> None:
    result = translated(tmp_path / "a.ass", ASS, reversed_words)
    before, after = pysubs2.SSAFile.from_string(ASS), pysubs2.SSAFile.from_string(result)
    assert [(e.start, e.end, e.style, e.type) for e in before] == [(e.start, e.end, e.style, e.type) for e in after]
    assert after[2].text == "not this"
    assert after[3].text == before[3].text
    for tag in ("{\\i1}", "{\\i0}", "{\\pos(10,10)}"):
        assert result.count(tag) == 1


def test_speed_is_reported(tmp_path: Path) -> None:
    (tmp_path / "film.srt").write_text(FILM, encoding="utf-8")
    file = read_file(tmp_path / "film.srt")
    _, notes = file.rendered(file.document)
    assert notes[0].startswith("5 cues, ")
    assert "faster than 20" in notes[0]


@pytest.mark.parametrize(
    ("before", "text", "pause", "expected"),
    [
        ("He has not yet", "seen it.", 0.1, True),
        ("He has not yet", "seen it.", 30.0, False),
        ("I met,", "John", 0.1, True),
        ("I met", "John", 0.1, True),
        ("Chapter one", "The house", 3.0, False),
        ("Listen", "[music]", 0.1, False),
        ("[music]", "and so on", 0.1, False),
    ],
)
def test_what_goes_on(before: str, text: str, pause: float, expected: bool) -> None:
    assert goes_on(before, text, pause) is expected


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text("abcdefg,.", min_size=1, max_size=12), min_size=1, max_size=14))
def test_lines_fit_and_lose_nothing(words: list[str]) -> None:
    text = " ".join(words)
    fitted = fit_lines(text)
    assert fitted.replace("\n", " ") == text
    assert fitted.count("\n") <= 1
    if len(text) <= LINE:
        assert fitted == text


TEXTS = st.lists(
    st.sampled_from(["Hello.", "<i>", "</i>", "{\\an8}", "- Yes", "no,", "and", "42", "%s", "♪", "\n", "We", "go."]),
    min_size=1,
    max_size=8,
).map(" ".join)


@settings(deadline=None, max_examples=30)
@given(st.lists(TEXTS, min_size=1, max_size=6), st.booleans(), st.booleans())
def test_srt_round_trip(tmp_path_factory: pytest.TempPathFactory, texts: list[str], carriage: bool, mark: bool) -> None:
    cues = [
        srt.Subtitle(n, datetime.timedelta(seconds=2 * n), datetime.timedelta(seconds=2 * n + 1.5), text.strip() or "x")
        for n, text in enumerate(texts, 1)
    ]
    content = "".join(cue.to_srt(strict=False, eol="\r\n" if carriage else "\n") for cue in cues)
    data = (b"\xef\xbb\xbf" if mark else b"") + content.encode()
    path = tmp_path_factory.mktemp("srt") / "x.srt"
    path.write_bytes(data)
    file = read_file(path)
    assert file.rendered(file.document)[0] == data
    result = translated(path, None, reversed_words)
    after = list(srt.parse(result))
    assert [(c.start, c.end) for c in after] == [(c.start, c.end) for c in srt.parse(content)]
    for tag in ("<i>", "</i>", "{\\an8}", "%s"):
        assert result.count(tag) == content.count(tag)


def test_a_file_that_ends_within_a_time_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "x.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nYes.\n\n2\n00:00:03,000 --> 00:00:0", encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.srt:6: ends within a time"):
        read_file(path)


@pytest.mark.parametrize(("name", "content"), [("x.srt", "no times here\n"), ("x.vtt", "no header\n")])
def test_what_is_no_subtitle_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=name):
        read_file(tmp_path / name)


def test_a_damaged_time_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.srt").write_text(FILM.replace("00:00:06,000 -->", "06,000 -->"), encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.srt:11: .* are no times"):
        read_file(tmp_path / "x.srt")
    (tmp_path / "x.vtt").write_text("WEBVTT\n\n00:01 --> later\nHi\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.vtt:3"):
        read_file(tmp_path / "x.vtt")


def test_speakers_and_sounds_stay_apart(tmp_path: Path) -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\n{}\n\n2\n00:00:02,100 --> 00:00:03,000\n{}\n"
    result = translated(tmp_path / "x.srt", cue.format("MARY: We go home.", "[DOOR] I know."), reversed_words)
    assert [c.content for c in srt.parse(result)] == ["MARY: home. go We", "[DOOR] know. I"]
    two = translated(tmp_path / "x.srt", cue.format("MARY: We go.\nBOB: No, stay.", ">> Yes."), reversed_words)
    assert [c.content for c in srt.parse(two)] == ["MARY: go. We\nBOB: stay. No,", ">> Yes."]


def test_cues_in_other_places_are_other_sentences(tmp_path: Path) -> None:
    cue = (
        "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}LATER That Day\n\n2\n00:00:02,100 --> 00:00:03,000\nMary goes home.\n"
    )
    (tmp_path / "x.srt").write_text(cue, encoding="utf-8")
    assert read_file(tmp_path / "x.srt").document.sources == ["LATER That Day", "Mary goes home."]


def test_dialogues_behind_tags_and_entities(tmp_path: Path) -> None:
    film = """1
00:00:01,000 --> 00:00:02,000
{\\an8}- Are you here?
- No.

2
00:00:03,000 --> 00:00:04,000
<i>- Who said so?</i>
<i>- &quot;Tom &amp; Jerry&quot;.</i>
"""
    result = translated(tmp_path / "film.srt", film, upper)
    assert "{\\an8}- ARE YOU HERE?\n- NO.\n" in result
    assert '<i>- WHO SAID SO?</i>\n<i>- "TOM &amp; JERRY".</i>\n' in result


def test_times_within_cues_stay_in_order(tmp_path: Path) -> None:
    talk = "WEBVTT\n\n00:01.000 --> 00:04.000\n<00:01.000>The <00:02.000>old <00:03.000>house\n"
    assert re.findall(r"<[^>]*>", translated(tmp_path / "a.vtt", talk, reversed_words)) == re.findall(r"<[^>]*>", talk)
    song = ASS.replace("{\\i1}We must protect{\\i0} the rights", "{\\k10}We {\\k20}must {\\k30}go {\\k40}home,")
    sung = translated(tmp_path / "a.ass", song, reversed_words)
    assert re.findall(r"\\k\d+", sung) == ["\\k10", "\\k20", "\\k30", "\\k40"]


def test_speakers_in_other_scripts(tmp_path: Path) -> None:
    film = "1\n00:00:01,000 --> 00:00:02,000\nИВАН: Что это?\nАННА: Ничего.\n"
    (tmp_path / "film.srt").write_text(film, encoding="utf-8")
    assert read_file(tmp_path / "film.srt", language="ru").document.sources == ["Что это?", "Ничего."]


@pytest.mark.parametrize(
    "text",
    ["Nous avons beaucoup travaillé pour la paix dans le monde", "Chcemy żyć w pokoju i w wolności z innymi tutaj"],
)
def test_lines_do_not_end_in_small_words(text: str) -> None:
    first, _ = fit_lines(text).split("\n")
    assert len(first.split()[-1]) > 3
