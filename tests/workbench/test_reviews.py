"""Reviews go out as a table for Word or as XLIFF, and come back whole or not at all."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import pytest
from fastapi.testclient import TestClient
from test_rows import Json, put, rows_of, upload

TEXT = "The house is blue.\n\nThe report is long & <dull>.\n\nThank you.\n\nWe agree.\n"


@pytest.fixture
def url(client: TestClient) -> str:
    found = upload(client, "a.txt", TEXT)
    for position, target in enumerate(("Das Haus ist blau.", "Der Bericht ist lang & <öde>.", "Danke.")):
        put(client, found, position, target, "confirmed")
    client.post(f"{found}/segments/1/comments", json={"text": "Two\nlines", "person": "Anna"})
    return found


def send(client: TestClient, url: str, name: str, content: bytes) -> Any:
    return client.post(f"{url}/reviews", files={"file": (name, content)}, data={"person": "Ben"})


def changed_table(content: bytes, *cells: tuple[int, int, str]) -> bytes:
    """A table with other texts in some cells: row, column, text."""
    document = docx.Document(io.BytesIO(content))
    for row, column, text in cells:
        document.tables[0].rows[row].cells[column].text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def table(client: TestClient, url: str) -> bytes:
    return client.get(f"{url}/export/review").content


def state_of(client: TestClient, url: str) -> list[tuple[str, str, list[str]]]:
    return [(row["target"], row["state"], [one["text"] for one in row["comments"]]) for row in rows_of(client, url)]


def refused(client: TestClient, url: str, name: str, content: bytes) -> str:
    before = rows_of(client, url)
    answer = send(client, url, name, content)
    assert 400 <= answer.status_code < 500, answer.text
    assert rows_of(client, url) == before
    message: str = answer.json()["error"]
    assert "\n" not in message
    return message


def test_a_table_comes_back_with_edits_comments_and_reviewed_rows(client: TestClient, url: str) -> None:
    before = state_of(client, url)
    content = changed_table(
        table(client, url),
        (1, 2, "Das Haus ist grün."),
        (2, 3, "Reviewed"),
        (3, 4, "Colder?"),
        (2, 4, "Anna: Two lines"),
    )
    done: Json = send(client, url, "a.review.docx", content).json()
    assert (done["edited"], done["reviewed"], done["left"], done["comments"]) == ([0], [1], [], 1)
    assert state_of(client, url) == [
        ("Das Haus ist grün.", "edited", []),
        ("Der Bericht ist lang & <öde>.", "reviewed", ["Two\nlines"]),
        ("Danke.", "confirmed", ["Colder?"]),
        before[3],
    ]
    assert rows_of(client, url)[2]["comments"][0]["person"] == "Ben"
    step = client.get(f"{url}/steps").json()["undo"]
    assert (step["kind"], step["rows"]) == ("import", 3)
    client.post(f"{url}/steps/undo", json={"step": step["id"]})
    assert state_of(client, url) == before


def test_xliff_comes_back(client: TestClient, url: str) -> None:
    content = client.get(f"{url}/export/xliff").text
    content = content.replace(">Das Haus ist blau.<", ">Das <mrk mtype='x-a'>Haus</mrk> ist grün.<")
    content = content.replace(
        'state="translated">Danke.</target>', 'state="final">Danke.</target><note from="Eve">!</note>'
    )
    done = send(client, url, "a.xlf", content.encode()).json()
    assert (done["edited"], done["reviewed"], done["comments"]) == ([0], [2], 1)
    assert state_of(client, url)[0][:2] == ("Das Haus ist grün.", "edited")
    assert rows_of(client, url)[2]["comments"][0]["person"] == "Eve"


def test_what_was_written_meanwhile_stays_and_the_reviewers_text_is_a_comment(client: TestClient, url: str) -> None:
    content = changed_table(table(client, url), (1, 2, "Das Haus ist grün."), (2, 2, "Der Bericht ist dick."))
    put(client, url, 0, "Das Haus ist rot.", "confirmed")
    put(client, url, 2, "Vielen Dank.", "confirmed")  # the review did not touch it
    client.post(f"{url}/segments/1/comments", json={"text": "Later"})  # which is no writing
    done = send(client, url, "a.docx", content).json()
    assert (done["edited"], done["left"]) == ([1], [0])
    assert state_of(client, url)[:3] == [
        ("Das Haus ist rot.", "confirmed", ["Review: Das Haus ist grün."]),
        ("Der Bericht ist dick.", "edited", ["Two\nlines", "Later"]),
        ("Vielen Dank.", "confirmed", []),
    ]


def test_an_untouched_review_changes_nothing(client: TestClient, url: str) -> None:
    before = rows_of(client, url)
    for name, content in (("a.docx", table(client, url)), ("a.xlf", client.get(f"{url}/export/xliff").content)):
        assert send(client, url, name, content).json()["rows"] == []
    assert rows_of(client, url) == before


def without_row(content: bytes) -> bytes:
    document = docx.Document(io.BytesIO(content))
    row = document.tables[0].rows[2]._tr
    row.getparent().remove(row)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


WRONG: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a row vanished": (without_row, "row 2 is missing in the review"),
    "another source": (lambda c: changed_table(c, (3, 1, "Thanks a lot.")), "the source of row 3 is 'Thanks a lot.'"),
    "no table": (lambda c: empty_word(), "has no rows of a review"),
    "no file": (lambda c: b"hello", "not well-formed XML"),
    "cut off": (lambda c: c[: len(c) // 2], "not a complete Office file"),
    "a text that cannot be": (lambda c: changed_table(c, (1, 2, "x" * 30_000)), "more than"),
}


def empty_word() -> bytes:
    out = io.BytesIO()
    docx.Document().save(out)
    return out.getvalue()


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_review_of_this_document_is_refused_in_one_line(client: TestClient, url: str, wrong: str) -> None:
    make, message = WRONG[wrong]
    assert message in refused(client, url, "a.docx", make(table(client, url)))


def test_reviews_of_other_documents_are_refused(client: TestClient, url: str) -> None:
    other = upload(client, "b.txt", TEXT)
    for name, content in (("b.docx", table(client, other)), ("b.xlf", client.get(f"{other}/export/xliff").content)):
        assert "row 1 is of another document than a.txt" in refused(client, url, name, content)
    foreign = re.sub(r'id="[^"]*"', 'id="1"', client.get(f"{url}/export/xliff").text)
    assert "unit '1' is none of a review" in refused(client, url, "c.xlf", foreign.encode())


def test_word_comments_and_tracked_changes_are_read(client: TestClient, url: str) -> None:
    packed = zipfile.ZipFile(io.BytesIO(table(client, url)))
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = packed.read("word/document.xml").decode()
    tracked = (
        '<w:t xml:space="preserve">Das Haus ist </w:t></w:r><w:del w:id="1"><w:r><w:delText>blau</w:delText>'
        '</w:r></w:del><w:ins w:id="2" w:author="E"><w:r><w:t>grün</w:t></w:r></w:ins><w:r><w:t>.</w:t>'
        '<w:commentReference w:id="7"/>'
    )
    body = body.replace('<w:t xml:space="preserve">Das Haus ist blau.</w:t>', tracked)
    comments = (
        f'<w:comments xmlns:w="{space}"><w:comment w:id="7" w:author="Eve"><w:p><w:r><w:t>Look!</w:t></w:r></w:p>'
        "</w:comment></w:comments>"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as package:
        for name in packed.namelist():
            package.writestr(name, body if name == "word/document.xml" else packed.read(name))
        package.writestr("word/comments.xml", comments)
    done = send(client, url, "a.docx", out.getvalue()).json()
    assert (done["edited"], done["comments"]) == ([0], 1)
    first = rows_of(client, url)[0]
    assert (first["target"], first["comments"][0]["text"]) == ("Das Haus ist grün.", "Look!")
    assert first["comments"][0]["person"] == "Eve"


@pytest.mark.skipif(shutil.which("soffice") is None, reason="no LibreOffice here")
def test_a_table_that_libreoffice_has_saved_comes_back(client: TestClient, url: str, tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(table(client, url))
    profile = f"-env:UserInstallation=file://{tmp_path}/profile"
    command = ["soffice", profile, "--headless", "--convert-to", "docx:MS Word 2007 XML", "--outdir", tmp_path / "out"]
    subprocess.run([*command, tmp_path / "a.docx"], check=True, capture_output=True, timeout=180)
    saved = (tmp_path / "out" / "a.docx").read_bytes()
    before = rows_of(client, url)
    assert send(client, url, "a.docx", saved).json()["rows"] == []
    assert rows_of(client, url) == before
    done = send(client, url, "a.docx", changed_table(saved, (3, 2, "Vielen Dank."))).json()
    assert done["edited"] == [2]
