"""Formatting placed by hand at the workbench: kept, exported, undone, refused where it cannot be; and in a browser."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import docx
import pytest
from fastapi.testclient import TestClient
from test_workbench_finding import serious
from test_workbench_page import PHONE
from test_workbench_rows import picture
from workbench_story import Story

HTML = b"<p>The <b>red</b> house has <i>many</i> rooms.</p><p>Thank you.</p>"
TARGET = "Das rote Haus hat viele Zimmer."


@pytest.fixture
def url(client: TestClient) -> str:
    project = client.post("/v1/projects", json={"name": "Formats"}).json()["id"]
    added = client.post(f"/v1/projects/{project}/documents", files={"file": ("a.html", HTML)}).json()
    url = f"/v1/projects/{project}/documents/{added['id']}"
    row = client.put(f"{url}/segments/0", json={"target": TARGET, "state": "edited", "version": 99}).json()
    assert row["placed"] == []
    return url


def placed(client: TestClient, url: str, *formats: tuple[int, int, int], **other: Any) -> Any:
    row = client.get(url).json()["rows"][0]
    body = {
        "target": row["target"],
        "version": row["version"],
        "formats": [{"mark": mark, "start": start, "end": end} for mark, start, end in formats],
    }
    return client.put(f"{url}/segments/0/formats", json={**body, **other})


def exported(client: TestClient, url: str) -> str:
    version = client.get(url).json()["rows"][1]["version"]
    client.put(f"{url}/segments/1", json={"target": "Danke.", "state": "confirmed", "version": version})
    return client.get(f"{url}/export/file").text


def test_formatting_is_exported_where_it_was_placed_and_goes_with_its_words(client: TestClient, url: str) -> None:
    row = placed(client, url, (0, 9, 13)).json()
    assert (row["state"], row["placed"]) == ("edited", [{"mark": 0, "start": 9, "end": 13}])
    assert "Das rote <b>Haus</b> hat" in exported(client, url)
    tags = client.post(f"{url}/segments/0/tags", json={}).json()["target"]
    assert (9, False) in [(tag["start"], tag["automatic"]) for tag in tags if tag["kind"] == "format"]
    body = {"target": "Das alte rote Haus hat viele Zimmer.", "state": "confirmed", "version": row["version"]}
    row = client.put(f"{url}/segments/0", json=body).json()
    assert row["placed"] == [{"mark": 0, "start": 14, "end": 18}]
    assert "Das alte rote <b>Haus</b> hat" in exported(client, url)


def test_placing_is_a_step(client: TestClient, url: str) -> None:
    placed(client, url, (0, 9, 13))
    placed(client, url, (0, 4, 8), (1, 24, 30))
    for expected in ([{"mark": 0, "start": 9, "end": 13}], []):
        step = client.get(f"{url}/steps").json()["undo"]
        assert step["kind"] == "format"
        (row,) = client.post(f"{url}/steps/undo", json={"step": step["id"]}).json()["rows"]
        assert row["placed"] == expected
    step = client.get(f"{url}/steps").json()["redo"]
    (row,) = client.post(f"{url}/steps/redo", json={"step": step["id"]}).json()["rows"]
    assert row["placed"] == [{"mark": 0, "start": 9, "end": 13}]


@pytest.mark.parametrize(
    ("formats", "said"),
    [
        ([(2, 0, 3)], "there is no formatting 2, the source has 2"),
        ([(0, 4, 99)], "[4, 99) is no part of the translation, which has 31 characters"),
        ([(0, 4, 4)], "[4, 4) is no part"),
        ([(0, 4, 8), (0, 9, 13)], "placed twice"),
        ([(0, 4, 13), (1, 9, 17)], "0 and 1 cross each other"),
        ([(0, 4, 13), (1, 4, 8)], "0 and 1 cross each other"),
    ],
)
def test_what_cannot_be_is_refused(
    client: TestClient, url: str, formats: list[tuple[int, int, int]], said: str
) -> None:
    answer = placed(client, url, *formats)
    assert answer.status_code == 422
    assert said in answer.text
    assert client.get(url).json()["rows"][0]["placed"] == []


def test_formatting_in_a_text_that_is_another_by_now_is_refused(client: TestClient, url: str) -> None:
    answer = placed(client, url, (0, 4, 8), target="Das alte Haus.")
    assert answer.status_code == 409
    assert client.get(url).json()["rows"][0]["placed"] == []


def test_text_that_is_typed_back_to_what_it_was_leaves_no_step(client: TestClient, url: str) -> None:
    client.put(f"{url}/segments/0", json={"target": TARGET, "state": "confirmed", "version": 99, "person": "Anna"})
    before = client.get(url).json()["rows"][0]
    step = client.get(f"{url}/steps").json()["undo"]
    typed = {"version": before["version"], "writer": "tab", "person": "Ben"}
    for number, (target, state) in enumerate([("Das", "edited"), ("Das rote", "edited"), (TARGET, "confirmed")], 1):
        body = {**typed, "target": target, "state": state, "writer_edit": number}
        after = client.put(f"{url}/segments/0", json=body).json()
    assert client.get(f"{url}/steps").json() == {"undo": step, "redo": None}
    assert {name: after[name] for name in ("target", "state", "person", "decided", "origin")} == {
        name: before[name] for name in ("target", "state", "person", "decided", "origin")
    }


# In a browser


def opened(story: Story, name: str, content: bytes) -> Story:
    """A file in a new project, translated."""
    story.open_text()
    with story.program() as client:
        path = f"/v1/projects/{story.project}/documents"
        story.document = client.post(path, files={"file": (name, content)}).json()["id"]
    story.page.goto(f"{story.address}/#{story.document}")
    story.page.reload()
    return story.translated()


def select(story: Story, position: int, words: str) -> None:
    """Selects words in a translation, as a person does with the keyboard."""
    story.field(position).click()
    start = story.text(position).index(words)
    story.page.keyboard.press("Control+Home")
    for _ in range(start):
        story.page.keyboard.press("ArrowRight")
    for _ in words:
        story.page.keyboard.press("Shift+ArrowRight")


@pytest.mark.browser
def test_formatting_is_placed_by_key_and_by_mouse_and_goes_back(story: Story, tmp_path: Path) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("🙂 The ")
    paragraph.add_run("red").bold = True
    paragraph.add_run(" house has ")
    paragraph.add_run("many").italic = True
    paragraph.add_run(" rooms.")
    document.save(str(tmp_path / "a.docx"))
    page = opened(story, "a.docx", (tmp_path / "a.docx").read_bytes()).page
    story.until(lambda: "2 tags auto" in story.row(0).inner_text())
    assert page.evaluate("[...CSS.highlights.get('weitblick-format')].map(String)") == ["red", "many"]
    story.field(0).fill("🙂 Das rote Haus hat viele Zimmer.")
    select(story, 0, "Haus")
    page.keyboard.press("Alt+b")
    story.until(lambda: "2 tags, 1 placed" in story.row(0).inner_text())
    assert story.row(0).locator(".is-placed").get_attribute("data-text") == "Haus"
    select(story, 0, "Zimmer")
    story.row(0).locator(".format-chip", has_text="many").click()
    story.until(lambda: "2 tags, placed" in story.row(0).inner_text())
    assert story.row(0).locator(".is-placed").evaluate_all("all => all.map(one => one.dataset.text)") == [
        "Haus",
        "Zimmer",
    ]
    picture(page, "formats")
    assert serious(page) == []
    page.set_viewport_size(PHONE)
    picture(page, "formats-phone")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    story.field(0).press("Control+Enter")
    story.until(lambda: story.state(0) == "confirmed")
    with story.program() as client:
        data = client.get(f"{story.path}/export/file").content
    runs = [(run.text, bool(run.bold), bool(run.italic)) for run in docx.Document(io.BytesIO(data)).paragraphs[0].runs]
    assert [run for run in runs if run[1] or run[2]] == [("Haus", True, False), ("Zimmer", False, True)]
    story.field(0).click()
    page.keyboard.press("Shift+Alt+B")
    story.until(lambda: "2 tags auto" in story.row(0).inner_text())
    page.keyboard.press("Control+z")
    story.until(lambda: "2 tags, placed" in story.row(0).inner_text())


def press_until(story: Story, key: str, text: str) -> None:
    """Presses a key until the second row has a text; how many pieces typing has depends on how fast it was."""
    for _ in range(9):
        story.page.keyboard.press(key)
        if story.text(1) == text:
            return
    raise AssertionError(f"{story.text(1)!r} never became {text!r}")


@pytest.mark.browser
def test_undo_takes_typing_back_piece_by_piece_and_then_the_steps_before(story: Story) -> None:
    page = story.open_text().page
    story.confirm(0, "Die Quoten sind fertig.")
    story.until(lambda: story.cursor() == 1)
    before = story.text(1)
    page.keyboard.press("Control+End")
    page.keyboard.type(" Ja doch")
    for _ in " Ja doch":
        page.keyboard.press("Backspace")
    assert story.text(1) == before
    press_until(story, "Control+z", f"{before} Ja doch")  # what was deleted comes back, although the row is as it was
    press_until(story, "Control+z", f"{before} Ja ")
    press_until(story, "Control+y", f"{before} Ja doch")
    press_until(story, "Control+z", before)
    story.until(lambda: story.stored()[1]["target"] == before and story.stored()[1]["state"] == "draft")
    assert story.state(0) == "confirmed"
    page.keyboard.press("Control+z")  # nothing of what was typed is left: the step before it
    story.until(lambda: story.state(0) != "confirmed")


@pytest.mark.browser
def test_terms_are_seen_in_the_source_and_inserted_by_key_and_by_mouse(story: Story) -> None:
    page = story.open_text().page
    with story.program() as client:
        glossary = {"file": ("own.csv", b"quota,Fangquote\ncommittee,Komitee\n")}
        client.post(f"/v1/projects/{story.project}/pairs", files=glossary, data={"kind": "glossary"})
        found = client.get(f"{story.path}/terms").json()["rows"]
    assert [(one["start"], one["end"], one["targets"]) for one in found["2"]] == [
        (4, 13, ["Komitee"]),
        (30, 36, ["Fangquote"]),
    ]
    story.reload()
    story.until(lambda: page.evaluate("CSS.highlights.get('weitblick-term')?.size") == 4)
    story.field(2).fill("Das ")
    page.keyboard.press("Alt+g")
    assert story.text(2) == "Das Komitee"
    story.row(2).get_by_role("button", name="Fangquote").click()
    assert story.text(2) == "Das KomiteeFangquote"
    page.keyboard.press("Alt+g")
    assert "The translation has its terms" in story.said()
    story.row(2).locator(".source").hover(position={"x": 60, "y": 18})
    story.until(lambda: story.row(2).locator(".source .w[title*='committee = Komitee (own.csv)']").count() == 1)
    assert serious(page) == []
