"""Advanced SubStation Alpha (.ass, .ssa): the text of dialogue lines; styles, times and override tags stay."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pysubs2

from weitblick.errors import UserError
from weitblick.formats.encoding import decode
from weitblick.formats.file import Content
from weitblick.formats.subtitles import Cue, cue_blocks, reading_speed

TAG = re.compile(r"\{[^{}]*\}")
LINE = re.compile(r"^(Format|Dialogue):[ \t]*([^\n]*)$", re.MULTILINE)
PLACE = re.compile(r"\\(?:an?\d+|(?:pos|move)\([^()]*\))")
DRAWING = re.compile(r"\{[^}]*\\p[1-9]")


def read_ass(data: bytes, path: Path) -> Content:
    text, encoding = decode(data, path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fields in which old files differ
            pysubs2.SSAFile.from_string(text, format_="ass")
    except Exception as error:  # the library raises whatever a torn line makes it stumble over
        raise UserError(f"is not ASS ({error})", where=path, remedy="export it again") from None
    if "[Events]" not in text:
        raise UserError("is not ASS (it has no [Events])", where=path, remedy="export it again")
    cues = list(_cues(text, path))
    blocks = cue_blocks(text, cues, TAG, "\\N", _read, _write)
    return Content({"": text}, blocks, lambda new: encoding.encode(new.get("", text)), review=reading_speed)


def _cues(text: str, path: Path) -> Iterator[Cue]:
    columns: list[str] = []
    events = text.find("[Events]")
    for number, found in enumerate(LINE.finditer(text, max(0, events)), 1):
        line = text.count("\n", 0, found.start()) + 1
        if found[1] == "Format":
            columns = [column.strip().lower() for column in found[2].split(",")]
            continue
        fields = found[2].split(",", max(0, len(columns) - 1))
        if len(fields) < len(columns) or not {"start", "end", "text"} <= set(columns):
            raise UserError("a dialogue line has too few fields", where=path, line=line, remedy="mend the line")
        row = dict(zip(columns, fields, strict=True))
        if DRAWING.search(row["text"]):
            continue
        end = found.end()
        try:
            begins, ends = _seconds(row["start"]), _seconds(row["end"])
        except ValueError:
            raise UserError("a dialogue line has no times", where=path, line=line, remedy="mend the line") from None
        voice = row.get("name", row.get("actor", ""))
        place = row.get("style", "") + "".join(PLACE.findall(row["text"]))
        yield Cue(end - len(row["text"]), end, str(number), begins, ends, voice, place)


def _seconds(time: str) -> float:
    hours, minutes, seconds = time.strip().split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _read(text: str) -> str:
    return text.replace("\\n", " ").replace("\\h", "\u00a0")


def _write(text: str, style: str | None) -> str:
    return text.replace("\n", "\\N").replace("\u00a0", "\\h").replace("{", "(").replace("}", ")")
