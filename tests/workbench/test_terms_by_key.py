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


def test_corrections_are_offered_with_their_reason_and_change_nothing(client: TestClient, url: str) -> None:
    nothing = client.get(f"{url}/corrections").json()
    assert nothing == {"corrected": [], "drafts": []}
    draft = rows(client, url)[0]["target"]
    assert draft.startswith("Die ")
    refused = draft.split()[1]
    target = draft.replace(refused, "Dorschquote")
    body = {"target": target, "state": "confirmed", "version": 2**40}
    assert client.put(f"{url}/segments/0", json=body).status_code == 200
    before = rows(client, url)
    found = client.get(f"{url}/corrections").json()
    (corrected,) = found["corrected"]
    assert corrected["target"] == "Dorschquote"
    assert corrected["origin"] == "row 1"
    assert set(corrected["rows"]) >= {1, 2}
    for offer in found["drafts"]:
        assert "Dorschquote" in offer["text"]
        assert offer["reason"].endswith("= Dorschquote, row 1")
        assert before[offer["sentence"]]["state"] == "draft"
    assert [row["target"] for row in rows(client, url)][3] == before[3]["target"]
    assert client.get("/v1/projects/none/documents/none/corrections").status_code == 404
