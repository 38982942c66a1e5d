"""What subtitle formats share: cues that read on in each other, two lines of 42 characters, reading speed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weitblick.errors import UserError
from weitblick.formats.blocks import Block, Code, Kind, Pieces
from weitblick.formats.cutting import PAUSE, clings

Read = Callable[[str], str]
Write = Callable[[str, str | None], str]

LINE, LINES = 42, 2
FASTEST = 20.0  # characters a second that a grown-up reads with ease
LONGEST_PAUSE, NAME_PAUSE = 5.0, 1.0  # seconds after which no sentence goes on: at all; if it may be a new one
ENDED = re.compile(r"[.!?…:♪\])][\"'”’»]*\s*$")
TAGS = r"\s*(?:(?:</?[a-z][^<>]*>|\{[^{}]*\})\s*)*"
DASH = re.compile(rf"{TAGS}[-–—‐]\s*(?=\S)")
TIMED = re.compile(r"<\d|\{[^{}]*\\[kK]")  # when a word is sung or said
ARROW = re.compile(r"^[ \t]*\d[\d:.,]*[ \t]*-->[^\n]*", re.MULTILINE)
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
