"""The translated file as a page to look at: Markdown, HTML and text, Office texts by LibreOffice, subtitles as cues.

A page is whatever somebody has uploaded. It is answered from RAM, under a policy by which a browser runs no script of
it, loads nothing for it, and gives it no part in the workbench.
"""

from __future__ import annotations

import html
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pysubs2
from markdown_it import MarkdownIt

from weitblick.common.errors import UserError
from weitblick.files.formats import FILE_FORMATS
from weitblick.files.markdown import FRONT_MATTER
from weitblick.files.subtitles import FASTEST, LINE
from weitblick.workbench.libreoffice import as_html
from weitblick.workbench.schema import Segment

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox"
)
"""What a browser may do with a page that is shown."""
MOST_PAGES = 8
SUBTITLES = {"srt": "srt", "vtt": "vtt", "ass": "ass"}
"""Our formats by what pysubs2 calls them."""
OFFICE = ("docx", "odt")
STYLE = """<style>body { max-width: 45rem; margin: 1.5rem auto; padding: 0 1rem; font: 1rem/1.55 Georgia, serif;
color: #1a1a1a; background: #fff; overflow-wrap: anywhere } table { border-collapse: collapse } td, th { padding: .25rem
.6rem; border: 1px solid #bbb; text-align: start } pre { white-space: pre-wrap } img { max-width: 100% }</style>"""


@dataclass(frozen=True)
class PreviewCue:
    """A cue of subtitles: when it is seen (seconds), what it says, how many characters a second that is, and whether
    that is faster than people read or its lines are too long."""

    begins: float
    ends: float
    text: str
    speed: float | None
    too_fast: bool
    too_long: bool


@dataclass(frozen=True)
class Preview:
    """What a translated file looks like: a page, cues, or neither, with the reason."""

    kind: Literal["page", "subtitles", "none"]
    notes: Sequence[str] = ()
    page: bytes = b""
    cues: Sequence[PreviewCue] = field(default_factory=tuple)
    reason: str = ""


def preview(name: str, format: str, data: bytes, language: str, notes: Sequence[str] = ()) -> Preview:
    """The preview of a translated file. `language` is that of the translation."""
    if format in (*SUBTITLES, "html", "markdown", "txt"):
        text = FILE_FORMATS[format].read(data, Path(name)).parts[""]
        if format in SUBTITLES:
            return Preview("subtitles", notes, cues=cues_of(text, SUBTITLES[format]))
        return Preview("page", notes, _as_page(text, format, language))
    if format in OFFICE:
        try:
            return Preview("page", notes, as_html(name, data))
        except UserError as error:
            return Preview("none", notes, reason=str(error))
    what = FILE_FORMATS[format].what if format in FILE_FORMATS else format
    return Preview("none", notes, reason=f"There is no preview of {what} files here: export the file and open it.")


def with_sources(rows: Sequence[Segment]) -> tuple[list[Segment], list[str]]:
    """Rows of which those that are not translated yet have their source, and a note that says so."""
    shown = [replace(row, target=row.source, state="draft") if row.state == "empty" else row for row in rows]
    waiting = sum(row.state == "empty" for row in rows)
    are = "1 row is" if waiting == 1 else f"{waiting} rows are"
    return shown, [f"{are} not translated yet and shown in the source language."] if waiting else []


def cues_of(text: str, format: str) -> list[PreviewCue]:
    """The cues of a file of subtitles, in their order."""
    found = []
    for event in pysubs2.SSAFile.from_string(text, format_=format):
        if event.is_comment:
            continue
        said = event.plaintext.strip()
        seconds = event.duration / 1000
        speed = round(len(said.replace("\n", " ")) / seconds, 1) if seconds > 0 else None
        too_long = any(len(line) > LINE for line in said.split("\n"))
        too_fast = speed is not None and speed > FASTEST
        found.append(PreviewCue(event.start / 1000, event.end / 1000, said, speed, too_fast, too_long))
    return found


def _as_page(text: str, format: str, language: str) -> bytes:
    """The page of a text. HTML is one."""
    if format == "html":
        return text.encode()
    plain = f"<pre style='font: inherit'>{html.escape(text)}</pre>"
    return _page(_markdown(text) if format == "markdown" else plain, language)


def _markdown(text: str) -> str:
    head = FRONT_MATTER.match(text)
    rendered = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    above = f"<pre>{html.escape(head[0])}</pre>" if head else ""
    return above + str(rendered.render(text[head.end() :] if head else text))


def _page(body: str, language: str) -> bytes:
    head = f'<meta charset="utf-8"><title>Preview</title>{STYLE}'
    return f'<!doctype html><html lang="{html.escape(language)}"><head>{head}</head><body>{body}</body></html>'.encode()


class PreviewPages:
    """The latest pages, each by a name that nobody can guess, until others take their place."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, tuple[str, bytes]] = OrderedDict()

    def keep(self, document: str, page: bytes) -> str:
        """Keeps a page of a document in place of the one before, and gives its name."""
        name = secrets.token_hex(16)
        with self._lock:
            self._forget(document)
            self._pages[name] = document, page
            while len(self._pages) > MOST_PAGES:
                self._pages.popitem(last=False)
        return name

    def get(self, document: str, name: str) -> bytes | None:
        """A page of a document, if it is still there."""
        with self._lock:
            owner, page = self._pages.get(name, ("", b""))
        return page if owner == document else None

    def forget(self, document: str) -> None:
        """A document that is gone."""
        with self._lock:
            self._forget(document)

    def _forget(self, document: str) -> None:
        for name in [name for name, (owner, _) in self._pages.items() if owner == document]:
            del self._pages[name]


def preview_json(found: Preview, address: str | None) -> dict[str, Any]:
    """What the page is told of a preview; `address` is where its page is."""
    cues = [asdict(cue) for cue in found.cues]
    return {"kind": found.kind, "notes": list(found.notes), "reason": found.reason, "address": address, "cues": cues}
