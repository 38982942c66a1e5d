"""SubRip (.srt)."""

from __future__ import annotations

import html
import re
from pathlib import Path

import srt

from weitblick.errors import UserError
from weitblick.formats.blocks import plain
from weitblick.formats.encoding import decode
from weitblick.formats.file import Content
from weitblick.formats.markup import escape
from weitblick.formats.subtitles import Cue, check_times, cue_blocks, reading_speed

TAG = re.compile(r"</?[a-zA-Z][^<>\n]*>|\{\\[^{}\n]*\}|\{[ybiuYBIU]:[^{}\n]*\}")

ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d+);")  # some programs write them, as in HTML
PLACE = re.compile(r"\{\\(?:an?\d+|pos\([^()]*\))")


def read_srt(data: bytes, path: Path) -> Content:
    text, encoding = decode(data, path)
    cues: list[Cue] = []
    times: list[tuple[int, int]] = []
    for found in srt.SRT_REGEX.finditer(text):
        number, begins, ends, _, content = found.groups()
        try:
            first, last = (srt.srt_timestamp_to_timedelta(time).total_seconds() for time in (begins, ends))
        except srt.TimestampParseError:
            line = text.count("\n", 0, found.start(2)) + 1
            raise UserError(f"{begins} --> {ends} are no times", where=path, line=line, remedy="mend them") from None
        if found.end(3) == len(text) and len(ends) < len(begins):
            line = text.count("\n", 0, found.start(2)) + 1
            raise UserError(f"ends within a time ({ends})", where=path, line=line, remedy="copy the file again")
        times.append((found.start(2), found.start(5)))
        start, end = found.span(5)
        end = start + len(content.rstrip())
        place = PLACE.search(content)
        cues.append(Cue(start, end, number or str(len(cues) + 1), first, last, place=place[0] if place else ""))
    if not cues and text.strip():
        raise UserError("holds no cue", where=path, remedy="name an SRT file, with lines HH:MM:SS,mmm --> HH:MM:SS,mmm")
    check_times(text, times, path)
    read, write = (html.unescape, escape) if ENTITY.search(text) else (str, plain)
    blocks = cue_blocks(text, cues, TAG, "\n", read, write)
    return Content({"": text}, blocks, lambda new: encoding.encode(new.get("", text)), review=reading_speed)
