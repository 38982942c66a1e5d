"""Subtitles: SubRip, WebVTT and SubStation Alpha.

Cues read on in each other, have two lines of 42 characters, and are checked for reading speed.
"""

from __future__ import annotations

import html
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pysubs2
import srt
import webvtt

from weitblick.common.errors import UserError
from weitblick.files.blocks import PAUSE, Block, Code, Kind, Pieces, clings, plain
from weitblick.files.encoding import decode
from weitblick.files.markup import escape
from weitblick.files.translatable_file import Content

Read = Callable[[str], str]
Write = Callable[[str, str | None], str]

LINE, LINES = 42, 2
FASTEST = 20.0  # characters a second that a grown-up reads with ease
LONGEST_PAUSE, NAME_PAUSE = 5.0, 1.0  # seconds after which no sentence goes on: at all; if it may be a new one
ENDED = re.compile(r"[.!?…:♪\])][\"'”’»]*\s*$")
TAGS = r"\s*(?:(?:</?[a-z][^<>]*>|\{[^{}]*\})\s*)*"
DASH = re.compile(rf"{TAGS}[-–—‐]\s*(?=\S)")
TIMED = re.compile(r"<\d|\{[^{}]*\\[kK]")  # when a word is sung or said
ARROW = re.compile(r"^[ \t]*-?\d[\d:.,]*[ \t]*-->[^\n]*", re.MULTILINE)
LABEL = re.compile(r"\s*(?:>>+\s*)?(?:([^\W\d_][\w .'&-]*[\w.]):\s+|(?<=>)\s*)(?=\S)")
OWN = re.compile(r"\s*(?:[\[(♪♫#]|>>)")  # a sound, a song, a speaker: a new start


def goes_on(before: str, text: str, pause: float, moved: bool = False) -> bool:
    """Whether a cue may continue the sentence of the cue before it, `pause` seconds later, or in another place."""
    if not before.strip() or not text.strip() or _is_own(text) or (_is_own(before) and ENDED.search(before)):
        return False
    if pause > LONGEST_PAUSE or re.search(r"[\])♪♫]\s*$", before):
        return False
    first = text.lstrip(" \"'“‘«.…")[:1]
    if first.islower() or re.search(r"[,;–-]\s*$", before):
        return True
    return pause <= NAME_PAUSE and not moved and not text.isupper() and not before.isupper()


def _is_own(text: str) -> bool:
    return bool(OWN.match(text) or _label(text))


def _label(text: str, start: int = 0) -> re.Match[str] | None:
    """Who speaks, in capital letters."""
    found = LABEL.match(text, start)
    return found if found and (found[1] is None or found[1].isupper()) else None


@dataclass(frozen=True)
class Cue:
    """A cue's text at [start, end) of a file, when and where it is seen, and who speaks (if the format says so)."""

    start: int
    end: int
    name: str
    begins: float
    ends: float
    voice: str = ""
    place: str = ""


def cue_blocks(
    text: str, cues: Iterable[Cue], tag: re.Pattern[str], line_end: str, read: Read, write: Write
) -> list[Block]:
    """The blocks of all cues: one for each or, where two people speak in turn, one for each line.

    `tag` finds the codes in a text, `line_end` is how lines end inside it; `read` and `write` undo and do escapes.
    """
    blocks: list[Block] = []
    before: tuple[str, Cue] | None = None
    for cue in cues:
        raw = text[cue.start : cue.end]
        for start, end, is_line in _speeches(raw, line_end):
            pieces = Pieces(collapse=True)
            for part in _tagged(raw[start:end].replace(line_end, "\n"), tag, line_end):
                pieces.text(read(part)) if isinstance(part, str) else pieces.code(part)
            content, codes = pieces.content()
            follows = before is not None and start == 0 and _follows(*before, content, cue)
            blocks.append(
                Block(
                    cue.start + start,
                    cue.start + end,
                    content,
                    codes,
                    follows=follows,
                    id=cue.name,
                    write=write,
                    fit=None if is_line else fit_lines,
                    seconds=cue.ends - cue.begins,
                )
            )
            before = content, cue
    return blocks


def check_times(text: str, known: Iterable[tuple[int, int]], path: Path) -> None:
    """Refuses a line that looks like the times of a cue and is none of those found: its cue would be lost in the text
    of the one before it."""
    places = [*known]
    for found in ARROW.finditer(text):
        if not any(start <= found.end() - 1 < end for start, end in places):
            line = text.count("\n", 0, found.start()) + 1
            raise UserError(f"{found[0].strip()!r} are no times", where=path, line=line, remedy="mend the line")


def _follows(before: str, last: Cue, text: str, cue: Cue) -> bool:
    return last.voice == cue.voice and goes_on(before, text, cue.begins - last.ends, last.place != cue.place)


def _speeches(raw: str, line_end: str) -> Iterator[tuple[int, int, bool]]:
    """[start, end) of what is translated as one text: all of a cue, or its lines if they begin with dashes or names.
    These are no text."""
    lines = raw.split(line_end)
    leads = [_lead(line) for line in lines]
    if len(lines) < 2 or sum(map(bool, leads)) < 2 or not leads[0]:
        yield (leads[0], len(raw), False) if raw.strip() else (0, 0, False)
        return
    position = 0
    for line, lead in zip(lines, leads, strict=True):
        yield position + lead, position + len(line), True
        position += len(line) + len(line_end)


def _lead(line: str) -> int:
    """How many characters say who speaks."""
    dash = DASH.match(line)
    start = dash.end() if dash else 0
    label = _label(line, start)
    return label.end() if label else start


def _tagged(raw: str, tag: re.Pattern[str], line_end: str) -> Iterator[str | Code]:
    position = 0
    for found in tag.finditer(raw):
        yield raw[position : found.start()]
        timed = TIMED.match(found[0]) is not None
        kind: Kind = "close" if found[0].startswith("</") else "open" if found[0][0] == "<" and not timed else "alone"
        yield Code(kind, found[0].replace("\n", line_end), ordered=timed)
        position = found.end()
    yield raw[position:]


def fit_lines(text: str) -> str:
    """The same text, with line ends in place of spaces: the fewest lines, as even as can be, cut at pauses rather than
    elsewhere. More than two lines come out only of what does not fit into two."""
    if len(text) <= LINE:
        return text
    spaces = [place for place, letter in enumerate(text) if letter == " " and 0 < place < len(text) - 1]
    if not spaces:
        return text

    def cost(place: int) -> float:
        longer = max(place, len(text) - place - 1)
        at_pause = PAUSE.match(text[place - 1]) is not None
        return longer + max(0, longer - LINE) * 2 - 6 * at_pause + 5 * clings(text, place)

    best = min(spaces, key=cost)
    return text[:best] + "\n" + text[best + 1 :]


def reading_speed(texts: Sequence[tuple[Block, str]]) -> list[str]:
    """A note about the cues that are hard to read in their time or on two lines."""
    shown: dict[str, tuple[float, int]] = {}
    for block, text in texts:
        if block.seconds:
            seconds, length = shown.get(block.id or "", (block.seconds, 0))
            shown[block.id or ""] = (seconds, length + len(text.replace("\n", " ")))
    speeds = {cue: length / seconds for cue, (seconds, length) in shown.items() if seconds > 0}
    if not speeds:
        return []
    fast = [cue for cue, speed in speeds.items() if speed > FASTEST]
    wide = [cue for cue, (_, length) in shown.items() if length > LINES * LINE + 1]
    worst = max(speeds, key=speeds.__getitem__)
    mean = sum(length for _, length in shown.values()) / sum(seconds for seconds, _ in shown.values())
    cues = "1 cue" if len(speeds) == 1 else f"{len(speeds)} cues"
    return [
        f"{cues}, {mean:.1f} characters a second; {len(fast)} faster than {FASTEST:g} "
        f"(at most {speeds[worst]:.1f}, cue {worst}); {len(wide)} longer than {LINES} lines of {LINE}"
    ]


# SubRip (.srt).

TAG = re.compile(r"</?[a-zA-Z][^<>\n]*>|\{\\[^{}\n]*\}|\{[ybiuYBIU]:[^{}\n]*\}")

ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d+);")  # some programs write them, as in HTML
NEGATIVE = re.compile(r"(?m)^-(?=\d+:\d+:\d+[^\n]*-->)|(?<=--> )-(?=\d+:\d+:\d+)")
PLACE = re.compile(r"\{\\(?:an?\d+|pos\([^()]*\))")


def read_srt(data: bytes, path: Path) -> Content:
    """The content of a SubRip file."""
    text, encoding = decode(data, path)
    cues: list[Cue] = []
    times: list[tuple[int, int]] = []
    unsigned = NEGATIVE.sub("0", text)  # the library knows no times before the film begins
    for found in srt.SRT_REGEX.finditer(unsigned):
        number, begins, ends = found.groups()[:3]
        content = text[found.start(5) : found.end(5)]
        try:
            first, last = (srt.srt_timestamp_to_timedelta(time).total_seconds() for time in (begins, ends))
        except srt.TimestampParseError:
            line = text.count("\n", 0, found.start(2)) + 1
            raise UserError(f"{begins} --> {ends} are no times", where=path, line=line, remedy="mend them") from None
        if found.end(3) == len(text) and len(ends) < len(begins):
            line = text.count("\n", 0, found.start(2)) + 1
            raise UserError(f"ends within a time ({ends})", where=path, line=line, remedy="copy the file again")
        times.append((found.start(2), found.start(5)))
        first, last = (-t if text[found.start(n)] == "-" else t for n, t in ((2, first), (3, last)))
        start, end = found.span(5)
        end = start + len(content.rstrip())
        place = PLACE.search(content)
        cues.append(Cue(start, end, number or str(len(cues) + 1), first, last, place=place[0] if place else ""))
    if not cues and text.strip():
        raise UserError("holds no cue", where=path, remedy="name an SRT file, with lines HH:MM:SS,mmm --> HH:MM:SS,mmm")
    check_times(unsigned, times, path)
    read, write = (html.unescape, escape) if ENTITY.search(text) else (str, plain)
    blocks = cue_blocks(text, cues, TAG, "\n", read, write)
    return Content.of_text(text, encoding, blocks, review=reading_speed)


# WebVTT (.vtt). Header, notes, styles, regions, identifiers and settings are no cue text and stay.

WEBVTT_TAG = re.compile(r"<rt>[^<]*</rt>|</?(?:[a-zA-Z][^<>]*)?>|<\d[\d:.]*>")
TIMES = re.compile(r"^[ \t]*((?:\d+:)?\d+:\d+\.\d+)[ \t]*-->[ \t]*((?:\d+:)?\d+:\d+\.\d+)[^\n]*\n", re.MULTILINE)
VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")


def read_webvtt(data: bytes, path: Path) -> Content:
    """The content of a WebVTT file."""
    text, encoding = decode(data, path)
    try:
        webvtt.from_string(text)
    except (webvtt.errors.MalformedFileError, webvtt.errors.MalformedCaptionError, ValueError) as error:
        raise UserError(f"is not WebVTT ({error})", where=path, remedy="its first line must be WEBVTT") from None
    check_times(text, (found.span() for found in TIMES.finditer(text)), path)
    blocks = cue_blocks(text, _cues(text), WEBVTT_TAG, "\n", html.unescape, _escape)
    return Content.of_text(text, encoding, blocks, review=reading_speed)


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


# Advanced SubStation Alpha (.ass, .ssa): the text of dialogue lines; styles, times and override tags stay.

ASS_TAG = re.compile(
    r"\{[^{}]*\\p[1-9][^{}]*\}[^{}]*(?:\{(?![^{}]*\\p0)[^{}]*\}[^{}]*)*(?:\{[^{}]*\\p0[^{}]*\}|\Z)|\{[^{}]*\}"
)
"""Override tags, and drawings from their beginning to their end."""
ASS_LINE = re.compile(r"^(Format|Dialogue):[ \t]*([^\n]*)$", re.MULTILINE)
ASS_PLACE = re.compile(r"\\(?:an?\d+|(?:pos|move)\([^()]*\))")


def read_ass(data: bytes, path: Path) -> Content:
    """The content of a SubStation Alpha file."""
    text, encoding = decode(data, path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fields in which old files differ
            pysubs2.SSAFile.from_string(text, format_="ass")
    except Exception as error:  # the library raises whatever a torn line makes it stumble over
        raise UserError(f"is not ASS ({error})", where=path, remedy="export it again") from None
    if "[Events]" not in text:
        raise UserError("is not ASS (it has no [Events])", where=path, remedy="export it again")
    cues = list(_ass_cues(text, path))
    blocks = cue_blocks(text, cues, ASS_TAG, "\\N", _read, _write)
    return Content.of_text(text, encoding, blocks, review=reading_speed)


def _ass_cues(text: str, path: Path) -> Iterator[Cue]:
    columns: list[str] = []
    events = text.find("[Events]")
    for number, found in enumerate(ASS_LINE.finditer(text, max(0, events)), 1):
        line = text.count("\n", 0, found.start()) + 1
        if found[1] == "Format":
            columns = [column.strip().lower() for column in found[2].split(",")]
            continue
        fields = found[2].split(",", max(0, len(columns) - 1))
        if len(fields) < len(columns) or not {"start", "end", "text"} <= set(columns):
            raise UserError("a dialogue line has too few fields", where=path, line=line, remedy="mend the line")
        row = dict(zip(columns, fields, strict=True))
        if not ASS_TAG.sub("", row["text"]).strip():  # nothing but a drawing
            continue
        end = found.end()
        try:
            begins, ends = _ass_seconds(row["start"]), _ass_seconds(row["end"])
        except ValueError:
            raise UserError("a dialogue line has no times", where=path, line=line, remedy="mend the line") from None
        voice = row.get("name", row.get("actor", ""))
        place = row.get("style", "") + "".join(ASS_PLACE.findall(row["text"]))
        yield Cue(end - len(row["text"]), end, str(number), begins, ends, voice, place)


def _ass_seconds(time: str) -> float:
    hours, minutes, seconds = time.strip().split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _read(text: str) -> str:
    return text.replace("\\n", " ").replace("\\h", "\u00a0")


def _write(text: str, style: str | None) -> str:
    return text.replace("\n", "\\N").replace("\u00a0", "\\h").replace("{", "(").replace("}", ")")
