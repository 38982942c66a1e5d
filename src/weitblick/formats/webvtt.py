"""WebVTT (.vtt). Header, notes, styles, regions, identifiers and settings are no cue text and stay."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import webvtt

from weitblick.errors import UserError
from weitblick.formats.encoding import decode
from weitblick.formats.file import Content
from weitblick.formats.subtitles import Cue, check_times, cue_blocks, reading_speed

TAG = re.compile(r"<rt>[^<]*</rt>|</?(?:[a-zA-Z][^<>]*)?>|<\d[\d:.]*>")
TIMES = re.compile(r"^[ \t]*((?:\d+:)?\d+:\d+\.\d+)[ \t]*-->[ \t]*((?:\d+:)?\d+:\d+\.\d+)[^\n]*\n", re.MULTILINE)
VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")


def read_webvtt(data: bytes, path: Path) -> Content:
    text, encoding = decode(data, path)
    try:
        webvtt.from_string(text)
    except (webvtt.errors.MalformedFileError, webvtt.errors.MalformedCaptionError, ValueError) as error:
        raise UserError(f"is not WebVTT ({error})", where=path, remedy="its first line must be WEBVTT") from None
    check_times(text, (found.span() for found in TIMES.finditer(text)), path)
    blocks = cue_blocks(text, _cues(text), TAG, "\n", html.unescape, _escape)
    return Content({"": text}, blocks, lambda new: encoding.encode(new.get("", text)), review=reading_speed)


def _cues(text: str) -> Iterator[Cue]:
    for number, found in enumerate(TIMES.finditer(text), 1):
        start = found.end()
        blank = re.compile(r"\n[ \t]*(?:\n|$)|\Z").search(text, start - 1)
        end = max(start, blank.start() if blank else len(text))
        above = text[: found.start()].rstrip("\n").rpartition("\n")[2] if text[: found.start()].endswith("\n") else ""
        name = above if above and not text[: found.start()].endswith("\n\n") else str(number)
        voice = VOICE.search(text[start:end])
        place = found[0][found.end(2) - found.start() :].strip()
        yield Cue(start, end, name, _seconds(found[1]), _seconds(found[2]), voice[1] if voice else "", place)


def _seconds(time: str) -> float:
    seconds = 0.0
    for part in time.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds


def _escape(text: str, style: str | None) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\u00a0", "&nbsp;")
