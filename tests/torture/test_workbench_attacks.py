"""The workbench under attack: two tabs and servers that die, damaged databases, full discs, any text in any file."""

from __future__ import annotations

import csv
import io
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from attacks import MADE, SECONDS, Attack, attacks

from weitblick.common.errors import UserError
from weitblick.documents.document import Document, Sentence
from weitblick.files.formats import read_file
from weitblick.files.masked_document import align_by_places
from weitblick.files.translation import translate_file
from weitblick.workbench.database import FILE
from weitblick.workbench.errors import Refused
from weitblick.workbench.recovery import recover
from weitblick.workbench.schema import Segment, Write
from weitblick.workbench.store import Store

HISTORIES = Path(__file__).parents[1] / "workbench" / "test_histories.py"
TOGETHER = 50
"""Histories that one process runs."""
SECRET = "Geheimnis"


@pytest.mark.skipif(not SECONDS, reason="the suite runs histories of its own")
@pytest.mark.skipif(shutil.which("node") is None, reason="no Node to run the page's script with")
def test_two_tabs() -> None:
    for attack in attacks("two_tabs", 1, 0.06):
        seed = str(attack.randrange(2**32))
        options = ["-q", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}"]
        command = [sys.executable, "-m", "pytest", *options, str(HISTORIES)]
        environment = {**os.environ, "WEITBLICK_HISTORIES": str(TOGETHER)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{attack}\n{done.stdout[-3000:]}"
        MADE["two_tabs: histories"] += TOGETHER


WRITER = """
import sys
from pathlib import Path
from weitblick.workbench.schema import Write
from weitblick.workbench.store import Store

store, document = Store(Path(sys.argv[1])), sys.argv[2]
number = int(sys.argv[3])
while True:
    row = number % 3
    version = store.segment(document, row).version
    store.edit(document, row, Write(f"Text {number}.", "confirmed" if number % 2 else "edited", version, "tab", number))
    print(number, flush=True)
    number += 1
"""


def test_killed_while_writing(tmp_path: Path) -> None:
    """A process that writes is killed at any moment: what it has acknowledged is there, with its history and memory."""
    for attack in attacks("killed_while_writing", 2, 0.04):
        folder = tmp_path / str(attack.number)
        store = Store(folder)
        project = store.add_project("Letters").id
        document = store.add_document(project, "a.txt", [Sentence(f"Sentence {row}.") for row in range(3)], b"")
        store.close()
        number = 1
        for _ in range(attack.randint(1, 3)):
            command = [sys.executable, "-c", WRITER, str(folder), document, str(number)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                for _ in range(attack.randint(1, 60)):
                    number = int(process.stdout.readline()) + 1
                time.sleep(attack.uniform(0, 0.01))
                process.kill()
                number = max([number, *(int(line) + 1 for line in process.stdout if line.strip())])
            store = Store(folder)
            rows = store.segments(document)
            texts = {edit.after for row in rows for edit in store.edits(document, row.position)}
            assert texts >= {f"Text {one}." for one in range(1, number)}, attack
            approved = {row.source: row.target for row in rows if row.is_approved}
            assert store.approved(project) == approved, attack
            for row in rows:
                history = store.edits(document, row.position)
                assert not history or (history[-1].after, history[-1].state_after) == (row.target, row.state), attack
            number = max(number, row_number(rows) + 1)  # it may have written one more than it could say
            store.close()
        shutil.rmtree(folder)


def row_number(rows: list[Segment]) -> int:
    """The number of the latest text."""
    return max([0, *(int(row.target.split()[1].rstrip(".")) for row in rows if row.target)])


def fill(folder: Path, attack: Attack) -> None:
    """Makes projects of some documents."""
    store = Store(folder)
    for _ in range(attack.randint(1, 2)):
        project = store.add_project("Letters").id
        for number in range(attack.randint(1, 3)):
            sources = [f"Sentence {row} of letter {number}." for row in range(attack.randint(1, 80))]
            file = "\n".join(sources).encode()
            document = store.add_document(project, f"{number}.txt", [Sentence(one) for one in sources], file)
            for row in range(len(sources)):
                state: Any = attack.choice(["confirmed", "edited"])
                store.edit(document, row, Write(f"Satz {row} in Brief {number}.", state, 1))
    store.close()


def hurt(path: Path, attack: Attack) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(attack.choice([1, 1, 2, 5])):
        at = attack.randrange(len(content))
        match attack.randrange(5):
            case 0:  # a page that the disc has lost
                at = at // 4096 * 4096
                content[at : at + 4096] = bytes(len(content[at : at + 4096]))
            case 1:
                size = attack.randint(1, 5000)
                content[at : at + size] = attack.randbytes(len(content[at : at + size]))
            case 2:
                content[at] ^= 1 << attack.randrange(8)
            case 3:
                del content[max(100, at) :]
            case _:
                content[: attack.randint(1, 200)] = attack.randbytes(1)
        content = content or bytearray(b"x")
    path.write_bytes(content)


def test_damaged_databases(tmp_path: Path) -> None:
    """One line, or a server that starts; what is saved is in order, with all rows of each document."""
    for attack in attacks("damaged_databases", 6, 0.06):
        folder = tmp_path / str(attack.number)
        fill(folder, attack)
        hurt(folder / FILE, attack)
        try:
            with suppress(UserError):
                Store(folder).close()
            with suppress(UserError):  # of some nothing can be read
                recover(folder, "en")
                assert recover(folder, "en") is None, attack  # it is in order then
                store = Store(folder)
                for document in [one for project in store.projects() for one in store.documents(project.id)]:
                    rows = store.segments(document.id)
                    assert [row.position for row in rows] == list(range(len(rows))), attack
                store.close()
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise AssertionError(f"{attack}: {error!r}") from error
        shutil.rmtree(folder)


@contextmanager
def disc(place: Path, megabytes: int) -> Iterator[Path]:
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", place]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a disc of its own needs a system administrator")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)
        place.rmdir()


def test_full_discs(tmp_path: Path) -> None:
    """Whatever is deleted is gone from every file; what is refused is still there."""
    for attack in attacks("full_discs", 2, 0.03):
        with disc(tmp_path / "disc", attack.randint(9, 16)) as place:
            store = Store(place)
            kept = store.add_project("Other").id
            project = store.add_project("Letters").id
            with suppress(sqlite3.OperationalError):
                while True:
                    file = f"{SECRET} {attack.random()}\n".encode() * attack.randint(1, 40_000)
                    rows = [Sentence(f"{SECRET} {row}.") for row in range(attack.randint(1, 300))]
                    store.add_document(project, "a.txt", rows, file)
            count = store.project(project).documents
            answer = None
            try:
                store.delete_project(project)
            except Refused as refused:
                answer = refused.message
            if answer is not None:
                assert "the disc is full" in answer, attack
                if "nothing was changed" in answer:
                    assert store.project(project).documents == count, attack
            else:
                assert [one.id for one in store.projects()] == [kept], attack
                for path in place.iterdir():
                    assert SECRET.encode() not in path.read_bytes(), f"{attack}: {path.name}"
            store.close()
            Store(place).close()


# Any text in any file. What opens the translated file is never what wrote it.


def _word(text: str) -> bytes:
    import docx

    made, out = docx.Document(), io.BytesIO()
    made.add_paragraph(text)
    made.save(out)
    return out.getvalue()


def _open_word(data: bytes) -> None:
    import docx

    docx.Document(io.BytesIO(data))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


XLIFF = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" source-language="en" '
    'target-language="de" datatype="plaintext"><body><trans-unit id="1"><source>{}</source></trans-unit></body>'
    "</file></xliff>"
)
Make, Open = Callable[[str], bytes], Callable[[bytes], object]
KINDS: dict[str, tuple[Make, Open]] = {
    "txt": (str.encode, bytes.decode),
    "docx": (_word, _open_word),
    "xlf": (lambda text: XLIFF.format(_escaped(text)).encode(), ElementTree.fromstring),
    "html": (lambda text: f"<p>{_escaped(text)}</p>".encode(), bytes.decode),
    "srt": (lambda text: f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n".encode(), lambda data: _subtitles(data)),
    "csv": (lambda text: _table(text), lambda data: list(csv.reader(io.StringIO(data.decode())))),
    "md": (str.encode, bytes.decode),
}


def _subtitles(data: bytes) -> object:
    import pysubs2

    return pysubs2.SSAFile.from_string(data.decode("utf-8-sig"), format_="srt")


def _table(text: str) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([["id", "source"], ["1", text]])
    return out.getvalue().encode()


PARTS = ["😀", "👨‍👩‍👧", "H₂O", "x⁵", "∑", "{name}", "%s", "14:30", "https://example.com/a?b=1&c=2", "me@example.org"]
WORDS = ["The house", "is blue.", "He", "said:", "“no”", "—", "&", "<b>", "]]>", "`x`", "\t", "\u2028", "ﬁ", "e\u0301"]


def any_text(attack: Attack) -> str:
    def character() -> str:
        code = attack.choice([attack.randrange(0x80), attack.randrange(0x3000), attack.randrange(0x110000)])
        return chr(code) if not 0xD800 <= code < 0xE000 and code else "x"

    pieces = [attack.choice([*PARTS, *WORDS, character() * attack.randint(1, 3)]) for _ in range(attack.randint(1, 9))]
    return attack.choice([" ", " ", ""]).join(pieces)


def machine(how: random.Random) -> Callable[[Document], Document]:
    """A translator that moves, loses or doubles words."""
    ways: list[Callable[[str], str]] = [
        lambda source: " ".join(reversed(source.split())),
        lambda source: "Ganz vergessen",
        lambda source: f"{source} {source}",
    ]
    way = how.choice(ways)

    def translate(document: Document) -> Document:
        return replace(document, sentences=tuple(replace(s, target=way(s.source)) for s in document.sentences))

    return translate


def test_any_text_in_any_file(tmp_path: Path) -> None:
    for attack in attacks("any_text_in_any_file", 60, 0.05):
        kind = attack.choice(list(KINDS))
        make, opens = KINDS[kind]
        text = any_text(attack)
        path = tmp_path / f"a.{kind}"
        try:
            path.write_bytes(make(text))
        except ValueError:  # the library itself will not write such a text
            continue
        try:
            data, _ = translate_file(read_file(path, kind), machine(attack), align_by_places)
        except UserError:  # what the format cannot hold
            continue
        try:
            opens(data)
        except (ValueError, SyntaxError, KeyError, zipfile.BadZipFile, csv.Error) as error:
            raise AssertionError(f"{attack}: {kind} {text!r} {error!r}") from error
        for thing in PARTS:
            if kind == "txt" and text.count(thing) and f" {thing} " in f" {text} " and "\n" not in text:
                assert data.decode().count(thing) >= 1, f"{attack}: {kind} {text!r} lost {thing}: {data.decode()!r}"
