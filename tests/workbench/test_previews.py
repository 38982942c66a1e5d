"""What the translated file looks like: pages that can do nothing, cues with times, and a reason where there is none."""

from __future__ import annotations

import io
import stat
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import docx
import pytest
from docx.opc.constants import RELATIONSHIP_TYPE
from fastapi.testclient import TestClient

from tests.patience import PATIENCE
from weitblick.common.errors import UserError
from weitblick.workbench import libreoffice
from weitblick.workbench.libreoffice import as_html, office_program
from weitblick.workbench.previews import MOST_PAGES, PreviewPages, cues_of

SRT = """1
00:00:01,000 --> 00:00:03,000
The <i>report</i> is ready.

2
00:00:04,000 --> 00:00:04,500
It is far too long to be read by anybody in half a second.
"""
VTT = "WEBVTT\n\n00:01.000 --> 00:03.000\n<v Anna>The report is ready.\n"
ASS = """[Script Info]
ScriptType: v4.00+

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,no cue
Dialogue: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,{\\i1}The report{\\i0} is ready.
"""
MARKDOWN = """---
title: The report
---

# The report

It is **ready**.

| Name | Value |
|---|---|
| House | Blue |

<script>alert(1)</script>
"""
HTML = """<!doctype html><html><head><meta charset="iso-8859-1"><title>The report</title></head>
<body><p onclick="alert(1)">The house is blue. \xe9</p><script>alert(1)</script></body></html>"""


def added(client: TestClient, name: str, content: bytes) -> str:
    """A document whose rows are translated."""
    project = client.post("/v1/projects", json={"name": "Previews"}).json()["id"]
    answer = client.post(f"/v1/projects/{project}/documents", files={"file": (name, content)})
    path = f"/v1/projects/{project}/documents/{answer.json()['id']}"
    end = time.monotonic() + PATIENCE
    while any(row["state"] == "empty" for row in client.get(path).json()["rows"]):
        assert time.monotonic() < end
        time.sleep(0.05)
    return path


def preview(client: TestClient, path: str) -> Any:
    answer = client.post(f"{path}/preview")
    assert answer.status_code == 200, answer.text
    return answer.json()


def put(client: TestClient, path: str, position: int, target: str) -> None:
    version = client.get(path).json()["rows"][position]["version"]
    body = {"target": target, "state": "edited", "version": version}
    assert client.put(f"{path}/segments/{position}", json=body).status_code == 200


@pytest.mark.parametrize(
    ("name", "content", "there"),
    [
        ("a.md", MARKDOWN.encode(), ["<h1>Das Gutachten</h1>", "<strong>", "<td>", "<pre>---"]),
        ("a.html", HTML.encode("latin-1"), ["<p onclick", "é</p>", "<title>Das Gutachten</title>"]),
        ("a.txt", b"The report\n\nIs it <b>ready</b>?", ["<pre", "Das Gutachten\n\n", "&lt;b&gt;"]),
    ],
)
def test_a_page_is_the_translated_file(client: TestClient, name: str, content: bytes, there: list[str]) -> None:
    path = added(client, name, content)
    put(client, path, 0, "Das Gutachten")
    found = preview(client, path)
    assert (found["kind"], found["cues"]) == ("page", [])
    page = client.get(found["address"])
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for text in there:
        assert text in page.text


def test_a_page_runs_no_script_loads_nothing_and_is_framed_by_us_alone(client: TestClient) -> None:
    path = added(client, "a.html", HTML.encode("latin-1"))
    page = client.get(preview(client, path)["address"])
    (policy,) = page.headers.get_list("content-security-policy")
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    assert "sandbox" in rules
    assert (rules["default-src"], rules["sandbox"], rules["frame-ancestors"]) == ("'none'", "", "'self'")
    assert "script-src" not in rules  # so that `default-src` decides
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in client.get("/").headers["content-security-policy"]  # all other pages


def test_a_page_is_of_its_document_and_gone_with_it(client: TestClient) -> None:
    path, other = added(client, "a.txt", b"The house is blue."), added(client, "b.txt", b"The report is long.")
    address = preview(client, path)["address"]
    assert client.get(address.replace(path, other)).status_code == 404
    newer = preview(client, path)["address"]
    assert [client.get(one).status_code for one in (address, newer)] == [404, 200]
    client.delete(path)
    assert client.get(newer).status_code == 404


def test_the_latest_pages_are_kept() -> None:
    pages = PreviewPages()
    names = [pages.keep(str(number), b"page") for number in range(MOST_PAGES + 1)]
    assert pages.get("0", names[0]) is None
    assert pages.get("1", names[1]) == b"page"


def test_subtitles_are_cues_with_times_and_reading_speed(client: TestClient) -> None:
    path = added(client, "a.srt", SRT.encode())
    put(client, path, 0, "Der Bericht ist da.")
    put(client, path, 1, "Niemand liest das hier so schnell wie es steht.")
    found = preview(client, path)
    first, second = found["cues"]
    assert (first["begins"], first["ends"], first["text"]) == (1.0, 3.0, "Der Bericht ist da.")
    assert (first["speed"], first["too_fast"]) == (9.5, False)
    assert (second["speed"], second["too_fast"], second["too_long"]) == (94.0, True, False)
    assert any("characters a second" in note for note in found["notes"])


@pytest.mark.parametrize(("format", "text"), [("vtt", VTT), ("ass", ASS)])
def test_cues_of_all_formats_are_read_without_their_tags(format: str, text: str) -> None:
    (cue,) = cues_of(text, format)
    assert (cue.begins, cue.ends, cue.text, cue.speed) == (1.0, 3.0, "The report is ready.", 10.0)


def test_rows_that_wait_are_shown_in_the_source_language(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weitblick.workbench.workbench.Workbench.fill", lambda *_: None)
    project = client.post("/v1/projects", json={"name": "Waiting"}).json()["id"]
    text = {"text": "The house is blue.", "name": "a.txt"}
    document = client.post(f"/v1/projects/{project}/documents", data=text).json()["id"]
    found = preview(client, f"/v1/projects/{project}/documents/{document}")
    assert found["notes"] == ["1 row is not translated yet and shown in the source language."]
    assert "The house is blue." in client.get(found["address"]).text


def test_where_there_is_no_preview_the_reason_is_said(client: TestClient) -> None:
    path = added(client, "a.json", b'{"title": "The house is blue."}')
    found = preview(client, path)
    assert found["kind"] == "none"
    assert found["reason"] == "There is no preview of JSON of localisation files here: export the file and open it."
    assert client.post(f"{path}x/preview").status_code == 404


# LibreOffice


def letter(text: str = "The house is blue.") -> docx.document.Document:
    document = docx.Document()
    document.add_paragraph(text)
    return document


def saved(document: docx.document.Document) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_without_libreoffice_it_is_said(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    path = added(client, "a.docx", saved(letter()))
    monkeypatch.setattr(libreoffice, "office_program", lambda: None)
    found = preview(client, path)
    assert found["kind"] == "none"
    assert found["reason"] == "a.docx: needs LibreOffice to be shown; install it, or export the file"


def test_a_program_that_never_ends_is_stopped_with_what_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "office"
    program.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(libreoffice, "office_program", lambda: str(program))
    with pytest.raises(UserError, match="stopped after 2 s"):
        as_html("a.docx", b"", seconds=2)
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "cmdline"
    assert not child.exists() or b"sleep" not in child.read_bytes()


def test_what_libreoffice_cannot_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "office"
    program.write_text("#!/bin/sh\necho 'source file could not be loaded' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(libreoffice, "office_program", lambda: str(program))
    with pytest.raises(UserError, match=r"cannot be shown by LibreOffice \(source file could not be loaded\)"):
        as_html("a.docx", b"nothing")


@pytest.mark.skipif(office_program() is None, reason="no LibreOffice here")
def test_libreoffice_shows_a_word_file_and_asks_no_other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_OPTIONS = do_PROPFIND = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    document = letter("Das Haus ist blau.")
    picture = document.add_paragraph().add_run()
    link = f"http://127.0.0.1:{server.server_port}/picture.png"
    relation = document.part.relate_to(link, RELATIONSHIP_TYPE.IMAGE, is_external=True)
    picture._r.append(linked_picture(relation))
    page = as_html("letter.docx", saved(document), seconds=PATIENCE).decode()
    server.shutdown()
    assert "Das Haus ist blau." in page
    assert asked == []


def linked_picture(relation: str) -> Any:
    """A picture that a Word file does not hold, but links to."""
    from docx.oxml import parse_xml

    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    return parse_xml(
        f"""<w:drawing xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        xmlns:wp="{drawing}/wordprocessingDrawing" xmlns:a="{drawing}/main" xmlns:pic="{drawing}/picture"
        xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><wp:inline>
        <wp:extent cx="1000000" cy="1000000"/><wp:docPr id="1" name="p"/><a:graphic><a:graphicData
        uri="{drawing}/picture"><pic:pic><pic:nvPicPr><pic:cNvPr id="1" name="p"/><pic:cNvPicPr/></pic:nvPicPr>
        <pic:blipFill><a:blip r:link="{relation}"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>
        <pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="1000000" cy="1000000"/></a:xfrm>
        <a:prstGeom prst="rect"/></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing>"""
    )
