"""Documents as they leave the workbench: the translated file itself, TMX, XLIFF or JSONL."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from weitblick.documents.corpora import write_documents
from weitblick.documents.document import Document, Sentence
from weitblick.formats.file import Align
from weitblick.server.errors import Refused
from weitblick.server.files import read_upload, translated_name, write_translation
from weitblick.server.languages import Languages
from weitblick.server.records import Segment

EXPORTS = ("file", "tmx", "xliff", "jsonl")
NOT_IN_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
XLIFF_STATES = {"empty": "new", "draft": "needs-review-translation", "edited": "translated", "confirmed": "final"}

Named = tuple[str, Sequence[Segment]]
"""A document: its name and its rows."""


def export(kind: str, name: str, documents: Sequence[Named], languages: Languages) -> tuple[str, bytes]:
    """The name and the content of an export of rows. A memory holds confirmed rows only: whoever reads it takes them
    for approved."""
    if kind == "xliff":
        return f"{name}.xlf", _xliff(documents, languages).encode()
    if kind not in ("tmx", "jsonl"):
        raise Refused(404, f"no export {kind[:50]!r}: there are {', '.join(EXPORTS)}")
    kept = [_document(title, rows, only_confirmed=kind == "tmx") for title, rows in documents]
    if kind == "tmx" and not any(document.sentences for document in kept):
        raise Refused(409, "no row is confirmed yet, and a memory holds confirmed rows only")
    with tempfile.TemporaryDirectory(prefix="weitblick-") as folder:
        path = Path(folder) / f"export.{kind}"
        write_documents(kept, [path], kind, languages=(languages.source, languages.target))
        return f"{name}.{kind}", path.read_bytes()


def export_file(
    name: str, rows: Sequence[Segment], content: bytes, languages: Languages, align: Align
) -> tuple[str, bytes]:
    """The file that was uploaded, with what the rows say now. `align` places its tags."""
    missing = next((row.position for row in rows if row.state == "empty"), None)
    if missing is not None:
        raise Refused(409, f"row {missing + 1} is not translated yet")
    file = read_upload(name, content, languages.source)
    if file.document.sources != [row.source for row in rows]:
        raise Refused(409, "the file is read in another way than when it was uploaded: upload it again")
    sentences = tuple(
        replace(sentence, target=row.target) for sentence, row in zip(file.document.sentences, rows, strict=True)
    )
    translated = write_translation(file, replace(file.document, sentences=sentences), align)
    return translated_name(name, languages.target), translated


def _document(name: str, rows: Sequence[Segment], only_confirmed: bool) -> Document:
    sentences = tuple(
        Sentence(row.source)
        if row.state == "empty"
        else Sentence(row.source, row.target, "locked" if row.state == "confirmed" else "draft")
        for row in rows
        if row.state == "confirmed" or not only_confirmed
    )
    return Document(name, sentences)


def _xliff(documents: Sequence[Named], languages: Languages) -> str:
    """XLIFF 1.2: a unit for each row, with what its state is called there."""
    pair = f"source-language={quoteattr(languages.source)} target-language={quoteattr(languages.target)}"
    files = [
        f'  <file original={quoteattr(_clean(name))} {pair} datatype="plaintext">\n    <body>\n'
        + "".join(map(_unit, rows))
        + "    </body>\n  </file>\n"
        for name, rows in documents
    ]
    head = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{"".join(files)}</xliff>\n'


def _unit(row: Segment) -> str:
    approved = ' approved="yes"' if row.state == "confirmed" else ""
    state = XLIFF_STATES[row.state]
    target = f'<target state="{state}">{escape(_clean(row.target))}</target>' if row.target else ""
    source = f"<source>{escape(_clean(row.source))}</source>"
    return f'      <trans-unit id="{row.position + 1}"{approved} xml:space="preserve">{source}{target}</trans-unit>\n'


def _clean(text: str) -> str:
    """Without the control characters that no XML can hold."""
    return NOT_IN_XML.sub("", text)
