"""A term that a person makes of words: previewed, kept by search in drafts, and taken back."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.patience import PATIENCE

TEXT = (
    "The cod quota is too low.\n\nWe need a higher cod quota.\n\nThe cod quota is fine.\n\nThe herring quota is high.\n"
)


@pytest.fixture
def url(client: TestClient) -> str:
    """A translated document, whose third row a person has written."""
    project = client.post("/v1/projects", json={"name": "Terms"}).json()["id"]
    added = client.post(f"/v1/projects/{project}/documents", data={"text": TEXT, "name": "a.txt"}).json()
    url = f"/v1/projects/{project}/documents/{added['id']}"
    until(lambda: all(row["state"] == "draft" for row in rows(client, url)))
    body = {"target": "Die Quote ist gut.", "state": "edited", "version": 2**40}
    assert client.put(f"{url}/segments/2", json=body).status_code == 200
    return url


def until(reached: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end, "never reached"
        time.sleep(0.02)


def rows(client: TestClient, url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(url).json()["rows"]
    return found


def test_a_term_is_previewed_kept_and_taken_back(client: TestClient, url: str) -> None:
    term = {"source": " cod  quota ", "target": "Dorschquote"}
    before = rows(client, url)
    preview = client.post(f"{url}/terms/preview", json=term).json()
    assert preview == {"drafts": [0, 1], "left": [2], "followed": [], "known": None}
    assert rows(client, url) == before

    pair = client.post(f"{url}/terms", json=term).json()["pair"]
    until(lambda: all("Dorschquote" in row["target"] for row in rows(client, url)[:2]))
    now = rows(client, url)
    assert [(row["before"], row["cause"]) for row in now[:2]] == [(row["target"], -pair) for row in before[:2]]
    assert now[2] == before[2]  # a person's text is left
    assert now[3] == before[3]  # herring stays herring
    again = client.post(f"{url}/terms/preview", json=term).json()
    assert again == {"drafts": [], "left": [2], "followed": [0, 1], "known": "Dorschquote"}

    back = client.delete(f"{url}/terms/{pair}").json()["rows"]
    assert [row["position"] for row in back] == [0, 1]
    assert [row["target"] for row in rows(client, url)] == [row["target"] for row in before]
    assert client.get(f"{url.split('/documents')[0]}/pairs").json() == []
    assert client.delete(f"{url}/terms/{pair}").status_code == 404


def test_a_document_that_comes_later_keeps_the_term(client: TestClient, url: str) -> None:
    client.post(f"{url}/terms", json={"source": "cod quota", "target": "Dorschquote"})
    project = url.split("/documents")[0]
    added = client.post(f"{project}/documents", data={"text": "The cod quota is low.", "name": "b.txt"}).json()
    later = f"{project}/documents/{added['id']}"
    until(lambda: rows(client, later)[0]["state"] == "draft")
    assert "Dorschquote" in rows(client, later)[0]["target"]


def test_a_term_without_words_is_refused(client: TestClient, url: str) -> None:
    for path in ("terms", "terms/preview"):
        for source, target in ((" ", "x"), ("...", "x"), ("cod", "  ")):
            answer = client.post(f"{url}/{path}", json={"source": source, "target": target})
            assert answer.status_code == 422, (path, source, target)


def test_corrections_are_offered_with_their_reason_and_change_nothing(client: TestClient) -> None:
    """The second row is being written in a tab, so that it does not follow by itself."""
    text = "The meeting was long.\n\nThe meeting begins on Monday.\n\nThe house is blue.\n"
    project = client.post("/v1/projects", json={"name": "Corrections"}).json()["id"]
    added = client.post(f"/v1/projects/{project}/documents", data={"text": text, "name": "a.txt"}).json()
    url = f"/v1/projects/{project}/documents/{added['id']}"
    until(lambda: all(row["state"] == "draft" for row in rows(client, url)))
    assert client.get(f"{url}/corrections").json() == {"corrected": [], "drafts": []}
    drafts = [row["target"] for row in rows(client, url)]
    assert drafts[0] == "Die Besprechung war lang."
    assert "Besprechung" in drafts[1]
    client.post(f"{url}/focus", json={"position": 1, "writer": "a tab"})
    body = {"target": "Die Sitzung war lang.", "state": "confirmed", "version": 2**40}
    assert client.put(f"{url}/segments/0", json=body).status_code == 200
    found = client.get(f"{url}/corrections").json()
    corrected = {"source": "meeting", "refused": "Besprechung", "target": "Sitzung", "origin": "row 1", "rows": [1]}
    assert found["corrected"] == [corrected]
    wanted = drafts[1].replace("Besprechung", "Sitzung")
    reason = "because of the term meeting = Sitzung, row 1"
    assert found["drafts"] == [{"sentence": 1, "text": wanted, "reason": reason}]
    assert [row["target"] for row in rows(client, url)][1:] == drafts[1:]
    assert client.get(f"{url}/corrections", params={"position": 0}).json() == {"corrected": [corrected], "drafts": []}
    assert client.get(f"{url}/corrections", params={"position": 2}).json() == {"corrected": [], "drafts": []}
    assert client.get(f"{url}/corrections", params={"position": 3}).status_code == 404
    assert client.get("/v1/projects/none/documents/none/corrections").status_code == 404
