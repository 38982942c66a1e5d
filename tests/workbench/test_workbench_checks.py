"""Checks at the workbench: what looks wrong is asked when a row is confirmed, what cannot be held is refused."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from lxml import etree
from workbench_story import Story

Client = TestClient | httpx.Client
TEXT = "The report of 2024 is long.\n\nIt has 12 pages.\n"


def opened(client: Client, text: str = TEXT, name: str = "a.txt") -> tuple[str, str]:
    project = client.post("/v1/projects", json={"name": "Checks"}).json()["id"]
    added = client.post(f"/v1/projects/{project}/documents", files={"file": (name, text.encode())}).json()
    return f"/v1/projects/{project}", f"/v1/projects/{project}/documents/{added['id']}"


def put(client: Client, url: str, target: str, position: int = 0, state: str = "confirmed", **more: Any) -> Any:
    row = client.get(url).json()["rows"][position]
    body = {"target": target, "state": state, "version": row["version"], **more}
    return client.put(f"{url}/segments/{position}", json=body)


def test_a_row_that_looks_wrong_is_confirmed_only_when_it_was_seen(client: TestClient) -> None:
    _, url = opened(client)
    answer = put(client, url, "Der Bericht von 2042 ist lang.", ask=True).json()
    assert answer["state"] == "edited"
    assert answer["findings"] == [{"position": 0, "rule": "numbers", "words": "2042", "message": "the source has 2024"}]
    assert put(client, url, "Der Bericht von 2042 ist lang.").json()["state"] == "confirmed"
    right = put(client, url, "Er hat 12 Seiten.", 1, ask=True).json()
    assert (right["state"], right["findings"]) == ("confirmed", [])


def test_a_text_is_checked_without_being_saved(client: TestClient) -> None:
    _, url = opened(client)
    found = client.post(f"{url}/findings", json={"position": 1, "target": "Er hat 21 Seiten"}).json()
    assert {one["rule"] for one in found} == {"numbers", "end-sign"}
    assert client.get(url).json()["rows"][1]["state"] in ("empty", "draft")
    assert client.post(f"{url}/findings", json={"position": 9, "target": "x"}).status_code == 404


def test_findings_are_ignored_in_a_row_or_in_the_project(client: TestClient) -> None:
    project, url = opened(client)
    document = url.rpartition("/")[2]
    put(client, url, "Der Bericht von 2042 ist lang.")
    put(client, url, "Er hat 21 Seiten.", 1)

    def rows() -> list[int]:
        return [one["position"] for one in client.get(f"{url}/findings").json()]

    assert rows() == [0, 1]
    body = {"rule": "numbers", "words": "2042", "document": document, "position": 0}
    ignored = client.post(f"{project}/ignored", json=body).json()["id"]
    assert rows() == [1]
    assert client.post(f"{project}/ignored", json={"rule": "numbers"}).status_code == 201
    assert rows() == []
    assert len(client.get(f"{project}/ignored").json()) == 2
    for number in [one["id"] for one in client.get(f"{project}/ignored").json()]:
        assert client.delete(f"{project}/ignored/{number}").status_code == 204
    assert rows() == [0, 1]
    assert client.delete(f"{project}/ignored/{ignored}").status_code == 404
    assert client.post(f"{project}/ignored", json={"rule": "nmbers"}).status_code == 404
    assert client.post(f"{project}/ignored", json={"rule": "numbers", "position": 0}).status_code == 422


def test_terms_and_own_rules_of_the_project_count(client: TestClient) -> None:
    project, url = opened(client)
    client.post(f"{url}/terms", json={"source": "report", "target": "Bericht"})
    rules = [{"name": "polite", "target": r"\bdu\b"}]
    assert client.put(f"{project}/rules", json={"rules": rules}).status_code == 200
    target = {"target": "Das Gutachten von 2024 ist lang, du."}
    found = client.post(f"{url}/findings", json={"position": 0, **target}).json()
    assert {(one["rule"], one["words"]) for one in found} == {("terms", "report"), ("polite", "du")}
    answer = client.put(f"{project}/rules", json={"rules": [{"name": "x", "target": "(a"}]})
    assert answer.status_code == 400
    assert "is no regular expression" in answer.json()["error"]
    assert client.get(f"{project}/rules").json() == [{"message": "", **rules[0]}]


def test_a_rule_that_never_ends_is_a_finding_and_not_used_again(client: TestClient) -> None:
    project, url = opened(client)
    client.put(f"{project}/rules", json={"rules": [{"name": "slow", "target": "(a+)+$"}]})
    body = {"target": "Der Bericht von 2024 ist l" + "a" * 60 + "ng."}
    (found,) = client.post(f"{url}/findings", json={"position": 0, **body}).json()
    assert found["rule"] == "slow"
    assert "was stopped after" in found["message"]
    assert client.post(f"{url}/findings", json={"position": 0, **body}).json() == []


def test_a_document_in_another_language_is_said_when_it_is_added(client: TestClient) -> None:
    project = client.post("/v1/projects", json={"name": "Checks"}).json()["id"]
    german = (
        "Der Bericht ist lang, und der Ausschuss hat ihn noch nicht angenommen. Er liegt seit Monaten auf dem Tisch."
    )
    added = client.post(f"/v1/projects/{project}/documents", data={"text": german}).json()
    assert added["notes"] == ["This looks like German, not English: the translation will be of no use."]
    english = client.post(f"/v1/projects/{project}/documents", data={"text": TEXT * 3}).json()
    assert english["notes"] == []


@pytest.mark.parametrize(
    ("target", "place"), [("Der\nBericht", "a line end at character 4"), ("D\0er", "U+0000 at character 2")]
)
def test_what_the_file_cannot_hold_is_refused_at_the_edit(client: TestClient, target: str, place: str) -> None:
    _, url = opened(client)
    before = client.get(url).json()["rows"][0]
    answer = put(client, url, target, state="edited")
    assert answer.status_code == 422
    assert answer.json()["error"] == f"row 1: txt cannot hold {place} of a sentence: remove it"
    assert client.get(url).json()["rows"][0]["target"] == before["target"] or before["state"] == "empty"


def test_confirmed_rows_are_translated_in_xliff_and_locked_ones_can_be_corrected(client: TestClient) -> None:
    text = """<xliff version="1.2"><file original="a" source-language="en" datatype="plaintext"><body>
    <trans-unit id="1"><source>Good day.</source><target>Guten Tag.</target></trans-unit>
    <trans-unit id="2"><source>See you.</source></trans-unit></body></file></xliff>"""
    _, url = opened(client, text, "a.xlf")
    assert put(client, url, "Grüß Gott.").status_code == 200
    assert put(client, url, "Bis bald.", 1).status_code == 200
    found = etree.fromstring(client.get(f"{url}/export/file").content).iter("target")
    assert [(one.text, one.get("state")) for one in found] == [
        ("Grüß Gott.", "translated"),
        ("Bis bald.", "translated"),
    ]
    rows = etree.fromstring(client.get(f"{url}/export/xliff").content).iter("{*}target")
    assert [(one.text, one.get("state")) for one in rows] == [("Grüß Gott.", "translated"), ("Bis bald.", "translated")]


# In the browser


@pytest.mark.browser
def test_the_page_asks_once_and_confirms_then(story: Story) -> None:
    page = story.open_text(TEXT).page
    wrong = "Der Bericht von 2042 ist lang."
    story.confirm(0, wrong)
    page.wait_for_selector("tr[data-position='0'] .finding")
    story.until(lambda: story.cursor() == 0)
    assert story.state(0) == "edited"
    assert "2042" in page.inner_text("tr[data-position='0'] .findings")
    assert "Ctrl+Enter again confirms" in story.said()
    story.field(0).press("Enter")
    story.until(lambda: story.stored()[0]["state"] == "confirmed")
    assert story.stored()[0]["target"] == wrong
    assert story.cursor() == 1
    assert page.locator(".finding").count() == 0


@pytest.mark.browser
def test_what_is_known_is_asked_before_the_cursor_moves(story: Story) -> None:
    page = story.open_text(TEXT).page
    about_it = lambda answer: answer.url.endswith("/findings") and "21 Seiten" in (answer.request.post_data or "")  # noqa: E731
    with page.expect_response(about_it) as found:
        story.field(1).fill("Er hat 21 Seiten.")
    assert found.value.json()
    page.evaluate("new Promise(requestAnimationFrame)")  # the page has it, too
    story.field(1).press("Control+Enter")
    page.wait_for_selector("tr[data-position='1'] .finding")
    assert story.cursor() == 1
    page.click("tr[data-position='1'] .finding button:has-text('Ignore here')")
    page.wait_for_selector("tr[data-position='1'] .finding", state="detached")
    story.field(1).press("Control+Enter")
    story.until(lambda: story.stored()[1]["state"] == "confirmed")


@pytest.mark.browser
def test_the_export_begins_with_a_summary(story: Story) -> None:
    page = story.open_text(TEXT).page
    story.put(0, "Der Bericht von 2042 ist lang.", "confirmed")
    story.put(1, "Er hat 12 Seiten.", "confirmed")
    page.click("#export-button")
    page.wait_for_selector("#export-findings li")
    assert page.inner_text("#export-findings h3") == "1 finding in 1 row"
    page.click("#export-findings button")
    assert not page.locator("#export-dialog").is_visible()
    assert story.cursor() == 0


@pytest.mark.browser
def test_a_row_has_no_line_ends(story: Story) -> None:
    story.open_text(TEXT)
    story.field(0).fill("Der Bericht\nvon 2024 ist lang.")
    story.until(lambda: story.stored()[0]["target"] == "Der Bericht von 2024 ist lang.")
    assert story.text(0) == "Der Bericht von 2024 ist lang."


def test_a_lost_tag_and_a_sign_that_was_not_typed_are_asked_about(client: TestClient) -> None:
    unit = '<trans-unit id="1"><source>Press <x id="1"/> now.</source><target>Jetzt <x id="1"/>.</target></trans-unit>'
    _, url = opened(
        client, f'<xliff version="1.2"><file source-language="en"><body>{unit}</body></file></xliff>', "a.xlf"
    )
    answer = put(client, url, "Jetzt.", ask=True).json()
    assert ("tags", "⟦1⟧") in [(one["rule"], one["words"]) for one in answer["findings"]]
    assert put(client, url, "Nun ⟦1⟧.", ask=True).json()["state"] == "confirmed"
    _, url = opened(client, "The price* of fish is high.\n")
    answer = put(client, url, "Der Preis von Fisch ist hoch.", ask=True).json()
    assert [(one["rule"], one["words"]) for one in answer["findings"]] == [("tags", "*")]
    assert put(client, url, "Der Preis* von Fisch ist hoch.", ask=True).json()["state"] == "confirmed"
