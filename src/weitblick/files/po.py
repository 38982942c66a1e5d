"""gettext catalogues (.po, .pot): empty and fuzzy messages are filled in, and stay fuzzy; the others are locked."""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polib

from weitblick.common.errors import UserError
from weitblick.files.blocks import Block, Code, Edit, Marking, Note, Notes, Pieces
from weitblick.files.encoding import decode
from weitblick.files.messages import split_arguments
from weitblick.files.translatable_file import Content

CHARSET = re.compile(rb"charset=([A-Za-z0-9._:-]+)")
KEYWORD = re.compile(r"^(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)[ \t]*(\".*)$")
PLURALS = re.compile(r"nplurals\s*=\s*(\d+)\s*(?:;\s*plural\s*=\s*([^;\n]+))?")
UNESCAPED = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
WIDTH = 77
TRANSLATORS = re.compile(r"#(?:\s|$)")
PROGRAM = "developer"
"""Whose the comments are that a program takes from its source."""


@dataclass
class _Field:
    """A keyword with its strings: [start, end) in the file, and the value."""

    start: int
    end: int
    value: str
    line: int


@dataclass
class _Entry:
    start: int
    flags: tuple[int, int, str] | None = None
    comments: list[tuple[int, int, str]] = field(default_factory=list)
    fields: dict[str, _Field] = field(default_factory=dict)

    @property
    def fuzzy(self) -> bool:
        """Whether somebody should look at the entry."""
        return self.flags is not None and "fuzzy" in re.split(r"[,\s]+", self.flags[2])


def read_po(data: bytes, path: Path) -> Content:
    """The content of a gettext catalogue."""
    found = CHARSET.search(data[:20000])
    charset = found[1].decode("ascii") if found else "utf-8"
    text, encoding = decode(data, path, "utf-8" if charset == "CHARSET" else charset)
    try:
        polib.pofile(text)
    except (OSError, ValueError, UnicodeError, IndexError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise UserError(
            "is not a gettext catalogue", where=path, line=int(line[1]) if line else None, remedy="check it with msgfmt"
        ) from None
    entries = [entry for entry in _entries(text, path) if "msgid" in entry.fields]
    header = next((entry.fields["msgstr"].value for entry in entries if _is_header(entry)), "")
    plurals = PLURALS.search(header)
    forms = (int(plurals[1]), _form_of_one(plurals[2])) if plurals else (1, 0)
    blocks: list[Block] = []
    for entry in entries:
        if not _is_header(entry):
            if "msgid_plural" in entry.fields and not plurals:
                raise UserError(
                    "a message has a plural, but the header has no Plural-Forms with a number",
                    where=path,
                    line=entry.fields["msgid_plural"].line,
                    remedy="add one to the header, for German: Plural-Forms: nplurals=2; plural=(n != 1);",
                )
            blocks += _blocks(entry, *forms)
    locked = sum(block.status == "locked" for block in blocks)
    notes = [f"{locked} of {len(blocks)} messages are translated already and stay as they are"] if locked else []
    return Content.of_text(text, encoding, blocks, notes)


def _is_header(entry: _Entry) -> bool:
    return entry.fields["msgid"].value == "" and "msgctxt" not in entry.fields


def _entries(text: str, path: Path) -> Iterator[_Entry]:
    """The entries with the places of their parts; obsolete ones (#~) are comments."""
    entry, current, position = _Entry(0), None, 0
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if (
            (keyword := KEYWORD.match(bare))
            and (keyword[1] in ("msgctxt", "msgid"))
            and "msgstr" in " ".join(entry.fields)
        ):
            yield entry
            entry = _Entry(position)
        if keyword:
            current = entry.fields[keyword[1]] = _Field(
                position, position + len(line), _unquoted(keyword[3], path, number), number
            )
        elif bare.startswith('"') and current is not None:
            current.value += _unquoted(bare, path, number)
            current.end = position + len(line)
        elif bare:
            if entry.fields and bare.startswith("#"):
                yield entry
                entry = _Entry(position)
            current = None
            if bare.startswith("#,"):
                entry.flags = (position, position + len(line), bare)
            elif bare.startswith("#"):
                entry.comments.append((position, position + len(line), bare))
        position += len(line) + 1
    if entry.fields:
        yield entry


def _unquoted(text: str, path: Path, line: int) -> str:
    if len(text) < 2 or not text.endswith('"'):
        raise UserError("a string is not closed", where=path, line=line, remedy="check the file with msgfmt")
    return re.sub(r"\\(.)", lambda found: UNESCAPED.get(found[1], found[0]), text[1:-1])


def _form_of_one(formula: str | None) -> int:
    """Which plural form one thing has, by the formula of the header; the first if that cannot be read."""
    try:
        return int(gettext.c2py(formula)(1)) if formula else 0
    except (ValueError, OverflowError):
        return 0


def _blocks(entry: _Entry, plurals: int, form_of_one: int) -> Iterator[Block]:
    """A block for each form of the message; the first one filled in makes the entry fuzzy."""
    singular, plural = entry.fields["msgid"], entry.fields.get("msgid_plural")
    names = [f"msgstr[{number}]" for number in range(plurals)] if plural else ["msgstr"]
    given = [entry.fields.get(name) for name in names]
    context = entry.fields["msgctxt"].value if "msgctxt" in entry.fields else None
    done = not entry.fuzzy and all(one is not None and one.value for one in given)
    last = max(one.end for one in entry.fields.values())
    notes = _notes(entry)
    for number, (name, one) in enumerate(zip(names, given, strict=True)):
        source = plural if plural and (number != form_of_one or plurals == 1) else singular
        pieces = _pieces(source.value)
        content, codes = pieces.content()
        if not pieces.has_text and not done and source.value:
            content, codes = source.value, ()  # nothing to translate, but the form must be there
        if not done and one is not None and one.value and not entry.fuzzy:
            continue  # one form of several is there: a human's
        start, end = (one.start, one.end) if one else (last, last)
        yield Block(
            start,
            end,
            content,
            codes,
            target=one.value if done and one else None,
            status="locked" if done else None,
            id=context,
            finish=_finish(name, "" if one else "\n"),
            bilingual=True,
            edits=_flagged(entry, True),
            confirmed=Marking(_flagged(entry, False), alone=_flagged(entry, False)),
            reviewed=Marking(_flagged(entry, False), alone=_flagged(entry, False)),
            drafted=Marking(alone=_flagged(entry, True)),
            said="confirmed" if done else None,
            notes=notes,
            given=None if one is None else _pieces(one.value).content(),
        )


def _notes(entry: _Entry) -> Notes:
    """Comments of translators (#), apart from each other by a line with nothing else, and of the program (#.), which
    stay as they are."""
    own = [(start, end, line) for start, end, line in entry.comments if TRANSLATORS.match(line)]
    texts = "\n".join(line[1:].removeprefix(" ") for _, _, line in own).split("\n\n")
    extracted = "\n".join(line[2:].strip() for _, _, line in entry.comments if line.startswith("#."))
    given = [Note(text.strip()) for text in texts if text.strip()]
    fixed = [Note(extracted, PROGRAM)] if extracted else []
    others = [start for start, _, line in entry.comments if not TRANSLATORS.match(line)]
    place = own[0][0] if own else min([*others[:1], *(one.start for one in entry.fields.values())])

    def write(wanted: Sequence[Note]) -> list[Edit]:
        new = [Note(note.text) for note in wanted if note not in fixed]
        if new == given:
            return []
        lines = "\n\n".join(note.text for note in new).split("\n") if new else []
        said = "".join(f"# {line}".rstrip() + "\n" for line in lines)
        gone = [(start, end + 1, "") for start, end, _ in own]
        return [(*gone[0][:2], said), *gone[1:]] if gone else [(place, place, said)]

    return Notes((*given, *fixed), write)


def _pieces(text: str) -> Pieces:
    """A message: line ends and tabs at its edges and between its paragraphs stay, those of wrapped text do not."""
    pieces = Pieces()
    for line in re.split(r"([\n\t])", text):
        if line in ("\n", "\t"):
            pieces.code(Code("break", line))
            continue
        for part, is_argument in split_arguments(line):
            pieces.code(Code("word", None, part)) if is_argument else pieces.text(part)
    return pieces


def _flagged(entry: _Entry, fuzzy: bool) -> tuple[tuple[int, int, str], ...]:
    """The edit of an entry's flags that makes it fuzzy, or not; of two for the forms of one entry the fuzzy one counts,
    since it is longer."""
    if entry.flags is None:
        start = min(one.start for one in entry.fields.values())
        return ((start, start, "#, fuzzy\n"),) if fuzzy else ()
    start, end, line = entry.flags
    others = [flag for flag in re.split(r"[,\s]+", line.removeprefix("#,")) if flag not in ("", "fuzzy")]
    if fuzzy:
        return ((start, end + 1, (line if entry.fuzzy else line.replace("#,", "#, fuzzy,", 1)) + "\n"),)
    return ((start, end + 1, f"#, {', '.join(others)}\n" if others else ""),) if entry.fuzzy else ()


def _finish(name: str, before: str) -> Callable[[str], str]:
    def finish(value: str) -> str:
        quoted = [f'"{_quoted(line)}"' for line in re.findall(r"[^\n]*\n|[^\n]+", value)] or ['""']
        if len(quoted) == 1 and len(quoted[0]) + len(name) < WIDTH:
            return f"{before}{name} {quoted[0]}"
        return before + "\n".join([f'{name} ""', *quoted])

    return finish


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
